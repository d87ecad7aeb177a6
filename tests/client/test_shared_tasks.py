"""One task belongs to one purchase of an account, whatever the service, a person or a race does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from muybridge import Budget, CreateAmbiguous, OverBudget
from muybridge.purchases import CannotDecide, Choice, State
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from stores import decide, purchases_at

from .drivers import MakeClient
from .in_process import Watched, World
from .requests_made import image

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
SAME = HttpResponse(200, (), json.dumps({"id": "task-1", "status": "queued"}).encode())


def test_one_id_for_two_names(make_client: MakeClient, world: World, place: str) -> None:
    """If the service gives a request the id of another one, that is said, and it stays spent."""
    world.always = SAME
    client = make_client(world, store=place, budget=Budget(creates=2))
    assert client.create_once("order 1", image()).id == "task-1"
    for _ in range(2):
        with pytest.raises(
            CreateAmbiguous, match=r"task-1, which purchase \w+ \(order 1\) has"
        ) as told:
            client.create_once("order 2", image("another horse"))
        assert told.value.candidate_id == "task-1"
    assert client.create_once("order 1", image()).id == "task-1"
    with pytest.raises(OverBudget):
        client.create(image())
    assert len(world.posts) == 2
    first, second = purchases_at(place)
    assert (first.state, second.state) == (State.ACCEPTED, State.AMBIGUOUS)


def test_one_id_for_two_creates(make_client: MakeClient, world: World, place: str) -> None:
    """A create without a name returns the task that it was given; the store has the doubt."""
    world.always = SAME
    client = make_client(world, store=place)
    assert [client.create(image()).id for _ in range(2)] == ["task-1", "task-1"]
    _, second = purchases_at(place)
    assert (second.state, second.candidate, second.task) == (State.AMBIGUOUS, "task-1", None)
    assert second.reason is not None
    assert "task-1" in second.reason


def test_one_id_of_two_accounts(make_client: MakeClient, world: World, place: str) -> None:
    """Two accounts may have tasks with the same id."""
    other = World(key="sk-another-1a2b3c4d5e6f")
    for each in (world, other):
        each.always = SAME
        assert make_client(each, store=place).create_once("order 1", image()).id == "task-1"
    assert {one.state for one in purchases_at(place)} == {State.ACCEPTED}


def test_adopting_the_task_of_another(make_client: MakeClient, world: World, place: str) -> None:
    """A person cannot give a request the task of another one, and may name another task later."""
    client = make_client(world, store=place)
    client.create_once("order 1", image())
    world.instead.append(LOST)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image())
    key = purchases_at(place)[-1].key
    with pytest.raises(CannotDecide, match=r"purchase \w+ \(order 1\) already has task task-1"):
        decide(place, key, Choice.ADOPT, "task-1")
    for task in ("task-8", "task-8", "task-9"):
        decide(place, key, Choice.ADOPT, task)
    assert client.create_once("order 2", image()).id == "task-9"


def test_a_race_for_one_task(make_client: MakeClient, world: World, place: str) -> None:
    """Of many people who give one task to different requests, one succeeds."""
    client = make_client(world, store=place)
    world.always = LOST
    for number in range(8):
        with pytest.raises(CreateAmbiguous):
            client.create_once(f"order {number}", image())
    keys = [one.key for one in purchases_at(place)]
    refused: list[str] = []
    begin = threading.Barrier(len(keys))

    def adopt(key: str) -> None:
        begin.wait(60)
        try:
            decide(place, key, Choice.ADOPT, "task-1")
        except CannotDecide:
            refused.append(key)

    threads = [threading.Thread(target=adopt, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    states = {one.key: one.state for one in purchases_at(place)}
    [winner] = states.keys() - {*refused}
    assert states == {**dict.fromkeys(keys, State.AMBIGUOUS), winner: State.ACCEPTED}


@pytest.mark.parametrize("choice", [Choice.RELEASE, Choice.RESUBMIT, Choice.ABANDON])
def test_a_late_id_that_another_has(make_client: MakeClient, path: Path, choice: Choice) -> None:
    """A late response is recorded even if its task is another one's: the person's decision stands.

    Its id is kept, in case the service has charged twice.
    """
    world = Watched()
    world.always = SAME
    client = make_client(world, store=path)
    client.create_once("order 1", image())

    def decided() -> None:
        # As if the sender were dead: somebody has removed the lock of its owner.
        for owner in Path(f"{path}.owners").iterdir():
            owner.unlink()
        [key] = [one.key for one in purchases_at(path) if one.state is State.AMBIGUOUS]
        decide(path, key, choice)

    world.watch = decided
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 2", image("another horse"))
    second = purchases_at(path)[-1]
    assert second.late is not None
    assert "task-1" in second.late
    assert second.task is None
