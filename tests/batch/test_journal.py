"""The journal: what it allows, what it rejects, and what it keeps private."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import attrs
import pytest

import moments
from client.alarms import LateTimeout, alarm_in, alarm_raises, posix
from muybridge import batch
from muybridge.batch.journal_entries import (
    FACTS,
    TRANSITIONS,
    NewItem,
    State,
    storable_facts,
)
from muybridge.batch.journal_errors import ClaimLost, BatchMissing, StoreUnusable
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.files.durable import sync_folders
from muybridge_protocol.records.tasks import Task

SERVICE = "https://service.test"


def items(count: int) -> list[NewItem]:
    return [
        NewItem(name="", stem=f"{number:04}", family="imgb", body={"prompt": "A horse"})
        for number in range(1, count + 1)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a batch of three items."""
    SqliteJournal.create(tmp_path / "out", SERVICE, items(3)).close()
    return tmp_path / "out"


@posix
def test_the_status_on_a_full_disk(folder: Path) -> None:
    """Where no file can be written, the status still says which tasks there are."""
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, allowed[1]))
    try:
        report = batch.status(folder)
        found = [entry.number for entry in report.entries]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
    assert (found, report.sheet) == ([1, 2, 3], None)


STEPS = {
    "queued": {"claimed", "abandoned"},
    "claimed": {"armed", "queued"},
    "armed": {"claimed", "queued", "submitted", "refused", "ambiguous"},
    "submitted": {"completed", "failed", "abandoned"},
    "refused": {"queued"},
    "ambiguous": {"submitted", "abandoned", "queued"},
    "abandoned": set[str](),
    "completed": {"downloaded"},
    "failed": set[str](),
    "downloaded": {"completed"},
}
"""The steps that docs/batches.md and the head of the journal's module tell of."""


def test_the_steps_are_those_of_the_documentation() -> None:
    """Each state leads where it is said to lead, and nowhere else."""
    assert {str(state): set(map(str, steps)) for state, steps in TRANSITIONS.items()} == STEPS


def test_a_journal_is_new_to_who_has_begun_it(tmp_path: Path) -> None:
    """Only the call that begins a journal is told that it is new: it has added the items."""
    told: list[bool] = []
    for _ in range(2):
        with SqliteJournal.create(tmp_path / "out", SERVICE, items(3)) as journal:
            told.append(journal.is_new)
    with SqliteJournal(tmp_path / "out") as journal:
        told.append(journal.is_new)
    assert told == [True, False, False]


@posix
def test_an_alarm_while_a_journal_begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal handler raises comes out, even if a journal is there already."""
    error = LateTimeout("time is up")
    alarm_in(monkeypatch, moments.at("file of SQLite created"))
    with alarm_raises(error), pytest.raises(LateTimeout) as caught:
        SqliteJournal.create(folder, SERVICE, items(3))
    assert caught.value is error


def test_only_listed_steps_are_taken(folder: Path) -> None:
    """No item goes from one state to another that the table does not list."""
    with SqliteJournal(folder) as journal:
        entry = journal.entry(1)
        for before in State:
            for after in State:
                if after is not before and after not in TRANSITIONS[before]:
                    with pytest.raises(ValueError, match="no item goes"):
                        journal.move(entry, before, after, by=None)
        assert journal.entry(1) == entry


def test_what_may_have_been_accepted_is_sent_again_by_nobody_but_a_person() -> None:
    """From armed, no step but a certain failure leads back to where an item is sent from."""
    reached, edge = {State.ARMED}, [State.SUBMITTED, State.REFUSED]
    while edge:
        state = edge.pop()
        reached.add(state)
        edge += [after for after in TRANSITIONS[state] - reached if state is not State.REFUSED]
    assert not reached & {State.QUEUED, State.CLAIMED}
    assert State.ARMED not in {
        after for state, steps in TRANSITIONS.items() for after in steps if state != State.CLAIMED
    }


def test_the_first_one_to_take_a_step_is_the_only_one(folder: Path) -> None:
    """A step that another one has taken, or that is not the runner's, changes nothing."""
    with SqliteJournal(folder) as journal:
        entry = journal.take("one", creates=True)
        assert entry is not None
        with pytest.raises(ClaimLost):
            journal.move(entry, State.CLAIMED, State.ARMED, by="two")
        journal.move(entry, State.CLAIMED, State.ARMED, by="one")
        with pytest.raises(ClaimLost):
            journal.move(entry, State.CLAIMED, State.ARMED, by="one")


