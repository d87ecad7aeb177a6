"""MP4, QuickTime and HEIF: boxes in boxes, each with its length first.

The brands at the beginning say which of them a file claims to be. Its boxes say what it is: a movie
has `moov`, and a picture has `meta` with the handler `pict`.

The box `moov` has everything that is needed: the length in seconds, and the tracks. It may stand
at the beginning or behind the data, at an offset that the boxes before it give. Only headers are
read, never the tables of samples, so billions of frames cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

from muybridge_protocol.media.draft import Draft
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Damaged, Source, exactly, truncation

_CLOSE = 1.0
"""Seconds by which the lengths of the movie and its video may differ. They always do a little."""


@attrs.frozen
class _Box:
    """A box: its type, where its content begins, and where it ends (None: at the end)."""

    name: bytes
    start: int
    end: int | None


def read_mp4(source: Source, draft: Draft) -> None:
    """Read a file of MP4, QuickTime, HEIF or AVIF.

    Raises:
        Damaged: Its boxes contradict each other, it has no header, or it ends within its data or
            before its header.
    """
    movie: _Box | None = None
    picture: _Box | None = None
    has_data = False
    boxes = _boxes(source, 0, source.size)
    while True:
        try:
            box = next(boxes, None)
        except Damaged:
            if movie is None and picture is None:
                raise
            break  # what stands behind the last box need not be one
        if box is None:
            break
        if box.name == b"moov":
            movie = box
        elif box.name == b"uuid":
            draft.credentials |= source.read(box.start, len(_CREDENTIALS)) == _CREDENTIALS
        elif box.name == b"meta":
            inside = attrs.evolve(box, start=box.start + 4)  # behind its version
            picture = inside if _handler(source, inside) == b"pict" else picture
        has_data = has_data or box.name in _DATA
        # From a URL, every further box may cost a request, and none of them is needed.
        if (movie or picture) and not source.complete:
            break
        is_cut = box.end is not None and source.size is not None and box.end > source.size
        if is_cut and box.name in _NEEDED:
            raise truncation()
    if picture is not None:
        _read_picture(source, picture, draft)
    elif movie is not None:
        _read_movie(source, movie, draft)
    elif has_data and draft.kind is None:
        raise truncation()
    else:
        raise Damaged("it has no header")


_CREDENTIALS = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")
"""The type of the box with a C2PA manifest store."""
_DATA = (b"mdat", b"moof")
_NEEDED = (*_DATA, b"moov", b"meta")
"""The boxes without whose end a file is of no use. Others are notes, and anything may follow."""


def _read_picture(source: Source, head: _Box, draft: Draft) -> None:
    """Find out how the pictures of a HEIF file are encoded. Their size is not read."""
    if draft.kind is not MediaKind.IMAGE:  # its brands name none
        draft.format, draft.kind = "HEIF", MediaKind.IMAGE
    draft.missing = "its headers are not read here"
    items = _first(source, head, b"iinf").get(b"iinf")
    if items is not None and items.end is not None:
        listed = source.read(items.start, min(items.end - items.start, _LONGEST_LIST))
        draft.format = next((name for mark, name in _ENCODED if mark in listed), draft.format)


_ENCODED = ((b"hvc1", "HEIC"), (b"av01", "AVIF"))
"""The types of the items in HEIF files whose format depends on them."""
_LONGEST_LIST = 4_096
"""Most bytes of the list of items in which these types are looked for."""


def _handler(source: Source, box: _Box) -> bytes:
    """Return what the handler in *box* says that it is for, or b""."""
    # It stands behind the version, the flags and 4 bytes that only QuickTime uses.
    head = _first(source, box, b"hdlr").get(b"hdlr")
    return b"" if head is None else exactly(source, head.start + 8, 4)


def _boxes(source: Source, offset: int, end: int | None) -> Iterator[_Box]:
    """Yield the boxes from *offset* on.

    Raises:
        Damaged: One is shorter than its head.
    """
    while end is None or offset + 8 <= end:
        length, name = struct.unpack(">I4s", exactly(source, offset, 8))
        start = offset + 8
        if length == 1:
            (length,) = struct.unpack(">Q", exactly(source, start, 8))
            start += 8
        if length == 0:  # up to the end
            yield _Box(name, start, end)
            return
        if length < start - offset:
            raise Damaged("a box is shorter than its head")
        offset += length
        yield _Box(name, start, offset)


def _first(source: Source, box: _Box, *names: bytes) -> dict[bytes, _Box]:
    """Return the first box inside *box* of each of *names*, and look no further than needed.

    What comes after them may be tables of samples, of which even the heads are far apart.
    """
    inner: dict[bytes, _Box] = {}
    for one in _boxes(source, box.start, box.end):
        if one.name in names:
            inner.setdefault(one.name, one)
        if len(inner) == len(names):
            break
    return inner


def _read_movie(source: Source, movie: _Box, draft: Draft) -> None:
    claimed, draft.kind = draft.kind, None
    units, length = 0, None
    lengths: list[float] = []
    for box in _boxes(source, movie.start, movie.end):
        if box.name == b"mvhd":
            units, length = _length(source, box)
        elif box.name == b"mvex":
            # A fragmented file is written before its length is known, and says 0 in `mvhd`.
            length = length or _fragments_length(source, box)
        elif box.name == b"trak":
            handler, its_length = _read_track(source, box, draft)
            if handler == b"vide":
                draft.kind = MediaKind.VIDEO
                lengths += [its_length] if its_length else []
            elif handler == b"soun" and draft.kind is None:
                draft.kind = MediaKind.SOUND
    # The tracks decide what it is; the brand does so only if there is neither picture nor sound.
    if draft.kind is None:
        draft.kind = claimed
    elif claimed is not None:
        draft.format = "MP4"  # its brand names another
    if draft.kind is MediaKind.SOUND and draft.format == "MP4":
        draft.format = "M4A"
    if not units:
        raise Damaged("it has no length")
    seconds = length / units if length else None
    if seconds is None:
        draft.missing = "its header does not say how long it lasts"
    elif any(abs(seconds - other) > _CLOSE for other in lengths):
        draft.missing = "its tracks have different lengths"
    else:
        draft.seconds = seconds


def _fragments_length(source: Source, box: _Box) -> int | None:
    """Return how long all fragments last, or None if it is not stated."""
    head = _first(source, box, b"mehd").get(b"mehd")
    if head is None:
        return None
    version = exactly(source, head.start, 1)[0]
    return int.from_bytes(exactly(source, head.start + 4, 8 if version else 4), "big")


def _length(source: Source, box: _Box) -> tuple[int, int | None]:
    """Return the units of a second, and how many of them a `mvhd` or `mdhd` box says it lasts."""
    version = exactly(source, box.start, 1)[0]
    # Behind the version, the flags and two times, which have 8 bytes each in version 1.
    at, layout = (20, ">IQ") if version else (12, ">II")
    units, length = struct.unpack(layout, exactly(source, box.start + at, struct.calcsize(layout)))
    if not units:
        raise Damaged("a second of it has no units")
    unknown = 2 ** (64 if version else 32) - 1
    return units, None if length in (0, unknown) else length


def _read_track(source: Source, track: _Box, draft: Draft) -> tuple[bytes, float | None]:
    """Read a track, and return what it is and how many seconds it lasts."""
    parts = _first(source, track, b"tkhd", b"mdia")
    if b"mdia" not in parts:
        return b"", None
    media = _first(source, parts[b"mdia"], b"mdhd", b"hdlr", b"minf")
    if b"hdlr" not in media:
        return b"", None
    handler = _handler(source, parts[b"mdia"])
    seconds = None
    if b"mdhd" in media:
        units, length = _length(source, media[b"mdhd"])
        seconds = length / units if length else None
    if handler == b"vide" and draft.width is None:
        if b"tkhd" in parts:
            draft.turned = _is_turned(source, parts[b"tkhd"])
        if b"minf" in media:
            _read_picture_size(source, media[b"minf"], draft)
    return handler, seconds


def _is_turned(source: Source, head: _Box) -> bool:
    """Whether the matrix of a track turns its picture by 90 degrees."""
    # The matrix stands behind times and a duration, which are longer in version 1.
    at = 52 if exactly(source, head.start, 1)[0] else 40
    a, b, _, c, d = struct.unpack(">5i", exactly(source, head.start + at, 20))
    return not a and not d and bool(b and c)


def _read_picture_size(source: Source, inner: _Box, draft: Draft) -> None:
    box = inner
    for name in (b"stbl", b"stsd"):
        inside = _first(source, box, name)
        if name not in inside:
            return
        box = inside[name]
    # Version and flags, the number of entries, and the first entry with its size.
    draft.put_size(*struct.unpack(">HH", exactly(source, box.start + 8 + 32, 4)))
