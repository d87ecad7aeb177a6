"""Says where an argument belongs that a client or one of its calls does not take.

The clients' calls end with `**_misplaced: Never`. To a type checker, that means: no other
arguments. A wrapper could do the same, but a signal could strike between its return and that of the
call, and lose the id of a task that was paid for.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.suggested_names import close_to

_CALLS: Final = ("run", "run_all", "save", "check", "create", "wait", "watch", "get")
"""The calls whose arguments are looked through, in this order."""


def refuse_misplaced(client: type, call: str, arguments: Mapping[str, object]) -> None:
    """Refuse *arguments*, which *call* does not take.

    Args:
        client: The client's class.
        call: The name of its method, or "" for the client itself.
        arguments: What was given in excess, by name.

    Raises:
        TypeError: Always; the message says where the first of them belongs.
    """
    name = next(iter(arguments))
    known = {each: _parameters(client, each) for each in _CALLS}
    own = _parameters(client, call)
    others = [f"client.{each}(..., {name}=...)" for each, names in known.items() if name in names]
    if close := close_to(name, own):
        hint = close
    elif call and name in _parameters(client, ""):
        hint = f"write {client.__name__}({name}=...)."
    elif others:
        hint = f"write {others[0]}."
    elif any(name == field.name for family in FAMILIES.values() for field in family.fields):
        hint = f'it is a field of requests: write client.run("imga", {{"{name}": ...}}).'
    else:
        hint = f"use {', '.join(own)}."
    called = call or client.__name__
    raise TypeError(f"{called} has no argument {name!r}; {hint} Nothing was sent.")


def _parameters(client: type, call: str) -> list[str]:
    """Return the names of the arguments of *call*, or of *client* itself."""
    found = inspect.signature(getattr(client, call) if call else client).parameters
    return [name for name in found if name != "self" and not name.startswith("_")]