def test_no_item_is_given_twice(tmp_path: Path) -> None:
    """Many runners, each with a connection of its own, are never given the same item."""
    SqliteJournal.create(tmp_path, SERVICE, items(60)).close()
    given: list[int] = []

    def take(owner: str) -> None:
        with SqliteJournal(tmp_path) as journal:
            while (entry := journal.take(owner, creates=True)) is not None:
                given.append(entry.number)

    threads = [threading.Thread(target=take, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == list(range(1, 61))


def test_what_expires_soonest_is_first(folder: Path) -> None:
    """Results come before tasks, and tasks before creates; what expires soonest is first."""
    SqliteJournal(folder).close()
    with sqlite3.connect(folder / "journal" / "store.sqlite3") as db:
        db.execute("DELETE FROM items")
        rows = [
            (1, "queued", None),
            (2, "submitted", 50),
            (3, "completed", None),
            (4, "completed", 200),
            (5, "completed", 100),
        ]
        for number, state, expires in rows:
            db.execute(
                "INSERT INTO items (number, name, stem, family, body, state, expires) "
                "VALUES (?, '', ?, 'imgb', '{}', ?, ?)",
                (number, str(number), state, expires),
            )
    db.close()
    with SqliteJournal(folder) as journal:
        given = [journal.take("one", creates=True) for _ in range(6)]
    assert [entry.number if entry else None for entry in given] == [5, 4, 3, 2, 1, None]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_others_cannot_read_it(folder: Path) -> None:
    """The journal is its owner's alone, and so is all that lies next to it."""
    place = folder / "journal"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "journal.sqlite3").stat().st_mode) == 0o600


def test_every_commit_is_durable(folder: Path) -> None:
    """The journal is written with a rollback journal and the strictest synchronisation."""
    with SqliteJournal(folder) as journal:
        assert journal.pragma("journal_mode") == "delete"
        assert journal.pragma("synchronous") == 3


def _torn(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _text(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever its name says" * 100)


def _another(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


def _newer(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.close()


def _contradictory(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, 'owner TEXT', 'owner TEXT NOT NULL')")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_contradictory, "is damaged .*Repair it if you can"),
        (_torn, "Repair it if you can"),
        (_overwritten, "Repair it if you can"),
        (_empty, "no journal of a batch"),
        (_text, "Repair it if you can"),
        (_another, "no journal of a batch"),
        (_newer, "upgrade muybridge"),
    ],
)
def test_a_spoilt_journal_is_refused(
    spoil: Callable[[Path], None], said: str, folder: Path
) -> None:
    """A journal that is damaged or unknown is rejected, with what to do."""
    spoil(folder / "journal" / "store.sqlite3")
    with pytest.raises(StoreUnusable, match=said):
        SqliteJournal(folder)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("state", "sold", "'sold' is no State"),
        ("stem", b"\0", r"b'\\x00' is not a str"),
        ("attempt", "often", "'often' is not an int"),
        ("began", "later", "'later' is not a float"),
        ("reply", "a text", "'a text' is not bytes"),
    ],
)
def test_a_row_that_no_journal_writes_is_damage(
    column: str, value: object, said: str, folder: Path
) -> None:
    """An item with a value of another type is reported as damage, and is not worked on."""
    with closing(sqlite3.connect(folder / "journal" / "store.sqlite3")) as db:
        db.execute(f"UPDATE items SET {column} = ? WHERE number = 1", (value,))  # noqa: S608  ours
        db.commit()
    with SqliteJournal(folder) as journal, pytest.raises(StoreUnusable, match=f"damaged .{said}"):
        journal.entry(1)


def test_there_may_be_none(tmp_path: Path) -> None:
    """A folder without a batch is reported as such, and nothing is created in it."""
    with pytest.raises(BatchMissing, match="There is no batch in"):
        SqliteJournal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Where the folder cannot be made, nothing is begun."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StoreUnusable, match="File exists"):
        SqliteJournal.create(tmp_path / "out", SERVICE, items(1))


