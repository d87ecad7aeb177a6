"""One cell of the table: a fault, an operation, a driver and a scheme. And its judge."""

from __future__ import annotations

import contextlib
import itertools
import re
import ssl
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest

from muybridge import CreateAmbiguous, StreamInterrupted
from muybridge.batch import Report
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import ScriptedServer, closed_port, deaf_port

from .acts import UNHEARD
from .clients import KEY, Driven, MakeDriver
from .connections import connections
from .hostile_server import TASK_ID, HostileServer
from .operations import OPERATIONS, SHORTENED, Setting
from .rows import Certificate, Row, Where
from .sinks import Sinks
from .table import ROWS

SHORT = 0.4
"""Seconds that an exchange may take which is known to hang, if no other follows it."""
SHORTISH = 1.5
"""The same, where a good exchange follows."""
LONG = 20.0
WATCHDOG = 20.0
"""Seconds after which a call that has not ended is taken to hang."""
LONGEST_SLEEP = 120.0
PASSWORD = "canary-password"  # noqa: S105  # of nobody

_numbers = itertools.count(1)


@attrs.frozen
class Cell:
    """What is tried.

    Attributes:
        row: The fault.
        operation: The operation's name.
        scheme: `http` or `https`.
        once: Whether the fault is committed once and not always.
    """

    row: Row
    operation: str
    scheme: str
    once: bool

    def __str__(self) -> str:
        number = "+".join(map(str, self.row.numbers))
        times = "once" if self.once else "always"
        name = re.sub(r"[^A-Za-z0-9]+", "-", self.row.name).strip("-")
        return f"{number}-{name}-{times}-{self.scheme}-{self.operation}"

    @property
    def timeout(self) -> float:
        """Seconds for one exchange."""
        if not self.row.hangs:
            return LONG
        return SHORTISH if self.once else SHORT

    @property
    def patience(self) -> float:
        """Seconds for waiting, for a download, and for text: a hanging one has no other end."""
        ends = self.row.hangs and (not self.once or OPERATIONS[self.operation].once)
        return SHORT if ends else 60.0

    @property
    def expected(self) -> set[str]:
        """The outcomes that are right."""
        outcomes = self.row.once if self.once else self.row.always
        return set(outcomes[self.operation].split("|"))


def cells() -> Iterator[Cell]:
    """Yield every cell of the table, for one driver."""
    for row in ROWS:
        for once, outcomes in ((False, row.always), (True, row.once)):
            for scheme in row.schemes:
                for operation in outcomes:
                    yield Cell(row, operation, scheme, once)


@attrs.frozen(kw_only=True)
class Surroundings:
    """What a cell stands in: certificates, and a host that nobody is to give the key to.

    Attributes:
        contexts: What the server makes handshakes with, by what it shows.
        trust: What the client trusts.
        trap: A server that is named as a proxy for all, and as another place by redirects.
    """

    contexts: dict[Certificate, ssl.SSLContext]
    trust: ssl.SSLContext
    trap: ScriptedServer


@attrs.define
class Books:
    """What became of all cells.

    Attributes:
        cells: How many were tried.
        doubles: Creates that were accepted more than once.
        losses: Ids that were reported by the service and not by the client.
        false_unsent: `NotSent` where a byte had been read.
        false_ambiguous: `CreateAmbiguous`, or an interrupted stream, where nothing was sent.
        shortened: Texts that were taken for whole, and were not.
    """

    cells: int = 0
    doubles: int = 0
    losses: int = 0
    false_unsent: int = 0
    false_ambiguous: int = 0
    shortened: int = 0


books = Books()


