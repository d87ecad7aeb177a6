"""How much of the nightly run's work every run does."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import settings


def examples(number: int, *, nightly: int | None = None) -> int:
    """Return *number*, or in the nightly run *nightly*, by default the number of its profile."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return nightly or settings().max_examples
    return number


def diagonal(*columns: Iterable[Any]) -> list[Any]:
    """Return all combinations of one value from each column; most are for the nightly run.

    Every run tries as many as the longest column has values, and with them each value.
    """
    values = [list(column) for column in columns]
    every_run = {
        tuple(
            (step + number * (step // len(column))) % len(column)
            for number, column in enumerate(values)
        )
        for step in range(max(map(len, values)))
    }
    return [
        pytest.param(
            *(column[at] for column, at in zip(values, place, strict=True)),
            id="-".join(_shown(column[at]) for column, at in zip(values, place, strict=True)),
            marks=() if place in every_run else pytest.mark.nightly,
        )
        for place in itertools.product(*(range(len(column)) for column in values))
    ]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, cast("tuple[object, ...]", value)))
    return str(value)
