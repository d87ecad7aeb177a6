"""A galloping horse: its outlines at successive moments of one stride, from `horse.svg`.

Lengths are in withers: 1.0 is the height of the horse's withers above the ground. A point is a
complex number, its real part forward and its imaginary part up; 0 is on the ground under the
middle of the trunk, and moves along with the horse. A phase is a part of a stride, from 0.0, when
the first hind hoof touches the ground, to 1.0, when it does so again.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from itertools import accumulate

import attrs

STRIDE = 3.75
"""How far the horse travels in one stride."""

FOOTFALLS = (0.0, 0.11, 0.33, 0.50)
"""Phases at which the hooves touch the ground: far hind, near hind, far fore, near fore.

The last leaves it at 0.74. From there to 1.0 the horse is in the air, its legs gathered beneath it:
the moment that Muybridge's plates were made to prove.
"""

MOMENTS = 48
"""How many moments of a stride are drawn, evenly spaced."""

_WITHERS = 2000
"""The height of the withers in the drawing's units."""

Outline = tuple[complex, ...]
"""The corners of a filled polygon."""


@attrs.frozen
class Silhouette:
    """A horse's outlines, to be painted in this order.

    Args:
        far: The legs away from the viewer.
        near: All else.
        lines: Light lines on the near side, which separate the muscles.
    """

    far: tuple[Outline, ...]
    near: tuple[Outline, ...]
    lines: tuple[Outline, ...]


def silhouette(phase: float) -> Silhouette:
    """Return the outlines of the horse at the moment next to *phase*."""
    return _silhouettes()[round(phase * MOMENTS) % MOMENTS]


@functools.cache
def _silhouettes() -> tuple[Silhouette, ...]:
    drawing = resources.files("muybridge.local.drawing").joinpath("horse.svg").read_text("utf-8")
    paths = [_outlines(path) for path in re.findall(' d="(.*?)"', drawing)]
    return tuple(Silhouette(*paths[at : at + 3]) for at in range(0, 3 * MOMENTS, 3))


def _outlines(path: str) -> tuple[Outline, ...]:
    """Return the outlines of a path: each begins at a point, and goes on by steps."""
    outlines: list[Outline] = []
    for steps in re.findall("M(.*?)z", path):
        numbers = [int(number) / _WITHERS for number in re.findall("-?[0-9]+", steps)]
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        outlines.append(tuple(accumulate(complex(right, -down) for right, down in pairs)))
    return tuple(outlines)
