"""Says what was probably meant, where a class is called with an unknown argument."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import attrs

C = TypeVar("C")


def close_to(name: str, names: Sequence[str]) -> str:
    """Return a question for the one of *names* that *name* is probably a misspelling of, or ""."""
    from difflib import get_close_matches

    plain = {each.replace("_", ""): each for each in names}
    close = get_close_matches(name.replace("_", "").lower(), plain, n=1)
    return f"did you mean {plain[close[0]]}?" if close else ""


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
                hint = (
                    close_to(name, cast("list[str]", names)) or f"use {', '.join(map(str, names))}"
                )
                raise TypeError(f"{made.__name__} has no argument {name!r}; {hint}")
        init(self, *values, **fields)

    type.__setattr__(made, "__init__", checked)
    return made
