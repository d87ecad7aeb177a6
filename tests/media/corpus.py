"""Pictures, videos and sounds of every format, made by Pillow and PyAV and by nothing of ours."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av as pyav
from av.audio.frame import AudioFrame
from av.video.frame import VideoFrame
from PIL import Image

PICTURES = ("PNG", "JPEG", "WebP", "BMP", "TIFF", "GIF")
"""The formats of pictures that the specification names."""
_RATE = 8_000
av: Any = pyav
"""Its types know neither which stream `add_stream` returns nor what it accepts."""
_HEARD, _SAMPLES = 48_000, 960
"""Samples in a second, and in a frame, of a video's sound."""


@cache
def picture(form: str, width: int, height: int, **how: Any) -> bytes:
    """Return a picture; *how* is for Pillow."""
    file = BytesIO()
    mode = "P" if form == "GIF" else "L" if form in ("JPEG", "PNG", "TIFF") else "RGB"
    Image.new(mode, (width, height)).save(file, form, **how)
    return file.getvalue()


@cache
def video(
    width: int = 1280,
    height: int = 720,
    seconds: float = 5,
    *,
    form: str = "mp4",
    fast_start: bool = False,
    fragmented: bool = False,
    sound: float = 0,
    rate: int = 4,
    turned: bool = False,
) -> bytes:
    """Return a video of one colour.

    Args:
        width: Width in pixels.
        height: Height in pixels.
        seconds: How long it lasts, in whole frames.
        form: The container: mp4, mov, webm or matroska.
        fast_start: Whether `moov` stands at the beginning.
        fragmented: Whether it is a fragmented MP4, whose header has no length.
        sound: How long its sound lasts, or 0 for none.
        rate: Frames in a second.
        turned: Whether it is to be shown turned by 90 degrees.
    """
    flags = "+faststart" if fast_start else "+frag_keyframe+empty_moov" if fragmented else ""
    webm = form in ("webm", "matroska")
    # In a file, because what puts `moov` first reads again what it has written.
    with (
        TemporaryDirectory() as folder,
        av.open(
            f"{folder}/video", "w", format=form, options={"movflags": flags} if flags else {}
        ) as container,
    ):
        stream = container.add_stream("libvpx" if webm else "mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        heard = container.add_stream("libopus" if webm else "aac", rate=_HEARD) if sound else None
        frame = VideoFrame(width, height, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        for number in range(round(seconds * rate)):
            frame.pts, frame.time_base = number, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if heard is not None:
            for number in range(round(sound * _HEARD / _SAMPLES)):
                quiet = _silence("s16" if webm else "fltp", _HEARD, number * _SAMPLES, _SAMPLES)
                container.mux(heard.encode(quiet))
            container.mux(heard.encode())
        container.close()
        data = Path(folder, "video").read_bytes()
    return _turned(data) if turned else data


def _silence(layout: str, rate: int, at: int, count: int) -> AudioFrame:
    frame = AudioFrame(layout, "mono", count)
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
    return frame


def _turned(data: bytes) -> bytes:
    """Return an MP4 with the matrix of a telephone that was held upright."""
    at = data.index(b"tkhd") + 4 + 40
    matrix = b"".join(
        value.to_bytes(4, "big", signed=True)
        for value in (0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000)
    )
    return data[:at] + matrix + data[at + 36 :]


@cache
def sound(seconds: float, form: str = "wav", *, bit_rate: int = 0, **options: str) -> bytes:
    """Return a silent sound; *options* are for its container."""
    codec = {"wav": "pcm_s16le", "mp3": "libmp3lame", "ogg": "libopus", "flac": "flac"}[form]
    rate = 48_000 if form == "ogg" else 16_000 if form == "mp3" else _RATE
    file = BytesIO()
    with av.open(file, "w", format=form, options=options) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        if bit_rate:
            stream.bit_rate = bit_rate
        left, at = round(seconds * rate), 0
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=rate)
        while left > 0:
            count = min(left, 1152)
            quiet = _silence("s16", rate, at, count)
            for frame in resampler.resample(quiet):
                container.mux(stream.encode(frame))
            left, at = left - count, at + count
        container.mux(stream.encode())
    return file.getvalue()
