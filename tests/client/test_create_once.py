"""`create_once`: one name is one task, whoever repeats the call, and one charge."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import moments
from muybridge import CreateAmbiguous, NotSent, OnceTaken, OnceUnderWay, OverBudget, Refused, Task
from muybridge.purchases import (
    Budget,
    CannotDecide,
    Choice,
    Purchase,
    State,
    Store,
    StoreUnusable,
    open_store,
)
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from stores import decide, like, purchases_at

from .drivers import MakeClient
from .in_process import VirtualClock, World
from .requests_made import image

SPELLINGS = [
    "HTTPS://Service.TEST",
    "https://service.test:443/",
    "https://service.test./",
    "https://service.test/./a/%2e%2e/",
]
"""Other ways to write the world's address."""
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
LOST = TransportFailure(
    phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT, partial=b'{"id": "task-7", "status": '
)
REFUSED = HttpResponse(400, (), b'{"error": {"message": "no"}}')


def the_key(place: str | Path) -> str:
    """Return the key of the only purchase."""
    [bought] = purchases_at(place)
    return bought.key


def test_the_same_task(make_client: MakeClient, world: World, place: str) -> None:
    """Repeating the call returns the same task, from any client, and nothing is sent again."""
    first = make_client(world, store=place).create_once("order 1", image())
    client = make_client(world, store=place, budget=Budget(creates=1))
    again = client.create_once("order 1", image())
    assert again.to_token() == first.to_token()
    assert len(world.posts) == 1
    other = make_client(world, store=place).create_once("order 2", image())
    assert other.id != first.id
    assert client.wait(first).url is not None


