"""The one converter between plain JSON values and typed ones.

A shape is an attrs class, and each of its fields states how it appears in a record. By default its
type decides, strictly; `wire` in its metadata gives it another name or another reader. So a new
field is one line, in its class. cattrs generates the functions that read and write a shape when it
is first used.

- `structure` makes a value from a record. A field without a default must be present. If the type
  alone decides, a value must have exactly that type: null is not a text, and true is not a number.
- `unstructure` makes a record from a value, and `partial` makes one from some fields.
- `attributes` makes a record from some attributes, under their own names, for our own documents.
- A `View` is another record of the same class with only some of its fields. For example, a token is
  a view of a task.

Nothing in a record is lost. Some shapes keep all of it as `raw`, which their readers pass to
`structure`. Others have an `extra` for fields that they do not know and values that a field does
not accept; these are written again. Whatever is wrong with a record raises `InvalidJson` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override
from cattrs.gen import make_dict_unstructure_fn_from_attrs as make_writer  # pyright: ignore[reportUnknownVariableType]  of any attrs

from muybridge_protocol.records.json import InvalidJson, JsonObject, readable

T = TypeVar("T")

Read = Callable[[Any, Any], Any]
"""Makes the value of a field from that in a record. The second argument is the field's type."""

_STRICT: Final[Mapping[type, str]] = {
    str: "a str",
    int: "an int",
    float: "a float",
    bool: "a bool",
    bytes: "bytes",
}

_converter = Converter(detailed_validation=False, unstruct_collection_overrides={tuple: list})


class View(NamedTuple, Generic[T]):
    """Another record of an attrs class. Fields with their default are not written.

    Args:
        shape: The class.
        only: The attributes that it contains. No others are written, so secrets and links stay out.
    """

    shape: type[T]
    only: tuple[str, ...]


def structure(record: Mapping[str, Any], shape: type[T] | View[T], **given: Any) -> T:
    """Return the value of *shape* that *record* describes.

    Args:
        record: A JSON object.
        shape: An attrs class, or a view of one.
        **given: Fields that have these values, whatever the record says.

    Raises:
        InvalidJson: A field is missing or has the wrong type.
    """
    try:
        return _converter.structure({**record, **given}, cast("type[T]", shape))
    except KeyError as error:
        raise InvalidJson(f"it has no {error.args[0]}") from None


def unstructure(value: T, view: View[T] | None = None) -> Any:
    """Return the record of *value*, or the *view* of it."""
    return _converter.unstructure(value, view)


def partial(shape: type, **fields: Any) -> JsonObject:
    """Return a record of *shape* with only *fields*, which are given by attribute."""
    names = wire_names(shape)
    return {names[name]: _converter.unstructure(value) for name, value in fields.items()}


def attributes(value: object, *names: str) -> JsonObject:
    """Return a record of the attributes and properties *names* of *value*."""
    return {name: _converter.unstructure(getattr(value, name)) for name in names}


def wire(
    read: Read | None = None,
    *,
    write: Callable[[Any], Any] | None = None,
    name: str | None = None,
    last: bool = False,
    absent: Any = ...,
) -> Mapping[str, Any]:
    """Return the metadata of a field that is part of the records of its class.

    Args:
        read: How to read it, or None to read it by its type.
        write: How to write it, or None to write it by its type.
        name: Its name in a record, if that differs from the attribute's.
        last: Whether to write it after the others.
        absent: Its value if a record lacks it, if that is not the default and the shape has an
            `extra`.
    """
    return {"read": read, "write": write, "name": name, "last": last, "absent": absent}


def ours(read: Read | None = None) -> Mapping[str, Any]:
    """Return the metadata of a field that is not in the service's records but given to `structure`.

    Args:
        read: How a view reads it, or None to read it by its type.
    """
    return {"read": read, "ours": True}


def wire_names(shape: type) -> Mapping[str, str]:
    """Return the names of the fields in the records of *shape*, by their attributes."""
    return {field.name: _name(field) for field in _fields(shape) if not _is_ours(field)}


def exactly(kind: type) -> Read:
    """Return a reader of values of *kind*, which does not accept null."""
    return lambda value, _: _strict(value, kind)


def as_it_is(value: Any, _: object) -> Any:
    """Return *value* unchanged."""
    return value


