"""One photograph: a horse galloping past a ruled wall, in shades of grey."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import count, takewhile

import attrs
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from muybridge.local.drawing.backdrops import Wall
from muybridge.local.drawing.horse import STRIDE, Outline, silhouette
from muybridge.local.drawing.look import Backdrop

VIEW_WIDTH, VIEW_HEIGHT = 2.46, 1.76
"""The part of the world, in withers, that a photograph shows at least."""

_GROUND_BELOW = 0.22
_RULES = 8
"""Upright lines that the horse passes in one stride."""

_LEAST_LEGIBLE, _LARGE = 110, 500
"""Pixels to the height of the withers at which the wall's numbers can be read, and at which less
care need be taken of edges."""


@attrs.frozen(kw_only=True)
class Scene:
    """A camera's view of the track, from which any number of photographs can be taken.

    Args:
        width: Width of a photograph in pixels.
        height: Height of a photograph in pixels.
        coat: Shade of the horse's flank, 0 (black) to 255.
        backdrop: What is drawn on the wall.
    """

    width: int
    height: int
    coat: int
    backdrop: Backdrop

    @cached_property
    def _scale(self) -> float:
        """Pixels to the height of the withers."""
        return min(self.width / VIEW_WIDTH, self.height / VIEW_HEIGHT)

    @cached_property
    def _ground(self) -> int:
        """The row of pixels on which the hooves stand."""
        spare = self.height - VIEW_HEIGHT * self._scale
        return round(self.height - _GROUND_BELOW * self._scale - 0.3 * spare)

    @cached_property
    def _wall_foot(self) -> int:
        """The row of pixels where the ground meets the wall, a little behind the horse."""
        return round(self._ground - 0.06 * self._scale)

    @cached_property
    def _stride(self) -> int:
        """How far the track moves in one stride, in pixels, after which it looks the same."""
        return round(STRIDE * self._scale)

    def photograph(self, phase: float) -> Image.Image:
        """Return the photograph taken at *phase*, in strides: a whole stride later is the same."""
        offset = round(phase % 1.0 * self._stride)
        plate = self._track.crop((offset, 0, offset + self.width, self.height))
        self._paint_shadow(plate)
        self._paint_horse(plate, phase)
        return ImageChops.multiply(plate, self._vignette)

    def _paint_shadow(self, plate: Image.Image) -> None:
        scale = self._scale
        width, height = max(2, round(1.9 * scale)), max(2, round(0.16 * scale))
        mask = Image.new("L", (width, height))
        edge = min(0.035 * scale, height / 3)
        ImageDraw.Draw(mask).ellipse((edge, edge, width - edge, height - edge), fill=120)
        mask = mask.filter(ImageFilter.GaussianBlur(edge / 2))
        plate.paste(45, (round(self.width / 2 - width / 2), self._ground - height // 3), mask)

    def _paint_horse(self, plate: Image.Image, phase: float) -> None:
        shapes = silhouette(phase)
        far, light = min(255, self.coat + 62), min(255, self.coat + 26)
        self._paint(plate, shapes.far, top=far, bottom=far - 12)
        self._paint(plate, shapes.near, top=light, bottom=self.coat - 14)
        self._paint(plate, shapes.lines, top=light + 18, bottom=light)

    def _paint(
        self, plate: Image.Image, outlines: Iterable[Outline], *, top: int, bottom: int
    ) -> None:
        """Fill *outlines* with a shade that goes from *top* at the withers to *bottom*."""
        scale = self._scale
        # Pillow draws jagged edges: draw larger, then shrink.
        finer = 4 if scale < _LARGE else 2
        # The box around the horse, in withers: nothing of it leaves that at any moment.
        left, right, below, above = 1.22, 1.22, 0.03, 1.46
        width, height = round((left + right) * scale), round((above + below) * scale)
        mask = Image.new("L", (width * finer, height * finer))
        draw = ImageDraw.Draw(mask)
        for outline in outlines:
            corners = [
                (
                    (corner.real + left) * scale * finer,
                    (above - corner.imag) * scale * finer,
                )
                for corner in outline
            ]
            draw.polygon(corners, fill=255)
        place = (round(self.width / 2 - left * scale), round(self._ground - above * scale))
        plate.paste(_shaded(width, height, top, bottom), place, mask.reduce(finer))

    @cached_property
    def _track(self) -> Image.Image:
        """The wall and ground, one stride longer than a photograph is wide."""
        width, foot = self.width + self._stride, self._wall_foot
        strip = Image.new("L", (width, self.height))
        board = round(foot - 0.12 * self._scale)
        strip.paste(_shaded(width, board, 205, 232), (0, 0))
        strip.paste(_shaded(width, foot - board, 214, 196), (0, board))
        strip.paste(_shaded(width, self.height - foot, 180, 132), (0, foot))
        draw = ImageDraw.Draw(strip)
        wall = Wall(draw, width=strip.width, stride=self._stride, foot=board, scale=self._scale)
        wall.paint(self.backdrop)
        self._rule_wall(draw, board)
        self._strew_tufts(draw)
        return strip

    def _rule_wall(self, draw: ImageDraw.ImageDraw, board: int) -> None:
        scale, width = self._scale, self.width + self._stride
        thin, thick = max(1, round(0.006 * scale)), max(1, round(0.016 * scale))
        for line in range(1, 4):
            y = round(board - 0.085 * line * scale)
            draw.rectangle((0, y, width, y + thin - 1), fill=186)
        draw.rectangle((0, board, width, board + thick - 1), fill=138)
        draw.rectangle((0, self._wall_foot - thick, width, self._wall_foot - 1), fill=112)
        digits = ImageFont.load_default(max(1.0, 0.085 * scale))
        spacing = self._stride / _RULES
        for line in takewhile(lambda line: line * spacing < width, count()):
            x = round(line * spacing)
            stroke = thick if line % 4 == 0 else thin
            draw.rectangle((x, 0, x + stroke - 1, board), fill=172)
            if scale > _LEAST_LEGIBLE:
                middle = (x + spacing / 2, (board + self._wall_foot) / 2)
                draw.text(middle, str(line % _RULES + 1), fill=120, font=digits, anchor="mm")

    def _strew_tufts(self, draw: ImageDraw.ImageDraw) -> None:
        """Strew grass, without which the ground would not seem to move."""
        scale, depth = self._scale, self.height - self._wall_foot
        for tuft in range(min(260, round(1.2 * scale))):
            # Multiples of irrational numbers are spread evenly, yet without a pattern.
            x = tuft * 0.6180339887 % 1.0 * self._stride
            part = tuft * 0.7548776662 % 1.0
            y = self._wall_foot + part * depth
            length = (0.012 + 0.05 * part * (tuft * 0.5698402910 % 1.0)) * scale
            shade = 108 if tuft % 3 else 196
            for repeat in range(1 + self.width // self._stride + 1):
                start = x + repeat * self._stride
                draw.ellipse(
                    (start, y, start + length, y + max(0.0, 0.008 * scale * (0.4 + part) - 1)),
                    fill=shade,
                )

    @cached_property
    def _vignette(self) -> Image.Image:
        """Darker corners, as an old lens leaves them."""
        return (
            Image.radial_gradient("L")
            .point([255 - round(70 * max(0.0, level / 255 - 0.25) ** 1.6) for level in range(256)])
            .resize((self.width, self.height), Image.Resampling.BICUBIC)
        )


def _shaded(width: int, height: int, top: int, bottom: int) -> Image.Image:
    """Return a picture whose shade goes evenly from *top* to *bottom*."""
    shades = [round(top + (bottom - top) * level / 255) for level in range(256)]
    return Image.linear_gradient("L").point(shades).resize((width, max(1, height)))
