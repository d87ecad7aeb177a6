"""Word pieces, which serve as tokens.

A piece is up to six letters or digits of a word with the space before them, a single other mark,
or white space. Joined, the pieces of a text are the text.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r" ?\w{1,6}|[^\w\s]|\s+")


def split(text: str) -> tuple[str, ...]:
    """Return the pieces of *text*."""
    return tuple(_PIECE.findall(text))


def count(text: str) -> int:
    """Return how many pieces *text* has."""
    return sum(1 for _ in _PIECE.finditer(text))  # without a list: it may have millions
