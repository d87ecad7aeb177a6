"""`run_all(dedupe=True)`: identical requests share one task, and each has its own outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge import CreateAmbiguous, MediaRequest, NotSent, OverBudget, Refused, Task
from muybridge.purchases import Budget, Purchase, State, StoreUnusable, open_store
from muybridge.purchases.booking import Books
from muybridge_protocol.events import WillRetry
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.observations import AnyEvent, ExchangeFailed, RequestSent, ResponseReceived
from muybridge_protocol.purchases import Outcome
from stores import like, purchases_at

from .drivers import MakeClient
from .fleets import run_all
from .in_process import World
from .requests_made import image

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
SLOW_DOWN = HttpResponse(429, (("Retry-After", "1"),), b"{}")
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests look more often for the one that they wait for.

    Virtual time passes while a thread waits for a database.
    """
    monkeypatch.setattr(*moments.constant("pause before a name is looked up again"), 0.05)


def herd(size: int = 6) -> list[MediaRequest]:
    """Return requests of which every second one is the same."""
    return [image() if number % 2 else image(f"horse {number}") for number in range(size)]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("concurrency", [1, 8])
def test_identical_requests_join(
    make_client: MakeClient, world: World, place: str, concurrency: int
) -> None:
    """Identical requests are sent once, whether at the same time or one after the other."""
    submitted: list[Task] = []
    client = make_client(world, store=place, on_submitted=submitted.append)
    outcomes = run_all(client, herd(), concurrency=concurrency, dedupe=True)
    assert sorted(outcome.key for outcome in outcomes) == list(range(6))
    ids = {outcome.key: outcome.unwrap().id for outcome in outcomes}
    assert len(world.posts) == len({*ids.values()}) == len(submitted) == 4
    assert ids[1] == ids[3] == ids[5]
    assert all(outcome.request is not None and outcome.task is not None for outcome in outcomes)


