"""What a store learns late from its clients, and what forked processes leave to their parents."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import moments
from batch.billing import BillingServer
from muybridge import Client, ImgbRequest
from muybridge.purchases import State, Store, StoreUnusable, open_store
from muybridge.purchases.sqlite import SqliteDatabase
from muybridge.testing import VirtualClock
from muybridge_protocol.purchases import Outcome, Purchase
from muybridge_protocol.records.tasks import Task
from stores import purchases_at

from .racer import order_of

KEY = "sk-canary-4b1d97e2"
HORSE = ImgbRequest(model="imgb-2", prompt="horse")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file for a store."""
    return tmp_path / "store.sqlite3"


def _hold(arrived: threading.Event, may_respond: threading.Event, _: str) -> None:
    """Say that a create has arrived, and respond only when that is allowed."""
    arrived.set()
    may_respond.wait(30)


def test_a_late_response_is_recorded(path: Path) -> None:
    """The id of a request whose sender was believed to be dead is recorded when it arrives.

    Here a cleaner of temporary files has removed the lock of its owner.
    """
    arrived, may_respond = threading.Event(), threading.Event()
    with BillingServer() as server:
        server.on_create = partial(_hold, arrived, may_respond)
        client = Client(KEY, server.url, store=path)
        sending = threading.Thread(target=client.create_once, args=("order 1", HORSE))
        sending.start()
        assert arrived.wait(30)
        shutil.rmtree(f"{path}.owners")
        assert [one.state for one in purchases_at(path)] == [State.AMBIGUOUS]
        may_respond.set()
        sending.join(30)
        client.close()
    assert [one.state for one in purchases_at(path)] == [State.ACCEPTED]


class Interleaved(SqliteDatabase):
    """A database in which something happens whenever it was found out who is alive.

    Args:
        path: The file.
        between: What happens.
    """

    def __init__(self, path: Path, between: Callable[[], object]) -> None:
        super().__init__(path)
        self._between = between

    def lives(self, owner: str) -> bool:
        lives = super().lives(owner)
        self._between()
        return lives


def test_an_outcome_that_comes_in_between(path: Path) -> None:
    """What is accepted while another process believes its sender dead does not become ambiguous."""
    store = open_store(path)
    bought = store.arm(order_of())
    shutil.rmtree(f"{path}.owners")
    accepted = Outcome(state=State.ACCEPTED, task=Task(id="task-1"))
    other = Store(Interleaved(path, lambda: store.conclude(bought.key, accepted)))
    other.sweep()
    assert [(one.state, one.task) for one in other.purchases()] == [(State.ACCEPTED, "task-1")]


def _writing(full: threading.Event) -> Callable[..., AbstractContextManager[Any]]:
    """Return what begins transactions on a disk that is *full* at times."""
    begin = moments.at("transaction begun").value

    def write(store: Store, *waited: float) -> AbstractContextManager[Any]:
        if full.is_set():
            raise StoreUnusable("database or disk is full")
        begun: AbstractContextManager[Any] = begin(store, *waited)
        return begun

    return write


def test_an_outcome_that_could_not_be_recorded_is_recorded_later(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk was full when the response came, the same process still knows the task."""
    full = threading.Event()
    monkeypatch.setattr(*moments.at("transaction begun").place, _writing(full))
    with (
        BillingServer() as server,
        Client(KEY, server.url, store=place, clock=VirtualClock()) as client,
    ):
        server.on_create = lambda _: full.set()
        first = client.create_once("order 1", HORSE)
        full.clear()
        assert client.create_once("order 1", HORSE).id == first.id


def test_an_outcome_that_could_not_be_recorded_is_recorded_by_whoever_looks_for_a_name(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that only finds an earlier task records what it could not record before."""
    full = threading.Event()
    monkeypatch.setattr(*moments.at("transaction begun").place, _writing(full))
    with BillingServer() as server, Client(KEY, server.url, store=place) as client:
        first = client.create_once("order 1", HORSE)
        server.on_create = lambda _: full.set()
        second = client.create(HORSE)
        full.clear()
        assert client.create_once("order 1", HORSE).id == first.id
        tasks = [one.task for one in purchases_at(place)]
    assert tasks == [first.id, second.id]


def test_an_outcome_that_could_not_be_recorded_is_recorded_at_the_end(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is closed records what it could not record before."""
    full = threading.Event()
    monkeypatch.setattr(*moments.at("transaction begun").place, _writing(full))
    with BillingServer() as server, Client(KEY, server.url, store=place) as client:
        server.on_create = lambda _: full.set()
        task = client.create(HORSE)
        full.clear()
    assert [(one.state, one.task) for one in purchases_at(place)] == [(State.ACCEPTED, task.id)]


def test_an_outcome_is_recorded_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once an outcome is recorded, later transactions do not write it again."""
    put, states = moments.at("row written").value, list[tuple[str, State]]()

    def write(purchase: Purchase) -> dict[str, Any]:
        if purchase.owner:
            states.append((purchase.key, purchase.state))
        row: dict[str, Any] = put(purchase)
        return row

    monkeypatch.setattr(*moments.at("row written").place, write)
    store = open_store(path)
    for key in "kl":
        store.arm(order_of(), key=key)
        store.conclude(key, Outcome(state=State.ACCEPTED))
    # The row is written when it is armed, and compared and changed when it is concluded.
    step = [State.ARMED, State.ARMED, State.ACCEPTED]
    assert states == [(key, state) for key in "kl" for state in step]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_writes(path: Path) -> None:
    """A child that is forked in the middle of a transaction is refused, and does not hang.

    SQLite itself takes the parent's lock for the child's own.
    """
    store = Store(SqliteDatabase(path, patience=0.1))
    store.arm(order_of())
    with store.database.transaction():
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                store.arm(order_of())
                os._exit(1)
            except StoreUnusable:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_dead_owner_with_a_living_child(path: Path) -> None:
    """The requests of a killed process are ambiguous even if a process that it forked lives on."""
    reading, writing = os.pipe()
    arrived, may_respond = threading.Event(), threading.Event()
    with BillingServer() as server:
        server.on_create = partial(_hold, arrived, may_respond)
        parent = os.fork()
        if parent == 0:
            store = open_store(path)
            client = Client(KEY, server.url, store=store)
            store.database.owner()  # it has worked before
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                signal.pause()
            os.write(writing, str(child).encode())
            client.create_once("order 1", HORSE)
            os._exit(0)
        child = int(os.read(reading, 20))
        try:
            assert arrived.wait(30)
            os.kill(parent, signal.SIGKILL)
            os.waitpid(parent, 0)
            assert [one.state for one in purchases_at(path)] == [State.AMBIGUOUS]
        finally:
            may_respond.set()
            os.kill(child, signal.SIGKILL)
            os.close(reading)
            os.close(writing)
