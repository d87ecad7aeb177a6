"""The suffixes of saved files, which follow from what is in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Final

from muybridge.drivers.calls import warn_caller
from muybridge_protocol.errors import MuybridgeWarning
from muybridge_protocol.media.formats import FORMATS, format_of

SUFFIXES: Final[Mapping[str, str]] = {
    one.content_type: one.suffix for one in FORMATS.values() if one.content_type
}
"""The suffix of each media type."""

_ALIASES: Final[Mapping[str, str]] = {
    other: one.suffix for one in FORMATS.values() for other in one.suffixes[1:]
}
"""Other suffixes that are as right."""


def right_path(given: Path, start: bytes, content_type: str) -> Path:
    """Return *given*, with the suffix of its content if it has none.

    A name with a suffix is what the user wants, whatever is in the file. If another file has the
    name with the added suffix already, a number is added, because the user has not named that file.

    Args:
        given: The path that the user gave.
        start: The first bytes of the content.
        content_type: What the server says it is, in case the bytes do not tell.
    """
    suffix = None if given.suffix else suffix_for(start, content_type)
    return given if suffix is None else free_path(given.parent, given.name, suffix)


def free_path(folder: Path, stem: str, suffix: str) -> Path:
    """Return a path in *folder* that does not exist, with a number in its name if need be."""
    names = (f"{stem}{number}{suffix}" for number in chain([""], (f"-{n}" for n in count(2))))
    return next(path for path in (folder / name for name in names) if not os.path.lexists(path))


def warn_of_name(given: str | os.PathLike[str], saved: Path, right: str | None) -> None:
    """Warn if the name of a saved file misleads.

    Args:
        given: The path that the user gave.
        saved: Where the file is.
        right: The suffix of its content, or None if that is not known.
    """
    path = Path(given)
    if path.is_dir():
        return
    if saved.name not in (path.name, f"{path.name}{saved.suffix}"):
        cause = f"because there is a file {path.name}{saved.suffix} already"
        warn_caller(f"{path.name} was saved as {saved.name}, {cause}", MuybridgeWarning)
    suffix = saved.suffix.lower()
    suffix = _ALIASES.get(suffix, suffix)
    if right is not None and suffix != right and suffix in SUFFIXES.values():
        content, named = right[1:].upper(), suffix[1:].upper()
        message = f"the content of {saved.name} is {content}, not {named}; the file keeps that name"
        warn_caller(message, MuybridgeWarning)


def media_of_suffix(name: str) -> str:
    """Return what the suffix of *name* stands for: `image`, `video`, `audio` or ""."""
    suffix = Path(name).suffix.lower()
    suffix = _ALIASES.get(suffix, suffix)
    return next((kind.partition("/")[0] for kind, one in SUFFIXES.items() if one == suffix), "")


def suffix_for(start: bytes, content_type: str) -> str | None:
    """Return the suffix for content that begins with *start*, or else of its type, or None."""
    media_format = format_of(start)
    own_type = "" if media_format is None else media_format.content_type
    return SUFFIXES.get(own_type or content_type)
