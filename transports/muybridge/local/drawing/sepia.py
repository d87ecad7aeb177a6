"""Sepia: how a grey photograph is turned into a warm brown one, like an albumen print.

Each shade of grey becomes one colour, so colours are looked up rather than computed per pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import attrs
from PIL import Image

Colour = tuple[float, float, float]
"""Red, green and blue, each from 0.0 to 255.0."""


@attrs.frozen
class Toning:
    """The colours that black, mid-grey and white become."""

    shadow: Colour
    middle: Colour
    light: Colour

    def to_rgb(self, grey: Image.Image) -> Image.Image:
        """Return the toned picture."""
        return Image.merge("RGB", [grey.point(self._table(_channel(i))) for i in range(3)])

    def to_yuv420(self, grey: Image.Image) -> tuple[Image.Image, Image.Image, Image.Image]:
        """Return the toned picture's planes: Y, and U and V at half the size (BT.709, limited)."""
        small = grey.reduce(2)
        return self.to_luma(grey), small.point(self._table(_u)), small.point(self._table(_v))

    def to_luma(self, grey: Image.Image) -> Image.Image:
        """Return the toned picture's Y plane alone."""
        return grey.point(self._table(_y))

    def _table(self, component: Callable[[Colour], float]) -> list[int]:
        return [round(component(colour)) for colour in self._colours]

    @cached_property
    def _colours(self) -> list[Colour]:
        darker = [_mix(self.shadow, self.middle, level / 128) for level in range(128)]
        lighter = [_mix(self.middle, self.light, level / 127) for level in range(128)]
        return darker + lighter


TONINGS = (
    Toning((38, 24, 16), (152, 116, 82), (247, 236, 214)),  # sepia
    Toning((44, 22, 18), (158, 110, 84), (248, 232, 214)),  # red chalk
    Toning((32, 26, 20), (140, 122, 92), (244, 238, 218)),  # olive
    Toning((36, 26, 28), (146, 118, 104), (246, 236, 224)),  # selenium
)


def _mix(start: Colour, end: Colour, part: float) -> Colour:
    red, green, blue = (a + (b - a) * part for a, b in zip(start, end, strict=True))
    return red, green, blue


def _channel(index: int) -> Callable[[Colour], float]:
    return lambda colour: colour[index]


def _luma(colour: Colour) -> float:
    red, green, blue = colour
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _y(colour: Colour) -> float:
    return 16 + _luma(colour) * 219 / 255


def _u(colour: Colour) -> float:
    return 128 + (colour[2] - _luma(colour)) / 1.8556 * 224 / 255


def _v(colour: Colour) -> float:
    return 128 + (colour[0] - _luma(colour)) / 1.5748 * 224 / 255
