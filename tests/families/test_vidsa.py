"""Family `vidsa`: what `POST /v1/vidsa/videos` accepts, as far as the specification shows it."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

import math

from muybridge_protocol.families import VidsaRequest

from .cases import (
    DAY,
    FamilyContract,
    Records,
    each,
    images,
    long_prompts,
    near,
    no,
    none,
    not_prompts,
    ok,
    prompts,
    python_names,
)

SMALLEST = {"model": "vidsa_1_5_pro_720p"}
BASE = {**SMALLEST, "prompt": "a horse at a gallop"}

ACCEPTED = [
    ok("smallest", SMALLEST),
    ok("fullest", {**BASE, "duration": 12}),
    *each(BASE, "model", "vidsa_1_5_pro_480p", "vidsa_1_5_pro_720p", "vidsa_1_5_pro_1080p"),
    *each(BASE, "duration", -1, *range(2, 13)),
    *prompts(BASE),
    *long_prompts(BASE),
    # The remaining fields are not shown: they travel unchanged.
    *each(BASE, "seed", 7, -1, "7", None),
    *each(BASE, "promt", "a horse"),
    *each(BASE, "aspect_ratio", "16:9", "16:9\n", 16.9),
    *each(BASE, "aspectRatio", "16:9"),
    *each(BASE, "image_urls", images(100), "garbage", [], [5]),
    *each(BASE, "first_image", "asset://a", "data:image/png;base64,AAAA", "garbage"),
    *each(BASE, "reference_images", images(2)),
    *each(BASE, "generateAudio", True, "true"),
    *each(BASE, "nested", {"a": [1, 2.5, None, True, {"b": "\U0001f40e"}]}),
    ok("several", {**BASE, "duration": 5, "seed": 7, "camera": {"fixed": True}, "n": None}),
]

REJECTED = [
    *near(BASE, "model", "vidsa_1_5_pro_480p"),
    *near(BASE, "model", "vidsa_1_5_pro_1080p"),
    *none(BASE, "model", "vidsa", "vidsa_1_5_pro", "vidsa_1_5_pro_4k", "vidsa-1-5-pro-720p"),
    *not_prompts(BASE),
    *none(BASE, "duration", 0, 1, 13, -2, -3, -12, 14, 30, 100, 10**400),
    *none(BASE, "duration", "5", "-1", "auto", 5.5, -1.5, True, False, None, [], [5], {}, ""),
    *none(BASE, "duration", math.nan, math.inf, -math.inf),
    no(
        "everything wrong at once",
        {"model": "vidsa_9", "prompt": " ", "duration": 13, "seed": 7},
        "model",
        "prompt",
        "duration",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidsa_2_0"}),
    ok("duration", {**BASE, "model": "vidsa_2_0", "duration": -1}),
    ok("more", {**BASE, "model": "vidsa_2_0", "seed": 7}),
]

NOT_UNLISTED = [
    no("duration", {**BASE, "model": "vidsa_2_0", "duration": 13}, "duration"),
    no("no integer", {**BASE, "model": "vidsa_2_0", "duration": "5"}, "duration"),
]


class TestVidsa(FamilyContract):
    request = VidsaRequest
    create_path = "/v1/vidsa/videos"
    records = Records("video", "video", retention=DAY, record_too=True)
    pace = (30, 60)
    names = python_names("model", "prompt", "duration")
    required = ("model",)
    smallest = SMALLEST
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
