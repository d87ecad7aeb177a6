"""Values that pydantic and FastAPI read from JSON and write as JSON.

pydantic asks a class for its schema, so that this library needs no pydantic: a core schema and a
JSON schema are plain dictionaries.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from muybridge_protocol.records.json import InvalidJson


class JsonValue:
    """A value with `to_dict` and `from_dict`: a field in pydantic, and a body in FastAPI."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the value as a JSON object."""

    @classmethod
    @abstractmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the value that `to_dict` has written.

        Raises:
            ValueError: It is not the JSON of such a value.
        """

    @classmethod
    def _read(cls, value: object) -> Self:
        """Return *value*, which is such a value or its JSON, as pydantic wants it.

        Raises:
            ValueError: It is neither. It has only a message: FastAPI cannot answer with others.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise InvalidJson(f"a {cls.__name__} is a JSON object")
        try:
            return cls.from_dict(value)  # pyright: ignore[reportUnknownArgumentType]  it checks it
        except (TypeError, ValueError) as error:
            raise ValueError(str(error)) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> dict[str, Any]:
        return {
            "type": "function-plain",
            "function": {"type": "no-info", "function": cls._read},
            "serialization": {"type": "function-plain", "function": cls.to_dict},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        return {"type": "object", "title": cls.__name__, **cls._json_schema()}

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        """Return what the JSON schema of the class says about its properties."""
        return {}
