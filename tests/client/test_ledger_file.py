"""The ledger's file: made once, known by one name, durable before it is used, and never older."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from muybridge import Budget, Client, LedgerUnusable, OverBudget
from muybridge.ledger import State, open_ledger

from .drivers import MakeClient
from .in_process import InProcessTransport, Watched, World
from .requests_made import image


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def test_another_thread_makes_the_file(
    make_client: MakeClient, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has found no file goes on as usual if another thread makes it meanwhile."""
    shared = open_ledger(ledger)
    elsewhere, world = World(ids="other-{}"), World()
    faster = Client(elsewhere.key, elsewhere.url, ledger=shared,
                    transport=InProcessTransport(elsewhere), clock=elsewhere.clock)  # fmt: skip
    thread = threading.Thread(target=faster.create_once, args=("order 1", image()))
    exists = Path.exists

    def seen(path: Path) -> bool:
        there = exists(path)
        if path == ledger and not there and thread.ident is None:
            thread.start()
            thread.join(60)
        return there

    monkeypatch.setattr(Path, "exists", seen)
    make_client(world, ledger=shared).create_once("order 2", image())
    assert len(elsewhere.posts) == len(world.posts) == 1


@pytest.mark.parametrize("missing", ["a/b/c", "a", ""])
def test_the_folders_are_on_the_disk(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Before the first create is sent, each folder above a new ledger has been synced."""
    place = tmp_path / "state" / "app"
    place.mkdir(parents=True)
    ledger = place / missing / "ledger.sqlite3"
    synced: list[Path] = []
    before: list[set[Path]] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        fsync(file)
        synced.append(Path(f"/proc/self/fd/{file}").readlink())

    monkeypatch.setattr(os, "fsync", sync)
    world = Watched()
    world.watch = lambda: before.append({*synced})
    make_client(world, ledger=ledger).create(image())
    [done] = before
    made = [ledger, *ledger.parents][: len(Path(missing).parts) + 1]
    assert {one.parent for one in made} <= done


def test_a_folder_that_another_process_has_just_made(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes the file syncs its folder's own name, which nobody else may have done yet."""
    synced: list[Path] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        fsync(file)
        synced.append(Path(f"/proc/self/fd/{file}").readlink())

    (tmp_path / "state").mkdir()
    monkeypatch.setattr(os, "fsync", sync)
    make_client(World(), ledger=tmp_path / "state" / "ledger.sqlite3").create(image())
    assert tmp_path in synced


def _to_the_file(ledger: Path) -> Path:
    link = ledger.with_name("link.sqlite3")
    link.symlink_to(ledger.name)
    return link


def _to_its_folder(ledger: Path) -> Path:
    link = ledger.parent.with_name(f"{ledger.parent.name}-link")
    link.symlink_to(ledger.parent, target_is_directory=True)
    return link / ledger.name


@pytest.mark.parametrize("link", [_to_the_file, _to_its_folder])
@pytest.mark.parametrize("is_first", [True, False], ids=["made through it", "made before"])
def test_a_symbolic_link(
    make_client: MakeClient,
    ledger: Path,
    link: Callable[[Path], Path],
    is_first: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """A ledger is the same one through a symbolic link: requests of its users are under way."""
    world, states = Watched(), list[State]()
    if not is_first:
        open_ledger(ledger).account(lambda salt: salt.hex())
    linked = link(ledger)
    world.watch = lambda: states.extend(entry.state for entry in open_ledger(ledger).entries())
    client = make_client(world, ledger=linked, budget=Budget(creates=1))
    task = client.create_once("order 1", image())
    assert states == [State.ARMED]
    world.watch = lambda: None
    assert open_ledger(linked).place == str(ledger)
    assert make_client(world, ledger=ledger).create_once("order 1", image()).id == task.id
    with pytest.raises(OverBudget):
        make_client(world, ledger=ledger, budget=Budget(creates=1)).create(image())
    assert len(world.posts) == 1


def test_a_hard_link(make_client: MakeClient, world: World, ledger: Path) -> None:
    """A file with two names is refused under both, because their users do not see each other."""
    client = make_client(world, ledger=ledger)
    task = client.create_once("order 1", image())
    other = ledger.with_name("other.sqlite3")
    other.hardlink_to(ledger)
    for refused in (client, make_client(world, ledger=other), make_client(world, ledger=ledger)):
        with pytest.raises(LedgerUnusable, match=r"a hard link\. Nothing is sent"):
            refused.create_once("order 2", image())
    other.unlink()
    assert client.create_once("order 1", image()).id == task.id
    assert len(world.posts) == 1


@pytest.mark.parametrize("name", ["ledger.sqlite3", "ledger [1].sqlite3"])
def test_a_process_that_died_as_it_made_the_file(
    make_client: MakeClient, world: World, tmp_path: Path, name: str
) -> None:
    """The name under which a file was made is removed if its maker died before doing so."""
    ledger = tmp_path / name
    open_ledger(ledger).account(lambda salt: salt.hex())
    left = ledger.with_name(f"{name}.0123456789abcdef.new")
    left.hardlink_to(ledger)
    make_client(world, ledger=ledger).create(image())
    assert not left.exists()


def _moved(copy: Path, ledger: Path) -> None:
    copy.replace(ledger)


def _written(copy: Path, ledger: Path) -> None:
    ledger.write_bytes(copy.read_bytes())


def _restored(copy: Path, ledger: Path) -> None:
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(ledger)) as new:
        old.backup(new)


@pytest.mark.parametrize("restore", [_moved, _written, _restored])
def test_an_older_copy(
    make_client: MakeClient,
    world: World,
    ledger: Path,
    restore: Callable[[Path, Path], None],
) -> None:
    """If an older copy takes the ledger's place while it is in use, nothing is sent.

    That holds for whoever has sent a request since, and for whoever has only looked for one.
    """
    copy, latest = ledger.with_name("copy"), ledger.with_name("latest")
    client = make_client(world, ledger=ledger)
    looking = make_client(world, ledger=ledger, budget=Budget(creates=3))
    client.create_once("order 1", image())
    shutil.copyfile(ledger, copy)
    second = client.create_once("order 2", image())
    assert looking.create_once("order 2", image()).id == second.id
    shutil.copyfile(ledger, latest)
    restore(copy, ledger)
    for refused in (client, looking):
        for name in ("order 1", "order 2", "order 3"):
            with pytest.raises(LedgerUnusable, match="removed or replaced") as caught:
                refused.create_once(name, image())
        assert "Put the latest file back" in str(caught.value)
    books = open_ledger(ledger)  # a new one cannot notice
    assert len([*books.entries()]) == 1
    assert len(world.posts) == 2
    restore(latest, ledger)
    assert client.create_once("order 2", image()).id == second.id
    assert looking.create_once("order 2", image()).id == second.id
    assert len(world.posts) == 2
