"""The families' rules about media, against what the specification says, transcribed by hand.

Each row is a medium of the corpus, and the rules that it breaks or leaves open. It keeps all
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.rules.media import Medium, Unseen, judge_media
from tables import table

from .corpus import PICTURES, picture, sound, video
from .judging import check, report

SIDES = "300-6000 px per side"
SHAPE = "0.4 to 2.5 times"


EDGES = {
    (300, 300): "",
    (299, 299): SIDES,
    (299, 400): SIDES,
    (400, 299): SIDES,
    (6000, 2400): "",
    (2400, 6000): "",
    (6001, 2401): SIDES,
    (2401, 6001): SIDES,
    (750, 300): "",
    (751, 300): SHAPE,
    (300, 750): "",
    (300, 751): SHAPE,
    (1280, 720): "",
}


@pytest.mark.parametrize("field", ["first_image", "last_image", "referenceImages"])
@table("size", EDGES)
@table("form", PICTURES)
def test_images_of_vidsb(field: str, form: str, size: tuple[int, int]) -> None:
    """JPEG, PNG, WebP, BMP, TIFF, GIF; width/height ratio 0.4-2.5; 300-6000 px per side."""
    check(report("vidsb", field, picture(form, *size)), broken=EDGES[size])


def test_an_image_of_vidsb_of_another_format() -> None:
    """AVIF is none of the formats. Its size is not read."""
    avif = b"\0\0\0\x1cftypavif\0\0\0\0" + bytes(99)
    found = report("vidsb", "first_image", avif)
    assert [one.why for one in found.problems] == ["is AVIF"]
    assert len(found.undecided) == 2


@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("field", ["first_image", "last_image"])
def test_images_of_vidd(field: str, form: str) -> None:
    """Formats jpeg, png, webp."""
    accepted = form in ("JPEG", "PNG", "WebP")
    check(report("vidd", field, picture(form, 10, 10)), broken="" if accepted else "JPEG")


VIDR: list[tuple[tuple[int, int], dict[str, str], bool]] = [
    ((1280, 720), {"aspect_ratio": "16:9"}, True),
    ((720, 1280), {"aspect_ratio": "16:9"}, False),
    ((720, 1280), {"aspect_ratio": "9:16"}, True),
    ((1280, 720), {"aspect_ratio": "9:16"}, False),
    ((1280, 720), {"size": "1280x720"}, True),
    ((720, 1280), {"size": "1280x720"}, False),
    ((720, 1280), {"size": "720x1280"}, True),
    ((720, 1280), {}, True),  # "720x1280 (portrait, default)"
    ((1280, 720), {}, False),
    ((1281, 720), {"aspect_ratio": "16:9"}, False),
    ((1920, 1080), {"aspect_ratio": "16:9"}, False),
]


@table(("size", "body", "keeps"), VIDR)
@table("field", ["input_reference", "image_urls"])
def test_images_of_vidr(
    field: str, size: tuple[int, int], body: Mapping[str, Any], *, keeps: bool
) -> None:
    """Dimensions must match the chosen orientation (1280x720 for 16:9, 720x1280 for 9:16)."""
    found = report("vidr", field, picture("PNG", *size), **body)
    check(found, broken="" if keeps else "px for")
    wanted = "1280x720" if "16:9" in body.values() or "1280x720" in body.values() else "720x1280"
    for problem in found.problems:
        assert problem.why == f"has {size[0]}x{size[1]} px, but must have {wanted} px"


def test_a_turned_image_of_vidr() -> None:
    """A picture that is stored in one orientation and shown in the other is refused for none."""
    turned = MediaFacts(kind=MediaKind.IMAGE, format="JPEG", width=1280, height=720, turned=True)
    for ratio in ("16:9", "9:16"):
        found = report("vidr", "image_urls", turned, aspect_ratio=ratio)
        check(found, undecided="px for")
        assert "has 1280x720 px but is rotated for display" in [one.why for one in found.undecided]


RESOLUTIONS = {
    (1280, 720): ("", ""),
    (720, 1280): ("", ""),
    (720, 720): ("", ""),
    (1920, 1080): ("", ""),
    (3840, 2160): ("", ""),
    (2160, 3840): ("", ""),
    (960, 540): ("", "720 px"),  # perhaps its width counts
    (718, 540): ("720 px", ""),
    (640, 480): ("720 px", ""),
    (4096, 2304): ("720 px", ""),
    (2300, 2200): ("720 px", ""),
}


@pytest.mark.parametrize("size", RESOLUTIONS, ids=str)
def test_resolutions_of_videos(size: tuple[int, int]) -> None:
    """Each video between 720 px and 2160 px resolution."""
    broken, undecided = RESOLUTIONS[size]
    data = video(*size, 1, rate=1)
    check(report("videos", "referenceVideos", data), broken, undecided)


LINES = {
    (854, 480): ("", ""),
    (640, 480): ("", ""),
    (480, 854): ("", ""),
    (1280, 720): ("", ""),
    (720, 1280): ("", ""),
    (720, 720): ("", ""),
    (1680, 720): ("", ""),
    (864, 496): ("", "480p"),  # rounded to multiples of 16
    (1248, 704): ("", "480p"),
    (640, 640): ("", "480p"),  # as many pixels as 480p has
    (960, 960): ("", "480p"),
    (1024, 576): ("", "480p"),
    (1920, 1080): ("480p", ""),
    (1080, 1920): ("480p", ""),
    (3840, 2160): ("480p", ""),
    (640, 360): ("480p", ""),
    (320, 240): ("480p", ""),
}


@pytest.mark.parametrize("size", LINES, ids=str)
def test_resolutions_of_vidsb(size: tuple[int, int]) -> None:
    """Each 480p or 720p."""
    broken, undecided = LINES[size]
    data = video(*size, 2, rate=1)
    check(report("vidsb", "referenceVideos", data), broken, undecided)


def of_pixels(width: int, height: int) -> MediaFacts:
    return MediaFacts(
        kind=MediaKind.VIDEO, format="MP4", width=width, height=height, seconds=5, bytes=99
    )


EXACT = [
    # An edge within 16 px of 480 or 720: a multiple of 16, as codecs need it.
    ("vidsb", (4000, 736), (4000, 737)),
    ("vidsb", (4000, 704), (4000, 703)),
    ("vidsb", (464, 200), (463, 200)),
    ("vidsb", (496, 100), (497, 100)),
    # A tenth fewer pixels than 640x480, and a tenth more than 1280x720.
    ("vidsb", (540, 512), (540, 511)),
    ("vidsb", (1056, 960), (1056, 961)),
    # Either edge may be the one that has 720 to 2160 px.
    ("videos", (2160, 700), (2161, 700)),
    ("videos", (720, 500), (719, 500)),
    ("videos", (500, 720), (500, 719)),
]


@pytest.mark.parametrize(("family", "undecided", "broken"), EXACT)
def test_where_a_video_is_refused(
    family: str, undecided: tuple[int, int], broken: tuple[int, int]
) -> None:
    """A video is refused from the first pixel on from which no reading accepts it."""
    words = "480p" if family == "vidsb" else "720 px"
    check(report(family, "referenceVideos", of_pixels(*undecided)), undecided=words)
    check(report(family, "referenceVideos", of_pixels(*broken)), broken=words)


FORMATS = {
    "wav": (sound(3), True),
    "mp3": (sound(3, "mp3"), True),
    "ogg": (sound(3, "ogg"), False),
    "flac": (sound(3, "flac"), False),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_sounds(name: str) -> None:
    """WAV or MP3."""
    data, accepted = FORMATS[name]
    problems = [one.rule for one in report("vidsb", "referenceAudios", data).problems]
    assert problems == ([] if accepted else ["Each reference sound is WAV or MP3."])


OTHER_KINDS = {
    "a video for an image": ("imga", "image_urls", video(), "is MP4, which is not an image"),
    "a sound for a video": ("vidc", "referenceVideos", sound(3), "is WAV, which is not a video"),
    "an image for a video": (
        "vidsb", "referenceVideos", picture("JPEG", 640, 480), "is JPEG, which is not a video",
    ),
    "a video for a sound": ("vidsb", "referenceAudios", video(), "is MP4, which is not a sound"),
    "a page for an image": ("vidg", "image_urls", b"<html>", "is a web page or another text"),
    "nothing for a video": ("videos", "referenceVideos", b"", "is empty"),
    "a cut video": ("vidc", "referenceVideos", video()[:-9], "is truncated"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_other_kinds(name: str) -> None:
    """A medium that the field cannot take is one problem, whatever other rules there are."""
    family, field, data, why = OTHER_KINDS[name]
    found = report(family, field, data)
    assert [one.why for one in found.problems] == [why]


@pytest.mark.parametrize("form", ["GIF", "WebP", "PNG"])
def test_images_that_may_move(form: str) -> None:
    """A format of images that may move is not refused for a video."""
    found = report("vidc", "referenceVideos", picture(form, 640, 480))
    assert found.ok
    assert f"{form} may be accepted as a video" in [one.why for one in found.undecided]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_not_known_breaks_no_rule(family: str) -> None:
    """Of a medium of which nothing is known, every rule is undecided."""
    for field in media_fields(FAMILIES[family]):
        found = report(family, field, MediaFacts(missing="it is an asset"), MediaFacts())
        assert found.ok
        assert found.decided == 0
        assert len(found.findings) >= 2
        for one in found.undecided:
            said = {0: "it is an asset", 1: "is not in its header"}.get(one.index or 0, "")
            assert one.why == "only the service can tell" or one.index is None or said in one.why


def test_the_page_lists_each_rule() -> None:
    """The page has the sentence of each rule, and marks those that no header decides."""
    rules = [rule for family in FAMILIES.values() for rule in family.media_rules]
    page = (Path(__file__).parents[2] / "docs" / "check-media.md").read_text(encoding="utf-8")
    listed = page.partition("## The rules")[2].split("\n")
    assert sorted(line for line in listed if line.startswith("- ")) == sorted(
        f"- {rule.sentence}{' *' if isinstance(rule, Unseen) else ''}" for rule in rules
    )


def test_each_rule_names_fields_that_take_media() -> None:
    """A rule about a field that does not exist would never be applied."""
    for family in FAMILIES.values():
        for rule in family.media_rules:
            fields: Any = getattr(rule, "fields", None) or getattr(rule, "field", ())
            fields = (fields,) if isinstance(fields, str) else fields
            assert set(fields) <= set(media_fields(family)), family.name


def test_data_that_are_not_recognized() -> None:
    """Each format of a picture has a mark, so that data without any have none of these formats."""
    data = bytes(range(7, 256))
    found = report("vidsb", "first_image", data)
    assert [one.why for one in found.problems] == ["has a format that is not recognized"]
    # An MP3 may begin in any way.
    assert report("vidsb", "referenceAudios", data).ok
    assert report("imga", "image_urls", data).ok


def test_a_picture_that_may_be_truncated() -> None:
    """A doubt leaves it undecided whether the field takes the picture."""
    found = report("vidd", "first_image", picture("JPEG", 500, 400)[:-2])
    assert [(one.rule, one.why) for one in found.undecided] == [
        ("The field takes images.", "it has no end marker, so it may be truncated")
    ]
    assert found.decided == 1


def test_several_fields() -> None:
    """Findings come in the order of the media, and those about all of a field after its own."""
    family = FAMILIES["vidsb"]
    media = [
        Medium(
            field=field,
            index=index,
            kind=media_fields(family)[field],
            source=field,
            facts=inspect_media(Fragments.of(data)),
        )
        for field, index, data in (
            ("referenceAudios", 0, sound(3)),
            ("referenceAudios", 1, sound(12.5)),
            ("referenceImages", 0, picture("PNG", 200, 300)),
            ("referenceVideos", 0, video(640, 360, 2, rate=1)),
        )
    ]
    found = judge_media(family.media_rules, media, {})
    assert [(one.place, one.verdict.value, one.rule) for one in found.findings] == [
        *(
            (f"referenceAudios[{index}]", "kept", rule)
            for index in (0, 1)
            for rule in (
                "The field takes sounds.",
                "Each reference sound is WAV or MP3.",
                "Each reference sound lasts 2-15 s.",
                "Each reference sound has at most 15 MB.",
            )
        ),
        ("referenceAudios", "undecided", "All reference sounds together last at most 15 s."),
        ("referenceImages[0]", "kept", "The field takes images."),
        ("referenceImages[0]", "kept", "An image is JPEG, PNG, WebP, BMP, TIFF or GIF."),
        ("referenceImages[0]", "broken", "An image has 300-6000 px per side."),
        ("referenceImages[0]", "kept", "An image is 0.4 to 2.5 times as wide as high."),
        (
            "referenceImages[0]", "undecided",
            "A reference image with human faces or virtual avatars must be an asset.",
        ),
        ("referenceVideos[0]", "kept", "The field takes videos."),
        ("referenceVideos[0]", "broken", "Each reference video is 480p or 720p."),
        ("referenceVideos[0]", "kept", "Each reference video lasts 2-15 s."),
        ("referenceVideos", "kept", "All reference videos together last at most 15 s."),
    ]  # fmt: skip
    assert [medium.place for medium in found.media] == [
        "referenceAudios[0]", "referenceAudios[1]", "referenceImages[0]", "referenceVideos[0]",
    ]  # fmt: skip
    first, second = found.problems
    assert str(first) == ("referenceImages[0]: has 200x300 px. An image has 300-6000 px per side.")
    assert second.why == "has 640x360 px"
    assert (found.ok, found.decided, len(found.undecided)) == (False, 16, 2)
