"""Programs in processes of their own, which come to a point and are sent a signal there.

A nursery process loads the library once and forks a program whenever it is told to, which takes
milliseconds. Where no server knows the point, the program sends the signal to itself.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

_TESTS = Path(__file__).resolve().parents[1]
_PLACES = [_TESTS, *(_TESTS.parent / name for name in ("protocol", "transports"))]


@attrs.frozen
class Ended:
    """A program that has ended, and what it printed."""

    code: int
    out: str
    err: str


class Nursery:
    """Forks programs, one at a time, as long as the context lasts."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "faults.terminated_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _PLACES))},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def command(
        self,
        words: list[str],
        folder: Path,
        env: Mapping[str, str],
        point: str = "",
        number: int = 0,
    ) -> int:
        """Start the command in *folder*, and return its process id.

        Args:
            words: Its arguments.
            folder: The folder to run it in.
            env: What it finds in its environment.
            point: Where it sends itself a signal, or "".
            number: Which one.
        """
        order = {"words": words, "env": dict(env), "point": point, "number": number}
        return self._start("command", folder, order)

    def trio_batch(self, signal_name: str, url: str, folder: Path, trust: Path) -> int:
        """Start a batch under trio in *folder*, and return its process id.

        Args:
            signal_name: The signal whose handler raises.
            url: Where the service is.
            folder: Where the batch's folder is.
            trust: The file of the authority that it trusts.
        """
        return self._start(
            "trio batch", folder, {"signal_name": signal_name, "url": url, "trust": str(trust)}
        )

    def wait(self) -> Ended:
        """Wait for the program's end."""
        code = self._read()
        out, err = ((self._folder / name).read_text("utf-8") for name in ("stdout", "stderr"))
        return Ended(code, out, err)

    def _start(self, program: str, folder: Path, order: Mapping[str, object]) -> int:
        self._folder = folder
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([program, str(folder), order]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def _main() -> None:
    for module in ("muybridge.cli.commands", "faults.striking", "faults.terminated_programs"):
        import_module(module)  # once, and not in each program
    # Where tests run in the background, Ctrl-C is ignored, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for line in sys.stdin:
        forked = os.fork()
        if forked == 0:
            code = 70
            try:
                code = _run(*json.loads(line))
            except BaseException:  # noqa: BLE001  the test reads it
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(forked, flush=True)  # noqa: T201  read by the test
        _, status = os.waitpid(forked, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201  the same


def _run(program: str, folder: str, order: dict[str, Any]) -> int:
    os.chdir(folder)
    for descriptor, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    return _PROGRAMS[program](**order)


def _command(words: list[str], env: dict[str, str], point: str, number: int) -> int:
    import pytest  # noqa: PLC0415  only in the child

    from muybridge.cli import main  # noqa: PLC0415  the same

    from .striking import BLOCKING, MainThread, Strike, hook  # noqa: PLC0415  the same

    os.environ.update(env)
    if point:
        patch = pytest.MonkeyPatch()
        main_thread = MainThread(patch)
        to_batch = words[0] == "batch"
        hook(patch, BLOCKING[point], Strike(lambda: main_thread.send(number, to_batch=to_batch)))
    sys.argv = ["muybridge", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _trio_batch(signal_name: str, url: str, trust: str) -> int:
    from client.alarms import alarm_raises  # noqa: PLC0415  only in the child

    from .terminated_programs import Program, raised_by  # noqa: PLC0415  the same
    from .terminations import TERM  # noqa: PLC0415  the same

    error = raised_by(signal_name)
    program = Program("trio batch", url, Path.cwd(), ssl.create_default_context(cafile=trust))
    with alarm_raises(error, signal.SIGTERM if signal_name == TERM else signal.SIGALRM):
        program.run()
    # It may strike trio's own code, which then wraps it.
    print(_holds(program.error, error), repr(program.error))  # noqa: T201  read by the test
    return 0


def _holds(caught: BaseException | None, error: BaseException) -> bool:
    """Whether *caught* is *error*, or is raised from it, or groups it."""
    if caught is None or caught is error:
        return caught is error
    grouped: tuple[BaseException, ...] = getattr(caught, "exceptions", ())
    return any(_holds(one, error) for one in (caught.__cause__, *grouped))


_PROGRAMS: dict[str, Callable[..., int]] = {"command": _command, "trio batch": _trio_batch}


if __name__ == "__main__":
    _main()
