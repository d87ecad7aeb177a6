"""How much memory JSON takes once it is read, told before it is read.

A small value takes many times the bytes that it has as JSON, and one rare character makes Python
take two bytes, or four, for every character of its text. Both are found in the bytes, where
looking is cheap.
"""

from __future__ import annotations

import json
import re

_WIDEST = 4
_MOST_QUOTES = 4
"""For each mark that is allowed: taking out more texts than that takes too long."""
_BELOW_TWO_BYTES = bytes(range(0xC4))
"""What the UTF-8 of characters has that take one byte each. From U+0100 on they take two."""
_FOUR_BYTES = 0xF0
"""What the UTF-8 of characters that take four bytes begins with."""
_FOUR_BYTES_ESCAPED = re.compile(rb"\\u[dD][89abAB]")
_TWO_BYTES_ESCAPED = re.compile(rb"\\u(?!00)")
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# The closing quote may be missing, so that broken JSON costs no more than other.
_TEXT = r'"(?:[^"\\]++|\\.)*+"?'
_TEXTS = re.compile(_TEXT, re.DOTALL)
_TEXTS_IN_BYTES = re.compile(_TEXT.encode(), re.DOTALL)


def holds_more_than(most: int, body: bytes | str) -> bool:
    """Whether more than *most* commas, colons and opening brackets stand between its texts."""
    # Texts are taken out only where they matter: few replies have that many marks at all.
    if len(body) <= most or _marks(body) <= most:
        return False
    return _quotes(body) > _MOST_QUOTES * most or _marks(_without_texts(body)) > most


def is_too_wide(body: bytes, spare: int) -> bool:
    """Whether the texts in *body* would take more than *spare* bytes beyond their own."""
    if len(body) * (_WIDEST - 1) <= spare or _width(body) == 1:
        return False
    texts = (found[0] for found in _TEXTS_IN_BYTES.finditer(body))
    return sum(len(text) * (_width(text) - 1) for text in texts) > spare


def decode(body: bytes, spare: int) -> str:
    """Return *body* as text, with JSON's escapes where it would take *spare* bytes beyond its own.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    if len(body) * (_WIDEST - 1) > spare:
        characters = len(body.translate(None, _CONTINUATIONS))
        if characters * _raw_width(body) > len(body) + spare:
            body = _BEYOND_ASCII.sub(_escaped, body.removeprefix(_BYTE_ORDER_MARK))
    return body.decode("utf-8-sig")


def _marks(body: bytes | str) -> int:
    return sum(map(body.count, ",:[{") if isinstance(body, str) else map(body.count, b",:[{"))


def _quotes(body: bytes | str) -> int:
    return body.count('"') if isinstance(body, str) else body.count(b'"')


def _without_texts(body: bytes | str) -> bytes | str:
    return _TEXTS.sub("", body) if isinstance(body, str) else _TEXTS_IN_BYTES.sub(b"", body)


def _raw_width(text: bytes) -> int:
    """Return the bytes for each character of *text*, as it stands there."""
    if text.isascii():
        return 1
    # Not a regular expression, which takes twenty times as long.
    rare = text.translate(None, _BELOW_TWO_BYTES)
    return 1 if not rare else 2 if max(rare) < _FOUR_BYTES else 4


def _width(text: bytes) -> int:
    """Return the bytes for each character of *text*, once its escapes are undone."""
    width = _raw_width(text)
    if width == _WIDEST or b"\\u" not in text:
        return width
    if _FOUR_BYTES_ESCAPED.search(text):
        return _WIDEST
    return 2 if _TWO_BYTES_ESCAPED.search(text) else width


def _escaped(found: re.Match[bytes]) -> bytes:
    return json.dumps(found[0].decode()).encode()[1:-1]
