"""Family `vidr`: what `POST /v1/vidr/videos` accepts."""

from __future__ import annotations

from muybridge_protocol.families import VidrRequest

from .cases import (
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

BASE = {"model": "vidrPlus", "prompt": "a horse at a gallop"}

ACCEPTED = [
    ok("smallest", BASE),
    ok(
        "fullest by one name of each pair",
        {**BASE, "size": "1280x720", "duration": 12, "input_reference": images(1)},
    ),
    ok(
        "fullest by the other names",
        {
            "model": "vidrPro",
            "prompt": "a horse at a gallop",
            "aspect_ratio": "9:16",
            "seconds": 12,
            "image_urls": images(1),
        },
    ),
    ok(
        "a mixture of both",
        {**BASE, "size": "720x1280", "seconds": 4, "input_reference": images(1)},
    ),
    *each(BASE, "model", "vidrPlus", "vidrPro"),
    *each(BASE, "size", "720x1280", "1280x720"),
    *each(BASE, "aspect_ratio", "16:9", "9:16"),
    *each(BASE, "duration", 4, 8, 12),
    *each(BASE, "seconds", 4, 8, 12),
    *each({**BASE, "model": "vidrPro"}, "duration", 4, 8, 12),
    *each({**BASE, "model": "vidrPro"}, "seconds", 4, 8, 12),
    *each(BASE, "input_reference", [], images(1)),
    *each(BASE, "image_urls", [], images(1)),
    *prompts(BASE),
    *long_prompts(BASE),
    *media_arrays(BASE, "input_reference"),
    *media_arrays(BASE, "image_urls"),
]

REJECTED = [
    *near(BASE, "model", "vidrPlus"),
    *near(BASE, "model", "vidrPro"),
    *none(BASE, "model", "vidr", "vidrplus", "vidrpro", "vidr-plus", "vidr_pro", "VidrPlus"),
    *not_prompts(BASE),
    *near(BASE, "size", "720x1280"),
    *near(BASE, "size", "1280x720"),
    *none(BASE, "size", "720X1280", "1280*720", "1920x1080", "720x720", "16:9", "720p", 720),
    *none(BASE, "size", "01280x720", "1280x0720", "1280\u00d7720"),
    *near(BASE, "aspect_ratio", "16:9"),
    *near(BASE, "aspect_ratio", "9:16"),
    *none(BASE, "aspect_ratio", "1:1", "4:3", "3:4", "21:9", "1280x720"),
    *not_integers(BASE, "duration", 8),
    *none(BASE, "duration", 1, 3, 5, 6, 7, 9, 10, 11, 13, 16, -1),
    *not_integers(BASE, "seconds", 8),
    *none(BASE, "seconds", 1, 3, 5, 6, 7, 9, 10, 11, 13, 16, -1),
    *none(BASE, "input_reference", images(2), images(3)),
    *none(BASE, "image_urls", images(2), images(3)),
    # Only one of each pair, even when both say the same.
    no(
        "size and aspect_ratio",
        {**BASE, "size": "1280x720", "aspect_ratio": "16:9"},
        "aspect_ratio",
    ),
    no(
        "size and another aspect_ratio",
        {**BASE, "size": "1280x720", "aspect_ratio": "9:16"},
        "aspect_ratio",
    ),
    no("duration and seconds", {**BASE, "duration": 8, "seconds": 8}, "seconds"),
    no("duration and other seconds", {**BASE, "duration": 4, "seconds": 8}, "seconds"),
    no(
        "input_reference and image_urls",
        {**BASE, "input_reference": images(1), "image_urls": images(1)},
        "image_urls",
    ),
    no(
        "all pairs",
        {
            **BASE,
            "size": "1280x720",
            "aspect_ratio": "16:9",
            "duration": 8,
            "seconds": 8,
            "input_reference": images(1),
            "image_urls": images(1),
        },
        "aspect_ratio",
        "seconds",
        "image_urls",
    ),
    *not_media_arrays(BASE, "input_reference"),
    *not_media_arrays(BASE, "image_urls"),
    *not_second_items(BASE, "image_urls"),
    *unknown(
        BASE,
        promt="prompt",
        aspectRatio="aspect_ratio",
        imageUrls="image_urls",
        inputReference="input_reference",
        input_references="input_reference",
        second="seconds",
        Size="size",
        Duration="duration",
    ),
    *none(BASE, "reference_images", images(1)),
    *none(BASE, "resolution", "720p"),
    *none(BASE, "ratio", "16:9"),
    *none(BASE, "first_image", "https://media.example.com/0.png"),
    no(
        "everything wrong at once",
        {
            "model": "vidrMax",
            "prompt": [],
            "size": "1080x1920",
            "duration": 5,
            "image_urls": images(2),
            "aspectRatio": "16:9",
        },
        "model",
        "prompt",
        "size",
        "duration",
        "image_urls",
        "aspectRatio",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "vidrMax"}),
    ok("fullest", {**BASE, "model": "vidrMax", "size": "1280x720", "image_urls": images(1)}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "vidrMax", "prompt": ""}, "prompt"),
    no("size", {**BASE, "model": "vidrMax", "size": "1920x1080"}, "size"),
    no("both of a pair", {**BASE, "model": "vidrMax", "duration": 8, "seconds": 8}, "seconds"),
    no("2 images", {**BASE, "model": "vidrMax", "image_urls": images(2)}, "image_urls"),
]

DEFAULTS = {"size": "720x1280"}


class TestVidr(FamilyContract):
    request = VidrRequest
    create_path = "/v1/vidr/videos"
    records = Records("video.generation", None, omits_error=True)
    pace = (30, 60)
    names = python_names(
        "model",
        "prompt",
        "size",
        "aspect_ratio",
        "duration",
        "seconds",
        "input_reference",
        "image_urls",
    )
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
