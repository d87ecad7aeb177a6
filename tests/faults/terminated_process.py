"""Programs in processes of their own, which come to a point and are sent a signal there.

Where no server knows the point, the program sends the signal to itself.
"""

from __future__ import annotations

import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from processes import Nursery, serve


@attrs.frozen
class Ended:
    """A program that has ended, and what it printed."""

    code: int
    out: str
    err: str


class Programs:
    """Runs programs, one at a time.

    Args:
        nursery: What forks them.
    """

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery

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
        return self._start(
            "command", folder, words=words, env=dict(env), point=point, number=number
        )

    def trio_batch(self, signal_name: str, url: str, folder: Path, trust: Path) -> int:
        """Start a batch under trio in *folder*, and return its process id.

        Args:
            signal_name: The signal whose handler raises.
            url: Where the service is.
            folder: Where the batch's folder is.
            trust: The file of the authority that it trusts.
        """
        return self._start("trio batch", folder, signal_name=signal_name, url=url, trust=str(trust))

    def wait(self) -> Ended:
        """Wait for the program's end."""
        code = self._nursery.wait()
        out, err = ((self._folder / name).read_text("utf-8") for name in ("stdout", "stderr"))
        return Ended(code, out, err)

    def _start(self, program: str, folder: Path, **order: object) -> int:
        self._folder = folder
        return self._nursery.start(program=program, folder=str(folder), order=order)


def _run(program: str, folder: str, order: dict[str, Any]) -> int:
    os.chdir(folder)
    for descriptor, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    return _PROGRAMS[program](**order)


def _command(words: list[str], env: dict[str, str], point: str, number: int) -> int:
    import pytest

    import moments
    from muybridge.cli import main

    from .striking import MainThread, Strike

    os.environ.update(env)
    if point:
        patch = pytest.MonkeyPatch()
        main_thread = MainThread(patch)
        to_batch = words[0] == "batch"
        strike = Strike(lambda: main_thread.send(number, to_batch=to_batch))
        moments.at(point, "requests").strike(strike, put=patch.setattr)
    sys.argv = ["muybridge", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _trio_batch(signal_name: str, url: str, trust: str) -> int:
    from client.alarms import alarm_raises

    from .terminated_programs import Program, raised_by
    from .terminations import TERM

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
    serve(_run, "muybridge.cli.commands", "faults.striking", "faults.terminated_programs")
