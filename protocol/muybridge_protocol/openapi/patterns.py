r"""Texts as regular expressions that every dialect reads alike, as JSON Schema asks for.

No flags, no classes such as `\s`, no look-around: dialects differ in them, or have none. `$` is the
end of the text, as the standard has it; in Python's own it also stands before a last line end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from muybridge_protocol.rules.media_urls import ASSET, BARE_BASE64, DATA_URI, SPACE, URL, MediaUrl
from muybridge_protocol.rules.values import PixelSize

NOT_BLANK: Final = f"[^{SPACE}]"


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
    forms = [URL]
    if rule.assets:
        forms.append(ASSET)
    if rule.base64:
        forms.append(DATA_URI)
    if rule.bare_base64:
        forms.append(BARE_BASE64)
    return whole("|".join(forms))
