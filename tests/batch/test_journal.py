"""The journal: what it lets pass, what it refuses, and what it keeps to itself."""

from __future__ import annotations

import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muybridge.batch.journal import Journal
from muybridge.batch.journal_entries import TRANSITIONS, NewItem, State
from muybridge.batch.journal_errors import ClaimLost, JournalMissing, JournalUnusable

SERVICE = "https://service.test"


def items(count: int) -> list[NewItem]:
    return [
        NewItem(name="", stem=f"{number:04}", family="imgb", body={"prompt": "A horse"})
        for number in range(1, count + 1)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a batch of three items."""
    Journal.create(tmp_path / "out", SERVICE, items(3)).close()
    return tmp_path / "out"


def test_only_listed_steps_are_taken(folder: Path) -> None:
    """No item goes from one state to another that the table does not list."""
    with Journal(folder) as journal:
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
    with Journal(folder) as journal:
        entry = journal.take("one", creates=True)
        assert entry is not None
        with pytest.raises(ClaimLost):
            journal.move(entry, State.CLAIMED, State.ARMED, by="two")
        journal.move(entry, State.CLAIMED, State.ARMED, by="one")
        with pytest.raises(ClaimLost):
            journal.move(entry, State.CLAIMED, State.ARMED, by="one")


def test_no_item_is_given_twice(tmp_path: Path) -> None:
    """Many threads on two connections are never given the same item."""
    Journal.create(tmp_path, SERVICE, items(60)).close()
    given: list[int] = []
    with Journal(tmp_path) as one, Journal(tmp_path) as two:

        def take(journal: Journal, owner: str) -> None:
            while (entry := journal.take(owner, creates=True)) is not None:
                given.append(entry.number)

        threads = [
            threading.Thread(target=take, args=(journal, str(number)))
            for number in range(4)
            for journal in (one, two)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(given) == list(range(1, 61))


def test_what_expires_soonest_is_first(folder: Path) -> None:
    """Results come before tasks, and tasks before creates; what expires soonest is first."""
    Journal(folder).close()
    with sqlite3.connect(folder / "journal" / "journal.sqlite3") as db:
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
    with Journal(folder) as journal:
        given = [journal.take("one", creates=True) for _ in range(6)]
    assert [entry.number if entry else None for entry in given] == [5, 4, 3, 2, 1, None]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_others_cannot_read_it(folder: Path) -> None:
    """The journal is its owner's alone, and so is all that lies beside it."""
    place = folder / "journal"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "journal.sqlite3").stat().st_mode) == 0o600


def test_every_commit_is_durable(folder: Path) -> None:
    """The journal is written with a rollback journal and the strictest synchronisation."""
    with Journal(folder) as journal:
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


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_torn, "Restore it from a copy"),
        (_overwritten, "Restore it from a copy"),
        (_empty, "no journal of a batch"),
        (_text, "Restore it from a copy"),
        (_another, "no journal of a batch"),
        (_newer, "upgrade muybridge"),
    ],
)
def test_a_spoilt_journal_is_refused(
    spoil: Callable[[Path], None], said: str, folder: Path
) -> None:
    """A journal that cannot be trusted, or understood, is refused with what to do."""
    spoil(folder / "journal" / "journal.sqlite3")
    with pytest.raises(JournalUnusable, match=said):
        Journal(folder)


def test_there_may_be_none(tmp_path: Path) -> None:
    """A folder without a batch is told as such, and nothing is made in it."""
    with pytest.raises(JournalMissing, match="There is no batch in"):
        Journal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Where the folder cannot be made, nothing is begun."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(JournalUnusable, match="File exists"):
        Journal.create(tmp_path / "out", SERVICE, items(1))


def test_the_second_one_to_begin_joins_the_first(folder: Path) -> None:
    """Whoever begins a batch that another process has just begun opens that one."""
    with Journal.create(folder, "https://other.test", items(1)) as journal:
        assert (journal.service, len(journal.entries())) == (SERVICE, 3)
    assert [path.name for path in (folder / "journal").iterdir()] == ["journal.sqlite3"]
