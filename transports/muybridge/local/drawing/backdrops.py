"""What is drawn on the wall behind the horse, and passes with the track, in shades of grey."""

from __future__ import annotations

import math
from collections.abc import Callable

from PIL import ImageDraw

from muybridge.local.drawing.look import Backdrop

_SHADE, _DARKER = 190, 176
_PIXELS_PER_POINT = 3


class Wall:
    """The part of a track above the board, which repeats itself after a stride.

    Args:
        draw: Draws on the track.
        width: Width of the whole track in pixels.
        stride: Width in pixels after which it repeats itself.
        foot: The row of pixels where the wall ends.
        scale: Pixels to the height of the horse's withers.
    """

    def __init__(
        self, draw: ImageDraw.ImageDraw, *, width: int, stride: int, foot: int, scale: float
    ) -> None:
        self._draw = draw
        self._width = width
        self._stride = max(1, stride)
        self._foot = foot
        self._scale = scale

    def paint(self, backdrop: Backdrop) -> None:
        """Draw *backdrop*, which is nothing for a plain one."""
        painters: dict[Backdrop, Callable[[], None]] = {
            Backdrop.GRID: self._grid,
            Backdrop.HILLS: self._hills,
            Backdrop.TREES: self._trees,
            Backdrop.SUN: self._sun,
            Backdrop.ARCHES: self._arches,
        }
        if backdrop in painters:
            painters[backdrop]()

    def _places(self, count: int) -> list[float]:
        """Return *count* evenly spaced positions in each stride, and those around the edges."""
        spacing = self._stride / count
        return [
            (place + 0.5) * spacing for place in range(-1, math.ceil(self._width / spacing) + 1)
        ]

    def _grid(self) -> None:
        """Squares, as on the screens before which people and animals were photographed."""
        # A sum with `line` before the 1 is taken off may round to less than where the line begins.
        thickness = max(1, round(0.008 * self._scale)) - 1
        square = self._stride / 24
        for x in self._places(24):
            self._draw.rectangle((x, 0, x + thickness, self._foot), fill=_SHADE)
        for row in range(1, math.ceil(self._foot / square)):
            y = self._foot - row * square
            self._draw.rectangle((0, y, self._width, y + thickness), fill=_SHADE)

    def _hills(self) -> None:
        """Two ranges of hills, one behind the other."""
        for height, waves, shade in ((0.95, 2, 206), (0.62, 3, _SHADE)):
            ridge = [
                (
                    x,
                    self._foot
                    - height * self._scale * (0.7 + 0.3 * math.sin(self._turn(x, waves))),
                )
                for x in range(0, self._width + _PIXELS_PER_POINT, _PIXELS_PER_POINT)
            ]
            self._draw.polygon([(0, self._foot), *ridge, (self._width, self._foot)], fill=shade)

    def _turn(self, x: float, waves: int) -> float:
        return waves * math.tau * x / self._stride

    def _trees(self) -> None:
        """A row of poplars."""
        for number, x in enumerate(self._places(7)):
            half = 0.11 * self._scale
            tall = (1.35, 1.15, 1.5, 1.25, 1.4, 1.1, 1.3)[number % 7] * self._scale
            trunk = max(1.0, 0.018 * self._scale)
            bottom = self._foot - 0.12 * self._scale
            self._draw.rectangle((x - trunk, bottom - trunk, x + trunk, self._foot), fill=_DARKER)
            self._draw.ellipse((x - half, self._foot - tall, x + half, bottom), fill=_SHADE)

    def _sun(self) -> None:
        """A sun with rays, once in each half stride."""
        radius = 0.3 * self._scale
        line = max(1, round(0.02 * self._scale))
        y = self._foot - 1.0 * self._scale
        for x in self._places(2):
            for ray in range(16):
                direction = complex(math.cos(math.tau * ray / 16), math.sin(math.tau * ray / 16))
                ends = (
                    complex(x, y) + 1.25 * radius * direction,
                    complex(x, y) + 2 * radius * direction,
                )
                self._draw.line([(end.real, end.imag) for end in ends], fill=_SHADE, width=line)
            self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_SHADE)

    def _arches(self) -> None:
        """An arcade."""
        half = 0.8 * self._stride / 10 / 2
        top = self._foot - 1.05 * self._scale
        for x in self._places(10):
            self._draw.ellipse((x - half, top - half, x + half, top + half), fill=_SHADE)
            self._draw.rectangle((x - half, top, x + half, self._foot), fill=_SHADE)
