"""Which statements of a module each test executes: a mutant is tried under those tests alone.

The tests run once on modules that behave as ever, but report each statement of a function before it
is executed. What a test starts afresh in another process loads the module from its file, so no
mutant is noticed there. A test that forks this process is run for every mutant of the modules that
its file executes, because what the child reports is lost.
"""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

REPORT = "__report__"
"""What a reporting module calls with the line of a statement."""


@dataclass
class Test:
    """One test as it ran on the reporting modules.

    Args:
        seconds: How long it took.
        lines: The statements that it executed, by module and first line.
        forks: Whether it forked the process.
    """

    seconds: float = 0.0
    lines: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    forks: bool = False


class Recorder:
    """A plugin of pytest that records what each test executes."""

    def __init__(self) -> None:
        self.tests: dict[str, Test] = {}
        self.failures: list[str] = []
        self._running = Test()
        os.register_at_fork(before=self._forks)

    def report_of(self, module: str) -> Callable[[int], None]:
        """Return what *module* reports its statements to."""

        def report(line: int) -> None:
            self._running.lines.setdefault(module, set()).add(line)

        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record one test."""
        test = self._running = self.tests[item.nodeid] = Test()
        began = time.monotonic()
        try:
            return (yield)
        finally:
            test.seconds = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, with its story."""
        if report.failed:
            self.failures.append(f"{report.nodeid} ({report.when})\n{report.longreprtext}")

    def _forks(self) -> None:
        self._running.forks = True


def reporting(path: Path) -> ast.Module:
    """Return the module at *path*, which reports each statement of its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statements in list(_blocks(tree)):
        marked: list[ast.stmt] = []
        for statement in statements:
            if not _is_text(statement):  # a docstring stays the first
                call = ast.Call(ast.Name(REPORT, ast.Load()), [ast.Constant(statement.lineno)], [])
                mark = ast.copy_location(ast.Expr(call), statement)
                mark.end_lineno, mark.end_col_offset = mark.lineno, mark.col_offset
                marked.append(ast.fix_missing_locations(mark))
            marked.append(statement)
        statements[:] = marked
    return tree


def chosen(
    tests: Mapping[str, Test], module: str, path: Path, first: int, last: int
) -> dict[str, float]:
    """Return the tests that execute a mutant of *module*, the quickest first, and their times.

    What does not stand in a function is executed where the module is imported, for all tests.

    Args:
        tests: The tests by their ids.
        module: The module's name.
        path: Its file.
        first: The first line of what the mutant changes.
        last: The last line of it.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [
        statement.lineno
        for statements in _blocks(tree)
        for statement in statements
        if statement.lineno <= first and last <= (statement.end_lineno or 0)
    ]
    loads = any(module in test.lines for test in tests.values())
    found = {
        key: test.seconds
        for key, test in tests.items()
        if (test.forks and loads) or not lines or max(lines) in test.lines.get(module, ())
    }
    return dict(sorted(found.items(), key=lambda one: one[1]))


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield each list of statements within a function, once."""
    seen: set[int] = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and id(node) not in seen:  # a lambda's is none
                    yield cast("list[ast.stmt]", block)
            seen.add(id(node))


def _is_text(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant(str())):
            return True
        case _:
            return False
