"""What a ledger learns late, and what forked processes leave to their parents."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import partial
from pathlib import Path

import attrs
import pytest

import moments
from batch.billing import BillingServer
from muybridge import Client, ImgbRequest, Task
from muybridge.ledger import (
    CannotResolve,
    Entry,
    Ledger,
    StoreUnusable,
    Measure,
    Purchase,
    Rows,
    State,
    open_ledger,
)
from muybridge.ledger.entries import SPENT
from muybridge.ledger.sqlite_store import SqliteRows, SqliteStore
from muybridge.testing import VirtualClock

KEY = "sk-canary-4b1d97e2"
AMOUNTS = dict.fromkeys(Measure, Decimal(1))
HORSE = ImgbRequest(model="imgb-2", prompt="horse")


def _hold(arrived: threading.Event, may_respond: threading.Event, _: str) -> None:
    """Say that a create has arrived, and respond only when that is allowed."""
    arrived.set()
    may_respond.wait(30)


def test_a_late_response_is_recorded(tmp_path: Path) -> None:
    """The id of a request whose sender was believed to be dead is recorded when it arrives.

    Here a cleaner of temporary files has removed the lock of its owner.
    """
    ledger, arrived, may_respond = tmp_path / "ledger", threading.Event(), threading.Event()
    with BillingServer() as server:
        server.on_create = partial(_hold, arrived, may_respond)
        client = Client(KEY, server.url, store=store)
        sending = threading.Thread(target=client.create_once, args=("order 1", HORSE))
        sending.start()
        assert arrived.wait(30)
        shutil.rmtree(f"{ledger}.owners")
        assert [entry.state for entry in open_ledger(ledger).entries()] == [State.AMBIGUOUS]
        may_respond.set()
        sending.join(30)
        client.close()
    assert [entry.state for entry in open_ledger(ledger).entries()] == [State.ACCEPTED]


@pytest.mark.parametrize("decision", [Ledger.release, Ledger.resubmit])
def test_a_late_response_after_a_decision(
    tmp_path: Path, decision: Callable[[Ledger, str], Entry]
) -> None:
    """What was accepted is spent, whatever a person has decided before its response came."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(
        key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS, once="order 1"
    )
    ledger.arm(held, (), 0.0)
    shutil.rmtree(tmp_path / "ledger.owners")
    other = open_ledger(tmp_path / "ledger")
    decision(other, "k")
    other.arm(attrs.evolve(held, key="l"), (), 1.0)
    ledger.conclude("k", State.ACCEPTED)
    states = {entry.key: entry.state in SPENT for entry in ledger.entries()}
    assert states == {"k": True, "l": True}


@pytest.mark.parametrize("decision", [Ledger.release, Ledger.resubmit, Ledger.abandon])
def test_a_late_id_after_a_decision(
    tmp_path: Path, decision: Callable[[Ledger, str], Entry]
) -> None:
    """The id of a task is recorded, whatever a person has decided before its response came."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)
    shutil.rmtree(tmp_path / "ledger.owners")
    decision(open_ledger(tmp_path / "ledger"), "k")
    ledger.conclude("k", State.ACCEPTED, token=Task(id="task-1").to_token())
    (entry,) = ledger.entries()
    assert entry.state in SPENT
    assert entry.task is not None
    assert entry.task.id == "task-1"


def test_a_late_id_after_a_person_named_another(tmp_path: Path) -> None:
    """A task that a person has named stays, because they have looked at the account."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)
    shutil.rmtree(tmp_path / "ledger.owners")
    open_ledger(tmp_path / "ledger").adopt("k", "task-9")
    ledger.conclude("k", State.ACCEPTED, token=Task(id="task-1").to_token())
    (entry,) = ledger.entries()
    assert entry.task is not None
    assert entry.task.id == "task-9"


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ("task-9", "imgb-2"),
        (Task(id="task-9", family="imgb", requested_model="imgb-2-r"), "imgb-2-r"),
    ],
)
def test_a_task_that_a_person_names(tmp_path: Path, named: Task | str, model: str) -> None:
    """A bare id becomes a task of the entry's family and model; a task keeps what it knows."""
    ledger = open_ledger(tmp_path / "ledger")
    ledger.arm(
        Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS), (), 0.0
    )
    ledger.conclude("k", State.AMBIGUOUS)
    task = ledger.adopt("k", named).task
    assert task is not None
    assert (task.id, task.family, task.requested_model) == ("task-9", "imgb", model)


