"""A store in a file: whose file it is, who is alive, and what a disk may do to it."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import signal
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import moments
from muybridge.files.locks import lock
from muybridge.purchases import StoreUnusable, open_store
from muybridge.purchases.sqlite import PATIENCE, SqliteDatabase
from muybridge.purchases.store import Store
from muybridge_protocol.purchases import Budget, Choice, Measure, Outcome, Stage, State
from processes import Nursery

from .racer import order_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.sqlite3"


def put(source: Path, target: Path, how: str) -> None:
    """Put a file in the place of another, by writing into it or by renaming."""
    if how == "rename":
        shutil.copy(source, f"{target}.new")
        Path(f"{target}.new").replace(target)
    else:
        shutil.copy(source, target)


@pytest.mark.parametrize("how", ["rename", "copy"])
@pytest.mark.parametrize("later", [False, True], ids=["same process", "later process"])
def test_an_older_copy(path: Path, tmp_path: Path, how: str, *, later: bool) -> None:
    """It is noticed by whoever has used the file, and by later programs of the same user."""
    store = open_store(path)
    store.arm(order_of())
    shutil.copy(path, tmp_path / "backup")
    store.arm(order_of("once x"))
    shutil.copy(path, tmp_path / "now")
    put(tmp_path / "backup", path, how)
    user = open_store(path) if later else store
    with pytest.raises(StoreUnusable, match="older copy"):
        user.arm(order_of("once x"))
    with pytest.raises(StoreUnusable, match="older copy"):
        user.spent()
    put(tmp_path / "now", path, how)
    user.arm(order_of())
    assert user.spent()[Measure.CREATES] == 3


def test_an_older_copy_is_accepted_by_a_person(path: Path, tmp_path: Path) -> None:
    """Later programs use it then, and notice the next one. Who knows better still refuses it."""
    store = open_store(path)
    store.arm(order_of())
    shutil.copy(path, tmp_path / "backup")
    store.arm(order_of("once x"))
    put(tmp_path / "backup", path, "rename")
    open_store(path).accept()
    with pytest.raises(StoreUnusable, match="older copy"):
        store.arm(order_of("once x"))
    later = open_store(path)
    assert later.spent()[Measure.CREATES] == 1
    later.arm(order_of("once x"))
    put(tmp_path / "backup", path, "rename")
    with pytest.raises(StoreUnusable, match="store accept --help"):
        open_store(path).spent()


def test_a_copy_without_a_purchase_is_accepted(path: Path, tmp_path: Path) -> None:
    """It is of the same store, from the time before the first one."""
    with open_store(path) as store:
        store.limit("", Budget(creates=5))
        shutil.copy(path, tmp_path / "backup")
        store.arm(order_of())
    put(tmp_path / "backup", path, "rename")
    open_store(path).accept()
    open_store(path).arm(order_of())


def test_another_store(path: Path, tmp_path: Path) -> None:
    """It is refused where one was in use, and a program that begins with it may use it."""
    store, other = open_store(path), open_store(tmp_path / "other")
    store.arm(order_of())
    other.arm(order_of())
    put(tmp_path / "other", path, "rename")
    with pytest.raises(StoreUnusable, match="another store"):
        store.arm(order_of())
    open_store(path).arm(order_of())


def test_a_file_that_is_removed_while_it_is_in_use(path: Path) -> None:
    """Nobody creates a new one, which would know nothing."""
    store = open_store(path)
    store.arm(order_of())
    path.unlink()
    for use in (lambda: store.arm(order_of()), store.spent, store.sweep):
        with pytest.raises(StoreUnusable, match="removed"):
            use()
    assert not path.exists()


def test_names_of_the_file(path: Path, tmp_path: Path) -> None:
    """A symbolic link is the same store, with the same owners. A hard link is refused."""
    store = open_store(path)
    bought = store.arm(order_of())
    (tmp_path / "link").symlink_to(path)
    linked = open_store(tmp_path / "link")
    assert linked.sweep() == 0
    assert linked.find(bought.key).state is State.ARMED
    (tmp_path / "hard").hardlink_to(path)
    for user in (store, open_store(tmp_path / "hard")):
        with pytest.raises(StoreUnusable, match="hard link"):
            user.arm(order_of())


@pytest.mark.parametrize("content", [b"", b"no database", None], ids=["empty", "text", "SQLite"])
def test_a_file_that_is_no_store(path: Path, content: bytes | None) -> None:
    """It is refused, and left as it is."""
    path.parent.mkdir()
    if content is None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE books (title)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="Nothing is sent"):
        open_store(path).arm(order_of())
    assert path.read_bytes() == before


def test_it_is_for_the_user_alone(path: Path) -> None:
    """The file, and the files of owners."""
    store = open_store(path)
    store.arm(order_of())
    owners = path.with_name("store.sqlite3.owners")
    [lock] = owners.iterdir()
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, owners, lock)]
    assert modes == [0o600, 0o700, 0o600]


def test_the_lock_of_a_process_that_has_ended(path: Path) -> None:
    """Another process removes the lock when it finds it, and keeps the locks of live processes."""
    store = open_store(path)
    store.arm(order_of())
    owners = path.with_name("store.sqlite3.owners")
    [lock] = owners.iterdir()
    (owners / "owner-0123456789abcdef").touch()
    assert store.database.lives(lock.name.removeprefix("owner-"))
    assert not store.database.lives("0123456789abcdef")
    assert [*owners.iterdir()] == [lock]


def test_a_full_disk(path: Path) -> None:
    """Nothing is sent, nothing stays reserved, and it works again once there is room."""
    store = open_store(path)
    bought = store.arm(order_of())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(StoreUnusable, match="Make room on the disk"):
            store.arm(order_of("once x"))
        with pytest.raises(StoreUnusable, match="Make room on the disk"):
            store.withdraw(bought.key)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    store.arm(order_of("once x"))
    assert store.find(bought.key).state is State.RELEASED
    assert store.spent()[Measure.CREATES] == 1


@pytest.mark.parametrize(
    "patience", [0.2, pytest.param(PATIENCE, marks=pytest.mark.nightly)], ids=["short", "real"]
)
def test_a_file_that_a_backup_locks(path: Path, patience: float) -> None:
    """Callers are refused within 30 seconds, however many wait, and send nothing."""
    store = Store(SqliteDatabase(path, patience=patience))
    bought = store.arm(order_of())
    batch = store.begin_batch("b", [])
    told: list[str] = []

    def refused(use: Callable[[], object]) -> None:
        try:
            use()
        except StoreUnusable as error:
            told.append(str(error))

    uses: tuple[Callable[[], object], ...] = (
        lambda: store.arm(order_of()),
        lambda: store.conclude(bought.key, Outcome(state=State.RELEASED)),
        lambda: store.take(batch, Stage.QUEUED),
        store.spent,
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as backup:
        backup.execute("BEGIN EXCLUSIVE")
        threads = [
            threading.Thread(target=refused, args=(use,), daemon=True)
            for use in uses
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "it waits for more than 30 seconds"
        backup.execute("ROLLBACK")
    assert len(told) == 16
    assert all("Other processes are writing to it" in one for one in told)
    store.arm(order_of())
    assert store.find(bought.key).state is State.RELEASED
    assert store.spent()[Measure.CREATES] == 1


def test_a_disk_that_cannot_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, because nobody could tell who is alive."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StoreUnusable, match="supports locks"):
        open_store(path).arm(order_of())
    assert [*path.with_name("store.sqlite3.owners").iterdir()] == []


def test_who_is_alive(path: Path, tmp_path: Path) -> None:
    """A purchase of a process that was killed is ambiguous at once, one of a living one is not."""
    store = open_store(path)
    mine = store.arm(order_of())
    with Nursery("purchases.racer") as nursery:
        nursery.run(
            what="names", place=str(path), service=f"{tmp_path}/service", most=3, seed=1,
            dies=("after the commit", 1),
        )  # fmt: skip
    left = [one for one in store.purchases(State.ARMED) if one.key != mine.key]
    assert left
    assert store.sweep() == len(left)
    assert store.find(mine.key).state is State.ARMED
    after = store.decide(left[0].key, Choice.RESUBMIT)
    assert after.state is State.RESUBMITTED
    assert store.named("a", str(left[0].name)) is None


def test_a_fork_is_another_owner(path: Path) -> None:
    """A child does not hold its parent's lock for it, and does not record for it."""
    store = open_store(path)
    mine = store.arm(order_of())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            in_child = store.arm(order_of())
            code = 0 if in_child.owner != mine.owner and store.sweep() == 0 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert store.sweep() == 1
    assert store.find(mine.key).state is State.ARMED


