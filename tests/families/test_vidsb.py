"""Family `vidsb`: what `POST /v1/vidsb/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import VidsbRequest

from .cases import (
    ASSET,
    BARE_BASE64,
    DATA,
    DAY,
    IMAGE,
    LAST,
    NOT_PUBLIC,
    VIDEO,
    FamilyContract,
    Records,
    audios,
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

BASE = {"model": "vidsb_2_0_pro", "prompt": "a horse at a gallop"}
PLAIN = {"model": "vidsb_2_0", "prompt": "a horse at a gallop"}
STARTED = {**BASE, "first_image": IMAGE}
FRAMES = {"first_image": IMAGE, "last_image": LAST}
FRAMED = {**BASE, **FRAMES}
REFERENCES = {
    "referenceImages": images(1),
    "referenceVideos": videos(1),
    "referenceAudios": audios(1),
}
SETTINGS = {"duration": 15, "aspect_ratio": "adaptive", "generateAudio": False}

NEEDING_A_VIDEO = ("vidsb_2_0", "vidsb_2_0_fast")
FREE = ("vidsb_2_0_pro", "vidsb_2_0_fast_pro")

ACCEPTED = [
    ok("smallest", BASE),
    ok("smallest of vidsb_2_0", {**PLAIN, "referenceVideos": videos(1)}),
    ok("fullest by frames", {**FRAMED, **SETTINGS}),
    ok(
        "fullest by references",
        {
            "model": "vidsb_2_0_fast",
            "prompt": "a horse at a gallop",
            **SETTINGS,
            "referenceImages": images(9),
            "referenceVideos": videos(3),
            "referenceAudios": audios(3),
        },
    ),
    *each(BASE, "model", *FREE),
    *each({**BASE, "referenceVideos": videos(1)}, "model", *NEEDING_A_VIDEO, *FREE),
    *each(BASE, "duration", *range(4, 16)),
    *each(BASE, "aspect_ratio", "16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"),
    *each(BASE, "generateAudio", True, False),
    # Frames.
    *(ok(f"{model} first frame", {**STARTED, "model": model}) for model in FREE),
    *(ok(f"{model} first and last frame", {**FRAMED, "model": model}) for model in FREE),
    # References.
    *each(BASE, "referenceImages", *(images(count) for count in range(1, 10))),
    *each(BASE, "referenceVideos", [], *(videos(count) for count in range(1, 4))),
    *each(BASE, "referenceAudios", [], *(audios(count) for count in range(1, 4))),
    *each(PLAIN, "referenceVideos", *(videos(count) for count in range(1, 4))),
    ok("all references", {**BASE, **REFERENCES}),
    ok("all references of vidsb_2_0", {**PLAIN, **REFERENCES}),
    ok(
        "URLs and assets together",
        {**BASE, "referenceImages": [IMAGE, ASSET, "asset://a", "http://example.com/b.png"]},
    ),
    *prompts(BASE),
    *long_prompts(BASE),
    *media(BASE, "first_image", more=(ASSET, "asset://a")),
    *media(STARTED, "last_image", more=(ASSET, "asset://a")),
    *media_arrays(BASE, "referenceImages", more=(ASSET, "asset://a")),
    *media_arrays(BASE, "referenceVideos", more=(ASSET, "asset://a")),
    *media_arrays(BASE, "referenceAudios", more=(ASSET, "asset://a")),
]

REJECTED = [
    *near(BASE, "model", "vidsb_2_0_pro"),
    *near({**BASE, "referenceVideos": videos(1)}, "model", "vidsb_2_0"),
    *none(
        BASE, "model", "vidsb", "vidsb_2", "vidsb_2.0_pro", "vidsb-2-0-pro", "vidsb_2_0_pro_fast"
    ),
    *not_prompts(BASE),
    *not_integers(BASE, "duration", 5),
    *none(BASE, "duration", 3, 16, 2, 1, 30, -1),
    *near(BASE, "aspect_ratio", "16:9"),
    *near(BASE, "aspect_ratio", "adaptive"),
    *none(BASE, "aspect_ratio", "3:2", "2:3", "9:21", "auto", "1280x720"),
    *none(BASE, "generateAudio", "true", "false", "True", "", "yes", 1, 0, 1.0, 0.0, None, [], {}),
    # At least one reference video.
    *(
        no(f"{model} without a video", {**BASE, "model": model}, "referenceVideos")
        for model in NEEDING_A_VIDEO
    ),
    *(
        no(
            f"{model} with no video",
            {**BASE, "model": model, "referenceVideos": []},
            "referenceVideos",
        )
        for model in NEEDING_A_VIDEO
    ),
    *(
        no(
            f"{model} with an image and an audio alone",
            {
                **BASE,
                "model": model,
                "referenceImages": images(1),
                "referenceAudios": audios(1),
            },
            "referenceVideos",
        )
        for model in NEEDING_A_VIDEO
    ),
    *(
        no(
            f"{model} with frames",
            {**FRAMED, "model": model},
            "referenceVideos",
        )
        for model in NEEDING_A_VIDEO
    ),
    *none(PLAIN, "referenceVideos", None, VIDEO, [5], ["garbage"], videos(4)),
    # Frames.
    no("last_image alone", {**BASE, "last_image": LAST}, "last_image"),
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
    no("frames beside all", {**FRAMED, **REFERENCES}, "first_image", "last_image"),
    # Counts.
    *none(BASE, "referenceImages", [], images(10), images(11), images(100)),
    *none(BASE, "referenceVideos", videos(4), videos(5), videos(100)),
    *none(BASE, "referenceAudios", audios(4), audios(5), audios(100)),
    *none(PLAIN, "referenceVideos", videos(4)),
    no(
        "too many of all",
        {
            **BASE,
            "referenceImages": images(10),
            "referenceVideos": videos(4),
            "referenceAudios": audios(4),
        },
        "referenceImages",
        "referenceVideos",
        "referenceAudios",
    ),
    *not_media(BASE, "first_image", more=NOT_PUBLIC),
    *not_media(STARTED, "last_image", more=NOT_PUBLIC),
    *not_media_arrays(BASE, "referenceImages", more=(DATA, BARE_BASE64)),
    *not_media_arrays(BASE, "referenceVideos", more=(), item=VIDEO),
    *not_media_arrays(BASE, "referenceAudios", more=(), item=audios(1)[0]),
    *not_second_items(BASE, "referenceImages"),
    *not_second_items(BASE, "referenceVideos", VIDEO),
    *not_second_items(BASE, "referenceAudios", audios(1)[0]),
    *unknown(
        BASE,
        promt="prompt",
        aspectRatio="aspect_ratio",
        reference_images="referenceImages",
        reference_videos="referenceVideos",
        reference_audios="referenceAudios",
        referenceAudio="referenceAudios",
        generate_audio="generateAudio",
        generateaudio="generateAudio",
        firstImage="first_image",
        lastImage="last_image",
    ),
    *none(BASE, "resolution", "720p"),
    *none(BASE, "image_urls", images(1)),
    *none(BASE, "seconds", 5),
    *none(BASE, "ratio", "16:9"),
    no(
        "everything wrong at once",
        {
            "model": "vidsb_2_0",
            "duration": 3,
            "aspect_ratio": "3:2",
            "generateAudio": "true",
            "last_image": "garbage",
            "aspectRatio": "16:9",
        },
        "prompt",
        "duration",
        "aspect_ratio",
        "generateAudio",
        "last_image",
        "referenceVideos",
        "aspectRatio",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidsb_3_0"}),
    ok("no video", {**BASE, "model": "vidsb_3_0", "referenceVideos": []}),
    ok("frames", {**FRAMED, "model": "vidsb_3_0"}),
    ok("references", {**BASE, "model": "vidsb_3_0", **REFERENCES, **SETTINGS}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "vidsb_3_0", "prompt": " "}, "prompt"),
    no("duration", {**BASE, "model": "vidsb_3_0", "duration": 16}, "duration"),
    no("no boolean", {**BASE, "model": "vidsb_3_0", "generateAudio": 1}, "generateAudio"),
    no("last_image alone", {**BASE, "model": "vidsb_3_0", "last_image": LAST}, "last_image"),
    no(
        "frame beside references",
        {**STARTED, "model": "vidsb_3_0", "referenceAudios": audios(1)},
        "first_image",
    ),
    no(
        "10 images",
        {**BASE, "model": "vidsb_3_0", "referenceImages": images(10)},
        "referenceImages",
    ),
]

DEFAULTS = {"duration": 5, "aspect_ratio": "16:9", "generateAudio": True}


class TestVidsb(FamilyContract):
    request = VidsbRequest
    create_path = "/v1/vidsb/videos"
    records = Records("video", "video", retention=DAY)
    pace = (20, 40)
    names = python_names(
        "model",
        "prompt",
        "duration",
        "aspect_ratio",
        "generateAudio",
        "first_image",
        "last_image",
        "referenceImages",
        "referenceVideos",
        "referenceAudios",
    )
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
