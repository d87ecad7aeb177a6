"""One task belongs to one entry of an account, whatever the service, a person or a race does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from muybridge import Budget, CreateAmbiguous, OverBudget
from muybridge.ledger import CannotResolve, State, open_ledger
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure

from .drivers import MakeClient
from .in_process import Watched, World
from .requests_made import image

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
SAME = HttpResponse(200, (), json.dumps({"id": "task-1", "status": "queued"}).encode())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def test_one_id_for_two_names(make_client: MakeClient, world: World, ledger: Path) -> None:
    """If the service gives a request the id of another one, that is said, and it stays spent."""
    world.always = SAME
    client = make_client(world, ledger=ledger, budget=Budget(creates=2))
    assert client.create_once("order 1", image()).id == "task-1"
    for _ in range(2):
        with pytest.raises(
            CreateAmbiguous, match=r"task-1, which entry \w+ \(order 1\) has"
        ) as told:
            client.create_once("order 2", image("another horse"))
        assert told.value.candidate_id == "task-1"
    assert client.create_once("order 1", image()).id == "task-1"
    with pytest.raises(OverBudget):
        client.create(image())
    assert len(world.posts) == 2
    first, second = open_ledger(ledger).entries()
    assert (first.state, second.state) == (State.ACCEPTED, State.AMBIGUOUS)


def test_one_id_for_two_creates(make_client: MakeClient, world: World, ledger: Path) -> None:
    """A create without a name returns the task that it was given; the ledger has the doubt."""
    world.always = SAME
    client = make_client(world, ledger=ledger)
    assert [client.create(image()).id for _ in range(2)] == ["task-1", "task-1"]
    _, second = open_ledger(ledger).entries()
    assert (second.state, second.candidate, second.task) == (State.AMBIGUOUS, "task-1", None)
    assert second.reason is not None
    assert "task-1" in second.reason


def test_one_id_of_two_accounts(make_client: MakeClient, world: World, ledger: Path) -> None:
    """Two accounts may have tasks with the same id."""
    other = World(key="sk-another-1a2b3c4d5e6f")
    for each in (world, other):
        each.always = SAME
        assert make_client(each, ledger=ledger).create_once("order 1", image()).id == "task-1"
    assert {entry.state for entry in open_ledger(ledger).entries()} == {State.ACCEPTED}


def test_adopting_the_task_of_another(make_client: MakeClient, world: World, ledger: Path) -> None:
    """A person cannot give a request the task of another one, and may name another task later."""
    client = make_client(world, ledger=ledger)
    client.create_once("order 1", image())
    world.instead.append(LOST)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image())
    books = open_ledger(ledger)
    key = [entry.key for entry in books.entries()][-1]
    with pytest.raises(CannotResolve, match=r"entry \w+ \(order 1\) already has task task-1"):
        books.adopt(key, "task-1")
    for task in ("task-8", "task-8", "task-9"):
        books.adopt(key, task)
    assert client.create_once("order 2", image()).id == "task-9"


def test_a_race_for_one_task(make_client: MakeClient, world: World, ledger: Path) -> None:
    """Of many people who give one task to different requests, one succeeds."""
    client = make_client(world, ledger=ledger)
    world.always = LOST
    for number in range(8):
        with pytest.raises(CreateAmbiguous):
            client.create_once(f"order {number}", image())
    keys = [entry.key for entry in open_ledger(ledger).entries()]
    refused: list[str] = []
    begin = threading.Barrier(len(keys))

    def adopt(key: str) -> None:
        books = open_ledger(ledger)
        begin.wait(60)
        try:
            books.adopt(key, "task-1")
        except CannotResolve:
            refused.append(key)

    threads = [threading.Thread(target=adopt, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    states = {entry.key: entry.state for entry in open_ledger(ledger).entries()}
    [winner] = states.keys() - {*refused}
    assert states == {**dict.fromkeys(keys, State.AMBIGUOUS), winner: State.ACCEPTED}


@pytest.mark.parametrize("decision", ["release", "resubmit", "abandon"])
def test_a_late_id_that_another_has(make_client: MakeClient, ledger: Path, decision: str) -> None:
    """A late response is recorded even if its task is another one's: its id is kept, and spent."""
    world = Watched()
    world.always = SAME
    client = make_client(world, ledger=ledger)
    client.create_once("order 1", image())

    def decide() -> None:
        # As if the sender were dead: somebody has removed the lock of its owner.
        for owner in Path(f"{ledger}.owners").iterdir():
            owner.unlink()
        books = open_ledger(ledger)
        [key] = [one.key for one in books.entries() if one.state is State.AMBIGUOUS]
        getattr(books, decision)(key)

    world.watch = decide
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image("another horse"))
    second = [*open_ledger(ledger).entries()][-1]
    assert second.state is (State.RESUBMITTED if decision == "resubmit" else State.AMBIGUOUS)
    assert second.candidate == "task-1"
