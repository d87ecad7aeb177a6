"""How long a task will take: what a wait tells from the history in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import pytest

from muybridge import TaskFailed, VideosRequest, WaitTimeout
from muybridge.purchases import open_store
from muybridge.purchases.history import History
from muybridge_protocol.emulator import FAILURES
from muybridge_protocol.events import Polled
from muybridge_protocol.observations import Expected

from .drivers import AnyClient, MakeClient
from .heard import Heard
from .in_process import World
from .requests_made import image

FILM = VideosRequest(model="videos", prompt="a horse", duration=5)
LONG_FILM = VideosRequest(model="videos", prompt="a horse", duration=10)


def past(client: AnyClient, count: int) -> None:
    """Let *count* pictures be made."""
    for number in range(count):
        client.run(image(f"horse {number}"))


def test_the_median_of_ones_own_history(make_client: MakeClient, world: World, place: str) -> None:
    """From three tasks on, a wait tells what is usual: the median of those before."""
    heard = Heard()
    client = make_client(world, store=place, on_event=heard)
    for number in range(4):
        world.latency = 0.75 * number
        client.run(image(f"horse {number}"))
    took = [event.took for event in heard.of(Polled) if event.took is not None]
    told = heard.of(Expected)
    assert len(set(took)) == 4
    assert [one.usual for one in told] == [pytest.approx(median(took[:3]))]
    assert told[0].age == 0
    assert told[0].call.kind == "wait"


def test_a_wait_in_another_process(make_client: MakeClient, world: World, place: str) -> None:
    """A wait by the bare id tells what is usual, and how old the task is, from the store."""
    first = make_client(world, store=place)
    past(first, 3)
    task = first.create(image())
    first.close()
    world.clock.sleep(1.5)
    heard = Heard()
    make_client(world, store=place, on_event=heard).wait(task)
    told = heard.one(Expected)
    assert told.usual == pytest.approx(5, abs=3)
    assert told.age == 1.5
    assert told.sentence() == f"usually {round(told.usual)} s; 2 s so far"


def test_models_and_lengths_have_their_own(
    make_client: MakeClient, world: World, path: Path
) -> None:
    """What is usual for another model, or for another length, is not told."""
    heard = Heard()
    client = make_client(world, store=path, on_event=heard)
    for _ in range(3):
        client.run(FILM)
    client.run(LONG_FILM)
    client.run(image())
    assert not heard.of(Expected)
    client.run(FILM)
    assert len(heard.of(Expected)) == 1


def test_accounts_have_their_own(make_client: MakeClient, world: World, path: Path) -> None:
    """Another account has a history of its own."""
    past(make_client(world, store=path), 3)
    heard = Heard()
    past(make_client(world, store=path, account="another", on_event=heard), 1)
    assert not heard.of(Expected)


@pytest.mark.parametrize("has_store", [None, "a store"])
def test_nothing_is_said_without_a_history(
    make_client: MakeClient, world: World, path: Path, has_store: str | None
) -> None:
    """Without a store, or with too few tasks, nothing is said."""
    heard = Heard()
    client = make_client(world, on_event=heard, **({"store": path} if has_store else {}))
    past(client, 3)
    assert not heard.of(Expected)


def test_failed_and_late_tasks_do_not_count(
    make_client: MakeClient, world: World, path: Path
) -> None:
    """A failed task, and one whose end nobody noticed in time, say nothing about the next one."""
    heard = Heard()
    client = make_client(world, store=path, on_event=heard)
    for number in range(3):
        with pytest.raises(TaskFailed):
            client.run(image(f"{number} [fail:{next(iter(FAILURES))}]"))
        task = client.create(image(str(number)))
        world.clock.sleep(3600)
        client.wait(task)
    past(client, 1)
    assert not heard.of(Expected)


def test_it_delays_no_first_poll(
    make_client: MakeClient, world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose poll is due is polled first: the store may be a database that hangs."""
    first = make_client(world, store=path)
    past(first, 3)
    task = first.create(image())
    first.close()
    world.clock.sleep(60)
    before = len(world.queries)
    polls: list[int] = []
    store = open_store(path)
    find = store.history

    def history(digest: Callable[[bytes], str], task: str) -> History | None:
        polls.append(len(world.queries) - before)
        return find(digest, task)

    monkeypatch.setattr(store, "history", history)
    heard = Heard()
    make_client(world, store=store, on_event=heard).wait(task)
    assert polls == [1]
    assert heard.one(Expected).usual > 0


def test_a_wait_that_times_out(make_client: MakeClient, world: World, path: Path) -> None:
    """What is usual is told before a wait that ends too early, too."""
    heard = Heard()
    client = make_client(world, store=path, on_event=heard)
    past(client, 3)
    with pytest.raises(WaitTimeout):
        client.wait(client.create(image()), timeout=1)
    assert heard.one(Expected).usual > 0


def test_a_store_that_breaks(make_client: MakeClient, world: World, path: Path) -> None:
    """A wait goes on without the store, and says nothing."""
    first = make_client(world, store=path)
    past(first, 3)
    task = first.create(image())
    first.close()
    path.write_bytes(b"not a database" * 100)
    heard = Heard()
    assert make_client(world, store=path, on_event=heard).wait(task).url
    assert not heard.of(Expected)


def test_waiting_makes_no_store(make_client: MakeClient, world: World, path: Path) -> None:
    """Whoever only waits makes no file."""
    task = make_client(world).create(image())
    make_client(world, store=path).wait(task)
    assert not path.exists()


def test_it_is_bounded_and_has_no_prompt(make_client: MakeClient, world: World, path: Path) -> None:
    """However many tasks end, at most 25 durations of a model and a length are kept."""
    client = make_client(world, store=path)
    past(client, 60)
    client.close()
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT tasks, place FROM muybridge_durations").fetchall()
    assert (len(rows), len({tasks for tasks, _ in rows})) == (25, 1)
    assert b"horse 1" not in path.read_bytes()


def test_it_costs_no_transaction(make_client: MakeClient, world: World, path: Path) -> None:
    """A duration is recorded with the next purchase, or when the client is closed."""

    def recorded() -> int:
        with closing(sqlite3.connect(path)) as db:
            [(count,)] = db.execute("SELECT count(*) FROM muybridge_durations").fetchall()
        return int(count)

    client = make_client(world, store=path)
    client.run(image())
    assert recorded() == 0
    client.create(image())
    assert recorded() == 1
    client.run(image())
    client.close()
    assert recorded() == 2
    with open_store(path) as store:
        assert store.spent()["creates"] == 3  # type: ignore[index]
