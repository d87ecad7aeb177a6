"""The headers of pictures: their size in pixels, and whether they are shown turned.

No pixel is decoded. So a picture that claims to be 60,000 px wide costs no more than any other.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

from muybridge_protocol.media.draft import Draft
from muybridge_protocol.media.source import Damaged, Source, Window, exactly, truncation

_MOST_BLOCKS = 64
"""Mebibytes of a JPEG that are searched for its end."""
_LONGEST_XMP = 256 * 1024
"""Bytes of a note in XMP that are read at most."""
_EXIF = b"Exif\0\0"
"""How a note in Exif begins in a JPEG, and by mistake elsewhere."""
_MOST_ENTRIES = 4_096
"""Entries of a TIFF directory that are read at most."""


def read_png(source: Source, draft: Draft) -> None:
    """Read a PNG.

    Raises:
        Damaged: It begins with another chunk than it must, or ends within one.
    """
    start = exactly(source, 8, 16)
    if start[4:8] != b"IHDR":
        raise Damaged("its first chunk is not IHDR")
    draft.put_size(*struct.unpack(">II", start[8:]))
    offset = 8
    while True:
        length, name = struct.unpack(">I4s", exactly(source, offset, 8))
        if name == b"eXIf":
            draft.turned |= _turned_by(Window(source, offset + 8))
        elif name == b"iTXt":
            draft.turned |= _turned_by_xmp(source.read(offset + 8, min(length, _LONGEST_XMP)))
        elif name == b"caBX":
            draft.credentials = True
        elif name == b"IDAT" and not source.complete:
            return  # in the thousand chunks from here on, no note is looked for
        # Length, name and checksum take 12 bytes. The chunk's last byte shows that it is whole.
        offset += 12 + length
        exactly(source, offset - 1, 1)
        if name == b"IEND":
            return


def read_jpeg(source: Source, draft: Draft) -> None:
    """Read a JPEG up to the segment that has its size, and the notes before it.

    Raises:
        Damaged: There is no marker where one must be.
    """
    offset = 2
    while True:
        mark, kind = exactly(source, offset, 2)
        if mark != 0xFF:  # every marker begins with it
            raise Damaged("there is no marker where one must be")
        if kind == 0xFF:  # a fill byte
            offset += 1
            continue
        if kind in _WITHOUT_LENGTH:
            offset += 2
            continue
        if kind in (0xD9, 0xDA):  # the end, and the scan
            raise Damaged("its size does not stand where it must")
        # The length counts itself, but not the marker before it.
        (length,) = struct.unpack(">H", exactly(source, offset + 2, 2))
        if kind in _FRAMES:
            # Behind the marker, the length and the bits of a sample.
            height, width = struct.unpack(">HH", exactly(source, offset + 5, 4))
            draft.put_size(width, height)
            if source.complete and not _has_end(source, offset):
                draft.doubt = "it has no end marker, so it may be truncated"
            return
        if kind == 0xE1:  # APP1
            draft.turned |= _turned_by(Window(source, offset + 4))
            draft.turned |= _turned_by_xmp(source.read(offset + 4, length - 2))
        elif kind == 0xEB:  # APP11
            draft.credentials |= _holds_credentials(source.read(offset + 4, min(length - 2, 64)))
        offset += 2 + length


def _holds_credentials(segment: bytes) -> bool:
    """Whether a segment of JUMBF boxes begins with the one of a C2PA manifest store."""
    return segment[:2] == b"JP" and b"jumdc2pa" in segment


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of frame headers."""
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})


def _has_end(source: Source, start: int) -> bool:
    """Whether the end marker follows anywhere after *start*, as far as that is looked for."""
    last = b""
    for _ in range(_MOST_BLOCKS):
        piece = source.read(start, 1 << 20)
        if not piece:
            return False
        if b"\xff\xd9" in last + piece:
            return True
        last, start = piece[-1:], start + len(piece)
    return True


def _turned_by(note: Source) -> bool:
    """Whether an Exif note says that the picture is shown turned. A damaged note says nothing."""
    try:
        at = len(_EXIF) if note.read(0, len(_EXIF)) == _EXIF else 0
        return _directory(Window(note, at)).get(_ORIENTATION, 1) in _TURNED
    except Damaged:
        return False


def _turned_by_xmp(note: bytes) -> bool:
    """Whether *note*, if it is one of XMP, says that the picture is shown turned."""
    match = re.search(rb"tiff:Orientation(?:\s*=\s*[\"']|>)\s*([1-8])", note)
    return match is not None and int(match[1]) in _TURNED


def read_gif(source: Source, draft: Draft) -> None:
    """Read a GIF: the size of its screen, onto which its pictures are drawn."""
    draft.put_size(*struct.unpack("<HH", exactly(source, 6, 4)))


