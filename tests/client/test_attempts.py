"""Each attempt of a paid request is one entry of the ledger: no outcome of one reaches another."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muybridge import Budget, Client, CreateAmbiguous, OverBudget
from muybridge.ledger import Ledger, LedgerUnusable, Rows
from muybridge.ledger.sqlite_store import SqliteStore
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure

from .drivers import MakeClient
from .in_process import InProcessTransport, Reply, World
from .requests_made import image

SLOW_DOWN = HttpResponse(429, (("Retry-After", "0"),), b"{}")
LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)


class Busy(SqliteStore):
    """A store at which a thread waits for its turn while a request is sent for the second time.

    The thread comes when the outcome of the first attempt is about to be recorded.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.late: threading.Thread | None = None
        self.turns = 0
        self.waits = threading.Event()
        self.may_go = threading.Event()

    @contextmanager
    def writing(self) -> Generator[Rows]:
        if threading.current_thread() is self.late:
            self.waits.set()
            assert self.may_go.wait(60)
        elif self.late is not None:
            self.turns += 1
            if self.turns == 3:  # after looking for the name, and arming
                self.late.start()
                assert self.waits.wait(60)
        with super().writing() as rows:
            yield rows


class Looking(World):
    """A service at which the late thread has had its turn before a second attempt is answered."""

    store: Busy

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        late = self.store.late
        if late is not None and self.store.waits.is_set():
            self.store.may_go.set()
            late.join(60)
        return super().exchange(request, authorization)


def test_a_late_turn(make_client: MakeClient, tmp_path: Path) -> None:
    """A thread that waited for its turn says nothing of the request that is sent meanwhile.

    The request is answered by 429, sent again, and its response is lost: it stays spent, and
    nothing is sent under its name.
    """
    ledger, world, elsewhere = tmp_path / "ledger", Looking(), World()
    world.store = Busy(ledger)
    books, budget = Ledger(world.store), Budget(creates=2)
    looking = Client(elsewhere.key, elsewhere.url, ledger=books,
                     transport=InProcessTransport(elsewhere), clock=elsewhere.clock)  # fmt: skip
    looking.create_once("order 1", image())
    world.store.late = threading.Thread(target=looking.create_once, args=("order 1", image()))

    world.instead.extend([SLOW_DOWN, LOST])
    client = make_client(world, ledger=books, budget=budget)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image())
    assert world.store.turns > 3
    assert not world.store.late.is_alive()

    another = make_client(world, ledger=ledger, budget=budget)
    with pytest.raises(CreateAmbiguous):
        another.create_once("order 2", image())
    with pytest.raises(OverBudget):
        another.create_once("order 3", image())
    assert len(world.posts) == 2


class Doubtful(SqliteStore):
    """A store whose disk reports an error after the first entry was written to it."""

    turns = 0

    @contextmanager
    def writing(self) -> Generator[Rows]:
        with super().writing() as rows:
            yield rows
        self.turns += 1
        if self.turns == 2:  # after looking for the name
            raise LedgerUnusable("disk I/O error")


def test_an_entry_that_is_there_after_an_error(make_client: MakeClient, tmp_path: Path) -> None:
    """What was armed although an error was reported is not sent, and keeps no name and no budget.

    A commit may be on the disk although its last step, such as syncing the folder, has failed.
    """
    world = World()
    ledger = Ledger(Doubtful(tmp_path / "ledger"))
    client = make_client(world, ledger=ledger, budget=Budget(creates=1))
    with pytest.raises(LedgerUnusable):
        client.create_once("order 1", image())
    assert world.posts == []
    assert client.create_once("order 1", image()).id == client.create_once("order 1", image()).id
    assert len(world.posts) == 1
