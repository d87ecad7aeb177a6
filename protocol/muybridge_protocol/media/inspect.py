"""Find out what a picture, video or sound is, from its headers alone.

Nothing is decoded, and no library reads foreign data: each reader asks for the few bytes that it
needs, and the number of times that it may ask is limited. So what a file claims (a picture of
60,000 px, a video of 10 hours, billions of frames) costs neither memory nor time. A library would
not do: Pillow opens a WebP only whole and a very large picture not at all, and FFmpeg reads 856 KB
of a video of 4.7 MB before it tells the length.

Two kinds of bad news are kept apart. A *defect* is certain: the data are empty, are text or another
thing that is no medium, or end too early. Whatever cannot be found out is *missing*, with the
reason, and nothing may be refused because of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import attrs

from muybridge_protocol.media.facts import UNKNOWN_FORMAT, MediaFacts
from muybridge_protocol.media.found import Found
from muybridge_protocol.media.images import IMAGE_READERS
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.mp4 import read_mp4
from muybridge_protocol.media.sounds import (
    behind_tags,
    is_adts,
    is_tag,
    mp3_start,
    read_mp3,
    read_wav,
)
from muybridge_protocol.media.source import (
    Bounded,
    Damaged,
    OutOfReach,
    Source,
    Truncated,
    Window,
)
from muybridge_protocol.media.webm import read_webm

_MOST_READS = 20_000
_BEGINNING = 512
"""Bytes by which formats are recognized."""

_READERS: Mapping[str, Callable[[Source, Found], None]] = {
    **IMAGE_READERS,
    "MP4": read_mp4,
    "QuickTime": read_mp4,
    "HEIC": read_mp4,
    "HEIF": read_mp4,
    "AVIF": read_mp4,
    "WebM": read_webm,
    "WAV": read_wav,
    "MP3": read_mp3,
}

_MARKS: tuple[tuple[int, bytes, str, MediaKind | None], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG", MediaKind.IMAGE),
    (0, b"\xff\xd8\xff", "JPEG", MediaKind.IMAGE),
    (0, b"GIF87a", "GIF", MediaKind.IMAGE),
    (0, b"GIF89a", "GIF", MediaKind.IMAGE),
    (0, b"II*\0", "TIFF", MediaKind.IMAGE),
    (0, b"MM\0*", "TIFF", MediaKind.IMAGE),
    (0, b"II+\0", "TIFF", MediaKind.IMAGE),
    (0, b"MM\0+", "TIFF", MediaKind.IMAGE),
    (0, b"8BPS", "Photoshop", MediaKind.IMAGE),
    (0, b"\0\0\0\x0cjP  ", "JPEG 2000", MediaKind.IMAGE),
    (0, b"\0\0\0\x0cJXL ", "JPEG XL", MediaKind.IMAGE),
    (0, b"\xff\x0a", "JPEG XL", MediaKind.IMAGE),
    (0, b"\x1aE\xdf\xa3", "WebM", None),
    (0, b"FLV\x01", "FLV", MediaKind.VIDEO),
    (0, b"\0\0\x01\xba", "MPEG", MediaKind.VIDEO),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "ASF", None),
    (0, b"OggS", "Ogg", None),
    (0, b"fLaC", "FLAC", MediaKind.SOUND),
    (0, b"#!AMR", "AMR", MediaKind.SOUND),
    (0, b"MThd", "MIDI", MediaKind.SOUND),
)
"""Marks at an offset, the format that each belongs to, and what it is if the mark tells."""

_RIFF: Mapping[bytes, tuple[str, MediaKind]] = {
    b"WEBP": ("WebP", MediaKind.IMAGE),
    b"WAVE": ("WAV", MediaKind.SOUND),
    b"AVI ": ("AVI", MediaKind.VIDEO),
}
_PICTURE_BRANDS: Mapping[bytes, str] = {
    **dict.fromkeys((b"avif", b"avis", b"avio"), "AVIF"),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis"), "HEIC"),
    **dict.fromkeys((b"hevc", b"hevx", b"hevm", b"hevs"), "HEIC"),
    **dict.fromkeys((b"mif1", b"mif2", b"msf1", b"miaf", b"1pic"), "HEIF"),
    **dict.fromkeys((b"avci", b"avcs", b"j2ki", b"j2is"), "HEIF"),
}
"""The brands of pictures in ISO files (ISO/IEC 23008-12). Those of HEIF name no encoding."""
_FIRST_BRANDS: Mapping[bytes, tuple[str, MediaKind | None]] = {
    b"qt  ": ("QuickTime", None),
    b"crx ": ("CR3", MediaKind.IMAGE),
}
"""What the first brand alone says. A file with none of all these brands is MP4."""
_QUICKTIME = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
"""Boxes with which a QuickTime file begins that has no brand."""
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)
IS_PDF = "is a PDF document"
"""The defect of a document, which is no medium, but a file that text requests take."""
_NO_MEDIA: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", IS_PDF),
    (b"PK\x03\x04", "is a ZIP archive"),
    (b"\x1f\x8b\x08", "is compressed with gzip"),
    (b"\x7fELF", "is a program"),
)
_TEXT_MEDIA = (
    "#EXTM3U",  # a playlist
    *("P1", "P2", "P3", "P4", "P5", "P6", "P7", "Pf", "PF"),  # what stands behind may be any bytes
    *("#?RADIANCE", "#?RGBE", "%!PS", "/* XPM */", "#define "),
)
"""How pictures and playlists begin that are text, or may be."""
_PROLOG = re.compile(r"(?:<\?.*?\?>\s*|<!--.*?-->\s*)+", re.DOTALL)
"""What may stand in XML before the element that says what it is."""


def inspect_media(source: Source) -> MediaFacts:
    """Return what the headers of *source* say.

    Raises:
        Wanted: Bytes are missing that can be fetched.
    """
    found, defect, size = Found(), "", source.size
    bounded: Source = Bounded(source, _MOST_READS)
    try:
        is_tagged = is_tag(bounded.read(0, _BEGINNING))
        if is_tagged:
            bounded = Window(bounded, behind_tags(bounded))
        defect = _recognize(bounded, found)
        if defect and is_tagged:
            defect, found.missing = "", "what stands behind its tag is not recognized"
        reader = _READERS.get(found.format or "")
        if reader is not None:
            reader(bounded, found)
        elif not defect:
            found.missing = "its headers are not read here"
    except Truncated:
        defect = "is truncated"
    except Damaged as error:
        found.missing = f"its headers cannot be read: {error}"
    except OutOfReach as error:
        found.missing = str(error)
    facts = {field.name: getattr(found, field.name) for field in attrs.fields(Found)}
    return MediaFacts(**facts, bytes=size, defect=defect)


def _recognize(source: Source, found: Found) -> str:
    """Find out the format, and return why *source* is certainly no medium, or ""."""
    start = source.read(0, _BEGINNING)
    if not start:
        return "is empty"
    found.format, found.kind = format_of(start)
    if found.format is not None:
        return ""
    if mp3_start(source) is not None:
        found.format, found.kind = "MP3", MediaKind.SOUND
        return ""
    if is_adts(source):
        found.format, found.kind = "AAC", MediaKind.SOUND
        return ""
    for mark, what in _NO_MEDIA:
        if start.startswith(mark):
            return what
    found.format = UNKNOWN_FORMAT
    return _as_text(start, found)


def format_of(start: bytes) -> tuple[str | None, MediaKind | None]:
    """Return the format of what begins with *start*, and what it is; None if that is unknown."""
    for offset, mark, name, kind in _MARKS:
        if start[offset : offset + len(mark)] == mark:
            return name, kind
    if start[:4] in (b"RIFF", b"RF64", b"BW64") and start[8:12] in _RIFF:
        return _RIFF[start[8:12]]
    if start[4:8] == b"ftyp":
        return _by_brands(start)
    if start[4:8] in _QUICKTIME:
        return "QuickTime", None
    if start[:2] == b"BM" and int.from_bytes(start[14:18], "little") in _BMP_HEADERS:
        return "BMP", MediaKind.IMAGE
    if start[:4] == b"FORM" and start[8:12] in (b"AIFF", b"AIFC"):
        return "AIFF", MediaKind.SOUND
    if len(start) > 376 and start[0] == start[188] == start[376] == 0x47:  # its packets
        return "MPEG-TS", MediaKind.VIDEO
    return None, None


def _by_brands(start: bytes) -> tuple[str, MediaKind | None]:
    """Return what the brands of an ISO file say: the first one, and those it is compatible with."""
    end = min(int.from_bytes(start[:4], "big"), len(start))
    brands = [start[at : at + 4] for at in (8, *range(16, end - 3, 4))]
    if brands[0] in _FIRST_BRANDS:
        return _FIRST_BRANDS[brands[0]]
    names = [_PICTURE_BRANDS[brand] for brand in brands if brand in _PICTURE_BRANDS]
    if not names:
        return "MP4", None
    return next((name for name in names if name != "HEIF"), "HEIF"), MediaKind.IMAGE


def _as_text(start: bytes, found: Found) -> str:
    """Return why text is no medium, or "" if *start* is no text, or text that is a medium."""
    try:
        text = start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The last character may be cut.
        if error.start < len(start) - 3 or error.reason != "unexpected end of data":
            return ""
        text = start[: error.start].decode("utf-8-sig")
    text = text.lstrip()
    if not all(char.isprintable() or char in "\t\r\n\f" for char in text):
        return ""
    if "<svg" in text or "<!DOCTYPE svg" in text:
        found.format, found.kind = "SVG", MediaKind.IMAGE
        return ""
    if text.startswith(_TEXT_MEDIA):
        return ""
    if text[:1] == "<":
        rest = _PROLOG.sub("", text, count=1)
        is_open = not rest or rest.startswith(("<?", "<!--"))  # what it is comes only later
        return "" if is_open else "is a web page or another text"
    if text[:1] in ("{", "["):
        return "is JSON"
    return "is a text"
