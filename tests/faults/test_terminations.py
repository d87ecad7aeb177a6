"""Whatever ends a program from outside, its one paid request is accounted for.

The id is reported, or nothing was sent, or it may have been accepted and that is what is said.
The table of what strikes, when, and under which driver is in `terminations.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shlex
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Any

import attrs
import pytest
import trio
import trustme

import moments
from batch.billing import PNG
from batch.runner_process import KEY, horses
from client.alarms import alarm_raises
from client.canaries import everything
from muybridge import batch
from muybridge.batch import Report, Stage
from muybridge.batch.running.notes import HOW_TO_GO_ON
from muybridge.drivers.notes import NOT_SENT, UNDER_WAY, accepted
from processes import Nursery
from transport.certificates import client_context, server_context

from .striking import HoldingServer, MainThread, Strike, told_by_hook
from .terminated_process import Ended, Programs
from .terminated_programs import Program, raised_by
from .terminations import (
    ALARMS,
    ASYNCIO,
    CANCELLED,
    COMMANDS,
    CTRL_C,
    DRIVERS,
    KEYBOARD,
    LIBRARY,
    MISSING,
    POINTS,
    RULES,
    SIGNALS,
    TERM,
    TRIO,
    Cell,
    Outcome,
    cells,
    outcomes,
    reasons,
)

if os.name != "posix":  # pragma: no cover  Windows
    pytest.skip("there are no such signals", allow_module_level=True)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    """What runs programs in processes of their own."""
    with Nursery("faults.terminated_process") as nursery:
        yield Programs(nursery)


@attrs.frozen
class Trust:
    """What TLS connections are made with: what the server shows, and what the client trusts."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    file: Path

    def of_server(self, cell: Cell) -> ssl.SSLContext | None:
        """Return what the server of *cell* makes handshakes with, if it does."""
        return self.server if cell.point == "handshake" else None


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    """A certificate of the server's, and the authority behind it."""
    authority = trustme.CA()
    file = tmp_path_factory.mktemp("trust") / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    return Trust(server_context(authority, "127.0.0.1"), client_context(authority), file)


EVERY = list(itertools.product(SIGNALS, POINTS, DRIVERS))


def test_every_combination_is_a_cell_or_has_a_reason() -> None:
    """Each signal at each point under each driver has one outcome, or a reason not to exist."""
    for combination in EVERY:
        assert reasons(*combination) or len(outcomes(*combination)) == 1, combination


def test_every_line_of_the_table_says_something() -> None:
    """Each reason is the only one of some combination, and each rule is some cell's."""
    for missing in MISSING:
        assert [missing.reason] in [reasons(*each) for each in EVERY], missing.reason
    for rule in RULES:
        used = [c for c in cells() if c.signal in rule.signals and c.driver in rule.drivers]
        assert {c.point for c in used} & set(rule.outcomes), rule


def _each(which: Callable[[Cell], bool]) -> list[Any]:
    """Return the cells that are so; those marked nightly differ little from others."""
    return [
        pytest.param(cell, id=str(cell), marks=pytest.mark.nightly if cell.is_nightly else ())
        for cell in cells()
        if which(cell)
    ]


def number_of(cell: Cell) -> int:
    """Return the number of the cell's signal."""
    if cell.signal in ALARMS:
        return signal.SIGALRM
    return signal.Signals[cell.signal]


