"""Runners and what they leave behind: locks, and responses in side files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import Mock

import pytest

import moments
from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.journal_errors import ClaimLost, JournalOutdated, StoreUnusable
from muybridge.batch.recovery import UNKNOWN_END, recover, release, release_item
from muybridge.batch.running.side_files import (
    UNFINISHED,
    DeadRunner,
    KeptReply,
    ReplySlot,
    Runner,
    processes_at_work,
)
from muybridge.batch.items.folder import FOLDER, SqliteJournal
from muybridge_protocol.records.json import RAW_LIMIT
from muybridge_protocol.service import Service

SERVICE = Service(base_url="https://service.test")
REPLY = b'{"id": "task-1", "status": "queued"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a batch of one item."""
    body = {"model": "imgb-2", "prompt": "A horse"}
    item = NewItem(name="", stem="0001", family="imgb", body=body)
    SqliteJournal.create(tmp_path, SERVICE.require_base_url(), [item]).close()
    return tmp_path


def armed_by(journal: SqliteJournal, owner: str) -> Entry:
    """Return the item as *owner* would leave it, if it were killed while a create is under way."""
    entry = journal.take(owner, creates=True)
    assert entry is not None
    journal.move(entry, State.CLAIMED, State.ARMED, by=owner, attempt=1)
    return entry


def kept(folder: Path, owner: str, reply: KeptReply) -> Path:
    path = folder / "journal" / f"reply-{owner}-0"
    slot = ReplySlot(path)
    slot.keep(reply)
    slot.close()
    return path


def test_a_runner_is_alive_as_long_as_it_holds_its_lock(folder: Path) -> None:
    """A runner is dead when its lock can be had, whatever its process id is or was."""
    with Runner(folder / FOLDER) as runner:
        assert DeadRunner.find(folder / FOLDER, runner.name) is None
        runner.leaves_something = True
    dead = DeadRunner.find(folder / FOLDER, runner.name)
    assert dead is not None
    with dead:
        # Who recovers it holds it, so that nobody else does the same.
        assert DeadRunner.find(folder / FOLDER, runner.name) is None
    assert [path.name for path in (folder / "journal").iterdir()] == ["journal.sqlite3"]


def test_a_dead_runner_is_dead_while_others_look(folder: Path) -> None:
    """Whoever asks which processes are at work neither revives a dead runner nor hides it."""
    place, name = folder / FOLDER, "0" * 16
    (place / f"runner-{name}").write_bytes(b"0\n")
    seen = list[str]()

    def look() -> None:
        for _ in range(3_000):
            seen.extend(processes_at_work(place))

    together([look, look])
    assert seen == []
    found = list[bool]()

    def find() -> None:
        for _ in range(3_000):
            with suppress(KeyboardInterrupt), ExitStack() as stack:
                dead = DeadRunner.find(place, name)
                found.append(dead is not None)
                if dead is not None:
                    stack.enter_context(dead)
                raise KeyboardInterrupt  # so that its file stays

    together([look, look, find])
    assert all(found)


