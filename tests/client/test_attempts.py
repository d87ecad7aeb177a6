"""Each attempt of a paid request is one purchase: no outcome of one reaches another."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge import Budget, Client, CreateAmbiguous, OverBudget
from muybridge.purchases import State, Store, StoreUnusable
from muybridge.purchases.sqlite import SqliteDatabase, SqliteRows
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from stores import purchases_at

from .drivers import MakeClient
from .in_process import InProcessTransport, Reply, World
from .requests_made import image

SLOW_DOWN = HttpResponse(429, (("Retry-After", "0"),), b"{}")
LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)


class Busy(SqliteDatabase):
    """A database at which a thread waits for its turn while a request is sent for the second time.

    The thread comes when the outcome of the first attempt is about to be recorded.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.late: threading.Thread | None = None
        self.turns = 0
        self.waits = threading.Event()
        self.may_go = threading.Event()

    def meet(self) -> None:
        """Let the late thread come, or wait."""
        if threading.current_thread() is self.late:
            self.waits.set()
            assert self.may_go.wait(60)
        elif self.late is not None:
            self.turns += 1
            if self.turns == 3:  # after looking for the name, and arming
                self.late.start()
                assert self.waits.wait(60)

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[SqliteRows]:
        self.meet()
        with super().transaction(waited=waited) as rows:
            yield rows

    @contextmanager
    def reading(self) -> Generator[SqliteRows]:
        self.meet()
        with super().reading() as rows:
            yield rows


class Looking(World):
    """A service at which the late thread has had its turn before a second attempt is answered."""

    database: Busy

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        late = self.database.late
        if late is not None and self.database.waits.is_set():
            self.database.may_go.set()
            late.join(60)
        return super().exchange(request, authorization)


def test_a_late_turn(make_client: MakeClient, path: Path) -> None:
    """A thread that waited for its turn says nothing of the request that is sent meanwhile.

    The request is answered by 429, sent again, and its response is lost: it stays spent, and
    nothing is sent under its name.
    """
    world, elsewhere = Looking(), World()
    world.database = Busy(path)
    store, budget = Store(world.database), Budget(creates=2)
    looking = Client(elsewhere.key, elsewhere.url, store=store,
                     transport=InProcessTransport(elsewhere), clock=elsewhere.clock)  # fmt: skip
    looking.create_once("order 1", image())
    client = make_client(world, store=store, budget=budget)
    world.database.late = threading.Thread(target=looking.create_once, args=("order 1", image()))

    world.instead.extend([SLOW_DOWN, LOST])
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image())
    assert world.database.turns > 3
    assert not world.database.late.is_alive()

    another = make_client(world, store=path, budget=budget)
    with pytest.raises(CreateAmbiguous):
        another.create_once("order 2", image())
    with pytest.raises(OverBudget):
        another.create_once("order 3", image())
    assert len(world.posts) == 2


class Doubtful(SqliteDatabase):
    """A database whose disk reports an error after the first purchase was written to it."""

    fails = True

    @contextmanager
    def transaction(self, **more: Any) -> Generator[SqliteRows]:
        with super().transaction(**more) as rows:
            yield rows
        if self.fails and rows.is_ending and self.exists() and self.has_purchase():
            self.fails = False
            raise StoreUnusable("disk I/O error")

    def has_purchase(self) -> bool:
        """Whether a purchase was committed."""
        with self.reading() as rows:
            return bool(rows.run("SELECT 1 FROM muybridge_purchases"))


def test_a_purchase_that_is_there_after_an_error(make_client: MakeClient, path: Path) -> None:
    """What was armed although an error was reported is not sent, and keeps no name and no budget.

    A commit may be on the disk although its last step, such as syncing the folder, has failed.
    """
    world = World()
    client = make_client(world, store=Store(Doubtful(path)), budget=Budget(creates=1))
    with pytest.raises(StoreUnusable):
        client.create_once("order 1", image())
    assert world.posts == []
    assert client.create_once("order 1", image()).id == client.create_once("order 1", image()).id
    assert len(world.posts) == 1


def test_a_pause_between_arming_and_sending(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was paused after arming sends nothing then, where others may think it dead.

    It arms again. In a file, the lock of its owner tells that it lives.
    """
    times = iter([0.0, 5.1])
    pausing = moments.at("purchase about to be sent").place
    monkeypatch.setattr(*pausing, lambda: next(times, 6.0))
    make_client(world, store=place).create(image())
    assert len(world.posts) == 1
    states = [one.state for one in purchases_at(place)]
    paused = [State.RELEASED] if place.startswith("postgresql") else []
    assert states == [*paused, State.ACCEPTED]


class Watched(World):
    """A service that looks up, during a request, when its sender counts as dead."""

    place: str
    until: float | None = None

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        [bought] = purchases_at(self.place)
        self.until = bought.sending_until
        return super().exchange(request, authorization)


@pytest.mark.parametrize("uptime", [0.0, 1e6])
def test_when_a_sender_counts_as_dead(make_client: MakeClient, place: str, uptime: float) -> None:
    """The time comes from the timeout of the exchange, whatever the sender's clock shows."""
    if not place.startswith("postgresql"):
        pytest.skip("in a file, the sender's lock tells")
    world = Watched()
    world.place = place
    world.clock.elapsed = uptime
    make_client(world, store=place).create(image())
    [bought] = purchases_at(place)
    assert world.until is not None
    assert 60 < world.until - bought.armed_at < 200
    assert bought.sending_until is None
