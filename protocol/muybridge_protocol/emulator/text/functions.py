"""The functions that a request declares, and which of them the answer calls.

A model would choose by the prompt. Here the choice is the same each time: each function is called
once after the user's last turn, in the order of their declaration, and then the answer is a text.
If the request demands a call, the last function is called again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from muybridge_protocol.emulator.text.json_values import value_for
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.records.json import InvalidJson, as_object, readable


@attrs.frozen
class Function:
    """A function that a request declares.

    Args:
        name: Its name.
        parameters: The JSON schema of its arguments, or None if it has none.
    """

    name: str
    parameters: Node | None = None

    def arguments(self) -> Mapping[str, Any]:
        """Return arguments that satisfy the schema.

        Raises:
            Refused: None were found.
        """
        if self.parameters is None:
            return {}
        record = as_object(make_value(self.parameters))
        if record is None:
            raise self.parameters.refused("must be the schema of an object")
        return record


@attrs.frozen
class Functions:
    """The functions that an answer may call.

    Args:
        allowed: Those functions, in the order of their declaration.
        demanded: Whether it has to call one.
    """

    allowed: tuple[Function, ...] = ()
    demanded: bool = False

    def only(self, names: Iterable[Node]) -> Functions:
        """Return these functions without those that are not in *names*.

        Raises:
            Refused: A name is not that of a function.
        """
        declared = {function.name for function in self.allowed}
        wanted: set[str] = set()
        for node in names:
            if node.text() not in declared:
                raise node.refused("must be the name of a declared function")
            wanted.add(node.text())
        allowed = [function for function in self.allowed if function.name in wanted]
        return attrs.evolve(self, allowed=tuple(allowed))

    def demand(self) -> Functions:
        """Return these functions, one of which has to be called."""
        return attrs.evolve(self, demanded=True)

    def under(self, mode: str, *, demanding: str) -> Functions:
        """Return the functions that a request allows by its *mode*.

        Args:
            mode: The mode: "none", the one that demands a call, or any other.
            demanding: The name that the protocol has for the one that demands a call.
        """
        if mode == "none":
            return Functions()
        return self.demand() if mode == demanding else self

    def next(self, called: Iterable[str]) -> Function | None:
        """Return the function to call after those *called*, or None."""
        before = set(called)
        for function in self.allowed:
            if function.name not in before:
                return function
        return self.allowed[-1] if self.demanded and self.allowed else None


def make_value(schema: Node) -> Any:
    """Return a value that satisfies *schema*.

    Raises:
        Refused: None was found.
    """
    try:
        return value_for(schema.value)
    except InvalidJson as error:
        why = readable(str(error), 200)
        message = f"has no value that the local service finds ({why}); script the answer instead"
        raise schema.refused(message) from None
