"""Family `videos`: what `POST /v1/videos/videos` accepts."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import VideosRequest

from .cases import (
    IMAGE,
    LAST,
    VIDEO,
    FamilyContract,
    Records,
    clashes,
    each,
    images,
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

BASE = {"model": "videos", "prompt": "a horse at a gallop", "duration": 5}
FRAMES = {"first_image": IMAGE, "last_image": LAST}
LEGACY = {"image": IMAGE, "lastFrameImage": LAST}
FRAMED = {**BASE, **FRAMES}
REFERENCES = {"referenceImages": images(1), "referenceVideos": videos(1)}

ACCEPTED = [
    ok("smallest", BASE),
    ok(
        "fullest by frames",
        {
            "model": "videos_fast",
            "prompt": "a horse at a gallop",
            "duration": 15,
            "ratio": "9:16",
            "resolution": "720p",
            **FRAMES,
        },
    ),
    ok(
        "fullest by references",
        {
            "model": "videos",
            "prompt": "a horse at a gallop",
            "duration": 4,
            "ratio": "1:1",
            "resolution": "720p",
            "referenceImages": images(4),
            "referenceVideos": videos(3),
        },
    ),
    *each(BASE, "model", "videos", "videos_fast"),
    *each(BASE, "duration", *range(4, 16)),
    *each({**BASE, "model": "videos_fast"}, "duration", 4, 15),
    *each(BASE, "ratio", "16:9", "9:16", "1:1"),
    *each(BASE, "resolution", "720p"),
    # Modes.
    ok("first and last frame", FRAMED),
    ok("image reference", {**BASE, "referenceImages": images(1)}),
    ok("video reference", {**BASE, "referenceVideos": videos(1)}),
    ok("image and video reference", {**BASE, **REFERENCES}),
    *each(BASE, "referenceImages", [], images(3), images(4)),
    *each(BASE, "referenceVideos", [], videos(2), videos(3)),
    # At most 1500 characters.
    ok("prompt of 1499", {**BASE, "prompt": "a" * 1499}),
    ok("prompt of 1500", {**BASE, "prompt": "a" * 1500}),
    ok("prompt of 1500 emoji", {**BASE, "prompt": "\U0001f3ac" * 1500}),
    ok("prompt of 1500 ideographs", {**BASE, "prompt": "\u99ac" * 1500}),
    *prompts(BASE),
    *media(FRAMED, "first_image"),
    *media(FRAMED, "last_image"),
    *media_arrays(BASE, "referenceImages"),
    *media_arrays(BASE, "referenceVideos"),
    # Legacy aliases.
    ok("legacy names alone", {**BASE, **LEGACY}, sent=FRAMED),
    ok("both names, equal values", {**FRAMED, **LEGACY}, sent=FRAMED),
    ok("image and last_image", {**BASE, "image": IMAGE, "last_image": LAST}, sent=FRAMED),
    ok(
        "first_image and lastFrameImage",
        {**BASE, "first_image": IMAGE, "lastFrameImage": LAST},
        sent=FRAMED,
    ),
    ok("both first names, equal", {**FRAMED, "image": IMAGE}, sent=FRAMED),
    ok("both last names, equal", {**FRAMED, "lastFrameImage": LAST}, sent=FRAMED),
]

REJECTED = [
    *near(BASE, "model", "videos"),
    *near(BASE, "model", "videos_fast"),
    *none(BASE, "model", "video", "videos-fast", "videos_pro", "Videos_Fast", "vidsb_2_0"),
    *not_prompts(BASE),
    no("prompt of 1501", {**BASE, "prompt": "a" * 1501}, "prompt"),
    no("prompt of 1501 emoji", {**BASE, "prompt": "\U0001f3ac" * 1501}, "prompt"),
    no("prompt of 1501 with newlines", {**BASE, "prompt": "a" * 1500 + "\n"}, "prompt"),
    no("prompt of a million", {**BASE, "prompt": "a" * 1_000_000}, "prompt"),
    *not_integers(BASE, "duration", 5),
    *none(BASE, "duration", 3, 16, 2, 1, 30, 100, -1),
    *near(BASE, "ratio", "16:9"),
    *near(BASE, "ratio", "1:1"),
    *none(BASE, "ratio", "4:3", "3:4", "21:9", "3:2", "adaptive", "1280x720"),
    *near(BASE, "resolution", "720p"),
    *none(BASE, "resolution", "480p", "540p", "1080p", "4k", "720", "1280x720", 720),
    # Both frames or none.
    no("first_image alone", {**BASE, "first_image": IMAGE}, "first_image"),
    no("last_image alone", {**BASE, "last_image": LAST}, "last_image"),
    # A problem has the name that was given.
    no("image alone", {**BASE, "image": IMAGE}, "image"),
    no("lastFrameImage alone", {**BASE, "lastFrameImage": LAST}, "lastFrameImage"),
    no("both first names alone", {**BASE, "first_image": IMAGE, "image": IMAGE}, "first_image"),
    no(
        "garbage under the legacy name",
        {**BASE, "image": "garbage", "lastFrameImage": LAST},
        "image",
    ),
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
    *(
        no(
            f"legacy frames beside {field}",
            {**BASE, **LEGACY, field: REFERENCES[field]},
            "image",
            "lastFrameImage",
        )
        for field in REFERENCES
    ),
    *clashes(BASE, FRAMES, REFERENCES),
    # Counts.
    *none(BASE, "referenceImages", images(5), images(6), images(100)),
    *none(BASE, "referenceVideos", videos(4), videos(5), videos(100)),
    no(
        "5 images beside a video",
        {**BASE, "referenceImages": images(5), "referenceVideos": videos(1)},
        "referenceImages",
    ),
    no(
        "4 videos beside an image",
        {**BASE, "referenceImages": images(1), "referenceVideos": videos(4)},
        "referenceVideos",
    ),
    no(
        "too many of both",
        {**BASE, "referenceImages": images(5), "referenceVideos": videos(4)},
        "referenceImages",
        "referenceVideos",
    ),
    *not_media(FRAMED, "first_image"),
    *not_media(FRAMED, "last_image"),
    *not_media_arrays(BASE, "referenceImages"),
    *not_media_arrays(BASE, "referenceVideos", item=VIDEO),
    *not_second_items(BASE, "referenceImages"),
    *not_second_items(BASE, "referenceVideos", VIDEO),
    # Conflicting aliases.
    no("first names conflict", {**FRAMED, "image": LAST}, "image"),
    no("last names conflict", {**FRAMED, "lastFrameImage": IMAGE}, "lastFrameImage"),
    no(
        "all names conflict",
        {**FRAMED, "image": LAST, "lastFrameImage": IMAGE},
        "image",
        "lastFrameImage",
    ),
    no("conflict by case", {**FRAMED, "image": IMAGE.upper()}, "image"),
    *unknown(
        BASE,
        promt="prompt",
        reference_images="referenceImages",
        reference_videos="referenceVideos",
        referenceimages="referenceImages",
        referenceImage="referenceImages",
        firstImage="first_image",
        lastImage="last_image",
        last_frame_image="lastFrameImage",
        Duration="duration",
        ratios="ratio",
    ),
    *none(BASE, "aspectRatio", "16:9"),
    *none(BASE, "aspect_ratio", "16:9"),
    *none(BASE, "seconds", 5),
    *none(BASE, "referenceAudios", ["https://media.example.com/0.wav"]),
    *none(BASE, "generateAudio", True),
    no(
        "everything wrong at once",
        {
            "model": "videos_slow",
            "prompt": "",
            "duration": "5",
            "ratio": "16x9",
            "resolution": "1080p",
            "referenceImages": images(5),
            "referenceVideos": "https://media.example.com/0.mp4",
            "aspectRatio": "16:9",
        },
        "model",
        "prompt",
        "duration",
        "ratio",
        "resolution",
        "referenceImages",
        "referenceVideos",
        "aspectRatio",
    ),
    no(
        "missing, wrong and conflicting at once",
        {"model": "videos", **FRAMES, "image": LAST, "ratio": "4:3"},
        "prompt",
        "duration",
        "image",
        "ratio",
    ),
]

UNLISTED = [
    ok("smallest", {**BASE, "model": "videos_pro"}),
    ok("frames", {**FRAMED, "model": "videos_pro"}),
    ok("references", {**BASE, "model": "videos_pro", **REFERENCES}),
]

NOT_UNLISTED = [
    no("prompt of 1501", {**BASE, "model": "videos_pro", "prompt": "a" * 1501}, "prompt"),
    no("duration", {**BASE, "model": "videos_pro", "duration": 16}, "duration"),
    no("ratio", {**BASE, "model": "videos_pro", "ratio": "4:3"}, "ratio"),
    no("first_image alone", {**BASE, "model": "videos_pro", "first_image": IMAGE}, "first_image"),
    no("conflict", {**FRAMED, "model": "videos_pro", "image": LAST}, "image"),
    no(
        "5 images",
        {**BASE, "model": "videos_pro", "referenceImages": images(5)},
        "referenceImages",
    ),
]

DEFAULTS = {"ratio": "16:9", "resolution": "720p"}


class TestVideos(FamilyContract):
    request = VideosRequest
    create_path = "/v1/videos/videos"
    records = Records("video", "video")
    pace = (30, 60)
    names = python_names(
        "model",
        "prompt",
        "duration",
        "ratio",
        "resolution",
        "first_image",
        "last_image",
        "referenceImages",
        "referenceVideos",
        "image",
        "lastFrameImage",
    )
    required = ("model", "prompt", "duration")
    smallest = BASE
    defaults = DEFAULTS
    accepted = ACCEPTED
    rejected = REJECTED
    unlisted = UNLISTED
    not_unlisted = NOT_UNLISTED

    def test_only_the_new_name_is_kept(self) -> None:
        """A request says a frame once, under its new name, whichever name it was given under."""
        new, old, both = (
            self.request(model="videos", prompt="a horse", duration=5, **frames)
            for frames in (
                {"first_image": IMAGE, "last_image": LAST},
                {"image": IMAGE, "last_frame_image": LAST},
                {
                    "first_image": IMAGE,
                    "last_image": LAST,
                    "image": IMAGE,
                    "last_frame_image": LAST,
                },
            )
        )
        assert new == old == both
        assert old.first_image == IMAGE
        assert old.last_image == LAST
        assert old.image is None
        assert old.last_frame_image is None
