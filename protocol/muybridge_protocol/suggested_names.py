"""Suggests the argument that was probably meant, where a class is called with an unknown one."""

from __future__ import annotations

from functools import wraps
from typing import Any, TypeVar, cast

import attrs

C = TypeVar("C")


def suggesting_names(made: type[C]) -> type[C]:
    """Make the `TypeError` for an unknown argument of *made*, an attrs class, say what is known.

    Editors and `inspect.signature` still see the signature of the class.
    """
    init = cast("Any", made).__init__
    names = [field.alias for field in attrs.fields(cast("type[attrs.AttrsInstance]", made))]

    @wraps(init)
    def checked(self: object, /, *values: Any, **fields: Any) -> None:
        for name in fields:
            if name not in names:
                from difflib import get_close_matches  # noqa: PLC0415  needed only after a mistake

                close = get_close_matches(name, cast("list[str]", names), n=1)
                hint = f"did you mean {close[0]}?" if close else f"use {', '.join(map(str, names))}"
                raise TypeError(f"{made.__name__} has no argument {name!r}; {hint}")
        init(self, *values, **fields)

    type.__setattr__(made, "__init__", checked)
    return made
