"""The one converter between plain JSON values and typed ones.

A shape is an attrs class, and each of its fields says how it stands in a record: its type alone
makes it strict, and `wire` among its metadata gives it another name or another reading. So a new
field is one line, in its class. cattrs makes the functions that read and write a shape when it is
first used.

- `structure` makes a value of a record. A field without a default must be in it. Where its type
  alone reads a field, a value must be of that very type: null is no text, and true is no number.
- `unstructure` makes a record of a value.
- A `View` is another record of the same class: the token of a task leaves out what a task is not
  resumed from.

Only `InvalidJson` is raised over a record. What a shape has no field for is ignored; shapes that
keep it hold the whole record as `raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from muybridge_protocol.codec import InvalidJson, readable

T = TypeVar("T")

Read = Callable[[Any, Any], Any]
"""Makes the value of a field from that of a record; the second argument is the field's type."""

_WIRE: Final = "muybridge wire"
_OURS: Final = "muybridge ours"
_STRICT: Final[Mapping[type, str]] = {str: "a str", int: "an int", bool: "a bool"}

_converter = Converter(detailed_validation=False)


@attrs.frozen(eq=False)
class View(Generic[T]):
    """Another record of an attrs class. Fields that have their default are not written.

    Args:
        shape: The class.
        without: Attributes that it leaves out.
    """

    shape: type[T]
    without: tuple[str, ...]


def structure(record: Mapping[str, Any], shape: type[T] | View[T], **known: Any) -> T:
    """Return the value of *shape* that *record* describes.

    Args:
        record: A JSON object.
        shape: An attrs class, or a view of one.
        **known: Fields that are known, whatever the record says.

    Raises:
        InvalidJson: A field is missing or not of its type.
    """
    try:
        return _converter.structure({**record, **known}, cast("type[T]", shape))
    except KeyError as error:
        raise InvalidJson(f"it has no {error.args[0]}") from None


def unstructure(value: T, view: View[T] | None = None) -> Any:
    """Return the record of *value*, or the *view* of it."""
    return _converter.unstructure(value, view)


def wire(read: Read | None = None, *, name: str | None = None) -> Mapping[str, Any]:
    """Return the metadata of a field that stands in the records of its class.

    Args:
        read: How it is read, or None where its type says so.
        name: Its name in a record where it is not the attribute's.
    """
    return {_WIRE: override(rename=name, struct_hook=read)}


def ours(read: Read | None = None) -> Mapping[str, Any]:
    """Return the metadata of a field that no record of the service has: `structure` is given it.

    Args:
        read: How a view reads it, or None where its type says so.
    """
    return {**wire(read), _OURS: True}


def names(shape: type) -> frozenset[str]:
    """Return the names of the fields that a record of *shape* may have."""
    overrides = _metadata(shape, _WIRE)
    known = {field.name for field in attrs.fields(shape)} - _metadata(shape, _OURS).keys()
    return frozenset(
        overrides[name].rename or name if name in overrides else name for name in known
    )


def _is_view(kind: Any) -> bool:
    return isinstance(kind, View)


def _is_shape(kind: Any) -> bool:
    return _is_view(kind) or attrs.has(kind)


def _shape(kind: Any) -> Any:
    return kind.shape if _is_view(kind) else kind


def _overrides(kind: Any) -> dict[str, Any]:
    """Return how cattrs is to treat the fields of *kind*, where not by their types."""
    if _is_view(kind):
        omitted = dict.fromkeys(kind.without, override(omit=True))
        return {**_metadata(kind.shape, _WIRE), **omitted}
    given = dict.fromkeys(_metadata(kind, _OURS), override(struct_hook=_as_it_is))
    return {**_metadata(kind, _WIRE), **given}


def _metadata(shape: Any, key: str) -> dict[str, Any]:
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(shape)
    return {field.name: field.metadata[key] for field in fields if key in field.metadata}


def _as_it_is(value: Any, _: object) -> Any:
    return value


@_converter.register_structure_hook_factory(_is_shape)
def _reader(kind: Any) -> Read:
    return make_dict_structure_fn(_shape(kind), _converter, **_overrides(kind))


@_converter.register_unstructure_hook_factory(_is_shape)
def _writer(kind: Any) -> Callable[[Any], dict[str, Any]]:
    return make_dict_unstructure_fn(
        _shape(kind), _converter, _cattrs_omit_if_default=_is_view(kind), **_overrides(kind)
    )


def _strict(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise InvalidJson(f"{readable(repr(value), 40)} is not {_STRICT[kind]}")
    return value


for _kind in _STRICT:
    _converter.register_structure_hook(_kind, _strict)
