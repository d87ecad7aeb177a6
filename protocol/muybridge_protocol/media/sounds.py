"""The headers of sounds: how long they last."""

from __future__ import annotations

import struct

import attrs

from muybridge_protocol.media.draft import Draft
from muybridge_protocol.media.source import Damaged, Source, Wanted, Window, exactly

_STREAMED = (0, 0xFFFF_FFFF)
"""What a program writes as the length of data when it cannot go back to correct it."""
_PCM = (0x0001, 0x0003, 0xFFFE)
_WAV_FORMAT = 16


def read_wav(source: Source, draft: Draft) -> None:
    """Read a WAV file.

    Raises:
        Damaged: It has no format before its data.
    """
    rate: int | None = None
    whole: int | None = None
    offset = 12
    while True:
        name, length = struct.unpack("<4sI", exactly(source, offset, 8))
        if name == b"ds64":  # of a file beyond 4 GiB
            (whole,) = struct.unpack("<Q", exactly(source, offset + 16, 8))
        elif name == b"fmt ":
            kind, _, samples, bytes_each_second, block = struct.unpack(
                "<HHIIH", exactly(source, offset + 8, 14)
            )
            # Where samples have a fixed size, the bytes a second follow from it, and need not be
            # believed.
            rate = samples * block if kind in _PCM else bytes_each_second
        elif name == b"data":
            break
        offset += 8 + length + length % 2
    if not rate:
        raise Damaged("it has no format before its data")
    rest = None if source.size is None else source.size - offset - 8
    length = whole if whole is not None and length == _STREAMED[1] else length
    # If the file is shorter than its header says, what is there counts.
    if length in _STREAMED or (rest is not None and length > rest):
        if rest is None:
            draft.missing = "its header does not say how long it lasts"
            return
        length = rest
    draft.seconds = length / rate


@attrs.frozen
class _Frame:
    """The header of a frame of MP3."""

    size: int
    samples: int
    rate: int
    side_info: int
    """Bytes between the header and where a count of frames may stand."""
    sizes: tuple[int, int]
    """Fewest and most bytes that a frame of this sound may have."""


