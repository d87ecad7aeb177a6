"""A value in a request's JSON with its path, so that a refusal can say where the problem is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.values import is_array
from muybridge_protocol.text.content import decode_base64

T = TypeVar("T")


@attrs.frozen
class Node:
    """A value in a request's JSON.

    Args:
        value: The value.
        path: Its path, such as `contents[0].parts`, or "" for the whole request.
    """

    value: Any = attrs.field(repr=False)
    path: str = ""

    @property
    def name(self) -> str:
        """The name of its field; for an item of an array, with its index."""
        return self.path.rpartition(".")[2]

    def field(self, *names: str) -> Node | None:
        """Return the first of the fields *names* that is present and not null, or None.

        Raises:
            Refused: This is not an object.
        """
        fields = self.fields()
        for name in names:
            if fields.get(name) is not None:
                return Node(fields[name], self._inner(name))
        return None

    def required(self, *names: str) -> Node:
        """Return the first of the fields *names* that is present and not null.

        Raises:
            Refused: There is none, or this is not an object.
        """
        node = self.field(*names)
        if node is None:
            raise self.refused("is required", self._inner(names[0]))
        return node

    def numbers(self, *fields: tuple[str, ...]) -> list[tuple[str, float]]:
        """Return those of the *fields*, each given by all its names, that are present, as numbers.

        Raises:
            Refused: One is not a number, or this is not an object.
        """
        nodes = [self.field(*names) for names in fields]
        return [(node.name, node.number()) for node in nodes if node is not None]

    def is_set(self, name: str) -> bool:
        """Whether the field *name* is present and true.

        Raises:
            Refused: It is not a boolean, or this is not an object.
        """
        node = self.field(name)
        return node is not None and node.flag()

    def text_or(self, read: Callable[[Node], T]) -> tuple[str | T, ...]:
        """Return this string, or what *read* makes of each element of this array.

        Raises:
            Refused: This is neither.
        """
        if isinstance(self.value, str):
            return (self.value,)
        return tuple(read(element) for element in self.elements())

    def fields(self) -> Mapping[str, Any]:
        """Return the fields of this object.

        Raises:
            Refused: This is not an object.
        """
        value = self.value
        if not isinstance(value, dict):
            raise self.refused("must be an object")
        return cast("JsonObject", value)

    def elements(self) -> list[Node]:
        """Return the elements of this array, at least one.

        Raises:
            Refused: This is not an array, or empty.
        """
        if not is_array(self.value) or not self.value:
            raise self.refused("must be an array that is not empty")
        return self.items()

    def items(self) -> list[Node]:
        """Return the elements of this array, which may be none.

        Raises:
            Refused: This is not an array.
        """
        if not is_array(self.value):
            raise self.refused("must be an array")
        return [Node(value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def items_of(self, *names: str) -> list[Node]:
        """Return the elements of the array that is the first present of the fields *names*.

        Raises:
            Refused: It is not an array, or this is not an object.
        """
        node = self.field(*names)
        return [] if node is None else node.items()

    def count_of(self, *names: str, most: int) -> int:
        """Return the positive integer that is the first present of the fields *names*, or 1.

        Raises:
            Refused: It is not a positive integer, or larger than *most*, or this is not an object.
        """
        node = self.field(*names)
        return 1 if node is None else node.count(most)

    def text_of(self, *names: str) -> str:
        """Return the string that is the first present of the fields *names*, or "".

        Raises:
            Refused: It is not a string, or this is not an object.
        """
        node = self.field(*names)
        return "" if node is None else node.text()

    def text(self) -> str:
        """Return this string.

        Raises:
            Refused: This is not a string.
        """
        if not isinstance(self.value, str):
            raise self.refused("must be a string")
        return self.value

    def flag(self) -> bool:
        """Return this boolean.

        Raises:
            Refused: This is not a boolean.
        """
        if not isinstance(self.value, bool):
            raise self.refused("must be true or false")
        return self.value

    def number(self) -> float:
        """Return this number.

        Raises:
            Refused: This is not a number.
        """
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.refused("must be a number")
        return self.value

    def count(self, most: int | None = None) -> int:
        """Return this positive integer, which may be *most* at most.

        Raises:
            Refused: This is not a positive integer, or larger.
        """
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            raise self.refused("must be an integer of at least 1")
        if most is not None and self.value > most:
            raise self.refused(f"must be at most {most}")
        return self.value

    def base64(self) -> bytes:
        """Decode this base64, standard or URL-safe, padded or not.

        Raises:
            Refused: This is not base64.
        """
        return self.decoded(self.text())

    def decoded(self, text: str) -> bytes:
        """Decode base64 in *text*, which is a part of this value.

        Raises:
            Refused: It is not base64.
        """
        data = decode_base64(text)
        letters = text.rstrip("=")
        # Padding may be left out, but not be wrong.
        if data is None or len(text) - len(letters) not in (0, -len(letters) % 4):
            raise self.refused("must be base64")
        return data

    def refused(self, complaint: str, path: str | None = None) -> Refused:
        """Return a refusal with a *complaint* about this value, or about the one at *path*."""
        where = self.path if path is None else path
        return Refused(400, f"{where or 'the body'} {complaint}", field=where or None)

    def _inner(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name
