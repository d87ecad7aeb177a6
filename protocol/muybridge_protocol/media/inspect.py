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

from muybridge_protocol.media.draft import Draft
from muybridge_protocol.media.facts import UNKNOWN_FORMAT, MediaFacts
from muybridge_protocol.media.formats import AAC, BEGINNING, MP3, PDF, SVG, format_of
from muybridge_protocol.media.images import IMAGE_READERS
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
    Source,
    Wanted,
    Window,
)
from muybridge_protocol.media.webm import read_webm

_MOST_READS = 20_000
"""Parts of a file that are looked at. A file may have any number of tiny ones."""

_READERS: Mapping[str, Callable[[Source, Draft], None]] = {
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

IS_PDF = "is a PDF document"
"""The defect of a document, which is no medium, but a file that text requests take."""
_NO_MEDIA: tuple[tuple[bytes, str], ...] = (
    *((mark, IS_PDF) for mark in PDF.marks),
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
    draft, defect, size = Draft(), "", source.size
    bounded: Source = Bounded(source, _MOST_READS)
    try:
        is_tagged = is_tag(bounded.read(0, BEGINNING))
        if is_tagged:
            bounded = Window(bounded, behind_tags(bounded))
        defect = _recognize(bounded, draft)
        if defect and is_tagged:
            defect, draft.missing = "", "what stands behind its tag is not recognized"
        reader = _READERS.get(draft.format or "")
        if reader is not None:
            reader(bounded, draft)
        elif not defect:
            draft.missing = "its headers are not read here"
    except Damaged as error:
        if error.truncated:
            defect = "is truncated"
        else:
            draft.missing = f"its headers cannot be read: {error}"
    except Wanted as wanted:
        if wanted.closed is None:
            raise
        draft.missing = wanted.closed
    facts = {field.name: getattr(draft, field.name) for field in attrs.fields(Draft)}
    return MediaFacts(**facts, bytes=size, defect=defect)


def _recognize(source: Source, draft: Draft) -> str:
    """Find out the format, and return why *source* is certainly no medium, or ""."""
    start = source.read(0, BEGINNING)
    if not start:
        return "is empty"
    media_format = format_of(start)
    if media_format is None and mp3_start(source) is not None:
        media_format = MP3
    if media_format is None and is_adts(source):
        media_format = AAC
    if media_format is not None:
        draft.format, draft.kind = media_format.name, media_format.kind
        return ""
    for mark, what in _NO_MEDIA:
        if start.startswith(mark):
            return what
    draft.format = UNKNOWN_FORMAT
    return _as_text(start, draft)


def _as_text(start: bytes, draft: Draft) -> str:
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
        draft.format, draft.kind = SVG.name, SVG.kind
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