def test_an_owner_whose_store_nobody_uses_any_more(path: Path) -> None:
    """What it leaves armed is ambiguous, and its lock does not lie about."""
    store = open_store(path)
    store.arm(order_of())
    other = open_store(path)
    assert other.sweep() == 0
    del store
    gc.collect()  # a store and its lists refer to each other
    assert other.sweep() == 1
    assert [one.state for one in other.purchases()] == [State.AMBIGUOUS]
    del other
    gc.collect()
    assert {one.name for one in path.parent.iterdir()} == {path.name, f"{path.name}.owners"}
    assert [*path.with_name(f"{path.name}.owners").iterdir()] == []


@pytest.mark.parametrize("is_locked", [True, False])
def test_an_owner_whose_file_another_one_removes(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_locked: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """A process that looks at the file of an owner before its lock makes it take another name."""
    removed: list[Path] = []

    def late(file: BinaryIO) -> bool:
        if removed:
            return lock(file)
        for each in path.with_name(f"{path.name}.owners").iterdir():
            each.unlink()
            removed.append(each)
        return is_locked

    monkeypatch.setattr(*moments.at("owner locked").place, late)
    owner = SqliteDatabase(path).owner()
    assert len(removed) == 1
    assert not removed[0].name.endswith(owner)


def test_another_process_creates_the_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes may create the store's folder at the same moment."""
    path.parent.mkdir(parents=True)
    is_dir = Path.is_dir
    asked: list[Path] = []

    def seen(one: Path) -> bool:
        asked.append(one)
        return is_dir(one) and (one != path.parent or one in asked[:-1])

    monkeypatch.setattr(Path, "is_dir", seen)
    open_store(path).arm(order_of())
    assert asked.count(path.parent) > 1
    assert path.exists()


def test_damage_where_nobody_reads(path: Path) -> None:
    """Nothing is sent with a file that is damaged anywhere, though it could be read and written.

    What is asked for can be looked at. That does not read the whole file, which may be large.
    """
    open_store(path).arm(order_of())
    with closing(sqlite3.connect(path)) as db:
        [(page,)] = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'muybridge_purchased_tasks'"
        )
        [(size,)] = db.execute("PRAGMA page_size")
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xee" * size
    path.write_bytes(data)
    assert open_store(path).spent()[Measure.CREATES] == 1
    with pytest.raises(StoreUnusable, match="malformed"):
        open_store(path).arm(order_of())


def test_a_signal_while_the_file_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handler of a signal raises comes out as it is, and says nothing of the store."""

    class Late(OSError):
        pass

    def handler(*_: object) -> None:
        raise Late

    def strike(_: SqliteDatabase, __: sqlite3.Connection) -> None:
        signal.raise_signal(signal.SIGALRM)

    previous = signal.signal(signal.SIGALRM, handler)
    monkeypatch.setattr(*moments.at("store checked").place, strike)
    try:
        with pytest.raises(Late):
            open_store(path).arm(order_of())
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    """A path below a file is an error of the store."""
    (tmp_path / "file").write_text("text")
    with pytest.raises(StoreUnusable, match="Nothing is sent"):
        open_store(tmp_path / "file" / "store.sqlite3").arm(order_of())