@pytest.mark.usefixtures("patient")
def test_twins_of_the_same_moment(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If several look for the name before one has it, one is sent, and the others join, untold."""
    named = moments.at("name looked up").value
    looked: list[str] = []
    told: list[AnyEvent] = []

    def all_at_once(books: Books, once: str, digest: str) -> Any:
        looked.append(once)
        return None if len(looked) <= 5 else named(books, once, digest)

    monkeypatch.setattr(*moments.at("name looked up").place, all_at_once)
    client = make_client(world, store=place, on_event=told.append)
    outcomes = run_all(client, [image()] * 5, dedupe=True)
    assert len({outcome.unwrap().id for outcome in outcomes}) == len(world.posts) == 1
    assert [event for event in told if isinstance(event, WillRetry)] == []
    began = [event for event in told if isinstance(event, RequestSent)]
    ended = [event for event in told if isinstance(event, ResponseReceived | ExchangeFailed)]
    assert len(began) == len(ended)


@pytest.mark.usefixtures("patient")
def test_they_join_what_was_sent_before(make_client: MakeClient, world: World, place: str) -> None:
    """A request joins the task of an earlier run, or of `create`, with a budget that is used up."""
    first = make_client(world, store=place, dedupe=True).create(image())
    client = make_client(world, store=place, budget=Budget(creates=1))
    again, other = sorted(
        run_all(client, [image(), image("another horse")], dedupe=True), key=lambda one: one.key
    )
    assert again.unwrap().id == first.id
    assert isinstance(other.error, OverBudget)
    assert len(world.posts) == 1


def test_without_it_each_is_sent(make_client: MakeClient, world: World, place: str) -> None:
    """Without `dedupe`, identical requests of a run are paid for one by one, as before."""
    run_all(make_client(world, store=place, dedupe=True), [image(), image()])
    assert len(world.posts) == 2


def test_the_default_store(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a store joins by means of the default one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run_all(make_client(world), [image(), image()], dedupe=True)
    assert len(world.posts) == 1
    assert (tmp_path / "muybridge" / "store.sqlite3").exists()


@pytest.mark.usefixtures("patient")
def test_one_that_is_ambiguous(make_client: MakeClient, world: World, place: str) -> None:
    """If one of them may have been accepted, the others are not sent, and say what to decide."""
    world.instead.append(LOST)
    outcomes = run_all(make_client(world, store=place), [image()] * 3, dedupe=True)
    assert all(isinstance(outcome.error, CreateAmbiguous) for outcome in outcomes)
    [bought] = purchases_at(place)
    remedies = [outcome.error.remedies for outcome in outcomes if outcome.error is not None]
    keys = [[remedy.purchase for remedy in some if remedy.purchase] for some in remedies]
    assert keys == [[bought.key]] * 3
    assert len(world.posts) == 1


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("answer", [SLOW_DOWN, UNSENT], ids=["rate-limited", "not sent"])
def test_one_that_is_retried(
    make_client: MakeClient,
    world: World,
    place: str,
    answer: HttpResponse | TransportFailure,
) -> None:
    """What certainly did nothing is retried, and the others join the task that comes of it."""
    world.instead.append(answer)
    outcomes = run_all(make_client(world, store=place), [image()] * 3, dedupe=True)
    assert len({outcome.unwrap().id for outcome in outcomes}) == 1
    states = [one.state for one in purchases_at(place)]
    assert states.count(State.ACCEPTED) == 1


def refused(make_client: MakeClient, world: World, place: str) -> Purchase:
    """Let a create be refused, and return its purchase: its name is free."""
    world.instead.append(HttpResponse(400, (), b"{}"))
    with pytest.raises(Refused):
        make_client(world, store=place, dedupe=True).create(image())
    [bought] = purchases_at(place)
    return bought


def test_one_that_is_on_its_way_elsewhere(
    make_client: MakeClient, world: World, place: str
) -> None:
    """While another process sends the request, it is not sent; in the end the error says so."""
    before = refused(make_client, world, place)
    with open_store(place) as elsewhere:
        elsewhere.arm(like(before))
        same, other = sorted(
            run_all(make_client(world, store=place), [image(), image("horse")], dedupe=True),
            key=lambda one: one.key,
        )
    assert isinstance(same.error, NotSent)
    assert "an identical request is still on its way" in str(same.error)
    assert other.result is not None
    assert len(world.posts) == 2


def test_one_that_another_process_completes(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request waits up to its deadline for the one of another process, and joins its task."""
    task = make_client(world).create(image())
    before, named = refused(make_client, world, place), moments.at("name looked up").value
    with open_store(place) as elsewhere:
        elsewhere.arm(like(before), key="elsewhere")

        def later(books: Books, once: str, digest: str) -> Any:
            if world.clock.elapsed >= 250:
                elsewhere.conclude("elsewhere", Outcome(state=State.ACCEPTED, task=task))
            return named(books, once, digest)

        monkeypatch.setattr(*moments.at("name looked up").place, later)
        [outcome] = run_all(make_client(world, store=place), [image()], dedupe=True)
    assert outcome.unwrap().id == task.id
    assert len(world.posts) == 2


def test_an_unusable_store(make_client: MakeClient, world: World, path: Path) -> None:
    """If the store cannot be used, nothing is sent, and the notes of the error say so."""
    path.write_bytes(b"notes" * 1000)
    with pytest.raises(StoreUnusable) as caught:
        run_all(make_client(world, store=path), herd(), dedupe=True)
    assert world.posts == []
    assert "Left early:\n6 not sent" in caught.value.__notes__


@pytest.mark.usefixtures("patient")
def test_a_run_that_is_left(make_client: MakeClient, world: World, place: str) -> None:
    """A run that is left early has sent no identical request twice; the next one joins."""
    client = make_client(world, store=place)
    run_all(client, herd(), most=1, concurrency=2, dedupe=True)
    outcomes = run_all(client, herd(), dedupe=True)
    assert len({outcome.unwrap().id for outcome in outcomes}) == len(world.posts) == 4