def read_bmp(source: Source, draft: Draft) -> None:
    """Read a BMP, whose height is negative if its rows run from top to bottom."""
    (header,) = struct.unpack("<I", exactly(source, 14, 4))
    if header == 12:  # of OS/2
        draft.put_size(*struct.unpack("<HH", exactly(source, 18, 4)))
    else:
        width, height = struct.unpack("<ii", exactly(source, 18, 8))
        draft.put_size(width, abs(height))


def read_webp(source: Source, draft: Draft) -> None:
    """Read a WebP.

    Raises:
        Damaged: Its first chunk is not one of the three that it may be, or it is shorter than it
            says.
    """
    start = exactly(source, 0, 30)
    chunk, data = start[12:16], start[20:]
    # Three forms of the same header: numbers of 24 bits, of 14 bits packed (both less 1), and of 14
    # bits whose upper two bits are a scale.
    if chunk == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (4, 7))
    elif chunk == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif chunk == b"VP8 ":
        width, height = (size & 0x3FFF for size in struct.unpack("<HH", data[6:10]))
    else:
        raise Damaged("its first chunk is not VP8, VP8L or VP8X")
    draft.put_size(width, height)
    # The length of a RIFF file does not count its first 8 bytes.
    end = int.from_bytes(start[4:8], "little") + 8
    if source.size is not None and source.size < end:
        raise truncation()
    if source.complete or (chunk == b"VP8X" and data[0] & _WEBP_NOTES):
        _read_webp_notes(source, end, draft)


_WEBP_NOTES = 0x0C
"""The flags in the first chunk of a WebP for a note in Exif and one in XMP."""


def _read_webp_notes(source: Source, end: int, draft: Draft) -> None:
    """Look for the notes of a WebP, which stand behind its picture."""
    offset = 12
    while offset + 8 <= end:
        name, length = struct.unpack("<4sI", exactly(source, offset, 8))
        if name == b"EXIF":
            draft.turned |= _turned_by(Window(source, offset + 8))
        elif name == b"XMP ":
            draft.turned |= _turned_by_xmp(source.read(offset + 8, min(length, _LONGEST_XMP)))
        elif name == b"C2PA":
            draft.credentials = True
        # Chunks begin at even offsets.
        offset += 8 + length + length % 2


def read_tiff(source: Source, draft: Draft) -> None:
    """Read the first page of a TIFF.

    Raises:
        Damaged: Its directory has no size.
    """
    entries = _directory(source)
    if entries.get(_SUBFILE, 0) & 1:
        raise Damaged("its first page is a preview")
    try:
        width, height = entries[_WIDTH], entries[_LENGTH]
    except KeyError:
        raise Damaged("its directory has no size") from None
    draft.put_size(width, height)
    draft.turned = entries.get(_ORIENTATION, 1) in _TURNED


_SUBFILE, _WIDTH, _LENGTH, _ORIENTATION = 254, 256, 257, 274
_TURNED = range(5, 9)
"""The orientations in which width and height change places."""
_NUMBERS: Mapping[int, str] = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q"}
"""The types of entries that are whole numbers."""


def _directory(source: Source) -> dict[int, int]:
    """Return the numbers in the first directory of a TIFF, or of an Exif note, by tag."""
    start = exactly(source, 0, 8)
    order = "<" if start[:2] == b"II" else ">"
    big = struct.unpack(f"{order}H", start[2:4])[0] == 43  # BigTIFF
    if big:
        (offset,) = struct.unpack(f"{order}Q", exactly(source, 8, 8))
        (count,) = struct.unpack(f"{order}Q", exactly(source, offset, 8))
        entries, width, value_at = offset + 8, 20, 12
    else:
        (offset,) = struct.unpack(f"{order}I", start[4:])
        (count,) = struct.unpack(f"{order}H", exactly(source, offset, 2))
        entries, width, value_at = offset + 2, 12, 8
    if count > _MOST_ENTRIES:
        raise Damaged(f"its directory has {count} entries")
    table = exactly(source, entries, count * width)
    numbers: dict[int, int] = {}
    for at in range(0, len(table), width):
        tag, kind = struct.unpack(f"{order}HH", table[at : at + 4])
        if kind in _NUMBERS:
            layout = f"{order}{_NUMBERS[kind]}"
            (numbers[tag],) = struct.unpack_from(layout, table, at + value_at)
    return numbers


IMAGE_READERS: Mapping[str, Callable[[Source, Draft], None]] = {
    "PNG": read_png,
    "JPEG": read_jpeg,
    "GIF": read_gif,
    "BMP": read_bmp,
    "WebP": read_webp,
    "TIFF": read_tiff,
}
"""What reads a picture of each format."""
