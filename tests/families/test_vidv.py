"""Family `vidv`: what `POST /v1/vidv/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

import itertools

from muybridge_protocol.families import VidvRequest

from .cases import (
    DAY,
    IMAGE,
    LAST,
    FamilyContract,
    Records,
    clashes,
    each,
    images,
    long_prompts,
    media,
    media_arrays,
    near,
    no,
    none,
    not_media,
    not_media_arrays,
    not_prompts,
    not_second_items,
    ok,
    prompts,
    python_names,
    unknown,
)

BASE = {"model": "vidv_3_1_pro", "prompt": "a horse at a gallop"}
STARTED = {**BASE, "first_image": IMAGE}
FRAMES = {"first_image": IMAGE, "last_image": LAST}
FRAMED = {**BASE, **FRAMES}
REFERENCES = {"input_reference": images(1), "image_urls": images(1)}

MODELS = ("vidv_3_1_fast", "vidv_3_1_pro", "vidv_3_1_pro_stable", "vidv_3_1_fast_stable")
MODELS_OF_4K = ("vidv_3_1_fast", "vidv_3_1_pro")
MODELS_BELOW_4K = ("vidv_3_1_pro_stable", "vidv_3_1_fast_stable")
MODELS_WITH_REFERENCES = ("vidv_3_1_fast", "vidv_3_1_pro", "vidv_3_1_pro_stable")

ACCEPTED = [
    ok("smallest", BASE),
    ok(
        "fullest by references",
        {
            "model": "vidv_3_1_fast",
            "prompt": "a horse at a gallop",
            "resolution": "4K",
            "aspect_ratio": "9:16",
            "input_reference": images(3),
        },
    ),
    ok(
        "fullest by frames",
        {**FRAMED, "model": "vidv_3_1_fast_stable", "resolution": "1080p", "aspect_ratio": "16:9"},
    ),
    *each(BASE, "model", *MODELS),
    # Resolutions, in any case.
    *each(BASE, "resolution", "720p", "1080p", "4K", "720P", "1080P", "4k"),
    *(
        ok(f"{model} in {resolution}", {**BASE, "model": model, "resolution": resolution})
        for model, resolution in itertools.product(MODELS, ("720p", "1080p", "1080P"))
    ),
    *(
        ok(f"{model} in {resolution}", {**BASE, "model": model, "resolution": resolution})
        for model, resolution in itertools.product(MODELS_OF_4K, ("4K", "4k"))
    ),
    *each(BASE, "aspect_ratio", "16:9", "9:16"),
    # Frames.
    *(ok(f"{model} first frame", {**STARTED, "model": model}) for model in MODELS),
    *(ok(f"{model} first and last frame", {**FRAMED, "model": model}) for model in MODELS),
    # References.
    *(
        ok(f"{model} with {field}", {**BASE, "model": model, field: images(3)})
        for model, field in itertools.product(MODELS_WITH_REFERENCES, REFERENCES)
    ),
    *each(BASE, "input_reference", [], images(1), images(2), images(3)),
    *each(BASE, "image_urls", [], images(1), images(2), images(3)),
    *prompts(BASE),
    *long_prompts(BASE),
    *media(BASE, "first_image"),
    *media(STARTED, "last_image"),
    *media_arrays(BASE, "input_reference"),
    *media_arrays(BASE, "image_urls"),
]

REJECTED = [
    *near(BASE, "model", "vidv_3_1_fast"),
    *near(BASE, "model", "vidv_3_1_pro_stable"),
    *none(BASE, "model", "vidv", "vidv_3_1", "vidv_3.1_pro", "vidv-3-1-pro", "vidv_3_1_stable"),
    *not_prompts(BASE),
    *near(BASE, "resolution", "720p", any_case=True),
    *near(BASE, "resolution", "1080p", any_case=True),
    *near(BASE, "resolution", "4K", any_case=True),
    *none(BASE, "resolution", "480p", "2160p", "8K", "2K", "720", "3840x2160", 4, 720),
    # The Kelvin sign, whose lower case is a k, is no K.
    *none(BASE, "resolution", "4\u212a", "720\u03c1", "4\uff2b"),
    *(
        no(
            f"{model} in {resolution}",
            {**BASE, "model": model, "resolution": resolution},
            "resolution",
        )
        for model, resolution in itertools.product(MODELS_BELOW_4K, ("4K", "4k"))
    ),
    *near(BASE, "aspect_ratio", "16:9"),
    *near(BASE, "aspect_ratio", "9:16"),
    # No resolution suffix.
    *none(BASE, "aspect_ratio", "16:9-1080p", "16:9_1080p", "16:9 1080p", "16:9@4K", "9:16-4K"),
    *none(BASE, "aspect_ratio", "1:1", "4:3", "3:4", "21:9", "1280x720"),
    *none(BASE, "input_reference", images(4), images(5), images(100)),
    *none(BASE, "image_urls", images(4), images(5), images(100)),
    no("both names of the references", {**BASE, **REFERENCES}, "image_urls"),
    no("last_image alone", {**BASE, "last_image": LAST}, "last_image"),
    # References and frames exclude each other.
    *clashes(BASE, FRAMES, REFERENCES),
    *(
        no(
            f"frames beside {field}",
            {**FRAMED, field: REFERENCES[field]},
            "first_image",
            "last_image",
        )
        for field in REFERENCES
    ),
    # vidv_3_1_fast_stable accepts first/last frame input only.
    *(
        no(
            f"vidv_3_1_fast_stable with {field}",
            {**BASE, "model": "vidv_3_1_fast_stable", field: images(1)},
            field,
        )
        for field in REFERENCES
    ),
    *not_media(BASE, "first_image"),
    *not_media(STARTED, "last_image"),
    *not_media_arrays(BASE, "input_reference"),
    *not_media_arrays(BASE, "image_urls"),
    *not_second_items(BASE, "input_reference"),
    *not_second_items(BASE, "image_urls"),
    *unknown(
        BASE,
        promt="prompt",
        aspectRatio="aspect_ratio",
        imageUrls="image_urls",
        inputReference="input_reference",
        firstImage="first_image",
        lastImage="last_image",
        Resolution="resolution",
    ),
    *none(BASE, "reference_images", images(1)),
    *none(BASE, "duration", 8),
    *none(BASE, "seconds", 8),
    *none(BASE, "generateAudio", True),
    no(
        "everything wrong at once",
        {
            "model": "vidv_9",
            "prompt": "",
            "resolution": "8K",
            "aspect_ratio": "1:1",
            "image_urls": images(4),
            "duration": 8,
        },
        "model",
        "prompt",
        "resolution",
        "aspect_ratio",
        "image_urls",
        "duration",
    ),
    no(
        "every limit of the model at once",
        {
            **BASE,
            "model": "vidv_3_1_fast_stable",
            "resolution": "4k",
            "image_urls": images(1),
            "last_image": LAST,
        },
        "resolution",
        "image_urls",
        "last_image",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidv_4"}),
    ok("4K", {**BASE, "model": "vidv_4", "resolution": "4K"}),
    ok("4k", {**BASE, "model": "vidv_4", "resolution": "4k"}),
    ok("references", {**BASE, "model": "vidv_4", "image_urls": images(3)}),
    ok("frames", {**FRAMED, "model": "vidv_4"}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "vidv_4", "prompt": " "}, "prompt"),
    no("resolution", {**BASE, "model": "vidv_4", "resolution": "8K"}, "resolution"),
    no("4 images", {**BASE, "model": "vidv_4", "image_urls": images(4)}, "image_urls"),
    no("last_image alone", {**BASE, "model": "vidv_4", "last_image": LAST}, "last_image"),
    no("both names", {**BASE, "model": "vidv_4", **REFERENCES}, "image_urls"),
    no(
        "frame beside references",
        {**STARTED, "model": "vidv_4", "image_urls": images(1)},
        "first_image",
    ),
]

DEFAULTS = {"resolution": "720p", "aspect_ratio": "16:9"}


class TestVidv(FamilyContract):
    request = VidvRequest
    create_path = "/v1/vidv/videos"
    records = Records("video", "video", omits_error=True, retention=DAY)
    pace = (30, 60)
    names = python_names(
        "model",
        "prompt",
        "resolution",
        "aspect_ratio",
        "input_reference",
        "image_urls",
        "first_image",
        "last_image",
    )
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
