"""The card that photographs are mounted on: paper, heading and caption, in shades of grey."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property

import attrs
from PIL import Image, ImageChops, ImageDraw, ImageFont

from muybridge.local.drawing.caption import Font, drawable, wrap

HEADING = "THE HORSE IN MOTION"
"""Text above the photographs, left out where there is no room."""

PAPER = 240
INK = 62
FAINT_INK = 104
FRAME = 52


@attrs.frozen(kw_only=True)
class Mount:
    """A card of a given size, with room for photographs between its heading and its caption.

    Args:
        width: Width of the card in pixels.
        height: Height of the card in pixels.
        prompt: Text below them.
        details: A line below the prompt.
        aside: Text for whose width the line of the details leaves room at its right end, or "".
    """

    width: int
    height: int
    prompt: str
    details: str
    aside: str = ""

    @cached_property
    def text_size(self) -> float:
        """Height of the caption's text in pixels."""
        return max(9.0, math.sqrt(self.width * self.height) / 54)

    @cached_property
    def margin(self) -> int:
        """Width of the card's empty edge in pixels."""
        return round(1.3 * self.text_size)

    @cached_property
    def gutter(self) -> int:
        """Width in pixels of the dark line around each photograph."""
        return max(1, round(self.text_size / 5))

    @cached_property
    def text_width(self) -> int:
        """Width of the caption in pixels."""
        return max(1, self.width - 2 * self.margin)

    @cached_property
    def room(self) -> tuple[int, int]:
        """Width and height in pixels that the photographs may take up."""
        spare = self.height - 2 * self.margin - self._heading_height - self._caption_height
        least = 2 * self.gutter + 1
        return max(least, self.text_width), max(least, spare)

    def card(self, photographs: tuple[int, int]) -> tuple[Image.Image, tuple[int, int]]:
        """Return the card, and the left and upper edge of the photographs on it.

        Args:
            photographs: Width and height in pixels of all photographs with their gutters.
        """
        width, height = photographs
        card = self._paper()
        draw = ImageDraw.Draw(card)
        top = self.margin + (self.room[1] - height) // 2
        left = (self.width - width) // 2
        if self._heading_height:
            self._write_heading(draw, top)
            top += self._heading_height
        self._write_caption(draw, top + height)
        card.paste(FRAME, (left, top, left + width, top + height))
        return card, (left, top)

    def aside_place(self, photographs: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return left, upper, right and lower edge of the aside, next to the line of details."""
        top = self.margin + (self.room[1] - photographs[1]) // 2 + self._heading_height
        upper = round(top + photographs[1] + self._caption_height - 1.35 * self.text_size)
        right = self.width - self.margin
        lower = min(self.height, round(upper + 1.3 * self.text_size))
        return right - self._aside_width, upper, right, lower

    @cached_property
    def _font(self) -> Font:
        return ImageFont.load_default(self.text_size)

    @cached_property
    def small_font(self) -> Font:
        """The font of the details and of the aside."""
        return ImageFont.load_default(max(8.0, 0.86 * self.text_size))

    @cached_property
    def _heading_height(self) -> int:
        fits = self.height >= 0.5 * self.width and self.width >= 24 * self.text_size
        return round(2.2 * self.text_size) if fits else 0

    @cached_property
    def _aside_width(self) -> int:
        return math.ceil(self.small_font.getlength(self.aside))

    @cached_property
    def _prompt_lines(self) -> list[str]:
        most = 1 if self.height < 0.5 * self.width else 2 if self.height < 1.2 * self.width else 3
        return wrap(drawable(self.prompt) or "Untitled", self._font, self.text_width, most)

    @cached_property
    def _details_line(self) -> str:
        kept_free = self._aside_width + self.text_size if self.aside else 0.0
        lines = wrap(drawable(self.details), self.small_font, self.text_width - kept_free, 1)
        return lines[0] if lines else ""

    @cached_property
    def _caption_height(self) -> int:
        return round((0.7 + 1.3 * len(self._prompt_lines) + 1.35) * self.text_size)

    def _write_heading(self, draw: ImageDraw.ImageDraw, top: int) -> None:
        font = ImageFont.load_default(1.1 * self.text_size)
        spaced = " ".join(HEADING)
        draw.text((self.width / 2, top), spaced, fill=INK, font=font, anchor="ma")

    def _write_caption(self, draw: ImageDraw.ImageDraw, top: int) -> None:
        y = top + 0.7 * self.text_size
        for line in self._prompt_lines:
            draw.text((self.margin, y), line, fill=INK, font=self._font)
            y += 1.3 * self.text_size
        draw.text((self.margin, y), self._details_line, fill=FAINT_INK, font=self.small_font)

    def _paper(self) -> Image.Image:
        """Return blank paper with the faint cloudiness of an old card."""
        cells = (max(2, self.width // 48), max(2, self.height // 48))
        noise = hashlib.shake_128(b"paper").digest(cells[0] * cells[1])
        clouds = Image.frombytes("L", cells, noise).point(
            [249 + level // 42 for level in range(256)]
        )
        size = (self.width, self.height)
        paper = Image.new("L", size, PAPER)
        return ImageChops.multiply(paper, clouds.resize(size, Image.Resampling.BICUBIC))
