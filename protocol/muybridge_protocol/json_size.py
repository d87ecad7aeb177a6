"""How much memory JSON takes once it is read, told before it is read.

A small value takes many times the bytes that it has as JSON, and one rare character makes Python
take two bytes, or four, for every character of its text. Both are found in the bytes, where
looking is cheap.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

_WIDEST = 4
_MOST_QUOTES = 4
"""For each mark that is allowed: passing over more texts than that takes too long."""
_BELOW_TWO_BYTES = bytes(range(0xC4))
"""What the UTF-8 of characters has that take one byte each. From U+0100 on they take two."""
_FOUR_BYTES = 0xF0
"""What the UTF-8 of characters that take four bytes begins with."""
_FOUR_BYTES_ESCAPED = re.compile(rb"\\u[dD][89abAB]")
_TWO_BYTES_ESCAPED = re.compile(rb"\\u(?!00)")
_CONTINUATIONS = bytes(range(0x80, 0xC0))
# Not too many at once, so that little of a long text stands there twice.
# Not too many at once, so that little of a long text stands there twice.
_BEYOND_ASCII = re.compile(rb"(?:[\xc0-\xff][\x80-\xbf]*){1,4096}")
_ASCII = bytes(range(0x80))
_PIECE = 64 * 1024
"""Bytes that are looked at in one go: what large copies leave behind is not used again at once."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# The closing quote may be missing, so that broken JSON costs no more than other.
_TEXT = r'"(?:[^"\\]++|\\.)*+"?'
_TEXTS = re.compile(_TEXT.encode(), re.DOTALL)
# Passes over texts, up to a mark or to the end.
_TO_MARK = rf'[^",:\[{{]*+(?:{_TEXT}[^",:\[{{]*+)*+([,:\[{{]?)'
_MARK = re.compile(_TO_MARK, re.DOTALL)
_MARK_IN_BYTES = re.compile(_TO_MARK.encode(), re.DOTALL)


class TooWide(ValueError):
    """Texts that would take too much memory beyond their bytes."""


def holds_more_than(most: int, body: bytes | str) -> bool:
    """Whether more than *most* commas, colons and opening brackets stand between its texts."""
    return len(body) > most and count_marks(body, most) > most


def count_marks(body: bytes | str, most: float) -> int:
    """Return how many commas, colons and opening brackets stand between the texts of *body*.

    It may be more than there are, but is not more than *most* where there are not.
    """
    marks = _marks(body)
    # Texts are passed over only where they matter: few replies have that many marks at all.
    if marks <= most or _quotes(body) > _MOST_QUOTES * most:
        return marks
    marks = 0
    for found in _MARK.finditer(body) if isinstance(body, str) else _MARK_IN_BYTES.finditer(body):
        if not found[1] or marks > most:
            break
        marks += 1
    return marks


def decode(body: bytes, wide: float, spare: float, *, copied: bool = False) -> str:
    """Return *body* as text, with JSON's escapes where it would take *spare* bytes beyond its own.

    Args:
        body: JSON as UTF-8.
        wide: Most bytes that the texts in it may take beyond their own, once it is read.
        spare: Most bytes that it may take as text beyond its own.
        copied: Whether to count what Python has twice for a moment, where it finds only after it
            has begun that a text needs wider characters.

    Raises:
        TooWide: They would take more.
        UnicodeDecodeError: It is not UTF-8.
    """
    if _is_too_wide(body, wide, copied):
        raise TooWide
    if len(body) * _WIDEST > spare and not body.isascii():
        characters = sum(len(piece.translate(None, _CONTINUATIONS)) for piece in _pieces(body))
        if characters * _raw_width(body) > spare + (0 if copied else len(body)):
            # An escape takes at most three times the bytes of its character, and what Python tells
            # of it holds all bytes once more.
            escapes = 2 * sum(len(piece.translate(None, _ASCII)) for piece in _pieces(body))
            if escapes + (len(body) if copied else 0) > spare:
                raise TooWide
            return body.decode("ascii", _ESCAPED)
    begin = len(_BYTE_ORDER_MARK) if body.startswith(_BYTE_ORDER_MARK) else 0
    return str(memoryview(body)[begin:], "utf-8")


def _is_too_wide(body: bytes, spare: float, copied: bool) -> bool:  # noqa: FBT001  of `decode`
    if len(body) * _WIDEST <= spare or (body.isascii() and b"\\u" not in body):
        return False
    if not copied and _width(body) == 1:
        return False
    wide = 0
    for found in _TEXTS.finditer(body):
        begin, end = found.span()
        if body.find(b"\\u", begin, end) < 0 and all(
            piece.isascii() for piece in _pieces(body, begin, end)
        ):
            continue
        wide += end - begin if copied else 0
        if wide > spare:
            break
        wide += (end - begin) * (_width(body, begin, end) - 1)
    return wide > spare


def _pieces(body: bytes, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    end = len(body) if end is None else end
    return (body[at : min(at + _PIECE, end)] for at in range(begin, end, _PIECE))


_ESCAPED = "muybridge_protocol.escaped"
"""What a decoder asks of what is not ASCII."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for the characters that *error* is about, and where they end."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    if error.start == 0 and error.object.startswith(_BYTE_ORDER_MARK):
        return "", len(_BYTE_ORDER_MARK)
    found = _BEYOND_ASCII.match(error.object, error.start)
    if found is None:
        raise error
    return json.dumps(found[0].decode())[1:-1], found.end()


codecs.register_error(_ESCAPED, _escaped)


def _marks(body: bytes | str) -> int:
    return sum(map(body.count, ",:[{") if isinstance(body, str) else map(body.count, b",:[{"))


def _quotes(body: bytes | str) -> int:
    return body.count('"') if isinstance(body, str) else body.count(b'"')


def _raw_width(text: bytes, begin: int = 0, end: int | None = None) -> int:
    """Return the bytes for each character of *text*, as it stands there."""
    width = 1
    for piece in _pieces(text, begin, end):
        # Not a regular expression, which takes twenty times as long.
        rare = b"" if piece.isascii() else piece.translate(None, _BELOW_TWO_BYTES)
        if rare:
            width = max(width, 2 if max(rare) < _FOUR_BYTES else 4)
    return width


def _width(text: bytes, begin: int = 0, end: int | None = None) -> int:
    """Return the bytes for each character of *text*, once its escapes are undone."""
    end = len(text) if end is None else end
    width = _raw_width(text, begin, end)
    if width == _WIDEST or text.find(b"\\u", begin, end) < 0:
        return width
    if _FOUR_BYTES_ESCAPED.search(text, begin, end):
        return _WIDEST
    return 2 if _TWO_BYTES_ESCAPED.search(text, begin, end) else width