def commit(
    cell: Cell,
    driver: MakeDriver,
    around: Surroundings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commit a fault, make the call, and judge the outcome."""
    row = cell.row
    sinks = Sinks()
    work = folder / "work"
    work.mkdir()
    _tempt(around, folder, monkeypatch)
    with ExitStack() as closing:
        server = closing.enter_context(
            HostileServer(
                on_connection=row.on_connection,
                on_request=row.on_request,
                scheme=cell.scheme,
                tls=around.contexts[row.certificate],
                once=cell.once,
                warm=row.warm,
                declines=row.declines,
                closes=row.closes,
            )
        )
        url = _url(cell, server, closing, monkeypatch)
        driven = driver(closing, around.trust)(
            url, timeout=cell.timeout, poll_interval=5.0, on_event=sinks.listener()
        )
        setting = Setting(
            url=url,
            folder=work,
            task=row.task(driven.clock.wall()),
            link=row.link(server.url) if row.link is not None else None,
            prompt=f"horse {next(_numbers)}" + " gallop" * (600_000 if row.long else 0),
            patience=cell.patience,
            size_limit=row.size_limit,
        )
        if row.warm:
            driven.client.get(TASK_ID)
        with sinks.open(monkeypatch), _watched(server), connections() as reached:
            outcome, value = _call(cell, driven, setting)
        if isinstance(value, BaseException):
            sinks.look_at_error(value)
        elif cell.operation != "batch":
            sinks.look_at(value)
        sinks.look_at_client(driven.client)
        sinks.look_at_files(work)
        books.cells += 1
        places = {server.address, urlsplit(url).netloc, UNHEARD}
        assert reached <= places, "it has connected to a place that nobody allowed"
        _judge_money(cell, server, outcome, value)
        _judge_secrets(server, around, sinks)
        assert driven.clock.longest <= LONGEST_SLEEP
    expected = set(cell.expected)
    if row.hangs and not server.asked:
        expected.add("NotSent")  # a busy machine: the time was up before the fault
    if row.hangs and "StreamInterrupted" in expected:
        expected.add("TextAmbiguous")  # the same: before the reply's head
    assert outcome in expected, f"{outcome} ({value}), not {' or '.join(expected)}"


def _tempt(around: Surroundings, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a proxy for plain http, and a password for every host in a netrc file."""
    netrc = folder / "netrc"
    netrc.write_text(f"default login canary-user password {PASSWORD}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", around.trap.url)


def _url(
    cell: Cell, server: HostileServer, closing: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> str:
    match cell.row.where:
        case Where.SERVER:
            return server.url
        case Where.NOBODY:
            return f"{cell.scheme}://127.0.0.1:{closed_port()}"
        case Where.DEAF:
            return f"{cell.scheme}://127.0.0.1:{closing.enter_context(deaf_port())}"
        case Where.NOWHERE:
            return f"{cell.scheme}://{'x' * 70}.example"
        case Where.PROXY:
            monkeypatch.setenv("HTTPS_PROXY", f"http://{server.address}")
            return f"{cell.scheme}://api.example"


@contextlib.contextmanager
def _watched(server: HostileServer) -> Generator[None]:
    """Fail a call that does not end, by taking its server away."""
    hung = threading.Event()

    def end() -> None:
        hung.set()
        server.hang_up()

    watchdog = threading.Timer(WATCHDOG, end)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
    assert not hung.is_set(), "the call did not end"


def _call(cell: Cell, driven: Driven, setting: Setting) -> tuple[str, Any]:
    """Make the call, and return the outcome's name and its value or error."""
    operation = OPERATIONS[cell.operation]
    try:
        value = operation.run(driven, setting)
    except Exception as error:  # noqa: BLE001  # any other than the library's own is an outcome too
        return type(error).__name__, error
    return operation.told(value), value


def _judge_money(cell: Cell, server: HostileServer, outcome: str, value: Any) -> None:
    """Compare what the client says with the books of the server."""
    posts = [asked for asked in server.asked if asked.method not in (b"GET", b"DELETE", b"CONNECT")]
    if not OPERATIONS[cell.operation].paid:
        assert not posts, "a call that costs nothing has sent a create"
        return
    doubled = [times for times in server.accepted.values() if times > 1]
    books.doubles += len(doubled)
    assert not doubled, "a create was accepted twice"
    assert len(posts) <= 1 or cell.row.declines, "a create was sent again"
    arrived = sum(asked.size for asked in posts)
    if outcome == "NotSent" and arrived and not cell.row.declines:
        books.false_unsent += 1
        raise AssertionError(f"NotSent, but the server has read {arrived} bytes")
    if isinstance(value, CreateAmbiguous | StreamInterrupted):
        handed = value.failure is None or value.failure.bytes_sent > 0
        if not arrived and not handed:
            books.false_ambiguous += 1
            raise AssertionError(f"{outcome}, but nothing was sent")
    if outcome == SHORTENED:
        books.shortened += 1
        raise AssertionError("a text that is not whole was taken for whole")
    if cell.operation in ("create", "batch") and _told_id(server) and _learnt(value) != TASK_ID:
        books.losses += 1
        raise AssertionError(f"the id was told, and came out as {_learnt(value)}")


def _told_id(server: HostileServer) -> bool:
    """Whether the id of the create has been sent in full, and nothing has overtaken it."""
    told = f'"id": "{TASK_ID}"'.encode()
    return any(
        told in peer.sent and not peer.was_reset and b"POST " in peer.received
        for peer in server.peers
    )


def _learnt(value: Any) -> str | None:
    """Return the id that the caller has learnt."""
    if isinstance(value, Task):
        return value.id
    if isinstance(value, CreateAmbiguous):
        return value.candidate_id
    if isinstance(value, Report):
        (entry,) = value.entries
        return Task.from_token(entry.token).id if entry.token is not None else entry.candidate
    return None


def _judge_secrets(server: HostileServer, around: Surroundings, sinks: Sinks) -> None:
    """Check that the key went to the service and nowhere else."""
    for asked in server.asked:
        if asked.method == b"CONNECT" or asked.is_media:
            sinks.add("proxy" if asked.method == b"CONNECT" else "download host", asked.head)
            assert asked.authorization is None, "a download host or proxy was shown the key"
        elif asked.whole:
            assert asked.authorization == f"Bearer {KEY}".encode()
        sinks.add("netrc host", asked.head if PASSWORD.encode() in asked.head else "")
    sinks.add("redirect host", around.trap.received)
    assert PASSWORD not in sinks.shown.get("netrc host", "")
    assert not around.trap.received, "something was said to a proxy or place that nobody needed"
    sinks.check()
