"""What tells the families apart at a glance: the colours of a print, and the view behind the horse.

Each family has colours of its own, after the processes by which old prints were made, and most
neighbours have another backdrop. A family that is not listed gets the look of one that is.
"""

from __future__ import annotations

import zlib
from enum import Enum, auto

import attrs
from PIL import Image, ImageOps

Colour = tuple[int, int, int]


class Backdrop(Enum):
    """What is drawn on the wall behind the horse."""

    PLAIN = auto()
    GRID = auto()
    HILLS = auto()
    TREES = auto()
    SUN = auto()
    ARCHES = auto()


@attrs.frozen
class Look:
    """How a family's pictures look.

    Args:
        black: The colour that black becomes.
        mid: The colour that mid-grey becomes.
        white: The colour that white becomes.
        backdrop: What is drawn on the wall.
    """

    black: Colour
    mid: Colour
    white: Colour
    backdrop: Backdrop

    def toned(self, grey: Image.Image) -> Image.Image:
        """Return *grey* in the print's colours."""
        return ImageOps.colorize(grey, self.black, self.white, self.mid)


_LOOKS = {
    "imga": Look((10, 26, 58), (70, 118, 168), (226, 238, 246), Backdrop.SUN),  # cyanotype
    "imgb": Look((38, 24, 16), (152, 116, 82), (247, 236, 214), Backdrop.PLAIN),  # sepia
    "vidc": Look((18, 34, 20), (98, 134, 84), (234, 242, 220), Backdrop.TREES),  # green gum
    "vidd": Look((58, 14, 12), (190, 88, 66), (252, 228, 214), Backdrop.HILLS),  # red chalk
    "videos": Look((34, 18, 56), (126, 96, 170), (240, 232, 248), Backdrop.ARCHES),  # gold, violet
    "vidg": Look((4, 40, 42), (58, 142, 140), (220, 244, 240), Backdrop.HILLS),  # blue-green carbon
    "vidm": Look((52, 34, 0), (200, 152, 40), (255, 244, 200), Backdrop.SUN),  # yellow dichromate
    "vidr": Look((56, 12, 38), (190, 84, 134), (252, 226, 238), Backdrop.TREES),  # rose carbon
    "vidsa": Look((18, 18, 20), (122, 124, 128), (244, 244, 244), Backdrop.GRID),  # platinum
    "vidsb": Look((14, 16, 64), (88, 92, 190), (228, 230, 252), Backdrop.GRID),  # indigo
    "vidv": Look((44, 24, 4), (206, 112, 34), (255, 234, 208), Backdrop.ARCHES),  # uranium
}


def look_of(family: str) -> Look:
    """Return the look of a family. One that is not listed has the same one each time."""
    looks = tuple(_LOOKS.values())
    return _LOOKS.get(family) or looks[zlib.crc32(family.encode()) % len(looks)]
