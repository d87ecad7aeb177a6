"""WebM and Matroska: elements in elements, each with an identifier and a length.

What is needed, `Info` and `Tracks`, stands before the first `Cluster` of the data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

from muybridge_protocol.media.draft import Draft
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Damaged, Source, exactly, truncation

_HEADER, _SEGMENT, _INFO, _TRACKS, _CLUSTER = (
    0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0x1F43B675,
)  # fmt: skip
_DOCTYPE = 0x4282
_UNITS, _DURATION = 0x2AD7B1, 0x4489
_TRACK, _TYPE, _VIDEO, _WIDTH, _HEIGHT = 0xAE, 0x83, 0xE0, 0xB0, 0xBA
_TYPES = {1: MediaKind.VIDEO, 2: MediaKind.SOUND}
_USUAL_UNITS = 1_000_000
"""Nanoseconds of a unit of time, unless it says otherwise."""
_LONGEST_VALUE = 64
"""Most bytes of a value. The numbers and names that are read here have fewer."""


@attrs.frozen
class _Element:
    """An element: its identifier, where its content begins, and where it ends (None: unknown)."""

    name: int
    start: int
    end: int | None


def read_webm(source: Source, draft: Draft) -> None:
    """Read a WebM or Matroska file.

    Raises:
        Damaged: Its elements contradict each other, or it is shorter than it says.
    """
    outer = _elements(source, 0, None)
    header, segment = next(outer), next(outer, None)
    if segment is None or segment.name != _SEGMENT:
        raise Damaged("no segment follows its header")
    for element in _elements(source, header.start, header.end):
        if element.name == _DOCTYPE:
            kind = _value(source, element).rstrip(b"\0")
            draft.format = "WebM" if kind == b"webm" else "Matroska"
    for element in _elements(source, segment.start, segment.end):
        if element.name == _INFO:
            _read_info(source, element, draft)
        elif element.name == _TRACKS:
            _read_tracks(source, element, draft)
        elif element.name == _CLUSTER:
            break  # the media themselves, behind all headers
    if draft.kind is MediaKind.SOUND and draft.format == "WebM":
        draft.format = "WebA"
    if draft.seconds is None:
        draft.missing = "its header does not say how long it lasts"
    if source.size is not None and segment.end is not None and segment.end > source.size:
        raise truncation()


def _elements(source: Source, offset: int, end: int | None) -> Iterator[_Element]:
    """Yield the elements from *offset* on. One of unknown length is the last."""
    while end is None or offset < end:
        name, start = _number(source, offset, keep_marker=True)
        length, start = _number(source, start, keep_marker=False)
        if length is None:
            yield _Element(name or 0, start, None)
            return
        offset = start + length
        yield _Element(name or 0, start, offset)


def _number(source: Source, offset: int, *, keep_marker: bool) -> tuple[int | None, int]:
    """Return the number at *offset*, whose first bits say how long it is, and where it ends.

    It is None if all its bits are set, which stands for an unknown length.
    """
    first = exactly(source, offset, 1)[0]
    if not first:
        raise Damaged("a number is longer than it may be")
    size = 9 - first.bit_length()
    number = int.from_bytes(exactly(source, offset, size), "big")
    if not keep_marker:
        number -= 1 << (7 * size)
        if number == (1 << (7 * size)) - 1:
            return None, offset + size
    return number, offset + size


def _value(source: Source, element: _Element) -> bytes:
    length = 0 if element.end is None else element.end - element.start
    if length > _LONGEST_VALUE:
        raise Damaged("a value is longer than it may be")
    return exactly(source, element.start, length)


def _read_info(source: Source, info: _Element, draft: Draft) -> None:
    units, length = _USUAL_UNITS, None
    for element in _elements(source, info.start, info.end):
        if element.name == _UNITS:
            units = int.from_bytes(_value(source, element), "big")
        elif element.name == _DURATION:
            raw = _value(source, element)
            if len(raw) in (4, 8):
                (length,) = struct.unpack(">f" if len(raw) == 4 else ">d", raw)  # single precision
    # Only a finite number above 0 is between the two.
    if length is not None and 0 < length * units < 1e300:
        draft.seconds = length * units / 1e9


def _read_tracks(source: Source, tracks: _Element, draft: Draft) -> None:
    for track in _elements(source, tracks.start, tracks.end):
        if track.name != _TRACK:
            continue
        for element in _elements(source, track.start, track.end):
            if element.name == _TYPE:
                kind = _TYPES.get(int.from_bytes(_value(source, element), "big"))
                if kind is MediaKind.VIDEO or draft.kind is None:
                    draft.kind = kind
            elif element.name == _VIDEO and draft.width is None:
                sizes = {
                    inner.name: int.from_bytes(_value(source, inner), "big")
                    for inner in _elements(source, element.start, element.end)
                    if inner.name in (_WIDTH, _HEIGHT)
                }
                draft.put_size(sizes.get(_WIDTH, 0), sizes.get(_HEIGHT, 0))