@pytest.mark.parametrize(
    ("candidate", "decision"), [("task-7", Ledger.abandon), ("task-1", Ledger.resubmit)]
)
def test_a_task_that_the_service_names_late(
    tmp_path: Path, candidate: str, decision: Callable[[Ledger, str], Entry]
) -> None:
    """Once the service has named the task, no person can name another."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)
    ledger.conclude("k", State.AMBIGUOUS, candidate=candidate)
    decision(ledger, "k")
    ledger.conclude("k", State.ACCEPTED, token=Task(id="task-1").to_token())
    with pytest.raises(CannotResolve, match="there is nothing to decide"):
        ledger.adopt("k", "task-9")
    (entry,) = ledger.entries()
    assert entry.task is not None
    assert entry.task.id == "task-1"


class Interleaved(SqliteStore):
    """A store in which something happens whenever the armed entries have been listed.

    Args:
        path: The file.
        between: What happens.
    """

    def __init__(self, path: Path, between: Callable[[], object]) -> None:
        super().__init__(path)
        self._between = between

    def entries(self, *states: State) -> Iterator[Entry]:
        found = list(super().entries(*states))
        if states == (State.ARMED,):
            self._between()
        yield from found


def test_an_outcome_that_comes_in_between(tmp_path: Path) -> None:
    """What is accepted while another process believes its sender dead does not become ambiguous."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)
    shutil.rmtree(tmp_path / "ledger.owners")
    store = Interleaved(tmp_path / "ledger", lambda: ledger.conclude("k", State.ACCEPTED))
    assert [entry.state for entry in Ledger(store).entries()] == [State.ACCEPTED]


def test_a_key_is_used_once(tmp_path: Path) -> None:
    """Each attempt has an entry of its own, so that the outcome of one says nothing of another."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)
    ledger.conclude("k", State.RELEASED)
    with pytest.raises(StoreUnusable, match=r"already has an entry k\. Nothing is sent"):
        ledger.arm(held, (), 1.0)
    assert [entry.state for entry in ledger.entries()] == [State.RELEASED]


def test_what_could_not_be_recorded_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lists the entries records first what could not be recorded before."""
    ledger = open_ledger(tmp_path / "ledger")
    held = Purchase(key="k", account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
    ledger.arm(held, (), 0.0)

    def full(_: SqliteStore) -> AbstractContextManager[Rows]:
        raise StoreUnusable("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(*moments.at("transaction begun").place, full)
        with pytest.raises(StoreUnusable):
            ledger.conclude("k", State.RELEASED)
    assert [entry.state for entry in ledger.entries()] == [State.RELEASED]


def test_an_outcome_is_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once an outcome is recorded, later transactions do not write it again."""
    put, written = moments.at("row written").value, list[str]()

    def write(rows: SqliteRows, entry: Entry) -> None:
        written.append(entry.key)
        put(rows, entry)

    monkeypatch.setattr(*moments.at("row written").place, write)
    ledger = open_ledger(tmp_path / "ledger")
    for key in "kl":
        held = Purchase(key=key, account="a", family="imgb", model="imgb-2", amounts=AMOUNTS)
        ledger.arm(held, (), 0.0)
        ledger.conclude(key, State.ACCEPTED)
    assert written == ["k", "k", "l", "l"]


def test_an_outcome_that_could_not_be_recorded_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk was full when the response came, the same process still knows the task."""
    writing, full = moments.at("transaction begun").value, threading.Event()

    def write(store: SqliteStore) -> AbstractContextManager[Rows]:
        if full.is_set():
            raise StoreUnusable("database or disk is full")
        return writing(store)

    monkeypatch.setattr(*moments.at("transaction begun").place, write)
    with (
        BillingServer() as server,
        Client(KEY, server.url, store=tmp_path / "ledger", clock=VirtualClock()) as client,
    ):
        server.on_create = lambda _: full.set()
        first = client.create_once("order 1", HORSE)
        full.clear()
        assert client.create_once("order 1", HORSE).id == first.id


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_writes(tmp_path: Path) -> None:
    """A child that is forked in the middle of a transaction is refused, and does not hang.

    SQLite itself takes the parent's lock for the child's own.
    """
    store = SqliteStore(tmp_path / "ledger", patience=0.1)
    with store.writing():
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                with store.writing():
                    os._exit(1)
            except StoreUnusable:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_dead_owner_with_a_living_child(tmp_path: Path) -> None:
    """The requests of a killed process are ambiguous even if a process that it forked lives on."""
    reading, writing = os.pipe()
    arrived, may_respond = threading.Event(), threading.Event()
    with BillingServer() as server:
        server.on_create = partial(_hold, arrived, may_respond)
        parent = os.fork()
        if parent == 0:
            store = SqliteStore(tmp_path / "ledger")
            client = Client(KEY, server.url, store=Ledger(store))
            _ = store.owner  # it has worked before
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
            states = [entry.state for entry in open_ledger(tmp_path / "ledger").entries()]
            assert states == [State.AMBIGUOUS]
        finally:
            may_respond.set()
            os.kill(child, signal.SIGKILL)
            os.close(reading)
            os.close(writing)