@pytest.mark.parametrize("cell", _each(lambda c: c.driver not in COMMANDS and not c.breaks_loop))
def test_library(cell: Cell, tmp_path: Path, trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a call or a batch comes out as itself, with what is known; nothing is doubled."""
    error = raised_by(cell.signal)
    with ExitStack() as stack:
        patch = stack.enter_context(monkeypatch.context())
        main = MainThread(patch)
        by_hook = told_by_hook(cell.signal, cell.point)

        def act() -> None:
            if cell.signal == KEYBOARD:
                raise error
            if not by_hook:
                program.wait_until_idle()
            if cell.signal == CANCELLED:
                program.cancel()
            else:
                main.send(number_of(cell), to_batch=cell.driver == "batch")

        strike = Strike(act)
        at_server: Callable[[], object] = strike
        if by_hook:
            moments.at(cell.point, binding(cell.driver)).strike(strike, put=patch.setattr)
            at_server = strike.wait
        server = stack.enter_context(HoldingServer(cell.point, at_server, trust.of_server(cell)))
        program = Program(cell.driver, server.url, tmp_path, trust.client)
        if cell.signal in (TERM, *ALARMS):
            stack.enter_context(alarm_raises(error, number_of(cell)))
        program.run()
        strike.wait()
        server.release()
        patch.undo()
        caught = program.error
        assert caught is not None
        check_error(cell, caught, error)
        (check_call if cell.driver in LIBRARY else check_batch)(cell, program, server)


def binding(driver: str) -> str:
    """Return the driver of single calls that a driver of the table stands on."""
    if driver in ASYNCIO:
        return "asyncio"
    return "trio" if driver in TRIO else "requests"


def check_error(cell: Cell, caught: BaseException, error: BaseException) -> None:
    """Check that what came out is the very exception."""
    assert KEY not in everything(caught)
    if cell.signal == CTRL_C:
        assert type(caught) is KeyboardInterrupt
    elif cell.signal == CANCELLED:
        # A batch's workers are cancelled each.
        cancelled = trio.Cancelled | BaseExceptionGroup | asyncio.CancelledError
        assert isinstance(caught, cancelled)
    else:
        assert caught is error
        assert error.args[-1] == "time is up"


def check_call(cell: Cell, program: Program, server: HoldingServer) -> None:
    """Check what is known of a call, and that its task can be resumed."""
    ids = [task for tasks in server.accepted.values() for task in tasks]
    said = program.said
    match cell.outcome:
        case Outcome.ID:
            assert [task.id for task in program.told] == ids
            assert server.posts == 1
            if cell.point != "download":
                assert accepted(program.told[0]) in said
            with program.client() as client:
                path = client.download(client.wait(ids[0]), program.folder / "horse.png")
            assert path.read_bytes().startswith(PNG)
        case Outcome.UNSENT:
            assert (server.posts, said) == (0, NOT_SENT)
        case _:
            assert server.posts <= 1
            assert said == UNDER_WAY


STATES = {
    Outcome.ID: (Stage.SUBMITTED, Stage.COMPLETED),
    Outcome.UNSENT: (Stage.QUEUED,),
    Outcome.AMBIGUOUS: (Stage.AMBIGUOUS,),
}


ENDS = {
    Outcome.AMBIGUOUS: (Stage.AMBIGUOUS,),
    Outcome.UNSENT_OR_AMBIGUOUS: (Stage.AMBIGUOUS, Stage.DOWNLOADED),
}
"""What becomes of the item that was struck in another run, where that is not its download."""


def check_batch(cell: Cell, program: Program, server: HoldingServer) -> None:
    """Check what the store and the exception say, and that another run makes no double."""
    assert program.error is not None
    said = program.said
    check_store(cell, program.out, server)
    assert (UNDER_WAY in said) is (cell.outcome is Outcome.AMBIGUOUS)
    assert not (UNDER_WAY in said and HOW_TO_GO_ON in said)
    if cell.outcome is Outcome.AMBIGUOUS:
        (ambiguous,) = batch.status(program.out).ambiguous
        assert type(program.error).__name__ in (ambiguous.reason or "")
    check_rerun(cell, program, server)


def check_store(cell: Cell, out: Path, server: HoldingServer) -> None:
    """Check that the store says of the item that was struck what is known."""
    struck, waiting = batch.status(out).entries
    assert struck.state in STATES[cell.outcome]
    assert waiting.state is Stage.QUEUED
    assert server.posts <= (cell.outcome is not Outcome.UNSENT)
    if cell.outcome is Outcome.ID:
        assert [struck.task_id] == server.accepted["horse 1"]


def check_rerun(cell: Cell, program: Program, server: HoldingServer) -> None:
    """Check that another run does what is left, and nothing twice."""
    with program.client() as client:
        report: Report = batch.run(client, horses(2), program.out, timeout=20)
    struck, waiting = (entry.state for entry in report.entries)
    assert struck in ENDS.get(cell.outcome, (Stage.DOWNLOADED,))
    assert waiting is Stage.DOWNLOADED
    assert server.doubles == []


@pytest.mark.parametrize("cell", _each(lambda c: c.breaks_loop))
def test_trio_loop(cell: Cell, tmp_path: Path, trust: Trust, programs: Programs) -> None:
    """What a handler raises while trio's loop waits comes out; the next run knows what it can."""
    process: Queue[int] = Queue()

    def strike() -> None:
        os.kill(process.get(timeout=10), number_of(cell))

    with HoldingServer(cell.point, Strike(strike), trust.of_server(cell)) as server:
        process.put(programs.trio_batch(cell.signal, server.url, tmp_path, trust.file))
        ended = programs.wait()
        assert (ended.code, ended.out.split()[0]) == (0, "True"), ended
        server.release()
        assert server.posts <= (cell.point != "handshake")
        check_rerun(cell, Program(cell.driver, server.url, tmp_path, trust.client), server)


WORDS = {
    "create": ["create", "imgb", "--model", "imgb-2", "--prompt", "horse 1"],
    "run": ["run", "imgb", "--model", "imgb-2", "--prompt", "horse 1", "-o", "horse.png"],
    "batch run": ["batch", "run", "horses.jsonl", "--out", "out", "--concurrency", "1"],
}
LINES = "".join(
    f'{{"family": "imgb", "model": "imgb-2", "prompt": "horse {n}", "name": "h{n}"}}\n'
    for n in (1, 2)
)


@pytest.mark.parametrize("cell", _each(lambda c: c.driver in COMMANDS))
def test_command(cell: Cell, tmp_path: Path, trust: Trust, programs: Programs) -> None:
    """A signal ends the command with the id and how to resume, and resuming pays nothing."""
    process: Queue[int] = Queue()
    number = number_of(cell)
    words = WORDS[cell.driver]
    if cell.driver != "create":
        words = [*words, "--poll-interval", "0.005"]
    (tmp_path / "horses.jsonl").write_text(LINES)
    by_hook = told_by_hook(cell.signal, cell.point)

    def strike() -> None:
        if not by_hook:
            os.kill(process.get(timeout=10), number)

    with HoldingServer(cell.point, Strike(strike), trust.of_server(cell)) as server:
        env = {
            "MUYBRIDGE_API_KEY": KEY,
            "MUYBRIDGE_BASE_URL": server.url,
            "REQUESTS_CA_BUNDLE": str(trust.file),
        }
        process.put(programs.command(words, tmp_path, env, cell.point if by_hook else "", number))
        ended = programs.wait()
        server.release()
        check_ended(cell, ended)
        assert server.posts == 1
        (task,) = server.accepted["horse 1"]
        if cell.driver == "batch run":
            check_store(cell, tmp_path / "out", server)
        else:
            assert f"task {task}\n" in ended.err
        resume = shlex.split(ended.err.rpartition("to resume: ")[2])
        assert resume[0] == "muybridge"
        quickly = ["--poll-interval", "0.005"] if cell.driver == "create" else []
        programs.command([*resume[1:], *quickly], tmp_path, env)
        resumed = programs.wait()
        assert resumed.code == 0, resumed
        assert server.posts == (2 if cell.driver == "batch run" else 1)
        assert server.doubles == []


def check_ended(cell: Cell, ended: Ended) -> None:
    """Check the exit code and what was said, without a traceback or the key."""
    code = ended.code
    if cell.signal == CTRL_C:
        unsaved = (cell.point, cell.driver) == ("download", "batch run")
        assert code == (6 if unsaved else 5), ended
    else:
        assert code == 128 + number_of(cell), ended
    assert "Traceback" not in ended.err
    assert KEY not in ended.out + ended.err
