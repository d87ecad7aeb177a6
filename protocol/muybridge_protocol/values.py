"""Checks of what values are made of."""

from __future__ import annotations


def require_type(name: str, value: object, kind: type | tuple[type, ...]) -> None:
    """Check what *value* is, for drivers and transports that no type checker has read.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")
