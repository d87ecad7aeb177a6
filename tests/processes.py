"""Python in processes of its own: started afresh, or forked from one that has loaded the library.

A fork takes milliseconds, a start half a second. Tests use `Nursery`. The program that it names
calls `serve` with the function that each fork calls.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_TESTS = Path(__file__).resolve().parent
_PLACES = [_TESTS, *(_TESTS.parent / name for name in ("protocol", "transports"))]
_FAILED = 70


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment with *more*; in it Python finds this tree and its tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _PLACES)), **more}


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Send a signal to *process*, a Python program, once its main thread sleeps.

    Python checks for signals before it enters a system call. If one arrives in between, Python
    handles it only after the call returns, which a test may be waiting for.
    """
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "RD":
        pass
    process.send_signal(number)


def limit_files(size: int) -> None:
    """Limit each file that this process writes to *size* bytes, as a full disk does.

    Byte code is not written from now on: Python would truncate it, and every later process that
    loads it would fail.
    """
    import resource  # which Windows lacks

    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Nursery:
    """Forks one process after another while the context lasts.

    Args:
        module: The program that calls `serve`.
        **more: More of its environment.
    """

    def __init__(self, module: str, **more: str) -> None:
        self._module = module
        self._environment = environment(**more)
        self._child: int | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-W", "error", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()
        self._process.communicate()

    def start(self, **order: Any) -> int:
        """Fork a process that does *order*, and return its id."""
        self._end()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._child = int(self._read())
        return self._child

    def wait(self) -> Any:
        """Return what the order returned, its exit code, or minus the signal that ended it."""
        told = self._read()
        self._child = None
        return told

    def run(self, **order: Any) -> Any:
        """Do *order* in a process forked for it, and return as `wait` does."""
        self.start(**order)
        return self.wait()

    def _end(self) -> None:
        """End the process that a failed test has not waited for."""
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            self.wait()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def serve(run: Callable[..., Any], *modules: str) -> None:
    """Call *run* in a fork for each order of a nursery, until there are no more.

    Args:
        run: Does an order, and returns what JSON can hold.
        *modules: What to import once, and not in each fork.
    """
    for module in modules:
        import_module(module)
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = _FAILED
            try:
                os.close(reading)
                os.write(writing, json.dumps(run(**json.loads(line))).encode())
                code = 0
            except BaseException:  # noqa: BLE001  pytest shows it where the test fails
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.close(writing)
        _tell(child)
        with os.fdopen(reading, encoding="utf-8") as answer:
            told = answer.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        _tell(code or json.loads(told))


def _tell(value: object) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  the nursery reads it
