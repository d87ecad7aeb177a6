"""Family `imga`: what `POST /v1/imga/images` accepts."""

from __future__ import annotations

from muybridge_protocol.families import ImgaRequest

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
    not_media_arrays,
    not_prompts,
    not_second_items,
    ok,
    prompts,
    python_names,
    unknown,
)

BASE = {"model": "imga", "prompt": "a horse at a gallop"}
PRO = {"model": "imga-pro", "prompt": "a horse at a gallop"}

MODELS = ("imga", "imga-2", "imga-pro", "imga-2-stable", "imga-pro-stable")
SIZES = ("1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "21:9")

ACCEPTED = [
    ok("smallest", BASE),
    ok(
        "fullest",
        {
            "model": "imga-pro-stable",
            "prompt": "a horse at a gallop",
            "resolution": "4k",
            "size": "21:9",
            "image_urls": images(6),
        },
    ),
    *each(BASE, "model", *MODELS),
    *(ok(f"{model} in 1k", {**BASE, "model": model, "resolution": "1k"}) for model in MODELS),
    ok("imga-pro in 2k", {**BASE, "model": "imga-pro", "resolution": "2k"}),
    ok("imga-pro in 4k", {**BASE, "model": "imga-pro", "resolution": "4k"}),
    ok("imga-pro-stable in 2k", {**BASE, "model": "imga-pro-stable", "resolution": "2k"}),
    ok("imga-pro-stable in 4k", {**BASE, "model": "imga-pro-stable", "resolution": "4k"}),
    *each(BASE, "size", *SIZES),
    *each(BASE, "image_urls", [], images(1), images(5), images(6)),
    *(
        ok(f"{model} with 6 images", {**BASE, "model": model, "image_urls": images(6)})
        for model in MODELS
    ),
    *prompts(BASE),
    *long_prompts(BASE),
    *media_arrays(BASE, "image_urls"),
]

REJECTED = [
    *near(BASE, "model", "imga"),
    *near(BASE, "model", "imga-pro-stable"),
    *none(BASE, "model", "imgb-2", "imga-3", "imga_pro", "imga-stable", "imga-4k", "Imga-Pro"),
    *not_prompts(BASE),
    *near(BASE, "resolution", "1k"),
    *near(PRO, "resolution", "2k"),
    *near(PRO, "resolution", "4k"),
    *none(PRO, "resolution", "3k", "8k", "1024", "720p", "1024x1024", "4096", "k", 1, 4),
    no("imga in 2k", {**BASE, "resolution": "2k"}, "resolution"),
    no("imga in 4k", {**BASE, "resolution": "4k"}, "resolution"),
    no("imga-2 in 2k", {**BASE, "model": "imga-2", "resolution": "2k"}, "resolution"),
    no("imga-2 in 4k", {**BASE, "model": "imga-2", "resolution": "4k"}, "resolution"),
    no("imga-2-stable in 2k", {**BASE, "model": "imga-2-stable", "resolution": "2k"}, "resolution"),
    no("imga-2-stable in 4k", {**BASE, "model": "imga-2-stable", "resolution": "4k"}, "resolution"),
    *near(BASE, "size", "16:9"),
    *near(BASE, "size", "1:1"),
    *none(BASE, "size", "9:21", "2:1", "1:2", "10:16", "32:18", "1024x1024", "adaptive", "016:9"),
    *none(BASE, "image_urls", images(7), images(8), images(100)),
    *not_media_arrays(BASE, "image_urls"),
    *not_second_items(BASE, "image_urls"),
    *unknown(
        BASE,
        promt="prompt",
        Prompt="prompt",
        modle="model",
        imageUrls="image_urls",
        image_url="image_urls",
        resolutoin="resolution",
        Size="size",
    ),
    *none(BASE, "aspectRatio", "16:9"),
    *none(BASE, "aspect_ratio", "16:9"),
    *none(BASE, "quality", "low"),
    *none(BASE, "duration", 5),
    no(
        "everything wrong at once",
        {
            "model": "imga-9",
            "promt": "a horse",
            "resolution": "8k",
            "size": "16x9",
            "image_urls": images(7),
        },
        "model",
        "prompt",
        "promt",
        "resolution",
        "size",
        "image_urls",
    ),
    no(
        "limit of the model and others at once",
        {"model": "imga", "prompt": "", "resolution": "4k", "image_urls": ["a.png"]},
        "prompt",
        "resolution",
        "image_urls",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "imga-3"}),
    ok("4k", {**BASE, "model": "imga-3", "resolution": "4k", "size": "1:1"}),
    ok("2k", {**BASE, "model": "imga-3", "resolution": "2k", "image_urls": images(6)}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "imga-3", "prompt": " "}, "prompt"),
    no("resolution", {**BASE, "model": "imga-3", "resolution": "8k"}, "resolution"),
    no("size", {**BASE, "model": "imga-3", "size": "2:1"}, "size"),
    no("7 images", {**BASE, "model": "imga-3", "image_urls": images(7)}, "image_urls"),
    no("garbage", {**BASE, "model": "imga-3", "image_urls": ["garbage"]}, "image_urls"),
]

DEFAULTS = {"resolution": "1k"}


class TestImga(FamilyContract):
    request = ImgaRequest
    create_path = "/v1/imga/images"
    records = Records("imga", None, omits_error=True, starts_processing=True)
    pace = (2, 5)
    names = python_names("model", "prompt", "resolution", "size", "image_urls")
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
