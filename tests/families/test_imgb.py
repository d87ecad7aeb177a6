"""Family `imgb`: what `POST /v1/image2/images` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import ImgbRequest

from .cases import (
    DAY,
    FULL_WIDTH,
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

BASE = {"model": "imgb-2", "prompt": "a horse at a gallop"}
R = {"model": "imgb-2-r", "prompt": "a horse at a gallop"}
WIDE = {**BASE, "ratio": "16:9"}

RATIOS = (
    "1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "2:1", "1:2", "21:9", "9:21",
)  # fmt: skip
RATIOS_OF_4K = ("16:9", "9:16", "2:1", "1:2", "21:9", "9:21")
NOT_RATIOS_OF_4K = ("1:1", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5")

SIZES = (
    "1024x1024",
    "1536x1024",
    "1024x1536",
    # Each edge at most 3840.
    "3840x2160",
    "2160x3840",
    "3840x1920",
    "1920x3840",
    "3824x1920",
    # The long edge at most 3 times the short one.
    "3840x1280",
    "1280x3840",
    "1440x480",
    "480x1440",
    "3072x1024",
    # At least 655360 pixels.
    "1024x640",
    "640x1024",
    "1280x512",
    "512x1280",
    "816x816",
    # At most 8294400 pixels.
    "2880x2880",
    "3600x2304",
    "2160x3840",
    "3200x2592",
)

NOT_SIZES = (
    # An edge above 3840.
    "3856x1920",
    "1920x3856",
    "3856x2144",
    "4096x2048",
    "3841x1920",
    # An edge that is no multiple of 16.
    "1032x1024",
    "1024x1032",
    "1025x1024",
    "1024x1023",
    "1000x1000",
    "1928x1080",
    "1920x1080",
    # A long edge more than 3 times the short one.
    "3840x1264",
    "1264x3840",
    "1456x480",
    "480x1456",
    "3088x1024",
    "2560x256",
    # Fewer than 655360 pixels.
    "576x1136",
    "1136x576",
    "560x1168",
    "800x800",
    "1008x640",
    "1024x624",
    "512x512",
    "16x16",
    # More than 8294400 pixels.
    "2336x3552",
    "3552x2336",
    "2368x3504",
    "2688x3088",
    "2896x2880",
    "2880x2896",
    "3840x2176",
    "3840x3840",
    # Not written as {width}x{height}.
    "1024X1024",
    "1024x1024 ",
    " 1024x1024",
    "1024x1024\n",
    "1024 x 1024",
    "1024x 1024",
    "01024x1024",
    "1024x01024",
    "1024x",
    "x1024",
    "x",
    "",
    " ",
    "1024",
    "1024x1024x1024",
    "1024x1024px",
    "1024px x 1024px",
    "1024*1024",
    "1024\u00d71024",
    "1024\u04451024",
    "1024,1024",
    "1024:1024",
    "16:9",
    "1k",
    "auto",
    "+1024x1024",
    "1024x+1024",
    "-1024x-1024",
    "-1024x1024",
    "0x0",
    "0x1024",
    "1024x0",
    "1_024x1024",
    "1,024x1,024",
    "1024.0x1024.0",
    "1024.5x1024",
    "1.024e3x1024",
    "0x400x0x400",
    "1024x1024".translate(FULL_WIDTH),
    "\uff11\uff10\uff12\uff14x1024",
    "1024x\u0661\u0660\u0662\u0664",
    "\u00b9024x1024",
    "{width}x{height}",
    # Digits without end.
    "9" * 30 + "x1024",
    "1024x" + "16" * 100,
    "9" * 5000 + "x" + "9" * 5000,
    "1" + "0" * 100_000 + "x1024",
    "0" * 5000 + "1024x1024",
)

ACCEPTED = [
    ok("smallest", BASE),
    ok("smallest of imgb-2-r", R),
    ok(
        "fullest",
        {
            "model": "imgb-2",
            "prompt": "a horse at a gallop",
            "quality": "high",
            "ratio": "21:9",
            "resolution": "4k",
            "image_urls": images(6),
        },
    ),
    ok(
        "fullest by size",
        {
            "model": "imgb-2",
            "prompt": "a horse at a gallop",
            "quality": "high",
            "size": "3840x2160",
            "image_urls": images(6),
        },
    ),
    ok(
        "fullest of imgb-2-r",
        {
            "model": "imgb-2-r",
            "prompt": "a horse at a gallop",
            "ratio": "9:21",
            "resolution": "1k",
            "image_urls": images(16),
        },
    ),
    *each(BASE, "quality", "low", "medium", "high"),
    *each(BASE, "ratio", *RATIOS),
    *each(R, "ratio", *RATIOS),
    *each(BASE, "size", *SIZES),
    ok("size of imgb-2-r", {**R, "size": "1024x1024"}),
    *each(BASE, "image_urls", [], images(1), images(5), images(6)),
    *each(R, "image_urls", [], images(1), images(7), images(15), images(16)),
    *prompts(BASE),
    *long_prompts(BASE),
    *media_arrays(BASE, "image_urls"),
    # Resolutions, by model and ratio.
    *(ok(f"1k in {ratio}", {**BASE, "resolution": "1k", "ratio": ratio}) for ratio in RATIOS),
    *(ok(f"imgb-2-r 1k in {ratio}", {**R, "resolution": "1k", "ratio": ratio}) for ratio in RATIOS),
    *(ok(f"2k in {ratio}", {**BASE, "resolution": "2k", "ratio": ratio}) for ratio in RATIOS),
    *(ok(f"4k in {ratio}", {**BASE, "resolution": "4k", "ratio": ratio}) for ratio in RATIOS_OF_4K),
    # Settings without effect.
    *(
        ok(f"imgb-2-r quality {quality}", {**R, "quality": quality}, notices=("quality",))
        for quality in ("low", "medium", "high")
    ),
    ok("ratio beside size", {**WIDE, "size": "1024x1024"}, notices=("ratio",)),
    ok(
        "resolution and ratio beside size",
        {**WIDE, "resolution": "2k", "size": "1024x1024"},
        notices=("ratio", "resolution"),
    ),
    ok(
        "4k in 16:9 beside size",
        {**WIDE, "resolution": "4k", "size": "1024x1024"},
        notices=("ratio", "resolution"),
    ),
    ok(
        "4k in 1:1, both overridden by size",
        {**BASE, "ratio": "1:1", "resolution": "4k", "size": "1024x1024"},
        notices=("ratio", "resolution"),
    ),
    ok(
        "all three of imgb-2-r",
        {**R, "quality": "low", "ratio": "1:1", "resolution": "1k", "size": "1024x1024"},
        notices=("quality", "ratio", "resolution"),
    ),
]

REJECTED = [
    *near(BASE, "model", "imgb-2"),
    *near(BASE, "model", "imgb-2-r"),
    *none(BASE, "model", "imgb", "imga", "image2", "imgb_2", "imgb-2r", "imgb-2-R", "imgb-3"),
    *not_prompts(BASE),
    *near(BASE, "quality", "low"),
    *near(BASE, "quality", "medium"),
    *near(BASE, "quality", "high"),
    *none(BASE, "quality", "auto", "standard", "hd", "Low", "HIGH", "med", 1),
    *near(BASE, "ratio", "16:9"),
    *near(BASE, "ratio", "9:21"),
    *none(BASE, "ratio", "3:1", "1:3", "10:16", "22:9", "adaptive", "1024x1024", "1", 1),
    *near(WIDE, "resolution", "1k"),
    *near(WIDE, "resolution", "2k"),
    *near(WIDE, "resolution", "4k"),
    *none(WIDE, "resolution", "3k", "8k", "720p", "1024", "1024x1024", 1, 4),
    # The ratio goes with the resolution.
    no("1k without ratio", {**BASE, "resolution": "1k"}, "resolution"),
    no("2k without ratio", {**BASE, "resolution": "2k"}, "resolution"),
    no("4k without ratio", {**BASE, "resolution": "4k"}, "resolution"),
    no("imgb-2-r 1k without ratio", {**R, "resolution": "1k"}, "resolution"),
    # Per model.
    no("imgb-2-r 2k", {**R, "resolution": "2k", "ratio": "16:9"}, "resolution"),
    no("imgb-2-r 4k", {**R, "resolution": "4k", "ratio": "16:9"}, "resolution"),
    *none(BASE, "image_urls", images(7), images(8), images(16)),
    *none(R, "image_urls", images(17), images(18), images(100)),
    # 4k has ratios of its own.
    *(
        no(f"4k in {ratio}", {**BASE, "resolution": "4k", "ratio": ratio}, "resolution")
        for ratio in NOT_RATIOS_OF_4K
    ),
    # Sizes.
    *none(BASE, "size", *NOT_SIZES),
    *none(R, "size", "3856x1920", "1024X1024", "800x800"),
    *none(BASE, "size", None, 1024, 1024.0, True, [], ["1024x1024"], [1024, 1024], {}),
    no(
        "bad size beside good resolution and ratio",
        {**WIDE, "resolution": "1k", "size": "1024"},
        "size",
    ),
    *not_media_arrays(BASE, "image_urls"),
    *not_media_arrays(R, "image_urls"),
    *not_second_items(BASE, "image_urls"),
    *unknown(
        BASE,
        promt="prompt",
        imageUrls="image_urls",
        images_url="image_urls",
        Quality="quality",
        ratios="ratio",
        resolutions="resolution",
        modell="model",
    ),
    *none(BASE, "aspect_ratio", "16:9"),
    *none(BASE, "aspectRatio", "16:9"),
    *none(BASE, "duration", 5),
    no(
        "everything wrong at once",
        {
            "model": "imgb-9",
            "prompt": " ",
            "quality": "best",
            "ratio": "16/9",
            "resolution": "16k",
            "image_urls": "https://media.example.com/0.png",
            "aspectRatio": "16:9",
        },
        "model",
        "prompt",
        "quality",
        "ratio",
        "resolution",
        "image_urls",
        "aspectRatio",
    ),
    no(
        "wrong, missing and too many at once",
        {"model": "imgb-2", "quality": "best", "image_urls": images(7), "promt": "a horse"},
        "prompt",
        "quality",
        "image_urls",
        "promt",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "imgb-3"}),
    ok("2k", {**WIDE, "model": "imgb-3", "resolution": "2k"}),
    ok("4k", {**WIDE, "model": "imgb-3", "resolution": "4k"}),
    ok("quality", {**BASE, "model": "imgb-3", "quality": "high"}),
    ok("16 images", {**BASE, "model": "imgb-3", "image_urls": images(16)}),
    ok("size", {**BASE, "model": "imgb-3", "size": "3840x2160"}),
]

NOT_UNLISTED = [
    no("blank prompt", {**BASE, "model": "imgb-3", "prompt": ""}, "prompt"),
    no("quality", {**BASE, "model": "imgb-3", "quality": "best"}, "quality"),
    no("no ratio", {**BASE, "model": "imgb-3", "resolution": "2k"}, "resolution"),
    no(
        "4k in 1:1",
        {**BASE, "model": "imgb-3", "resolution": "4k", "ratio": "1:1"},
        "resolution",
    ),
    no("size", {**BASE, "model": "imgb-3", "size": "3856x1920"}, "size"),
    no("garbage", {**BASE, "model": "imgb-3", "image_urls": ["garbage"]}, "image_urls"),
]

DEFAULTS = {"quality": "low", "ratio": "1:1", "resolution": "1k"}


class TestImgb(FamilyContract):
    request = ImgbRequest
    create_path = "/v1/image2/images"
    records = Records("image", "image.generation", starts_processing=True, retention=DAY)
    pace = (2, 5)
    names = python_names("model", "prompt", "quality", "ratio", "resolution", "size", "image_urls")
    required = ("model", "prompt")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED
