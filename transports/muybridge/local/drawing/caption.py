"""Text that fits: wrapped, shortened, and made of characters that can be drawn.

The font has Latin letters only. A caption in another script would be a row of boxes, so it names
the script instead, with a digest that tells two texts in it apart. An emoji has a name of its own.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

ELLIPSIS = "…"

_LACKING = "\0"
_STRETCH = re.compile(f"{_LACKING}(?:[{_LACKING} ]*{_LACKING})?")
_LONGEST_NAME = 24
_PROBE_SIZE = 16
_NO_CHARACTER = "\U0010ffff"
"""A code point that is no character, so that every font draws its mark for missing ones."""

_LOOKALIKES = str.maketrans(
    {
        "\N{EM DASH}": "-",
        "\N{EN DASH}": "-",
        "\N{HYPHEN}": "-",
        "\N{MINUS SIGN}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{BULLET}": "·",
    }
)


def drawable(text: str) -> str:
    """Return *text* on one line, with the nearest characters that Pillow's own font has.

    Accents are dropped, because the font has none. A stretch of characters that it lacks becomes
    a hint in brackets: `[Arabic 5d1c]`, `[CJK 0f3e]`, or `[horse]` for an emoji.
    """
    printable = "".join(
        char
        for char in unicodedata.normalize("NFKD", text).translate(_LOOKALIKES)
        if char.isspace() or (char.isprintable() and unicodedata.category(char)[0] != "M")
    )
    line = " ".join(printable.split())
    marks = "".join(char if _in_font(char) else _LACKING for char in line)
    return _STRETCH.sub(lambda stretch: _hint(line[stretch.start() : stretch.end()]), marks)


def _hint(text: str) -> str:
    """Return the name of the script of *text* with a digest, or the name of its first symbol."""
    letter = next((char for char in text if char.isalnum()), None)
    if letter is None:
        return f"[{unicodedata.name(text[0], 'symbol').lower()[:_LONGEST_NAME].rstrip()}]"
    script = unicodedata.name(letter, "text").split()[0]
    digest = hashlib.shake_128(text.encode()).hexdigest(2)
    return f"[{script if script == 'CJK' else script.capitalize()} {digest}]"


@lru_cache(maxsize=1024)
def _glyph(char: str) -> bytes:
    image = Image.new("L", (2 * _PROBE_SIZE, 2 * _PROBE_SIZE))
    ImageDraw.Draw(image).text((0, 0), char, fill=255, font=ImageFont.load_default(_PROBE_SIZE))
    return image.tobytes()


def _in_font(char: str) -> bool:
    # Pillow does not say which characters a font has: all that are missing look alike.
    return _glyph(char) != _glyph(_NO_CHARACTER)


def wrap(text: str, font: Font, width: float, most_lines: int) -> list[str]:
    """Break *text* into lines.

    Args:
        text: Drawable text.
        font: The font that it will be drawn in.
        width: Width of a line in pixels.
        most_lines: How many lines there may be. The last ends with an ellipsis if more would
            follow.
    """
    lines: list[str] = []
    while text and len(lines) < most_lines:
        fitting = max(1, _fitting(text, font, width))
        space = text.rfind(" ", 0, fitting + 1)
        end = fitting if fitting == len(text) or space <= 0 else space
        lines.append(text[:end])
        text = text[end:].lstrip()
    if text:
        room = width - font.getlength(ELLIPSIS)
        last = f"{lines[-1]} {text}"
        lines[-1] = last[: _fitting(last, font, room)].rstrip() + ELLIPSIS
    return lines


def _fitting(text: str, font: Font, width: float) -> int:
    """Return how many characters of *text* fit into *width* pixels."""
    # No line holds more characters than it has pixels.
    most = min(len(text), max(0, int(width)))
    return bisect_right(range(1, most + 1), width, key=lambda end: font.getlength(text[:end]))
