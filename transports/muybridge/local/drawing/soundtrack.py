"""The sound of a film: a quiet chord, and a beat for each hoof that touches the ground."""

# av's stubs leave packets' contents and the keywords of add_stream untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from array import array
from fractions import Fraction

from av.audio.frame import AudioFrame
from av.container import OutputContainer

from muybridge.local.drawing.horse import FOOTFALLS

SAMPLE_RATE = 48_000

_CHORD = (165.0, 220.5, 330.0)
"""Frequencies in hertz. Each makes a whole number of waves in two thirds of a second, so that the
sound of one stride runs on into the next without a click."""

_BEAT_SECONDS = 0.25


class Soundtrack:
    """An audio stream that is written along with the frames of a film.

    Args:
        container: Where to add the stream.
        stride: Length of a stride in seconds.
        start: Phase of the stride at which the film begins.
    """

    def __init__(self, container: OutputContainer, stride: Fraction, start: float) -> None:
        self._container = container
        self._stream = container.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
        self._stride = _stride_of_sound(int(stride * SAMPLE_RATE), start)
        self._played = 0

    def play_until(self, time: Fraction) -> None:
        """Write the sound up to *time*, in seconds since the film began."""
        samples = int(time * SAMPLE_RATE) - self._played
        # A film's frames divide a stride evenly, so that none goes over its end.
        begin = self._played % len(self._stride)
        sound = self._stride[begin : begin + samples]
        frame = AudioFrame(format="fltp", layout="mono", samples=samples)
        frame.planes[0].update(sound.tobytes())
        frame.sample_rate = SAMPLE_RATE
        frame.pts, frame.time_base = self._played, Fraction(1, SAMPLE_RATE)
        self._container.mux(self._stream.encode(frame))
        self._played += samples

    def end(self) -> None:
        """Flush the encoder."""
        self._container.mux(self._stream.encode(None))


def _stride_of_sound(samples: int, start: float) -> array[float]:
    sound = array("f", (0.04 * _chord(sample / SAMPLE_RATE) for sample in range(samples)))
    for force, footfall in zip((0.30, 0.34, 0.38, 0.46), FOOTFALLS, strict=True):
        first = round((footfall - start) % 1.0 * samples)
        for sample in range(round(_BEAT_SECONDS * SAMPLE_RATE)):
            sound[(first + sample) % samples] += force * _beat(sample / SAMPLE_RATE)
    return sound


def _chord(time: float) -> float:
    return sum(math.sin(math.tau * frequency * time) for frequency in _CHORD)


def _beat(time: float) -> float:
    thud = math.sin(math.tau * 95.0 * time) * math.exp(-time / 0.040)
    clop = math.sin(math.tau * 410.0 * time) * math.exp(-time / 0.012)
    return thud + 0.5 * clop