_KILOBITS = (
    (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
"""Of MPEG 1, and of MPEG 2 and 2.5."""
_RATES = (44_100, 48_000, 32_000)
_HEADER_MASK = 0xFFFE_0C00
"""What the headers of all frames of a sound have in common: sync, version, layer and rate."""
_LONGEST_PADDING = 1_024
"""Zeros before the first frame. Anything else there is not skipped, because some bytes of a picture
look like frames."""
_BLOCK = 64 * 1024
_MOST_BLOCKS = 1_024
"""Frames are counted one by one in at most so many blocks of so many bytes, 64 MiB in all."""
_FEWEST_FRAMES = 3
"""Frames in a row that make a sound: two bytes that look like a header occur by chance."""


def read_mp3(source: Source, draft: Draft) -> None:
    """Read an MP3 file.

    Raises:
        Damaged: No frame stands where the first one must.
    """
    start = mp3_start(source)
    if start is None:
        raise Damaged("it has no frame where the first one must stand")
    head = exactly(source, start, 4)
    frame = _frame(head)
    assert frame is not None  # noqa: S101  `mp3_start` has found it
    counted, size = _count(source, start, frame)
    few = counted is None or (source.size or 0) <= _BLOCK * _MOST_BLOCKS
    walked = _frames(source, start) if source.complete and few else None
    if counted is None:
        counted = walked
    elif walked is not None:
        if abs(walked - counted) > _CLOSE:
            counted, draft.missing = None, _DISAGREES
    elif source.size is not None and not _may_have(source.size - start, counted, size, frame):
        counted, draft.missing = None, _DISAGREES
    if counted is not None:
        draft.seconds = counted * frame.samples / frame.rate
    elif not draft.missing:
        draft.missing = "its header does not say how long it lasts"


_CLOSE = 4
"""Frames by which a count may differ from the file: the first frame, and some that are cut."""
_DISAGREES = "its header counts other frames than the file has"
_LONGEST_END = 1 << 20
"""Bytes of tags behind the last frame."""


def _may_have(room: int, counted: int, stated: int | None, frame: _Frame) -> bool:
    """Whether *counted* frames can be in *room* bytes, which may end with tags.

    Args:
        room: Bytes from the first frame to the end of the file.
        counted: The number of frames that the first one states.
        stated: The number of bytes that it states, or None.
        frame: The first frame.
    """
    low, high = frame.sizes
    if stated is not None and not stated - high <= room <= stated + _LONGEST_END:
        return False
    return (counted - _CLOSE) * low <= room <= (counted + _CLOSE) * high + _LONGEST_END


def behind_tags(source: Source) -> int:
    """Return where a sound begins, behind zeros and tags: there may be several."""
    offset = 0
    while True:
        padding = source.read(offset, _LONGEST_PADDING)
        offset += len(padding) - len(padding.lstrip(b"\0"))
        tag = source.read(offset, 10)
        if not is_tag(tag):
            return offset
        size = 0
        for byte in tag[6:]:
            size = size << 7 | byte
        offset += 10 + size + (10 if tag[5] & 0x10 else 0)


def is_tag(start: bytes) -> bool:
    """Whether *start* begins with the head of an ID3 tag. Sounds of any format may have one."""
    head = start[:10]
    return head[:3] == b"ID3" and len(head) == 10 and head[3] in (2, 3, 4) and max(head[6:]) < 0x80


def mp3_start(source: Source) -> int | None:
    """Return where the first frame of an MP3 stands, or None if there is none."""
    offset = behind_tags(source)
    return offset if _is_sound(source, offset) else None


def is_adts(source: Source) -> bool:
    """Whether *source* begins with some frames of AAC."""
    first, offset = b"", 0
    for _ in range(_FEWEST_FRAMES):
        head = source.read(offset, 7)
        if len(head) < 7 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:  # sync, and no layer
            return False
        first = first or head
        if head[1:3] != first[1:3]:
            return False
        offset += (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return True


def _is_sound(source: Source, offset: int) -> bool:
    """Whether frames that fit each other stand in a row at *offset*, or one up to the end."""
    first = b""
    for _ in range(_FEWEST_FRAMES):
        head = source.read(offset, 4)
        if first and len(head) < 4:  # a header
            return True
        frame = _frame(head)
        if frame is None or (first and not _fits(head, first)):
            return False
        first = first or head
        offset += frame.size
    return True


def _fits(head: bytes, other: bytes) -> bool:
    mask = _HEADER_MASK
    return int.from_bytes(head, "big") & mask == int.from_bytes(other, "big") & mask


def _frame(head: bytes) -> _Frame | None:
    """Return the frame of layer III that begins with *head*, or None."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2:  # sync, and layer III
        return None
    version, bits, rate = head[1] >> 3 & 3, head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or bits in (0, 15) or rate == 3:  # reserved values
        return None
    is_first = version == 3  # MPEG 1; 2 is MPEG 2, 0 is MPEG 2.5
    per_second = _RATES[rate] // (1 if is_first else 2 if version else 4)
    samples = 1152 if is_first else 576
    rates = _KILOBITS[0 if is_first else 1]
    sizes = [samples * kilobits * 125 // per_second for kilobits in rates]
    mono = head[3] >> 6 == 3  # one channel
    return _Frame(
        size=sizes[bits - 1] + (head[2] >> 1 & 1),
        samples=samples,
        rate=per_second,
        side_info=(17 if mono else 32) if is_first else (9 if mono else 17),
        sizes=(sizes[0], sizes[-1] + 1),
    )


def _count(source: Source, start: int, frame: _Frame) -> tuple[int | None, int | None]:
    """Return the numbers of frames and of bytes that the first frame states, or None for each."""
    note = source.read(start + 4 + frame.side_info, 16)
    if note[:4] in (b"Xing", b"Info") and len(note) == 16 and note[7] & 1:  # has the number
        size = int.from_bytes(note[12:], "big") if note[7] & 2 else 0
        return int.from_bytes(note[8:12], "big") or None, size or None
    note = source.read(start + 4 + 32, 18)
    if note[:4] != b"VBRI":
        return None, None
    return int.from_bytes(note[14:], "big") or None, int.from_bytes(note[10:14], "big") or None


def _frames(source: Source, start: int) -> int:
    """Return how many frames there are from *start* on, those of joined sounds included."""
    total = 0
    while True:
        count, end = _walk(source, start)
        total += count
        more = mp3_start(Window(source, end))
        if more is None:
            return total
        start = end + more


def _walk(source: Source, start: int) -> tuple[int, int]:
    """Return how many frames stand in a row from *start* on, and where they end."""
    count, offset = 0, start
    for _ in range(_MOST_BLOCKS):
        block = source.read(offset, _BLOCK)
        at = 0
        while (frame := _frame(block[at : at + 4])) is not None:
            count, at = count + 1, at + frame.size
        if at + 4 <= len(block) or len(block) < _BLOCK:
            return count, offset + at  # a tag, padding or the end
        offset += at
    more = f"it has more than {count:,} frames, and no header that counts them"
    raise Wanted(offset, _BLOCK, more)
