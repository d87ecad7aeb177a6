"""The file of a store: made once, known by one name, durable before it is used, and never older."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from muybridge import Budget, Client, OverBudget, StoreUnusable
from muybridge.purchases import State, open_store
from stores import purchases_at

from .drivers import MakeClient
from .in_process import InProcessTransport, Watched, World
from .requests_made import image


def test_another_thread_makes_the_file(
    make_client: MakeClient, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has found no file goes on as usual if another thread makes it meanwhile."""
    shared = open_store(path)
    elsewhere, world = World(ids="other-{}"), World()
    faster = Client(elsewhere.key, elsewhere.url, store=shared,
                    transport=InProcessTransport(elsewhere), clock=elsewhere.clock)  # fmt: skip
    thread = threading.Thread(target=faster.create_once, args=("order 1", image()))
    exists = Path.exists

    def seen(looked: Path) -> bool:
        there = exists(looked)
        if looked == path and not there and thread.ident is None:
            thread.start()
            thread.join(60)
        return there

    monkeypatch.setattr(Path, "exists", seen)
    make_client(world, store=shared).create_once("order 2", image())
    assert len(elsewhere.posts) == len(world.posts) == 1


@pytest.mark.parametrize("missing", ["a/b/c", "a", ""])
def test_the_folders_are_on_the_disk(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Before the first create is sent, each folder above a new store has been synced."""
    place = tmp_path / "state" / "app"
    place.mkdir(parents=True)
    path = place / missing / "store.sqlite3"
    synced: list[Path] = []
    before: list[set[Path]] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        fsync(file)
        synced.append(Path(f"/proc/self/fd/{file}").readlink())

    monkeypatch.setattr(os, "fsync", sync)
    world = Watched()
    world.watch = lambda: before.append({*synced})
    make_client(world, store=path).create(image())
    [done] = before
    made = [path, *path.parents][: len(Path(missing).parts) + 1]
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
    make_client(World(), store=tmp_path / "state" / "store.sqlite3").create(image())
    assert tmp_path in synced


def _to_the_file(path: Path) -> Path:
    link = path.with_name("link.sqlite3")
    link.symlink_to(path.name)
    return link


def _to_its_folder(path: Path) -> Path:
    link = path.parent.with_name(f"{path.parent.name}-link")
    link.symlink_to(path.parent, target_is_directory=True)
    return link / path.name


@pytest.mark.parametrize("link", [_to_the_file, _to_its_folder])
@pytest.mark.parametrize("is_first", [True, False], ids=["made through it", "made before"])
def test_a_symbolic_link(
    make_client: MakeClient,
    path: Path,
    link: Callable[[Path], Path],
    is_first: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """A store is the same one through a symbolic link: requests of its users are under way."""
    world, states = Watched(), list[State]()
    if not is_first:
        open_store(path).account(bytes.hex)
    linked = link(path)
    world.watch = lambda: states.extend(one.state for one in purchases_at(path))
    client = make_client(world, store=linked, budget=Budget(creates=1))
    task = client.create_once("order 1", image())
    assert states == [State.ARMED]
    world.watch = lambda: None
    assert open_store(linked).place == str(path)
    assert make_client(world, store=path).create_once("order 1", image()).id == task.id
    with pytest.raises(OverBudget):
        make_client(world, store=path, budget=Budget(creates=1)).create(image())
    assert len(world.posts) == 1


def test_a_hard_link(make_client: MakeClient, world: World, path: Path) -> None:
    """A file with two names is refused under both, because their users do not see each other."""
    client = make_client(world, store=path)
    task = client.create_once("order 1", image())
    other = path.with_name("other.sqlite3")
    other.hardlink_to(path)
    for refused in (client, make_client(world, store=other), make_client(world, store=path)):
        with pytest.raises(StoreUnusable, match=r"a hard link\. Nothing is sent"):
            refused.create_once("order 2", image())
    other.unlink()
    assert client.create_once("order 1", image()).id == task.id
    assert len(world.posts) == 1


@pytest.mark.parametrize("name", ["store.sqlite3", "store [1].sqlite3"])
def test_a_process_that_died_as_it_made_the_file(
    make_client: MakeClient, world: World, tmp_path: Path, name: str
) -> None:
    """The name under which a file was made is removed if its maker died before doing so."""
    path = tmp_path / name
    open_store(path).account(bytes.hex)
    left = path.with_name(f"{name}.0123456789abcdef.new")
    left.hardlink_to(path)
    make_client(world, store=path).create(image())
    assert not left.exists()


def _moved(copy: Path, path: Path) -> None:
    copy.replace(path)


def _written(copy: Path, path: Path) -> None:
    path.write_bytes(copy.read_bytes())


def _restored(copy: Path, path: Path) -> None:
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)


@pytest.mark.parametrize("restore", [_moved, _written, _restored])
def test_an_older_copy(
    make_client: MakeClient,
    world: World,
    path: Path,
    restore: Callable[[Path, Path], None],
) -> None:
    """If an older copy takes the store's place while it is in use, nothing is sent.

    That holds for whoever has sent a request since, and for whoever has only looked for one.
    """
    copy, latest = path.with_name("copy"), path.with_name("latest")
    client = make_client(world, store=path)
    looking = make_client(world, store=path, budget=Budget(creates=3))
    client.create_once("order 1", image())
    shutil.copyfile(path, copy)
    second = client.create_once("order 2", image())
    assert looking.create_once("order 2", image()).id == second.id
    shutil.copyfile(path, latest)
    restore(copy, path)
    for refused in (client, looking):
        for name in ("order 1", "order 2", "order 3"):
            with pytest.raises(StoreUnusable, match="removed, or replaced") as caught:
                refused.create_once(name, image())
        assert "Put the latest one back" in str(caught.value)
    with pytest.raises(StoreUnusable, match="removed, or replaced"):  # by a new one, too
        purchases_at(path)
    assert len(world.posts) == 2
    restore(latest, path)
    assert client.create_once("order 2", image()).id == second.id
    assert looking.create_once("order 2", image()).id == second.id
    assert len(world.posts) == 2
