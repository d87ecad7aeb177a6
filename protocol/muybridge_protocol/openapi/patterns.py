r"""Texts as regular expressions that every dialect reads alike, as JSON Schema asks for.

No flags, no classes such as `\s`, no look-around: dialects differ in them, or have none. `$` is the
end of the text, as the standard has it; in Python's own it also stands before a last line end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from muybridge_protocol.rules.media_urls import IMAGE_BEGINNINGS, LEAST_BASE64, MediaUrl
from muybridge_protocol.rules.values import PixelSize

# The characters for which `str.isspace` is true.
_SPACE: Final = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CONTROL: Final = "\x00-\x1f\x7f"

NOT_BLANK: Final = f"[^{_SPACE}]"


def any_case(text: str) -> str:
    """Return the pattern of *text*, letters and digits of ASCII, in any case."""
    return "".join(f"[{mark.upper()}{mark.lower()}]" if mark.isalpha() else mark for mark in text)


def in_any_case(options: Iterable[str | int]) -> str:
    """Return the pattern of a text that is one of *options*, in any case."""
    return whole("|".join(any_case(str(option)) for option in options))


def whole(pattern: str) -> str:
    """Return the pattern of a text that *pattern* matches from its beginning to its end."""
    return f"^(?:{pattern})$"


def pixel_size(rule: PixelSize) -> str:
    """Return the pattern of `{width}x{height}`; a pattern cannot check the numbers."""
    edge = f"[1-9][0-9]{{0,{len(str(rule.longest_edge)) - 1}}}"
    return f"^{edge}x{edge}$"


def media_url(rule: MediaUrl) -> str:
    """Return the pattern of a reference to media, judged by its form alone."""
    forms = [_URL]
    if rule.assets:
        forms.append(_ASSET)
    if rule.base64:
        forms.append(_DATA_URI)
    if rule.bare_base64:
        forms.append(_BARE_BASE64)
    return whole("|".join(forms))


_URL: Final = f"{any_case('http')}[Ss]?://[^{_SPACE}{_CONTROL}/?#][^{_SPACE}{_CONTROL}]*"
_ASSET: Final = f"asset://[^{_SPACE}{_CONTROL}]{{1,1024}}"
_DATA_URI: Final = (
    f"{any_case('data')}:[A-Za-z]+/[A-Za-z0-9.+-]+;{any_case('base64')},[A-Za-z0-9+/_-]+={{0,2}}"
)
_BARE_BASE64: Final = (
    "(?:"
    + "|".join(
        f"{first}[A-Za-z0-9+/]{{{LEAST_BASE64 - len(first)},}}" for first in IMAGE_BEGINNINGS
    )
    + ")={0,2}"
)
