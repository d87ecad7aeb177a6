"""How large and how long results are: the specification's resolutions, ratios and defaults."""

from __future__ import annotations

from typing import Any

import pytest

from muybridge.local.drawing.dimensions import Dimensions, dimensions
from muybridge_protocol.estimates import media_quantities
from muybridge_protocol.families import find_family

IMAGES: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("imga", {}, (1024, 1024)),
    ("imga", {"size": "16:9"}, (1024, 576)),
    ("imga", {"size": "9:16"}, (576, 1024)),
    ("imga", {"size": "4:5"}, (819, 1024)),
    ("imga", {"size": "21:9", "resolution": "2k"}, (2048, 878)),
    ("imga", {"size": "3:2", "resolution": "4k"}, (3840, 2560)),
    ("imga", {"model": "imga-9", "resolution": "4k", "ratio": "1:2"}, (3840, 3840)),
    ("imgb", {}, (1024, 1024)),
    ("imgb", {"ratio": "2:1"}, (1024, 512)),
    ("imgb", {"ratio": "1:2", "resolution": "2k"}, (1024, 2048)),
    ("imgb", {"ratio": "16:9", "resolution": "4k"}, (3840, 2160)),
    ("imgb", {"ratio": "9:21", "resolution": "4k"}, (1646, 3840)),
    ("imgb", {"size": "1536x1024", "ratio": "1:1", "resolution": "1k"}, (1536, 1024)),
]

VIDEOS: list[tuple[str, dict[str, Any], tuple[int, int, float]]] = [
    ("vidr", {}, (720, 1280, 4)),
    ("vidr", {"size": "1280x720", "duration": 12}, (1280, 720, 12)),
    ("vidr", {"aspect_ratio": "16:9", "seconds": 8}, (1280, 720, 8)),
    ("vidr", {"aspect_ratio": "9:16"}, (720, 1280, 4)),
    ("vidv", {}, (1280, 720, 8)),
    ("vidv", {"resolution": "1080P", "aspect_ratio": "9:16"}, (1080, 1920, 8)),
    ("vidv", {"resolution": "4k"}, (3840, 2160, 8)),
    ("vidsa", {"model": "vidsa_1_5_pro_480p"}, (854, 480, 5)),
    ("vidsa", {"model": "vidsa_1_5_pro_720p", "duration": -1}, (1280, 720, 5)),
    ("vidsa", {"model": "vidsa_1_5_pro_1080p", "duration": 2}, (1920, 1080, 2)),
    ("vidsb", {}, (1280, 720, 5)),
    ("vidsb", {"aspect_ratio": "21:9", "duration": 15}, (1680, 720, 15)),
    ("vidsb", {"aspect_ratio": "adaptive"}, (1280, 720, 5)),
    ("vidsb", {"aspect_ratio": "3:4"}, (720, 960, 5)),
    ("vidd", {}, (1280, 720, 5)),
    ("vidd", {"resolution": "540p", "duration": 1.5}, (960, 540, 1.5)),
    ("vidd", {"resolution": "1080p", "aspect_ratio": "4:3"}, (1440, 1080, 5)),
    ("vidg", {"model": "vidg_video3_pro"}, (1280, 720, 10)),
    ("vidg", {"resolution": "480p", "aspect_ratio": "2:3", "duration": 30}, (480, 720, 30)),
    ("vidc", {}, (720, 1280, 3)),
    ("vidc", {"ratio": "1:1", "duration": 15}, (720, 720, 15)),
    ("vidc", {"ratio": "16:9", "referenceVideos": ["https://example.com/a.mp4"]}, (720, 1280, 5)),
    ("videos", {"duration": 4}, (1280, 720, 4)),
    ("videos", {"duration": 15, "ratio": "9:16"}, (720, 1280, 15)),
    ("vidg", {"model": "vidg_9", "ratio": "1:1", "seconds": 1e9}, (1280, 720, 10)),
    ("vidsa", {"model": "vidsa_9", "seconds": 1e9, "resolution": "4K"}, (1280, 720, 5)),
    ("vidsb", {"resolution": "1080p", "seconds": 1e9}, (1280, 720, 5)),
    ("vidc", {"aspect_ratio": "1:1", "resolution": "4K"}, (720, 1280, 3)),
    ("vidm", {}, (1280, 720, 4)),
    ("vidm", {"resolution": "4K", "duration": 15, "aspect_ratio": "1:1"}, (2160, 2160, 15)),
    ("vidm", {"resolution": [], "duration": 1e9, "ratio": "1:1000000", "size": 7}, (1280, 720, 4)),
]


@pytest.mark.parametrize(("family", "body", "size"), IMAGES)
def test_an_image_has_the_size_that_was_asked_for(
    family: str, body: dict[str, Any], size: tuple[int, int]
) -> None:
    """An image has its resolution's long edge and the asked ratio, or the exact size."""
    assert dimensions(find_family(family), body) == Dimensions(*size)


@pytest.mark.parametrize(("family", "body", "size"), VIDEOS)
def test_a_video_has_the_size_and_length_that_were_asked_for(
    family: str, body: dict[str, Any], size: tuple[int, int, float]
) -> None:
    """A video has its resolution's short edge, the asked ratio and length, and even edges."""
    made = dimensions(find_family(family), body)
    assert (made.width, made.height, made.seconds) == size
    assert made.width % 2 == made.height % 2 == 0


@pytest.mark.parametrize(
    ("family", "body", "sound"),
    [
        ("vidsb", {}, True),
        ("vidsb", {"generateAudio": True}, True),
        ("vidsb", {"generateAudio": False}, False),
        ("vidd", {}, False),
        ("imga", {}, False),
    ],
)
def test_vidsb_has_sound_unless_told_otherwise(
    family: str, body: dict[str, Any], *, sound: bool
) -> None:
    """Only `vidsb` makes audio, and not when `generateAudio` is false."""
    assert dimensions(find_family(family), body).sound is sound


@pytest.mark.parametrize(
    ("videos", "seconds"), [([], 7), (["https://media.example.com/horse.mp4"], 5)]
)
def test_an_empty_array_of_reference_videos(videos: list[str], seconds: int) -> None:
    """The client, the estimate and the local service agree on when a video decides the rest."""
    body: dict[str, Any] = {"model": "vidc_o3", "prompt": "x", "duration": 7, "ratio": "1:1"}
    body |= {"referenceVideos": videos}
    family = find_family("vidc")
    report = family.check(body)
    ignored = {notice.field for notice in report.notices}
    assert (report.ok, ignored) == (True, {"duration", "ratio"} if videos else set())
    found = dimensions(family, body)
    assert (found.seconds, found.width == found.height) == (seconds, not videos)
    assert media_quantities(family, "vidc_o3", body).seconds == (None if videos else seconds)
