"""Says what was probably meant, where a class or a method is called with an unknown argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import attrs

C = TypeVar("C")

_IS_COROUTINE = 0x80
"""The flag of the code of an `async def`."""


def close_to(name: str, names: Sequence[str]) -> str:
    """Return a question for the one of *names* that *name* is probably a misspelling of, or ""."""
    from difflib import get_close_matches  # noqa: PLC0415  needed only after a mistake

    plain = {known.replace("_", ""): known for known in names}
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


def placing_arguments(
    place_of: Callable[[str, str, Sequence[str]], str],
) -> Callable[[type[C]], type[C]]:
    """Return a decorator that makes a class's public methods say where unknown arguments go.

    Type checkers, editors and `inspect.signature` still see the methods as they are.

    Args:
        place_of: Returns where an argument goes, as the end of a sentence: for the name of the
            method, that of the argument, and those that the method has.
    """

    def decorate(made: type[C]) -> type[C]:
        for name, method in list(vars(made).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(made, name, _placing(method, place_of))
        return made

    return decorate


def _placing(
    method: FunctionType, place_of: Callable[[str, str, Sequence[str]], str]
) -> Callable[..., Any]:
    code: CodeType = method.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    def check(given: dict[str, Any]) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            name = method.__name__
            places = (f"no argument {one!r}; {place_of(name, one, known)}" for one in unknown)
            raise TypeError(f"{name}() has {'. It has '.join(places)}. Nothing was sent.")

    # `inspect.iscoroutinefunction` must still be true where it was.
    if code.co_flags & _IS_COROUTINE:

        @wraps(method)
        async def awaited(*values: Any, **given: Any) -> Any:
            check(given)
            return await method(*values, **given)

        return awaited

    @wraps(method)
    def called(*values: Any, **given: Any) -> Any:
        check(given)
        return method(*values, **given)

    return called
