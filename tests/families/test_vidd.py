"""Family `vidd`: what `POST /v1/vidd/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

import math

from muybridge_protocol.families import ViddRequest

from .cases import (
    ASSET,
    DATA,
    DAY,
    IMAGE,
    LAST,
    NOT_PUBLIC,
    FamilyContract,
    Records,
    each,
    long_prompts,
    media,
    near,
    no,
    none,
    not_media,
    not_prompts,
    ok,
    prompts,
    python_names,
    unknown,
)

BASE = {"model": "viddq3-pro", "prompt": "a horse at a gallop"}
STARTED = {**BASE, "first_image": IMAGE}
FRAMED = {**STARTED, "last_image": LAST}

ACCEPTED = [
    ok("smallest", BASE),
    ok(
        "fullest",
        {
            "model": "viddq3-turbo",
            "prompt": "a horse at a gallop",
            "duration": 16,
            "aspect_ratio": "3:4",
            "resolution": "1080p",
            "first_image": IMAGE,
            "last_image": LAST,
        },
    ),
    *each(BASE, "model", "viddq3-pro", "viddq3-turbo"),
    # A number, not an integer alone.
    *each(BASE, "duration", *range(1, 17)),
    *each(BASE, "duration", 1.0, 1.5, 5.0, 7.25, 15.999, 16.0, 1.0000001),
    *each(BASE, "aspect_ratio", "16:9", "9:16", "1:1", "4:3", "3:4"),
    *each(BASE, "resolution", "540p", "720p", "1080p"),
    ok("image to video", STARTED),
    ok("first and last frame", FRAMED),
    *prompts(BASE),
    *long_prompts(BASE),
    *media(BASE, "first_image"),
    *media(STARTED, "last_image"),
]

REJECTED = [
    *near(BASE, "model", "viddq3-pro"),
    *near(BASE, "model", "viddq3-turbo"),
    *none(BASE, "model", "viddq3", "viddq2-pro", "viddq3_pro", "vidd", "vidd_q3-pro", "q3-pro"),
    *not_prompts(BASE),
    *none(
        BASE,
        "duration",
        0,
        0.0,
        -0.0,
        0.5,
        0.999,
        16.001,
        16.5,
        17,
        -1,
        -5.5,
        1e308,
        10**400,
        -(10**400),
        math.nan,
        math.inf,
        -math.inf,
        "5",
        "5.5",
        "5s",
        "",
        True,
        False,
        None,
        [],
        [5],
        {},
    ),
    *near(BASE, "aspect_ratio", "16:9"),
    *near(BASE, "aspect_ratio", "3:4"),
    *none(BASE, "aspect_ratio", "21:9", "3:2", "2:3", "adaptive", "1280x720"),
    *near(BASE, "resolution", "540p"),
    *near(BASE, "resolution", "720p"),
    *near(BASE, "resolution", "1080p"),
    *none(BASE, "resolution", "480p", "360p", "4K", "4k", "720", "1080i", "1920x1080", 720),
    no("last_image alone", {**BASE, "last_image": LAST}, "last_image"),
    # A publicly accessible URL; base64 images are not supported.
    *not_media(BASE, "first_image", more=(ASSET, *NOT_PUBLIC)),
    *not_media(STARTED, "last_image", more=(ASSET, *NOT_PUBLIC)),
    *unknown(
        BASE,
        promt="prompt",
        aspectRatio="aspect_ratio",
        aspect_ration="aspect_ratio",
        firstImage="first_image",
        lastImage="last_image",
        Duration="duration",
        resolutions="resolution",
    ),
    *none(BASE, "reference_images", [IMAGE]),
    *none(BASE, "image_urls", [IMAGE]),
    *none(BASE, "seconds", 5),
    *none(BASE, "generateAudio", True),
    no(
        "everything wrong at once",
        {
            "model": "viddq4-pro",
            "prompt": "\n",
            "duration": math.nan,
            "aspect_ratio": "21:9",
            "resolution": "4K",
            "last_image": DATA,
            "aspectRatio": "16:9",
        },
        "model",
        "prompt",
        "duration",
        "aspect_ratio",
        "resolution",
        "last_image",
        "aspectRatio",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "viddq4-pro"}),
    ok("fullest", {**FRAMED, "model": "viddq4-pro", "duration": 1.5, "resolution": "540p"}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "viddq4-pro", "prompt": ""}, "prompt"),
    no("duration", {**BASE, "model": "viddq4-pro", "duration": 16.5}, "duration"),
    no("resolution", {**BASE, "model": "viddq4-pro", "resolution": "4K"}, "resolution"),
    no("last_image alone", {**BASE, "model": "viddq4-pro", "last_image": LAST}, "last_image"),
    no("base64", {**BASE, "model": "viddq4-pro", "first_image": DATA}, "first_image"),
]

DEFAULTS = {"duration": 5, "aspect_ratio": "16:9", "resolution": "720p"}


class TestVidd(FamilyContract):
    request = ViddRequest
    create_path = "/v1/vidd/videos"
    records = Records("video", "Video", retention=DAY)
    pace = (30, 60)
    names = python_names(
        "model",
        "prompt",
        "duration",
        "aspect_ratio",
        "resolution",
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
