"""Runs the contract of `cases.py` over the tables that each family's class holds."""

from __future__ import annotations

from typing import Any, cast

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in metafunc.fixturenames:
        table: Any = getattr(cast("Any", metafunc).cls, f"{name}_table", None)
        if table is not None:
            cases: list[object] = table()
            metafunc.parametrize(name, cases, ids=[str(case) for case in cases])
