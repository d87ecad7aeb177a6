"""Running tests on a module that is not what its file says."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

import pytest

_PASSED, _FAILED_TO_START, _NOT_LOADED = 0, 98, 99


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = auto()
    TIMED_OUT = auto()
    SURVIVED = auto()


class _Loader(importlib.abc.Loader):
    def __init__(self, path: Path, code: CodeType) -> None:
        self.path = path
        self.code = code
        self.used = False

    def exec_module(self, module: ModuleType) -> None:
        self.used = True
        exec(self.code, module.__dict__)  # noqa: S102  that is what a loader does


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, loader: _Loader) -> None:
        self.name = name
        self.loader = loader

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.loader.path, loader=self.loader
        )


def load_what_all_need() -> None:
    """Import the libraries that tests stand on, so that no trial has to."""
    for name in (
        "hypothesis.strategies",
        "requests",
        "sqlite3",
        "syrupy",
        "trio.testing",
    ):
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage at its end, and nothing of this is any


def tried(module: str, path: Path, source: str, tests: Sequence[str], limit: int) -> Outcome:
    """Run *tests*, one after the other, while *module* is made from *source*.

    It happens in children of this process, which must not have imported the module.

    Args:
        module: The module's name.
        path: Its file, which is not touched.
        source: What to take in place of the file's text.
        tests: What pytest is to run; the first failure ends it.
        limit: Seconds after which one of them is given up.
    """
    assert module not in sys.modules
    # Tests that look at tracebacks tell our frames by whole paths.
    code = compile(source, str(path.resolve()), "exec", dont_inherit=True)
    for test in tests:
        outcome = _tried(module, _Loader(path, code), test, limit)
        if outcome is not Outcome.SURVIVED:
            return outcome
    return Outcome.SURVIVED


def _tried(module: str, loader: _Loader, test: str, limit: int) -> Outcome:
    child = os.fork()
    if child == 0:
        _be_tried(module, loader, test, limit)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome.TIMED_OUT if os.WTERMSIG(status) == signal.SIGALRM else Outcome.KILLED
    match os.WEXITSTATUS(status):
        case 0:
            return Outcome.SURVIVED
        case 98 | 99 | pytest.ExitCode.NO_TESTS_COLLECTED:
            raise RuntimeError(f"{test}: no test ran, or none loads {module}")
        case _:
            return Outcome.KILLED


def _be_tried(module: str, loader: _Loader, test: str, limit: int) -> NoReturn:
    """Run the tests, and end this process."""
    code = _FAILED_TO_START
    try:
        signal.alarm(limit)
        # Some tests press Ctrl-C, which a shell lets jobs in the background ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        sys.meta_path.insert(0, _Finder(module, loader))
        # Plugins that happen to be installed are slow to load, and no test here needs one.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        # The project's own options need such a plugin.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-m", "not nightly"]
        code = int(pytest.main([*options, test]))
        if code == _PASSED and not loader.used:
            code = _NOT_LOADED
    finally:
        os._exit(code)
