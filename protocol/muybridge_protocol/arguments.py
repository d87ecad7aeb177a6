"""Checks the types of arguments, so that a mistake is reported before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NO_TAGS: Final[Mapping[str, str]] = MappingProxyType({})
"""The tags of a call that is given none."""


def check_type(
    name: str, value: object, kinds: type | tuple[type, ...], use: str, line: str = ""
) -> None:
    """Check that the argument *name* has one of the types *kinds*.

    The message does not show the value: it may be a key, or the content of a file.

    Args:
        name: The argument's name.
        value: Its value.
        kinds: What it may be.
        use: What it may be, in words.
        line: What to write, if that is not obvious.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, kinds):
        write = f": write {line}" if line else ""
        raise TypeError(f"{name} must be {use}, not {_kind_of(value)}{write}. Nothing was sent.")


def check_callable(name: str, value: object) -> None:
    """Check that the argument *name* can be called, or is None.

    Raises:
        TypeError: It is something else.
    """
    if value is not None and not callable(value):
        raise TypeError(
            f"{name} must be callable, or None, not {_kind_of(value)}. Nothing was sent."
        )


def _kind_of(value: object) -> str:
    if value is None:
        return "None"
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
