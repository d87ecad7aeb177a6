"""Running tests on a module that is not what its file says."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pickle
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from tempfile import TemporaryFile
from types import CodeType, ModuleType
from typing import NoReturn

import pytest
import syrupy

from .reach import REPORT, Recorder, Test, reporting

_LEFT_OPEN = (
    pytest.PytestUnraisableExceptionWarning,
    pytest.PytestUnhandledThreadExceptionWarning,
    ExceptionGroup,  # several of them
)
_PASSED, _FAILED_TO_START, _NOT_LOADED = 0, 98, 99
_SHORTEST_LIMIT = 15
"""Seconds that a test may take at least before it is ended."""
_LONGEST_START = 120
"""Seconds that pytest may take to find the tests."""


_KILLS: Counter[tuple[str, str]] = Counter()
"""How many mutants of a module a file of tests has killed in this process."""


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = auto()
    TIMED_OUT = auto()
    SURVIVED = auto()


class _Loader(importlib.abc.Loader):
    def __init__(self, path: Path, code: CodeType, **names: object) -> None:
        self.path = path
        self.code = code
        self.names = names
        self.used = False

    def exec_module(self, module: ModuleType) -> None:
        self.used = True
        module.__dict__.update(self.names)
        exec(self.code, module.__dict__)  # noqa: S102  that is what a loader does


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, loaders: Mapping[str, _Loader]) -> None:
        self.loaders = loaders

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        loader = self.loaders.get(fullname)
        if loader is None:
            return None
        return importlib.util.spec_from_file_location(fullname, loader.path, loader=loader)


def load_what_all_need() -> None:
    """Import the libraries that tests stand on, so that no trial has to."""
    for name in (
        "asyncio",
        "hypothesis.strategies",
        "requests",
        "sqlite3",
        "trio.testing",
    ):
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage at its end, and nothing of this is any


def reached(modules: Mapping[str, Path], test: str) -> dict[str, Test] | None:
    """Run *test* on the modules as they are, and return what each of its tests executes.

    Args:
        modules: The modules' files, by name.
        test: What pytest is to run.

    Returns:
        The tests by their ids, or None if one fails.
    """
    assert modules.keys().isdisjoint(sys.modules)
    with TemporaryFile() as told:
        child = os.fork()
        if child == 0:
            with _alone(_FAILED_TO_START):
                recorder = Recorder()
                loaders: dict[str, _Loader] = {}
                for name, path in modules.items():
                    code = compile(reporting(path), str(path.resolve()), "exec", dont_inherit=True)
                    loaders[name] = _Loader(path, code, **{REPORT: recorder.report_of(name)})
                sys.meta_path.insert(0, _Finder(loaders))
                _pytest(test, recorder)
                pickle.dump((recorder.tests, recorder.failures), told)
                told.flush()
        os.waitpid(child, 0)
        told.seek(0)
        found: dict[str, Test]
        failures: list[str]
        found, failures = pickle.load(told)  # noqa: S301  our own child wrote it
    # A test with a real deadline may fail beside others.
    if failures and not _passes(test):
        sys.stderr.write("\n\n".join([*failures, ""]))
        return None
    return found


def _passes(test: str) -> bool:
    child = os.fork()
    if child == 0:
        with _alone(_FAILED_TO_START):
            os._exit(_pytest(test, None, "-x"))
    return os.waitpid(child, 0)[1] == 0


def tried(
    module: str, path: Path, source: str, tests: Mapping[str, Mapping[str, float] | None]
) -> Outcome:
    """Run *tests*, one after the other, while *module* is made from *source*.

    It happens in children of this process, which must not have imported the module.

    Args:
        module: The module's name.
        path: Its file, which is not touched.
        source: What to take in place of the file's text.
        tests: What pytest is to run, the quickest first; the first failure ends it. For each, the
            ids to run, in this order, and how long each took; or None for all.
    """
    assert module not in sys.modules
    # Tests that look at tracebacks tell our frames by whole paths.
    code = compile(source, str(path.resolve()), "exec", dont_inherit=True)
    # What killed the mutants before this one is likely to kill it, too.
    is_loaded = not tests
    for test in sorted(tests, key=lambda test: -_KILLS[module, test]):
        outcome = _tried(module, _Loader(path, code), test, tests[test])
        is_loaded = is_loaded or outcome is not None
        if outcome in (Outcome.KILLED, Outcome.TIMED_OUT):
            _KILLS[module, test] += 1
            return outcome
    if not is_loaded:
        raise RuntimeError(f"no test of {' '.join(tests)} loads {module}")
    return Outcome.SURVIVED


def _tried(
    module: str, loader: _Loader, test: str, ids: Mapping[str, float] | None
) -> Outcome | None:
    """Run *test* on the mutant, and return what became of it, or None if *module* is not loaded."""
    child = os.fork()
    if child == 0:
        with _alone(_FAILED_TO_START):
            signal.alarm(_LONGEST_START)
            sys.meta_path.insert(0, _Finder({module: loader}))
            code = _pytest(test, _Choice(ids), "-x")
            os._exit(_NOT_LOADED if code == _PASSED and not loader.used else code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome.TIMED_OUT if os.WTERMSIG(status) == signal.SIGALRM else Outcome.KILLED
    match os.WEXITSTATUS(status):
        case 0:
            return Outcome.SURVIVED
        case 99:
            return None
        case pytest.ExitCode.NO_TESTS_COLLECTED if ids is not None:
            # The mutant changes what parametrized tests are called.
            return _tried(module, loader, test, None)
        case 98 | pytest.ExitCode.NO_TESTS_COLLECTED:
            raise RuntimeError(f"{test}: no test ran")
        case _:
            return Outcome.KILLED


class _Choice:
    """A plugin of pytest that runs some tests in the order given, each with a time limit.

    Args:
        ids: The tests, and how long each took; or None for all.
    """

    def __init__(self, ids: Mapping[str, float] | None) -> None:
        self._ids = ids

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the chosen tests, in their order."""
        signal.alarm(0)
        if self._ids is not None:
            order = {name: place for place, name in enumerate(self._ids)}
            items[:] = sorted(
                (item for item in items if item.nodeid in order),
                key=lambda item: order[item.nodeid],
            )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the process if the test takes much longer than on the unchanged module."""
        seconds = 0.0 if self._ids is None else self._ids[item.nodeid]
        signal.alarm(_SHORTEST_LIMIT + int(5 * seconds))


@contextmanager
def _alone(code: int) -> Generator[None, None, NoReturn]:
    """Give this child its own signals and no terminal, and end it with *code* at the end.

    What it raises goes to our stderr: nobody else would ever hear why no test ran.
    """
    errors = os.fdopen(os.dup(2), "w")
    try:
        # Some tests press Ctrl-C, which a shell lets jobs in the background ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        yield
    except BaseException:  # noqa: BLE001  it ends here
        traceback.print_exc(file=errors)
        errors.flush()
    finally:
        os._exit(code)


def _pytest(test: str, plugin: object | None, *more: str) -> int:
    """Run *test* with *plugin*, if any, and *more* options, and return pytest's exit code."""
    # Plugins that happen to be installed are slow to load; the tests here need one.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # The project's own options need another.
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", *more]
    plugins = [syrupy] if plugin is None else [plugin, syrupy]
    try:
        return int(pytest.main([*options, "-m", "not nightly", test], plugins=plugins))
    except _LEFT_OPEN:
        # What a failing test leaves open is only noticed when pytest ends, which raises this.
        return pytest.ExitCode.TESTS_FAILED
