"""Adapt docstrings, which are written for `help()`, to Sphinx."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_EXAMPLE = re.compile(r"    +\S")
_NO_LITERAL = re.compile(r"=(NOTHING\b|<[^,)]*>+)")
"""A default that attrs creates for each value, or a function."""
_MISPLACED = re.compile(r", \*\*_misplaced(: [\w.~]+)?")
"""What takes no argument, and only says where one belongs."""
_COLON = "\ue000"
"""Replaces a colon that napoleon would take for the end of an attribute's type."""


def show_examples(
    _app: Sphinx, what: str, _name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Mark indented blocks as code, before napoleon runs."""
    lines[:] = with_examples(lines)
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(":", _COLON)


def end_sentences(
    _app: Sphinx, _what: str, _name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Restore the colon in the first line of attributes, after napoleon has run."""
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def with_examples(lines: list[str]) -> list[str]:
    """Return *lines* with indented blocks after an empty line marked as code.

    `data:` URIs are escaped, because reStructuredText takes them for links.
    """
    marked: list[str] = []
    inside = False
    for line in lines:
        begins = (
            not inside
            and _EXAMPLE.match(line) is not None
            and len(marked) > 1
            and not marked[-1].strip()
            and not marked[-2].startswith(" ")
        )
        if begins:
            marked += ["::", ""]
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        marked.append(line if inside else line.replace("data:.", r"data\:."))
    return marked


def shorten_signature(
    _app: Sphinx,
    what: str,
    _name: str,
    _value: Any,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None] | None:
    """Show defaults that cannot be written down as three dots, and no `**_misplaced`."""
    if signature is None:
        return None
    if what == "class" and signature in ("(*args, **kwargs)", "(value)"):
        return "", returns  # protocols are not called, and enumerations show their members
    return _MISPLACED.sub("", _NO_LITERAL.sub("=...", signature)), returns