def test_the_default_store(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a store of its own keeps the names in the default one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = make_client(world)
    assert client.create_once("order 1", image()).id == client.create_once("order 1", image()).id
    assert len(world.posts) == 1
    assert (tmp_path / "muybridge" / "store.sqlite3").exists()


def test_a_failed_task(make_client: MakeClient, world: World, place: str) -> None:
    """A task that failed when it was created is returned again, because it may be charged."""
    world.instead.append(HttpResponse(200, (), b'{"id": "t1", "status": "failed"}'))
    client = make_client(world, store=place)
    assert client.create_once("order 1", image()).status == "failed"
    assert client.create_once("order 1", image()).status == "failed"
    assert len(world.posts) == 1


def test_another_request(make_client: MakeClient, world: World, place: str) -> None:
    """If the name belongs to another request, nothing is sent."""
    client = make_client(world, store=place)
    client.create_once("order 1", image())
    with pytest.raises(OnceTaken, match="nothing was sent"):
        client.create_once("order 1", image("another horse"))
    assert len(world.posts) == 1


def test_another_account(make_client: MakeClient, world: World, place: str) -> None:
    """Each account has its own names."""
    other = World(key="sk-another-1a2b3c4d5e6f")
    first = make_client(world, store=place).create_once("order 1", image())
    make_client(other, store=place).create_once("order 1", image("another horse"))
    assert len(world.posts) == len(other.posts) == 1
    assert make_client(world, store=place).create_once("order 1", image()).id == first.id


@pytest.mark.parametrize("address", SPELLINGS)
def test_one_address_however_it_is_spelled(
    make_client: MakeClient, world: World, place: str, address: str
) -> None:
    """Two spellings of one base URL are one account."""
    world.always = HttpResponse(200, (), b'{"id": "task-1", "status": "queued"}')
    first = make_client(world, store=place).create_once("order 1", image())
    again = make_client(world, store=place, base_url=address).create_once("order 1", image())
    assert (again.id, len(world.posts)) == (first.id, 1)


@pytest.mark.parametrize("address", ["https://[0:0:0:0:0:0:0:1]", "https://[::0001]:443/"])
def test_one_ipv6_address_however_it_is_spelled(
    make_client: MakeClient, world: World, place: str, address: str
) -> None:
    """Two spellings of one IPv6 address are one account."""
    world.always = HttpResponse(200, (), b'{"id": "task-1", "status": "queued"}')
    ids = [
        make_client(world, store=place, base_url=each).create_once("order 1", image()).id
        for each in ("https://[::1]", address)
    ]
    assert (ids, len(world.posts)) == (["task-1", "task-1"], 1)


def test_an_account_with_a_name(make_client: MakeClient, world: World, place: str) -> None:
    """With a name for the account, a change of the key changes nothing about its names."""
    other = World(key="sk-another-1a2b3c4d5e6f")
    first = make_client(world, store=place, account="studio").create_once("order 1", image())
    again = make_client(other, store=place, account="studio").create_once("order 1", image())
    assert (again.id, len(world.posts), len(other.posts)) == (first.id, 1, 0)
    for account in (None, "another", other.key):
        client = make_client(other, store=place, account=account)
        client.create_once("order 1", image("another horse"))
    assert len(other.posts) == 3


@pytest.mark.parametrize("account", ["", "x" * 201, "a\nb"])
def test_an_account_without_a_proper_name(
    make_client: MakeClient, world: World, account: str
) -> None:
    """An empty, huge or unprintable name of an account is refused at once."""
    with pytest.raises(ValueError, match="account must have 1 to 200 printable"):
        make_client(world, account=account)


@pytest.mark.parametrize("answer", [UNSENT, REFUSED], ids=["not sent", "refused"])
def test_what_did_nothing_may_be_sent_again(
    make_client: MakeClient, world: World, place: str, answer: HttpResponse | TransportFailure
) -> None:
    """A request that certainly did nothing does not use up its name."""
    client = make_client(world, store=place)
    world.always = answer
    with pytest.raises((NotSent, Refused)):
        client.create_once("order 1", image())
    world.always = None
    task = client.create_once("order 1", image("a better horse"))
    assert client.create_once("order 1", image("a better horse")).id == task.id


def test_ambiguous(make_client: MakeClient, world: World, place: str) -> None:
    """After an ambiguous create, repeating the call says so, and sends nothing."""
    client = make_client(world, store=place)
    world.instead.append(LOST)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 1", image())
    with pytest.raises(CreateAmbiguous, match="muybridge decide") as caught:
        client.create_once("order 1", image())
    assert caught.value.candidate_id == "task-7"
    assert len(world.posts) == 1


def test_a_person_names_the_task(make_client: MakeClient, world: World, place: str) -> None:
    """Once a person has named the task, the call returns it."""
    client = make_client(world, store=place)
    world.instead.append(LOST)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 1", image())
    decide(place, the_key(place), Choice.ADOPT, "task-7")
    task = client.create_once("order 1", image())
    assert (task.id, task.family) == ("task-7", "imga")
    assert len(world.posts) == 1


def test_a_person_leaves_it(make_client: MakeClient, world: World, place: str) -> None:
    """A request that a person has abandoned keeps its name: it is neither sent nor asked about."""
    client = make_client(world, store=place, budget=Budget(creates=1))
    world.instead.append(LOST)
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 1", image())
    decide(place, the_key(place), Choice.ABANDON)
    with pytest.raises(CreateAmbiguous, match="a person left it as it is") as caught:
        client.create_once("order 1", image())
    assert "muybridge decide" not in str(caught.value)
    with pytest.raises(OverBudget):
        client.create(image())
    assert len(world.posts) == 1


@pytest.mark.parametrize("choice", [Choice.RELEASE, Choice.RESUBMIT])
def test_a_person_lets_it_be_sent_again(
    make_client: MakeClient, world: World, place: str, choice: Choice
) -> None:
    """Once a person has decided so, it is sent again; only a released one costs no budget."""
    client = make_client(world, store=place)
    world.instead.append(attrs.evolve(LOST, partial=b""))
    with pytest.raises(CreateAmbiguous):
        client.create_once("order 1", image())
    key = the_key(place)
    decide(place, key, choice)
    client.create_once("order 1", image())
    assert len(world.posts) == 2
    counted = {one.key: one.state for one in purchases_at(place)}
    released = choice is Choice.RELEASE
    assert counted[key] is (State.RELEASED if released else State.RESUBMITTED)
    with pytest.raises(CannotDecide):
        decide(place, key, Choice.ABANDON)


@pytest.mark.parametrize("once", ["", "x" * 201, "a\nb", "a\0b", "\ud800"])
def test_a_name_that_cannot_be_used(
    make_client: MakeClient, world: World, path: Path, once: str
) -> None:
    """An empty, huge or unprintable name is refused before anything is sent."""
    with pytest.raises(ValueError, match=r"1 to 200 printable.*Nothing was sent"):
        make_client(world, store=path).create_once(once, image())
    assert world.posts == []
    assert not path.exists()


def test_the_longest_name(make_client: MakeClient, world: World, place: str) -> None:
    """A name may have exactly 200 characters."""
    client = make_client(world, store=place)
    first = client.create_once("x" * 200, image())
    assert client.create_once("x" * 200, image()).id == first.id


def test_a_name_that_is_no_string(make_client: MakeClient, world: World, place: str) -> None:
    """A number is not taken for a name, because 1 and "1" would be one name or two."""
    with pytest.raises(TypeError, match="must be a string, not int"):
        make_client(world, store=place).create_once(1, image())  # type: ignore[arg-type]


def test_a_store_that_cannot_be_written(make_client: MakeClient, world: World, path: Path) -> None:
    """Without a store nothing is paid under a name."""
    path.mkdir()
    with pytest.raises(StoreUnusable):
        make_client(world, store=path).create_once("order 1", image())
    assert world.posts == []


DIES = """
import os, sys
from muybridge import Client
from muybridge.testing import FakeTransport
from client.in_process import KEY, World
from client.requests_made import image

class Dies(FakeTransport):
    def stream(self, request, *, timeout, authorization=None):
        os._exit(9)

Client(KEY, World.url, store=sys.argv[1], transport=Dies()).create_once("order 1", image())
"""


def _removed(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    path.unlink()
    open_store(path).account(bytes.hex)


@pytest.mark.parametrize("change", [_removed, _replaced])
def test_a_store_that_is_gone(
    make_client: MakeClient, world: World, path: Path, change: Callable[[Path], None]
) -> None:
    """If the store is removed or replaced while a client uses it, the client sends nothing more.

    Another client would not find the names that it used, and would pay for them again.
    """
    client = make_client(world, store=path, budget=Budget(creates=1))
    client.create_once("order 1", image())
    kept = path.read_bytes()
    change(path)
    with pytest.raises(StoreUnusable, match=r"was removed, or replaced.* Nothing is sent\."):
        client.create_once("order 2", image("another horse"))
    assert len(world.posts) == 1
    path.write_bytes(kept)
    assert client.create_once("order 1", image()).id == client.create_once("order 1", image()).id
    with pytest.raises(OverBudget):
        client.create_once("order 2", image("another horse"))
    assert len(world.posts) == 1


def test_a_program_that_changes_its_folder(
    make_client: MakeClient, world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was named by a relative path stays the same file."""
    monkeypatch.chdir(path.parent)
    client = make_client(world, store=path.name)
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    task = client.create_once("order 1", image())
    assert client.create_once("order 1", image()).id == task.id
    assert make_client(world, store=path).create_once("order 1", image()).id == task.id
    assert len(world.posts) == 1


@pytest.mark.parametrize("value", [{"model": "imga", "prompt": "a horse"}, None])
def test_what_is_not_a_request(
    make_client: MakeClient, world: World, path: Path, value: Any
) -> None:
    """Anything but a request is rejected, with the way to build one, and nothing is recorded."""
    client = make_client(world, store=path)
    with pytest.raises(TypeError, match=r"is not a request: build one .*Nothing was sent"):
        client.create_once("order 1", value)
    assert world.posts == []
    assert not path.exists()


def test_a_process_that_died(make_client: MakeClient, world: World, path: Path) -> None:
    """If the process dies after arming, repeating the call says that it is ambiguous."""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", DIES, str(path)],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 9
    client = make_client(world, store=path)
    with pytest.raises(CreateAmbiguous, match="the process was stopped"):
        client.create_once("order 1", image())
    assert world.posts == []
    assert [one.state for one in purchases_at(path)] == [State.AMBIGUOUS]
    decide(path, the_key(path), Choice.RELEASE)
    client.create_once("order 1", image())


def test_many_at_once(make_client: MakeClient, place: str) -> None:
    """Of many callers with one name, one sends the request, and the others get its task."""
    answered = threading.Event()

    class Clock(VirtualClock):
        """Goes forward no faster than the caller that the others wait for, whatever the disk."""

        def sleep(self, seconds: float) -> None:
            assert answered.wait(60)
            super().sleep(seconds)

    world = World(latency=0.2, clock=Clock())
    tasks: list[Task] = []
    clients = [make_client(world, store=place) for _ in range(6)]

    def call(number: int) -> None:
        tasks.append(clients[number].create_once("order 1", image()))
        answered.set()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(tasks) == 6
    assert len({task.id for task in tasks}) == 1
    assert len(world.posts) == 1


def test_another_caller_is_faster(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another caller takes the name between the look and the send, the call gets its task."""
    first = make_client(world, store=place).create_once("order 1", image())
    named = moments.at("name looked up in the store").value
    looked: list[str] = []

    def before(store: Store, account: str, name: str) -> Purchase | None:
        looked.append(name)
        found: Purchase | None = named(store, account, name) if len(looked) > 1 else None
        return found

    monkeypatch.setattr(*moments.at("name looked up in the store").place, before)
    assert make_client(world, store=place).create_once("order 1", image()).id == first.id
    assert len(looked) == 2
    assert len(world.posts) == 1


@pytest.mark.parametrize(("timeout", "waits"), [(60, 300), (400, 400)])
def test_it_waits_for_another_caller(
    make_client: MakeClient, world: World, place: str, timeout: float, waits: float
) -> None:
    """While another caller is sending, the call waits; in the end it says that it is under way.

    It waits for five minutes, or as long as its own create may take.
    """
    world.instead.append(REFUSED)
    with pytest.raises(Refused):
        make_client(world, store=place).create_once("order 1", image())
    [refused] = purchases_at(place)
    began = world.clock.elapsed
    with open_store(place) as elsewhere:
        elsewhere.arm(like(refused))
        with pytest.raises(OnceUnderWay, match="nothing was sent again"):
            make_client(world, store=place, timeout=timeout).create_once("order 1", image())
    assert world.clock.elapsed - began == waits
    assert len(world.posts) == 1


def test_identical_requests_join(make_client: MakeClient, world: World, place: str) -> None:
    """With `dedupe`, an identical request gets the earlier task; without it, it does not."""
    client = make_client(world, store=place, dedupe=True)
    first = client.create(image())
    assert client.create(image()).id == first.id
    assert client.run(image()).id == first.id
    assert len(world.posts) == 1
    assert client.create(image("another horse")).id != first.id
    assert make_client(world, store=place).create(image()).id != first.id


def test_names_and_digests_are_kept_apart(
    make_client: MakeClient, world: World, place: str
) -> None:
    """A name that looks like that of identical requests is another name."""
    client = make_client(world, store=place, dedupe=True)
    first = client.create(image())
    [bought] = purchases_at(place)
    assert bought.name is not None
    assert client.create_once(bought.name, image()).id != first.id
    assert [one.once for one in purchases_at(place)] == [None, bought.name]