def test_a_journal_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    """What was begun of a journal that cannot be finished is removed."""
    same = [NewItem(name="", stem="0001", family="imgb", body={})] * 2
    with pytest.raises(StoreUnusable):
        SqliteJournal.create(tmp_path, SERVICE, same)
    assert list((tmp_path / "journal").iterdir()) == []


def test_the_second_one_to_begin_joins_the_first(folder: Path) -> None:
    """If another process has just begun the same batch, its journal is opened."""
    with SqliteJournal.create(folder, "https://other.test", items(1)) as journal:
        assert (journal.service, len(list(journal.entries()))) == (SERVICE, 3)
    assert [path.name for path in (folder / "journal").iterdir()] == ["journal.sqlite3"]


def test_a_disk_that_is_full_when_another_process_has_begun(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, a batch that another process has begun is joined, and not a new one."""

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*moments.at("file of SQLite created").place, full)
    with SqliteJournal.create(folder, SERVICE, items(1)) as journal:
        assert not journal.is_new
        assert len(list(journal.entries())) == 3


def test_a_batch_that_has_not_begun_may_go_to_another_service(folder: Path) -> None:
    """The journal keeps the other service, and knows when it is too late for that."""
    with SqliteJournal(folder) as journal:
        assert not journal.has_begun
        journal.change_service("https://other.test")
        journal.take("one", creates=True)
    with SqliteJournal(folder) as journal:
        assert journal.has_begun
        assert journal.service == "https://other.test"


@pytest.mark.parametrize("result", ["{", "[]", "nonsense", None])
def test_a_result_that_cannot_be_read(folder: Path, result: str | None) -> None:
    """If another program has spoilt a result, the item has none, and its task is still known."""
    with SqliteJournal(folder) as journal:
        token = Task(id="task-1", family="imgb").to_token()
        entry = attrs.evolve(journal.entry(1), token=token, result=result)
    assert entry.task_result is None
    assert entry.task_id == "task-1"


def test_the_result_of_an_item(folder: Path) -> None:
    """A result belongs to the item's task, without which it is nobody's."""
    with SqliteJournal(folder) as journal:
        token = Task(id="task-1", family="imgb").to_token()
        entry = attrs.evolve(journal.entry(1), token=token, result='{"status": "completed"}')
    result = entry.task_result
    assert result is not None
    assert (result.id, result.status, result.family) == ("task-1", "completed", "imgb")
    assert attrs.evolve(entry, token=None).task_result is None


def test_the_task_of_an_item(folder: Path) -> None:
    """An item has the task of its token, and none without a token or with one that is spoilt."""
    task = Task(id="task-1", family="imgb")
    with SqliteJournal(folder) as journal:
        entry = journal.entry(1)
    assert entry.task is None
    assert attrs.evolve(entry, token=task.to_token()).task == task
    assert attrs.evolve(entry, token=task.id).task is None


def test_the_task_with_an_unusual_id(folder: Path) -> None:
    """An id is found as a person writes it, whichever characters JSON escapes."""
    name = 'tâche "1"'
    with SqliteJournal(folder) as journal:
        entry = journal.take("one", creates=True)
        assert entry is not None
        journal.arm(entry, 1, by="one", lasts=0)
        token = Task(id=name, family="imgb").to_token()
        journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=token)
        assert journal.label_of_task(name) == entry.label
        assert journal.label_of_task("tâche") is None


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    """The folder of a batch may be missing, with the folders above it."""
    SqliteJournal.create(tmp_path / "a" / "b", SERVICE, items(1)).close()
    assert (tmp_path / "a" / "b" / "journal" / "store.sqlite3").exists()


def test_a_folder_that_was_left_behind_is_used(tmp_path: Path) -> None:
    """What an earlier run has left before its journal existed is in nobody's way."""
    (tmp_path / "journal").mkdir()
    with SqliteJournal.create(tmp_path, SERVICE, items(2)) as journal:
        assert [entry.number for entry in journal.entries()] == [1, 2]


def test_unfinished_journals_are_swept_up(folder: Path) -> None:
    """An unfinished journal is removed by the next process that opens the finished one."""
    unfinished = "journal.sqlite3.0123456789abcdef"
    for name in (f"{unfinished}.new", f"{unfinished}.new-journal"):
        (folder / "journal" / name).write_bytes(b"half")
    SqliteJournal(folder).close()
    assert [path.name for path in (folder / "journal").iterdir()] == ["journal.sqlite3"]


def test_a_closed_journal_is_closed(folder: Path) -> None:
    """After its context nothing is read from a journal, or written to it."""
    with SqliteJournal(folder) as journal:
        pass
    with pytest.raises(StoreUnusable):
        list(journal.entries())


@pytest.mark.parametrize("spoil", [_text, _newer])
def test_a_refused_journal_is_closed(
    spoil: Callable[[Path], None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that is refused is left open by nobody."""
    spoil(folder / "journal" / "store.sqlite3")
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", watched)
    with pytest.raises(StoreUnusable):
        SqliteJournal(folder)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[-1].execute("SELECT 1")


def test_others_are_waited_for(folder: Path) -> None:
    """Another process that is writing is waited for, ten seconds or as long as is said."""
    with SqliteJournal(folder) as journal:
        assert journal.pragma("busy_timeout") == 10_000
    with SqliteJournal(folder, patience=2) as journal:
        assert journal.pragma("busy_timeout") == 2_000
    other = sqlite3.connect(folder / "journal" / "store.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnusable):
        SqliteJournal(folder, patience=0)
    other.close()


def test_a_journal_that_another_tool_has_changed_to_wal_is_changed_back(folder: Path) -> None:
    """The rollback journal is asked for each time, whatever the file says."""
    other = sqlite3.connect(folder / "journal" / "store.sqlite3")
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    other.close()
    with SqliteJournal(folder) as journal:
        assert journal.pragma("journal_mode") == "delete"


@pytest.mark.parametrize(("platform", "full"), [("darwin", 1), ("linux", 0)])
def test_a_mac_empties_the_disks_own_cache(
    platform: str, full: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS, where fsync leaves data in the disk's cache, the full one is asked for."""
    monkeypatch.setattr(sys, "platform", platform)
    with SqliteJournal(folder) as journal:
        assert journal.pragma("fullfsync") == full


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_disk_without_room_is_met_on_opening(folder: Path) -> None:
    """A journal that could not take the next step is refused before anything is sent."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StoreUnusable):
            SqliteJournal(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    SqliteJournal(folder).close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not synchronise folders")
def test_its_name_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All folders above a new journal are synchronised, and its own once its name is in it."""
    place = tmp_path / "out" / "journal"
    synced: list[tuple[int, bool]] = []
    handles: list[int] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        handles.append(handle)
        synced.append((os.fstat(handle).st_ino, (place / "journal.sqlite3").exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    SqliteJournal.create(tmp_path / "out", SERVICE, items(1)).close()
    *of_folders, of_its_name = synced
    assert {inode for inode, _ in of_folders} >= {above.stat().st_ino for above in place.parents}
    assert of_its_name == (place.stat().st_ino, True)
    handles.clear()
    sync_folders(place)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handles[0])


def test_its_marks(folder: Path) -> None:
    """The file says what it is, and of which version, in the way that SQLite has for that."""
    with SqliteJournal(folder) as journal:
        assert journal.pragma("application_id") == int.from_bytes(b"muyb")
        assert journal.pragma("user_version") == 1
        assert (journal.folder, journal.service) == (folder, SERVICE)


def test_items_are_added_after_the_last_one(folder: Path) -> None:
    """New items continue the numbers, unless another process has added some in between."""
    with SqliteJournal(folder) as journal:
        fresh = [NewItem(name="new", stem="new", family="imgb", body={"prompt": "A mule"})]
        for wrong in (0, 2, 4):
            with pytest.raises(StoreUnusable, match="another process has just added items"):
                journal.add(fresh, after=wrong)
        journal.add(fresh, after=3)
        assert [entry.number for entry in journal.entries()] == [1, 2, 3, 4]
        assert journal.entry(4).label == "item 4 (new)"
        assert journal.entry(3).label == "item 3"
        assert journal.entry(4).body == '{"prompt": "A mule"}'
        with pytest.raises(LookupError, match="there is no item 5"):
            journal.entry(5)


def test_what_is_taken_belongs_to_its_runner(folder: Path) -> None:
    """Creates are given out only where they are wanted, in order, and belong to who took them."""
    with SqliteJournal(folder) as journal:
        assert journal.take("one", creates=False) is None
        assert journal.take("one", creates=True, besides=[1, 2, 3]) is None
        second = journal.take("one", creates=True, besides=[1])
        assert second is not None
        assert (second.number, second.state, second.owner) == (2, State.CLAIMED, "one")
        first = journal.take("two", creates=True)
        assert first is not None
        assert first.number == 1
        assert journal.owners() == ["one", "two"]
        assert journal.owned_by("one") == [second]
        third = journal.take("one", creates=True, besides=[1, 2])
        assert journal.owned_by("one") == [second, third]


def test_nothing_is_read_any_more_when_a_change_is_committed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit frees the file: a query that is not at its end would go on to hold its lock.

    The next change on the same connection would then meet one on another as a deadlock.
    """
    path = folder / "journal" / "store.sqlite3"
    held: list[str] = []

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            done = super().execute(sql, *arguments)
            if sql == "COMMIT":
                other = sqlite3.Connection(path, timeout=0, isolation_level=None)
                try:
                    other.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as error:
                    held.append(str(error))
                other.close()
            return done

    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Watched, **options)

    monkeypatch.setattr(sqlite3, "connect", watched)
    with SqliteJournal(folder) as journal:
        taken = journal.take("one", creates=True, besides=[3])
        assert taken is not None
        assert taken.number == 1
        assert journal.take("one", creates=True, besides=[1, 2, 3]) is None
    assert held == []


def test_a_task_keeps_its_state_when_it_is_taken(folder: Path) -> None:
    """A task that was created is given out for waiting, even where nothing may be created."""
    with SqliteJournal(folder) as journal:
        entry = journal.take("one", creates=True)
        assert entry is not None
        journal.move(entry, State.CLAIMED, State.ARMED, by="one")
        journal.move(entry, State.ARMED, State.SUBMITTED, by="one", owner=None, reason="r")
        taken = journal.take("two", creates=False)
        assert taken is not None
        assert (taken.number, taken.state, taken.owner) == (1, State.SUBMITTED, "two")


def test_only_facts_are_noted(folder: Path) -> None:
    """A step sets facts of the item, and never what it is, or columns that do not exist."""
    with SqliteJournal(folder) as journal:
        entry = journal.entry(1)
        for column in ("number", "name", "stem", "family", "body", "no_such"):
            facts: dict[str, Any] = {column: 1}
            with pytest.raises(ValueError, match="no such columns"):
                journal.move(entry, State.QUEUED, State.CLAIMED, by=None, **facts)
        assert storable_facts(dict.fromkeys(FACTS)) == dict.fromkeys(FACTS)
        journal.move(entry, State.QUEUED, State.QUEUED, by=None, reason="a note")
        assert journal.entry(1).reason == "a note"
        assert journal.entry(1).state is State.QUEUED


def test_a_reply_is_not_shown(folder: Path) -> None:
    """What the service answered stays out of messages and logs."""
    with SqliteJournal(folder) as journal:
        journal.move(journal.entry(1), State.QUEUED, State.QUEUED, by=None, reply=b"a signed link")
        assert "signed" not in repr(journal.entry(1))


def test_an_embedded_service_forgets_what_has_not_ended(tmp_path: Path) -> None:
    """Starting over queues all that has not ended, with nothing of before, and nothing else."""
    SqliteJournal.create(tmp_path, SERVICE, items(len(State))).close()
    with sqlite3.connect(tmp_path / "journal" / "store.sqlite3") as db:
        for number, state in enumerate(State, start=1):
            db.execute(
                "UPDATE items SET state = ?, owner = 'one', token = 't', result = 'r', "
                "reason = 'w', candidate = 'c', reply_status = 200, reply = x'62', "
                "path = 'p', size = 1, sha256 = 's' WHERE number = ?",
                (state, number),
            )
    db.close()
    ended = {State.DOWNLOADED, State.FAILED, State.REFUSED, State.ABANDONED}
    with SqliteJournal(tmp_path) as journal:
        before = list(journal.entries())
        journal.start_over()
        for old, new in zip(before, journal.entries(), strict=True):
            if old.state in ended:
                assert new == old
                continue
            assert new.state is State.QUEUED
            kept = (new.owner, new.token, new.result, new.reason, new.candidate)
            assert (*kept, new.reply_status, new.reply) == (None,) * 7
            assert (new.path, new.size, new.sha256) == (None,) * 3