def together(jobs: Iterable[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_a_runner_that_another_process_has_just_recovered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its removed file is nobody's: its count is not compared with a journal that forgot it."""
    place = folder / FOLDER
    with Runner(place) as runner:
        runner.leaves_something = True
    locked = moments.at("runner locked").value

    def lock_late(file: BinaryIO) -> bool:
        (place / f"runner-{runner.name}").unlink()
        return locked(file)

    monkeypatch.setattr(*moments.at("runner locked").place, lock_late)
    assert DeadRunner.find(place, runner.name) is None


def test_what_belongs_to_a_live_runner_is_left_to_it(folder: Path) -> None:
    """Nothing is taken from a runner that lives, however long it has been silent."""
    with Runner(folder / FOLDER) as runner, SqliteJournal(folder) as journal:
        armed_by(journal, runner.name)
        assert recover(journal, SERVICE, folder / FOLDER, but="another") == []
        assert journal.entry(1).state is State.ARMED


def test_a_kept_reply_is_read(folder: Path) -> None:
    """A response in a side file gives the task its id back, and the file is removed then."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        path = kept(folder, "dead", KeptReply(number=1, attempt=1, status=200, body=REPLY))
        (entry,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert (entry.state, entry.owner) == (State.SUBMITTED, None)
        assert '"task-1"' in (entry.token or "")
        assert not path.exists()


@pytest.mark.parametrize("status", [400, 429, 502])
def test_a_kept_refusal_is_judged_as_if_it_had_come_now(folder: Path, status: int) -> None:
    """What a kept response means is decided by the same rules as ever."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        kept(folder, "dead", KeptReply(number=1, attempt=1, status=status, body=b"{}"))
        (entry,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        wanted = {400: State.REFUSED, 429: State.QUEUED, 502: State.AMBIGUOUS}
        assert (entry.state, entry.owner) == (wanted[status], None)


def test_an_older_reply_is_not_taken_for_the_last_one(folder: Path) -> None:
    """A response that was kept for an earlier create of the item says nothing of the last one."""
    with SqliteJournal(folder) as journal:
        entry = armed_by(journal, "dead")
        journal.move(entry, State.ARMED, State.ARMED, by="dead", attempt=2)
        kept(folder, "dead", KeptReply(number=1, attempt=1, status=200, body=REPLY))
        (found,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert (found.state, found.reason) == (State.AMBIGUOUS, UNKNOWN_END)


def test_only_the_reply_to_an_items_own_create_is_read(folder: Path) -> None:
    """A side file that is not about this create of this runner changes nothing."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        path = kept(folder, "another", KeptReply(number=1, attempt=1, status=200, body=REPLY))
        (folder / "journal" / "runner-another").touch()
        assert [entry.state for entry in recover(journal, SERVICE, folder / FOLDER, but="x")] == [
            State.AMBIGUOUS
        ]
        assert journal.entry(1).token is None
        assert not path.exists()


@pytest.mark.parametrize("error", [StoreUnusable("locked"), ClaimLost("another one's")])
def test_a_kept_reply_waits_for_the_journal(
    error: Exception, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item whose task is known is not called ambiguous because the journal was busy once."""
    with SqliteJournal(folder) as journal:
        armed = armed_by(journal, "dead")
        facts: dict[str, Any] = {"reply_status": 200, "reply": REPLY}
        journal.move(armed, State.ARMED, State.ARMED, by="dead", **facts)
        move = Mock(side_effect=[error, None])
        with monkeypatch.context() as busy:
            busy.setattr(journal, "move", move)
            with pytest.raises(type(error)):
                release_item(journal, journal.entry(1), SERVICE)
        assert move.call_count == 1
        assert release_item(journal, journal.entry(1), SERVICE).task_id == "task-1"


def test_a_reply_in_the_journal_is_not_replaced(folder: Path) -> None:
    """What the journal itself took of a response is older and surer than a side file."""
    with SqliteJournal(folder) as journal:
        entry = armed_by(journal, "dead")
        first: dict[str, Any] = {"reply_status": 200, "reply": REPLY}
        journal.move(entry, State.ARMED, State.ARMED, by="dead", **first)
        other = REPLY.replace(b"task-1", b"task-2")
        kept(folder, "dead", KeptReply(number=1, attempt=1, status=200, body=other))
        (found,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert '"task-1"' in (found.token or "")


def test_a_reply_to_an_item_that_went_on_changes_nothing(folder: Path) -> None:
    """A side file about an item that is armed no more is of no use."""
    with SqliteJournal(folder) as journal:
        entry = armed_by(journal, "dead")
        journal.move(entry, State.ARMED, State.SUBMITTED, by="dead", reason="the first")
        kept(folder, "dead", KeptReply(number=1, attempt=1, status=400, body=b"{}"))
        (found,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert (found.state, found.reason, found.owner) == (State.SUBMITTED, "the first", None)
        assert found.reply is None


def late(folder: Path, reply: KeptReply) -> Path:
    """Leave a response that a dead runner kept after its item was taken away."""
    (folder / FOLDER / "runner-dead").touch()
    return kept(folder, "dead", reply)


def test_a_late_reply_reaches_its_item(folder: Path) -> None:
    """A response that was kept too late still gives the item its task."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        (lost,) = release(journal, SERVICE, "dead")
        assert (lost.state, lost.owner) == (State.AMBIGUOUS, None)
        path = late(folder, KeptReply(number=1, attempt=1, status=200, body=REPLY))
        assert recover(journal, SERVICE, folder / FOLDER, but="another") == []
        found = journal.entry(1)
        assert (found.state, found.owner, found.reason) == (State.SUBMITTED, None, None)
        assert '"task-1"' in (found.token or "")
        assert (journal.strays(), path.exists()) == ([], False)


@pytest.mark.parametrize(
    ("status", "state"), [(200, State.SUBMITTED), (UNFINISHED, State.AMBIGUOUS)]
)
def test_a_late_reply_to_an_item_that_was_sent_again_is_a_stray(
    folder: Path, status: int, state: State
) -> None:
    """A response whose item has another owner is kept with its id, and the item stays as it is."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        (lost,) = release(journal, SERVICE, "dead")
        journal.move(lost, State.AMBIGUOUS, State.QUEUED, by=None)
        entry = journal.take("heir", creates=True)
        assert entry is not None
        journal.move(entry, State.CLAIMED, State.ARMED, by="heir", attempt=2)
        late(folder, KeptReply(number=1, attempt=1, status=status, body=REPLY))
        assert recover(journal, SERVICE, folder / FOLDER, but="heir") == []
        assert (journal.entry(1).state, journal.entry(1).owner) == (State.ARMED, "heir")
        (stray,) = journal.strays()
        assert (stray.number, stray.attempt, stray.worker, stray.state) == (1, 1, "dead", state)
        assert b"task-1" in (stray.token or "").encode() + (stray.reply or b"")


@pytest.mark.parametrize(("number", "attempt"), [(99, 1), (1, 2)], ids=["item", "create"])
def test_a_reply_that_the_journal_does_not_know(number: int, attempt: int, folder: Path) -> None:
    """A response to a create that the journal has not recorded shows that it is an older copy."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        reply = KeptReply(number=number, attempt=attempt, status=200, body=REPLY)
        path = kept(folder, "dead", reply)
        with pytest.raises(JournalOutdated, match=r"reply-dead-0 belongs to: it is an older copy"):
            recover(journal, SERVICE, folder / FOLDER, but="another")
        assert path.exists()
        assert journal.entry(1).state is State.ARMED


def test_a_reply_to_an_item_that_cannot_be_read(tmp_path: Path) -> None:
    """The id in a response to an item of an unknown family is kept, for a person to decide."""
    item = NewItem(name="", stem="0001", family="imgz", body={"prompt": "A horse"})
    SqliteJournal.create(tmp_path, SERVICE.require_base_url(), [item]).close()
    with SqliteJournal(tmp_path) as journal:
        armed_by(journal, "dead")
        kept(tmp_path, "dead", KeptReply(number=1, attempt=1, status=200, body=REPLY))
        (entry,) = recover(journal, SERVICE, tmp_path / FOLDER, but="another")
        assert (entry.state, entry.candidate) == (State.AMBIGUOUS, "task-1")
        assert "its response was kept, but cannot be recorded" in (entry.reason or "")
        assert "imgz" in (entry.reason or "")


def test_a_claim_of_a_dead_runner_is_queued_again(folder: Path) -> None:
    """An item that was claimed and not armed was not sent, and waits for the next runner."""
    with SqliteJournal(folder) as journal:
        assert journal.take("dead", creates=True) is not None
        (entry,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert (entry.state, entry.owner) == (State.QUEUED, None)


def test_a_live_runner_hides_no_dead_one(tmp_path: Path) -> None:
    """Each dead runner is recovered, whatever others are alive; no runner recovers itself."""
    body = {"model": "imgb-2", "prompt": "A horse"}
    made = [NewItem(name="", stem=str(n), family="imgb", body=body) for n in range(3)]
    SqliteJournal.create(tmp_path, SERVICE.require_base_url(), made).close()
    with Runner(tmp_path / FOLDER) as alive, SqliteJournal(tmp_path) as journal:
        armed_by(journal, alive.name)
        armed_by(journal, "!first")  # before and behind a name of hexadecimal digits
        armed_by(journal, "~last")
        found = recover(journal, SERVICE, tmp_path / FOLDER, but="x")
        assert [(entry.number, entry.state) for entry in found] == [
            (2, State.AMBIGUOUS),
            (3, State.AMBIGUOUS),
        ]
        assert journal.entry(1).owner == alive.name
        assert recover(journal, SERVICE, tmp_path / FOLDER, but=alive.name) == []


def _cut(data: bytes) -> bytes:
    return data[:270]


def _flipped(data: bytes) -> bytes:
    return data.replace(b"task-1", b"task-2")


def _empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("spoil", [_cut, _flipped, _empty])
def test_a_torn_side_file_is_no_reply(spoil: Callable[[bytes], bytes], folder: Path) -> None:
    """A side file that was not written whole, or has changed, is not believed."""
    with SqliteJournal(folder) as journal:
        armed_by(journal, "dead")
        path = kept(folder, "dead", KeptReply(number=1, attempt=1, status=200, body=REPLY))
        path.write_bytes(spoil(path.read_bytes()))
        (entry,) = recover(journal, SERVICE, folder / FOLDER, but="another")
        assert entry.state is State.AMBIGUOUS


def test_a_side_file_has_its_room_beforehand(folder: Path) -> None:
    """Keeping the longest response takes no more room on the disk than the empty file had."""
    path = folder / "journal" / "reply-x-0"
    slot = ReplySlot(path)
    before = path.stat().st_size
    slot.keep(KeptReply(number=1, attempt=1, status=200, body=b"x" * RAW_LIMIT * 2))
    assert path.stat().st_size == before
    slot.close()
    assert path.exists()
