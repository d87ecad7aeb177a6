"""How long media last and how large they are, against what the specification says, by hand.

Each row is a medium of the corpus, and the rules that it breaks or leaves open.
"""

from __future__ import annotations

from typing import Any

import pytest

from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.kinds import MediaKind

from .corpus import picture, sound, video
from .judging import check, report

MIB = 1_048_576

CONTAINERS: dict[str, dict[str, Any]] = {
    "fast start": {"fast_start": True},
    "moov at the end": {},
    "quicktime": {"form": "mov"},
    "webm": {"form": "webm"},
}
VIDC = {
    1.75: ("3-10 s", ""),
    2: ("3-10 s", ""),
    2.25: ("", "3-10 s"),  # rounded up, it lasts 3 s
    3: ("", ""),
    10: ("", ""),
    10.75: ("", "3-10 s"),
    11: ("3-10 s", ""),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("seconds", VIDC)
def test_lengths_of_vidc(seconds: float, container: str) -> None:
    """The reference video must last 3-10 s."""
    broken, undecided = VIDC[seconds]
    data = video(160, 120, seconds, **CONTAINERS[container])
    check(report("vidc", "referenceVideos", data), broken, undecided)


VIDSB = {
    1: ("2-15 s", ""),
    1.25: ("", "2-15 s"),
    2: ("", ""),
    15: ("", ""),
}


@pytest.mark.parametrize("seconds", VIDSB)
def test_lengths_of_vidsb(seconds: float) -> None:
    """Each 2-15 s, videos and sounds."""
    broken, undecided = VIDSB[seconds]
    check(report("vidsb", "referenceVideos", video(640, 480, seconds)), broken, undecided)
    check(report("vidsb", "referenceAudios", sound(seconds)), broken, undecided)


def test_a_sound_that_is_too_long() -> None:
    """A sound of 16 s breaks the rule for each and the rule for all."""
    for form in ("wav", "mp3"):
        found = report("vidsb", "referenceAudios", sound(16.1, form))
        assert [one.index for one in found.problems] == [0, None]


TOTALS: list[tuple[list[float], str, str]] = [
    ([5, 5, 5], "", ""),
    ([15], "", ""),
    ([7, 8], "", ""),
    ([7.25, 8], "", "together"),
    ([5.75, 5.75, 5.75], "", "together"),  # rounded down, each lasts 5 s
    ([8, 8], "together", ""),
    ([6, 5, 5], "together", ""),
]


@pytest.mark.parametrize(("lengths", "broken", "undecided"), TOTALS, ids=str)
def test_lengths_together(lengths: list[float], broken: str, undecided: str) -> None:
    """Total at most 15 s: reference videos of vidsb and videos, and reference sounds of vidsb."""
    videos = [video(1280, 720, seconds) for seconds in lengths]
    sounds = [sound(seconds) for seconds in lengths]
    check(report("vidsb", "referenceVideos", *videos), broken, undecided)
    check(report("vidsb", "referenceAudios", *sounds), broken, undecided)
    check(report("videos", "referenceVideos", *videos), broken, undecided)


def test_a_length_that_is_unknown() -> None:
    """If the known lengths are too long already, the unknown ones do not matter."""
    unknown = video(640, 480, 2, fragmented=True)
    found = report("vidsb", "referenceVideos", unknown, video(640, 480, 8), video(640, 480, 8))
    assert [one.index for one in found.problems] == [None]
    found = report("vidsb", "referenceVideos", unknown, video(640, 480, 8))
    assert [one.index for one in found.undecided] == [0, None]


SOUND_SIZES = {
    15_000_000: ("", ""),
    15_000_001: ("", "15 MB"),
    15 * MIB: ("", "15 MB"),
    15 * MIB + 1: ("15 MB", ""),
}


@pytest.mark.parametrize("size", SOUND_SIZES)
@pytest.mark.parametrize("form", ["wav", "mp3"])
def test_sizes_of_sounds(form: str, size: int) -> None:
    """Each at most 15 MB."""
    broken, undecided = SOUND_SIZES[size]
    data = sound(3, form).ljust(size, b"\0")
    check(report("vidsb", "referenceAudios", data), broken, undecided)


IMAGE_SIZES = {
    19_999_999: ("", ""),
    20_000_000: ("", "20 MB"),
    20 * MIB - 1: ("", "20 MB"),
    20 * MIB: ("20 MB", ""),
}


@pytest.mark.parametrize("size", IMAGE_SIZES)
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_sizes_of_images(form: str, size: int) -> None:
    """Each image under 20 MB."""
    broken, undecided = IMAGE_SIZES[size]
    data = picture(form, 500, 400).ljust(size, b"\0")
    check(report("videos", "referenceImages", data), broken, undecided)


def of_size(size: int | None) -> MediaFacts:
    return MediaFacts(
        kind=MediaKind.VIDEO, format="MP4", width=1280, height=720, seconds=5, bytes=size
    )


@pytest.mark.parametrize(
    ("sizes", "broken", "undecided"),
    [
        ([200_000_000], "", ""),
        ([100_000_000, 100_000_001], "", "200 MB"),
        ([200 * MIB], "", "200 MB"),
        ([200 * MIB, 1], "200 MB", ""),
        ([5, None], "", "200 MB"),
        ([200 * MIB + 1, None], "200 MB", ""),
    ],
)
def test_sizes_together(sizes: list[int | None], broken: str, undecided: str) -> None:
    """Total size at most 200 MB."""
    check(report("videos", "referenceVideos", *map(of_size, sizes)), broken, undecided)
