"""Describe a file inside a request by its first bytes."""

from __future__ import annotations

from collections.abc import Iterator

_MOST_STEPS = 1000
"""Most segments or boxes of a file that are examined: enough for any real one."""

_NO_FRAME = (0xC4, 0xC8, 0xCC)
"""JPEG markers in the range of those that begin a frame, but with another meaning."""


def describe(data: bytes) -> str:
    """Return the kind and size of *data*: `a PNG picture of 4x3 pixels, 68 bytes`."""
    size = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
    for name, measure in (("PNG", _png), ("JPEG", _jpeg), ("GIF", _gif), ("WebP", _webp)):
        pixels = measure(data)
        if pixels is not None:
            return f"a {name} picture of {pixels[0]}x{pixels[1]} pixels, {size}"
    if data[4:8] == b"ftyp":
        seconds = _mp4_seconds(data)
        return f"an MP4 video{'' if seconds is None else f' of {seconds:.6g} s'}, {size}"
    return size


def _png(data: bytes) -> tuple[int, int] | None:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:  # noqa: PLR2004  the end of the two sizes
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _gif(data: bytes) -> tuple[int, int] | None:
    if data[:6] not in (b"GIF87a", b"GIF89a") or len(data) < 10:  # noqa: PLR2004  the end of the two sizes
        return None
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    for _ in range(_MOST_STEPS):
        if len(data) < at + 9 or data[at] != 0xFF:  # noqa: PLR2004  the first byte of every marker
            return None
        kind = data[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAME:  # noqa: PLR2004  the beginnings of frames
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            return int.from_bytes(width), int.from_bytes(height)
        # A second 0xFF is padding before the marker proper.
        at += 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])  # noqa: PLR2004  see above
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:  # noqa: PLR2004  the end of the sizes
        return None
    match data[12:16]:
        case b"VP8X":
            width, height = data[24:27], data[27:30]
            return 1 + int.from_bytes(width, "little"), 1 + int.from_bytes(height, "little")
        case b"VP8L":
            both = int.from_bytes(data[21:25], "little")
            return 1 + (both & 0x3FFF), 1 + (both >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = data[26:28], data[28:30]
            return (
                int.from_bytes(width, "little") & 0x3FFF,
                int.from_bytes(height, "little") & 0x3FFF,
            )
        case _:
            return None


def _mp4_seconds(data: bytes) -> float | None:
    for kind, start, end in _boxes(data, 0, len(data)):
        if kind == b"moov":
            for inner, begin, _ in _boxes(data, start, end):
                if inner == b"mvhd":
                    return _movie_seconds(data, begin)
    return None


def _movie_seconds(data: bytes, at: int) -> float | None:
    # Version 1 has dates and a duration of 64 bits; version 0 has them of 32.
    wide = data[at : at + 1] == b"\x01"
    scale_at = at + (20 if wide else 12)
    scale = int.from_bytes(data[scale_at : scale_at + 4])
    duration = int.from_bytes(data[scale_at + 4 : scale_at + (12 if wide else 8)])
    return duration / scale if scale else None


def _boxes(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the kind of each box between *start* and *end*, and the span of its content."""
    for _ in range(_MOST_STEPS):
        size, head = int.from_bytes(data[start : start + 4]), 8
        if size == 1:  # its size has 64 bits and comes after its kind
            size, head = int.from_bytes(data[start + 8 : start + 16]), 16
        if size < head or start + size > end:
            return
        yield data[start + 4 : start + 8], start + head, start + size
        start += size
