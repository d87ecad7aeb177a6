"""Family `vidc`: what `POST /v1/vidc/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import VidcRequest

from .cases import (
    IMAGE,
    LAST,
    VIDEO,
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
    not_integers,
    not_media,
    not_media_arrays,
    not_prompts,
    not_second_items,
    ok,
    prompts,
    python_names,
    unknown,
    videos,
)

BASE = {"model": "vidc_o3", "prompt": "a horse at a gallop"}
FRAMES = {"first_image": IMAGE, "last_image": LAST}
FRAMED = {**BASE, **FRAMES}
REFERENCES = {"referenceImages": images(1), "referenceVideos": videos(1)}
FOLLOWING = {**BASE, "referenceVideos": videos(1)}

ACCEPTED = [
    ok("smallest", BASE),
    ok("fullest by text", {**BASE, "duration": 15, "ratio": "1:1"}),
    ok("fullest by frames", {**FRAMED, "duration": 3, "ratio": "16:9"}),
    ok(
        "fullest by images",
        {**BASE, "duration": 10, "ratio": "9:16", "referenceImages": images(7)},
    ),
    ok(
        "fullest by images and video",
        {**BASE, "referenceImages": images(4), "referenceVideos": videos(1)},
    ),
    *each(BASE, "model", "vidc_o3"),
    *each(BASE, "duration", *range(3, 16)),
    *each(BASE, "ratio", "9:16", "1:1", "16:9"),
    # Modes.
    ok("first and last frame", FRAMED),
    *each(BASE, "referenceImages", *(images(count) for count in range(1, 8))),
    *each(BASE, "referenceVideos", videos(1)),
    *each(FOLLOWING, "referenceImages", *(images(count) for count in range(1, 5))),
    # Settings without effect.
    ok("duration beside a video", {**FOLLOWING, "duration": 5}, notices=("duration",)),
    ok("ratio beside a video", {**FOLLOWING, "ratio": "1:1"}, notices=("ratio",)),
    ok(
        "duration and ratio beside a video",
        {**FOLLOWING, "duration": 5, "ratio": "1:1"},
        notices=("duration", "ratio"),
    ),
    ok(
        "duration and ratio beside images and a video",
        {**FOLLOWING, "duration": 15, "ratio": "16:9", "referenceImages": images(4)},
        notices=("duration", "ratio"),
    ),
    ok("no notice beside images", {**BASE, "duration": 5, "referenceImages": images(2)}),
    ok("no notice beside frames", {**FRAMED, "duration": 5, "ratio": "1:1"}),
    *prompts(BASE),
    *long_prompts(BASE),
    *media(FRAMED, "first_image"),
    *media(FRAMED, "last_image"),
    *media_arrays(BASE, "referenceImages"),
    *media_arrays(BASE, "referenceVideos"),
]

REJECTED = [
    *near(BASE, "model", "vidc_o3"),
    *none(BASE, "model", "vidc", "vidc_o1", "vidc_o4", "vidc-o3", "vidc_03", "videos"),
    *not_prompts(BASE),
    *not_integers(BASE, "duration", 5),
    *none(BASE, "duration", 2, 16, 1, 30, -1),
    *near(BASE, "ratio", "9:16"),
    *near(BASE, "ratio", "1:1"),
    *none(BASE, "ratio", "4:3", "3:4", "21:9", "3:2", "adaptive", "720x1280"),
    # Both frames or none.
    no("first_image alone", {**BASE, "first_image": IMAGE}, "first_image"),
    no("last_image alone", {**BASE, "last_image": LAST}, "last_image"),
    # Frames and references exclude each other.
    *(
        no(
            f"frames beside {field}",
            {**FRAMED, field: REFERENCES[field]},
            "first_image",
            "last_image",
        )
        for field in REFERENCES
    ),
    no("frames beside both", {**FRAMED, **REFERENCES}, "first_image", "last_image"),
    *clashes(BASE, FRAMES, REFERENCES),
    # Counts.
    *none(BASE, "referenceImages", images(8), images(9), images(100)),
    *none(BASE, "referenceVideos", videos(2), videos(3)),
    *none(FOLLOWING, "referenceImages", images(5), images(6), images(7), images(8)),
    no(
        "too many of both",
        {**BASE, "referenceImages": images(5), "referenceVideos": videos(2)},
        "referenceImages",
        "referenceVideos",
    ),
    *not_media(FRAMED, "first_image"),
    *not_media(FRAMED, "last_image"),
    *not_media_arrays(BASE, "referenceImages"),
    *not_media_arrays(BASE, "referenceVideos", item=VIDEO),
    *not_second_items(BASE, "referenceImages"),
    *unknown(
        BASE,
        promt="prompt",
        reference_images="referenceImages",
        reference_videos="referenceVideos",
        referenceVideo="referenceVideos",
        firstImage="first_image",
        lastImage="last_image",
        durations="duration",
        Ratio="ratio",
    ),
    *none(BASE, "aspectRatio", "16:9"),
    *none(BASE, "aspect_ratio", "16:9"),
    *none(BASE, "resolution", "720p"),
    *none(BASE, "image_urls", images(1)),
    *none(BASE, "generateAudio", True),
    no(
        "everything wrong at once",
        {
            "model": "vidc_o4",
            "duration": 16,
            "ratio": "4:3",
            "referenceImages": images(8),
            "first_image": "garbage",
            "last_image": 5,
            "aspectRatio": "16:9",
        },
        "model",
        "prompt",
        "duration",
        "ratio",
        "referenceImages",
        "first_image",
        "last_image",
        "aspectRatio",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidc_o4"}),
    ok("frames", {**FRAMED, "model": "vidc_o4", "duration": 15}),
    ok("references", {**BASE, "model": "vidc_o4", **REFERENCES}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "vidc_o4", "prompt": " "}, "prompt"),
    no("duration", {**BASE, "model": "vidc_o4", "duration": 16}, "duration"),
    no("ratio", {**BASE, "model": "vidc_o4", "ratio": "4:3"}, "ratio"),
    no("first_image alone", {**BASE, "model": "vidc_o4", "first_image": IMAGE}, "first_image"),
    no(
        "5 images beside a video",
        {**FOLLOWING, "model": "vidc_o4", "referenceImages": images(5)},
        "referenceImages",
    ),
]

DEFAULTS = {"duration": 3, "ratio": "9:16"}


class TestVidc(FamilyContract):
    request = VidcRequest
    create_path = "/v1/vidc/videos"
    records = Records("video", "video")
    pace = (30, 60)
    names = python_names(
        "model",
        "prompt",
        "duration",
        "ratio",
        "referenceImages",
        "first_image",
        "last_image",
        "referenceVideos",
    )
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
