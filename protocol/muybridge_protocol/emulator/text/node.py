"""A value in a request's JSON that knows where it stands, so that a refusal can say where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

from muybridge_protocol.emulator.text.refused import Refused
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.values import is_array
from muybridge_protocol.text.content import decode_base64

T = TypeVar("T")


@attrs.frozen
class Node:
    """A value in a request's JSON.

    Args:
        value: The value.
        path: Where it stands, such as `contents[0].parts`; "" for the whole.
    """

    value: Any = attrs.field(repr=False)
    path: str = ""

    @property
    def name(self) -> str:
        """The name of the field that it is."""
        return self.path.rpartition(".")[2]

    def field(self, *names: str) -> Node | None:
        """Return the first of the fields *names* that is there and not null, or None.

        Raises:
            Refused: This is no object.
        """
        fields = self.fields()
        for name in names:
            if fields.get(name) is not None:
                return Node(fields[name], self._inner(name))
        return None

    def required(self, *names: str) -> Node:
        """Return the first of the fields *names* that is there and not null.

        Raises:
            Refused: There is none, or this is no object.
        """
        found = self.field(*names)
        if found is None:
            raise self.refused("is required", self._inner(names[0]))
        return found

    def numbers(self, *fields: tuple[str, ...]) -> list[tuple[str, float]]:
        """Return those of the *fields*, each given by all its names, that are there, as numbers.

        Raises:
            Refused: One is no number, or this is no object.
        """
        found = [self.field(*names) for names in fields]
        return [(node.name, node.number()) for node in found if node is not None]

    def is_set(self, name: str) -> bool:
        """Whether the field *name* is there and true.

        Raises:
            Refused: It is no boolean, or this is no object.
        """
        found = self.field(name)
        return found is not None and found.flag()

    def text_or(self, read: Callable[[Node], T]) -> tuple[str | T, ...]:
        """Return the string that this is, or what *read* makes of each element of the array.

        Raises:
            Refused: It is neither.
        """
        if isinstance(self.value, str):
            return (self.value,)
        return tuple(read(element) for element in self.elements())

    def fields(self) -> Mapping[str, Any]:
        """Return the fields of the object that this is.

        Raises:
            Refused: It is none.
        """
        value = self.value
        if not isinstance(value, dict):
            raise self.refused("must be an object")
        return cast("JsonObject", value)

    def elements(self) -> list[Node]:
        """Return the elements of the array that this is; there is at least one.

        Raises:
            Refused: It is no array, or empty.
        """
        if not is_array(self.value) or not self.value:
            raise self.refused("must be an array that is not empty")
        return [Node(value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def text(self) -> str:
        """Return the string that this is.

        Raises:
            Refused: It is none.
        """
        if not isinstance(self.value, str):
            raise self.refused("must be a string")
        return self.value

    def flag(self) -> bool:
        """Return the boolean that this is.

        Raises:
            Refused: It is none.
        """
        if not isinstance(self.value, bool):
            raise self.refused("must be true or false")
        return self.value

    def number(self) -> float:
        """Return the number that this is.

        Raises:
            Refused: It is none.
        """
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.refused("must be a number")
        return self.value

    def count(self) -> int:
        """Return the integer above 0 that this is.

        Raises:
            Refused: It is none.
        """
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            raise self.refused("must be an integer of at least 1")
        return self.value

    def base64(self) -> bytes:
        """Return the bytes that this is the base64 of, standard or URL-safe, padded or not.

        Raises:
            Refused: It is no base64.
        """
        return self.decoded(self.text())

    def decoded(self, text: str) -> bytes:
        """Return the bytes that *text*, which stands here, is the base64 of.

        Raises:
            Refused: It is no base64.
        """
        data = decode_base64(text)
        letters = text.rstrip("=")
        if data is None or len(text) - len(letters) not in (0, -len(letters) % 4):
            raise self.refused("must be base64")
        return data

    def refused(self, complaint: str, path: str | None = None) -> Refused:
        """Return the refusal that *complaint* is about this value, or the one at *path*."""
        where = self.path if path is None else path
        return Refused(400, f"{where or 'the body'} {complaint}", field=where or None)

    def _inner(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name