def _fields(shape: Any) -> list[attrs.Attribute[Any]]:
    """Return the fields of a record of *shape*, in the order in which they are written."""
    fields = [field for field in attrs.fields(shape) if field.init and field.name != "extra"]
    return sorted(fields, key=lambda field: bool(field.metadata.get("last")))


def _is_ours(field: attrs.Attribute[Any]) -> bool:
    return "ours" in field.metadata


def _name(field: attrs.Attribute[Any]) -> str:
    return field.metadata.get("name") or field.name


def _absent(field: attrs.Attribute[Any]) -> Any:
    """Return the value of *field* for a record without it."""
    absent = field.metadata.get("absent", ...)
    return field.default if absent is ... else absent


def _is_view(kind: object) -> bool:
    return isinstance(kind, View)


def _is_shape(kind: Any) -> bool:
    return _is_view(kind) or attrs.has(kind)


def _is_open(kind: Any) -> bool:
    return attrs.has(kind) and "extra" in attrs.fields_dict(kind)


def _shape(kind: Any) -> Any:
    """Return the attrs class of *kind*, with types that were text resolved."""
    return attrs.resolve_types(kind.shape if _is_view(kind) else kind)


def _overrides(kind: Any) -> dict[str, Any]:
    """Return how cattrs treats each field of *kind*."""
    return {field.name: _override(kind, field) for field in _fields(_shape(kind))}


def _override(kind: Any, field: attrs.Attribute[Any]) -> Any:
    is_view = _is_view(kind)
    return override(
        rename=_name(field),
        struct_hook=as_it_is if _is_ours(field) and not is_view else field.metadata.get("read"),
        unstruct_hook=field.metadata.get("write"),
        omit=True if is_view and field.name not in kind.only else None,
    )


@_converter.register_structure_hook_factory(_is_shape)
def _reader(kind: Any) -> Read:
    return make_dict_structure_fn(_shape(kind), _converter, **_overrides(kind))


# cattrs asks the newest factory first, so those of open shapes come after those of all shapes.
@_converter.register_structure_hook_factory(_is_open)
def _open_reader(kind: Any) -> Read:
    shape = _shape(kind)
    fields = _fields(shape)
    reads = [
        field.metadata.get("read") or _converter.get_structure_hook(field.type) for field in fields
    ]
    absent = {field.name: _absent(field) for field in fields}
    absent = {name: value for name, value in absent.items() if value is not attrs.NOTHING}

    def read_open(record: JsonObject, _: object) -> Any:
        values, extra = dict(absent), dict(record)
        for field, read in zip(fields, reads, strict=True):
            for name in (_name(field), field.name):  # users may write either
                if name in extra:
                    with suppress(InvalidJson):
                        values[field.name] = read(extra[name], field.type)
                        del extra[name]
                        break
        return shape(**values, extra=extra)

    return read_open


@_converter.register_unstructure_hook_factory(_is_shape)
def _writer(kind: Any) -> Callable[[Any], JsonObject]:
    shape, overrides = _shape(kind), _overrides(kind)
    is_view = _is_view(kind)
    return make_writer(
        _fields(shape), shape, _converter, _cattrs_omit_if_default=is_view, **overrides
    )


@_converter.register_unstructure_hook_factory(_is_open)
def _open_writer(kind: Any) -> Callable[[Any], JsonObject]:
    shape = _shape(kind)
    fields = [field for field in _fields(shape) if not _is_ours(field)]
    optional = [field for field in fields if field.default is not attrs.NOTHING]
    write = make_writer(fields, shape, _converter, **_overrides(kind))

    def write_open(value: Any) -> JsonObject:
        record = write(value)
        for field in optional:
            if getattr(value, field.name) is _absent(field):
                del record[_name(field)]
        return {**record, **value.extra}

    return write_open


def _strict(value: Any, kind: type) -> Any:
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise InvalidJson(f"{readable(repr(value), 40)} is not {_STRICT[kind]}")


def _member(value: Any, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise InvalidJson(f"{readable(repr(value), 40)} is no {kind.__name__}") from None


for _kind in _STRICT:
    _converter.register_structure_hook(_kind, _strict)
_converter.register_structure_hook(StrEnum, _member)
