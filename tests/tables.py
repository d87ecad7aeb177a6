"""Tables of cases: one test checks every row, and its failure names each row that is wrong."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

Test = Callable[..., None]

_SHOWN = 120  # characters of a value


def table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Return a decorator that calls a test with each of *rows*, as `parametrize` would.

    Several of them call it with each combination. A wrong row does not hide the next one. The rows
    share the fixtures of the test, so that none of these may remember a row.

    Args:
        names: The parameter of the test, or several.
        rows: The values of the parameter, or tuples of one value for each.
    """
    columns = (names,) if isinstance(names, str) else names
    given = [
        dict(zip(columns, (row,) if isinstance(names, str) else row, strict=True)) for row in rows
    ]

    def decorate(test: Test) -> Test:
        check: Test = getattr(test, "checks_row", test)
        dimensions = [given, *getattr(test, "dimensions", [])]
        taken = {name for rows in dimensions for row in rows for name in row}

        @functools.wraps(check)
        def whole(**fixtures: Any) -> None:
            combined = [_joined(parts) for parts in itertools.product(*dimensions)]
            assert combined, "the table has no row"
            wrong: dict[str, BaseException] = {}
            for row in combined:
                try:
                    check(**fixtures, **row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # told below
                    wrong[_shown(row)] = error
            if wrong:
                told = "".join(f"\n  {row}: {error!r:.{_SHOWN}}" for row, error in wrong.items())
                of_all = f"{len(wrong)} of {len(combined)} rows are wrong:{told}\n"
                raise BaseExceptionGroup(of_all, list(wrong.values()))

        signature = inspect.signature(check)
        fixtures = [each for each in signature.parameters.values() if each.name not in taken]
        whole.__dict__ |= {
            "checks_row": check,
            "dimensions": dimensions,
            "__signature__": signature.replace(parameters=fixtures),
        }
        return whole

    return decorate


def _joined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _shown(row: Mapping[str, Any]) -> str:
    named = {name: getattr(value, "__name__", value) for name, value in row.items()}
    return ", ".join(f"{name}={value!a:.{_SHOWN}}" for name, value in named.items())
