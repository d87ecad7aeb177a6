"""Which lines of a module each test executes: a mutant is tried under the tests that execute it.

The tests run once on the unchanged modules, traced. What a test starts afresh in another process
loads the unchanged module, so no mutant is noticed there. A test that forks this process is run for
every mutant, because the trace of the child is lost.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


@dataclass
class Test:
    """One test as it ran on the unchanged modules.

    Args:
        seconds: How long it took, with the trace.
        lines: What it executed, by the path of the module.
        forks: Whether it forked the process.
    """

    seconds: float = 0.0
    lines: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    forks: bool = False


class Recorder:
    """A plugin of pytest that records what each test executes.

    Args:
        paths: The modules' files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.tests: dict[str, Test] = {}
        self.failed = False
        self._paths = {str(path.resolve()) for path in paths}
        self._running = Test()
        os.register_at_fork(before=self._forks)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record one test."""
        test = self._running = self.tests[item.nodeid] = Test()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            test.seconds = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed = self.failed or report.failed

    def _forks(self) -> None:
        self._running.forks = True

    def _trace(self, frame: FrameType, *_: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._paths else None

    def _line(self, frame: FrameType, *_: Any) -> Any:
        self._running.lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return self._line


def chosen(tests: Mapping[str, Test], path: Path, lines: range) -> dict[str, float]:
    """Return the tests that execute one of *lines*, the quickest first, and how long each takes.

    What does not stand in a function is executed where the module is imported, which one test does
    for all. So does a line that the compiler leaves out.
    """
    name = str(path.resolve())
    if _is_in_function(path.read_text(encoding="utf-8"), lines):
        found = [
            key
            for key, test in tests.items()
            if test.forks or not test.lines.get(name, set[int]()).isdisjoint(lines)
        ]
    else:
        found = [key for key, test in tests.items() if test.forks or name in test.lines]
    found.sort(key=lambda key: tests[key].seconds)
    return {key: tests[key].seconds for key in found}


def _is_in_function(source: str, lines: range) -> bool:
    return any(
        node.body[0].lineno <= lines[0] and lines[-1] <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
