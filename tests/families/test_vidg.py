"""Family `vidg`: what `POST /v1/vidg/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import VidgRequest

from .cases import (
    ASSET,
    DATA,
    NOT_PUBLIC,
    FamilyContract,
    Records,
    each,
    images,
    long_prompts,
    media_arrays,
    near,
    no,
    none,
    not_integers,
    not_media_arrays,
    not_prompts,
    not_second_items,
    ok,
    prompts,
    python_names,
    unknown,
)

PROMPT = {"prompt": "a horse at a gallop"}
BASE = {"model": "vidg_video3", **PROMPT}
PRO = {"model": "vidg_video3_pro", **PROMPT}
MAX = {"model": "vidg_video3_max", **PROMPT}
STABLE = {"model": "vidg_video3_stable", **PROMPT}

# What belongs to no model in the text.
NO_RATIOS = ("4:3", "3:4", "21:9", "9:21", "adaptive", "1280x720")
NO_RESOLUTIONS = ("540p", "1080p", "4k", "720", "1280x720", 720)

ACCEPTED = [
    ok("smallest", BASE),
    ok("smallest of pro", PRO),
    ok("smallest of max", MAX),
    ok("smallest of stable", STABLE),
    ok(
        "fullest",
        {
            **BASE,
            "duration": 30,
            "aspect_ratio": "2:3",
            "resolution": "720p",
            "image_urls": images(7),
        },
    ),
    ok(
        "fullest of pro",
        {**PRO, "aspect_ratio": "16:9", "resolution": "720p", "image_urls": images(7)},
    ),
    ok(
        "fullest of max",
        {
            **MAX,
            "duration": 30,
            "aspect_ratio": "1:1",
            "resolution": "720p",
            "image_urls": images(5),
        },
    ),
    ok(
        "fullest of stable",
        {
            **STABLE,
            "duration": 10,
            "aspect_ratio": "3:2",
            "resolution": "480p",
            "image_urls": images(7),
        },
    ),
    *each(
        PROMPT,
        "model",
        "vidg_video3",
        "vidg_video3_pro",
        "vidg_video3_max",
        "vidg_video3_stable",
    ),
    # vidg_video3
    *each(BASE, "duration", *range(6, 31)),
    *each(BASE, "aspect_ratio", "16:9", "9:16", "1:1", "3:2", "2:3"),
    *each(BASE, "resolution", "480p", "720p"),
    *each(BASE, "image_urls", [], images(1), images(6), images(7)),
    *media_arrays(BASE, "image_urls", more=(DATA,)),
    # vidg_video3_pro
    *each(PRO, "aspect_ratio", "16:9"),
    *each(PRO, "resolution", "720p"),
    *each(PRO, "image_urls", [], images(1), images(7)),
    *media_arrays(PRO, "image_urls", more=(DATA,)),
    # vidg_video3_max
    *each(MAX, "duration", 6, 10, 12, 16, 20, 30),
    *each(MAX, "aspect_ratio", "16:9", "9:16", "1:1"),
    *each(MAX, "resolution", "480p", "720p"),
    *each(MAX, "image_urls", [], images(1), images(4), images(5)),
    *media_arrays(MAX, "image_urls"),
    # vidg_video3_stable
    *each(STABLE, "duration", 6, 10),
    *each(STABLE, "aspect_ratio", "16:9", "9:16", "3:2", "2:3", "1:1"),
    *each(STABLE, "resolution", "480p", "720p"),
    *each(STABLE, "image_urls", [], images(1), images(6), images(7)),
    *media_arrays(STABLE, "image_urls"),
    *prompts(BASE),
    *long_prompts(BASE),
]

REJECTED = [
    *near(BASE, "model", "vidg_video3"),
    *near(BASE, "model", "vidg_video3_pro"),
    *near(BASE, "model", "vidg_video3_max"),
    *near(BASE, "model", "vidg_video3_stable"),
    *none(BASE, "model", "vidg", "vidg_video", "vidg_video2", "vidg-video3", "vidg_video3_fast"),
    *not_prompts(BASE),
    # vidg_video3
    *not_integers(BASE, "duration", 6),
    *none(BASE, "duration", 5, 31, 1, 32, 60, -1, 100),
    *near(BASE, "aspect_ratio", "16:9"),
    *near(BASE, "aspect_ratio", "2:3"),
    *none(BASE, "aspect_ratio", *NO_RATIOS),
    *near(BASE, "resolution", "480p"),
    *near(BASE, "resolution", "720p"),
    *none(BASE, "resolution", *NO_RESOLUTIONS),
    *none(BASE, "image_urls", images(8), images(9), images(100)),
    *not_media_arrays(BASE, "image_urls"),
    *not_second_items(BASE, "image_urls"),
    # vidg_video3_pro: the duration must not be set, not even to 10.
    *none(PRO, "duration", 10, 6, 30, 5, "10", None, True, []),
    *near(PRO, "aspect_ratio", "16:9"),
    *none(PRO, "aspect_ratio", "9:16", "1:1", "3:2", "2:3", *NO_RATIOS),
    *near(PRO, "resolution", "720p"),
    *none(PRO, "resolution", "480p", *NO_RESOLUTIONS),
    *not_media_arrays(PRO, "image_urls"),
    # vidg_video3_max
    *not_integers(MAX, "duration", 6),
    *none(
        MAX,
        "duration",
        *(seconds for seconds in range(1, 33) if seconds not in {6, 10, 12, 16, 20, 30}),
    ),
    *near(MAX, "aspect_ratio", "16:9"),
    *none(MAX, "aspect_ratio", "3:2", "2:3", *NO_RATIOS),
    *near(MAX, "resolution", "480p"),
    *none(MAX, "resolution", *NO_RESOLUTIONS),
    *none(MAX, "image_urls", images(6), images(7), images(8)),
    *not_media_arrays(MAX, "image_urls", more=(ASSET, *NOT_PUBLIC)),
    *none(MAX, "image_urls", [*images(1), DATA]),
    # vidg_video3_stable
    *not_integers(STABLE, "duration", 6),
    *none(STABLE, "duration", *(seconds for seconds in range(1, 33) if seconds not in {6, 10})),
    *near(STABLE, "aspect_ratio", "16:9"),
    *none(STABLE, "aspect_ratio", *NO_RATIOS),
    *near(STABLE, "resolution", "480p"),
    *none(STABLE, "resolution", *NO_RESOLUTIONS),
    *none(STABLE, "image_urls", images(8), images(9)),
    *not_media_arrays(STABLE, "image_urls", more=(ASSET, *NOT_PUBLIC)),
    *none(STABLE, "image_urls", [*images(1), DATA]),
    *unknown(
        BASE,
        promt="prompt",
        aspectRatio="aspect_ratio",
        aspect_ration="aspect_ratio",
        imageUrls="image_urls",
        image_url="image_urls",
        Resolution="resolution",
        durations="duration",
    ),
    *none(BASE, "reference_images", images(1)),
    *none(BASE, "seconds", 10),
    *none(BASE, "first_image", "https://media.example.com/0.png"),
    *none(BASE, "generateAudio", True),
    no(
        "everything wrong at once",
        {
            "model": "vidg_video3_pro",
            "duration": 10,
            "aspect_ratio": "1:1",
            "resolution": "480p",
            "image_urls": ["garbage"],
            "aspectRatio": "16:9",
        },
        "prompt",
        "duration",
        "aspect_ratio",
        "resolution",
        "image_urls",
        "aspectRatio",
    ),
    no(
        "every limit of max at once",
        {
            **MAX,
            "duration": 7,
            "aspect_ratio": "3:2",
            "resolution": "1080p",
            "image_urls": images(6),
        },
        "duration",
        "aspect_ratio",
        "resolution",
        "image_urls",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidg_video4"}),
    ok("a duration of no other model", {**BASE, "model": "vidg_video4", "duration": 7}),
    ok(
        "fullest",
        {
            **BASE,
            "model": "vidg_video4",
            "duration": 30,
            "aspect_ratio": "2:3",
            "resolution": "480p",
            "image_urls": [*images(6), DATA],
        },
    ),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "vidg_video4", "prompt": " "}, "prompt"),
    no("text for a number", {**BASE, "model": "vidg_video4", "duration": "10"}, "duration"),
    no("fraction", {**BASE, "model": "vidg_video4", "duration": 6.5}, "duration"),
    no("number for a text", {**BASE, "model": "vidg_video4", "resolution": 720}, "resolution"),
    no("garbage", {**BASE, "model": "vidg_video4", "image_urls": ["garbage"]}, "image_urls"),
    no("no array", {**BASE, "model": "vidg_video4", "image_urls": "garbage"}, "image_urls"),
]

DEFAULTS = {"duration": 10, "aspect_ratio": "16:9", "resolution": "720p"}


class TestVidg(FamilyContract):
    request = VidgRequest
    create_path = "/v1/vidg/videos"
    records = Records("video", "video")
    pace = (30, 60)
    names = python_names("model", "prompt", "duration", "aspect_ratio", "resolution", "image_urls")
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
