"""Runners and what they leave behind: locks, and responses in side files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import attrs
import pytest

import moments
from muybridge.batch import Stage
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.folder import FOLDER
from muybridge.batch.running.recovery import recover
from muybridge.batch.running.side_files import (
    UNFINISHED,
    DeadRunner,
    KeptResponse,
    ResponseSlot,
    Runner,
    processes_at_work,
)
from muybridge.purchases import Choice, StoreUnusable
from muybridge_protocol.purchases import UNKNOWN_END, Measure, Order
from muybridge_protocol.records.json import RAW_LIMIT

from .begun import LOST, begun, new_items

REPLY = b'{"id": "task-1", "status": "queued"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a batch of one item."""
    begun(tmp_path).store.close()
    return tmp_path


@pytest.fixture
def found(folder: Path) -> Generator[Batch]:
    """The batch in the folder."""
    with begun(folder) as opened:
        yield opened


def armed(found: Batch, key: str = "key-1") -> None:
    """Leave the first item as a runner would that were killed while its create is under way."""
    order = Order(account="a", tags=(found.tag,), amounts=dict.fromkeys(Measure, Decimal(1)))
    found.store.arm(order, key=key, item=(found.number, 1))
    found.store.database.resign()


def kept(folder: Path, reply: KeptResponse) -> Path:
    path = folder / FOLDER / "response-dead-0"
    slot = ResponseSlot(path)
    slot.keep(reply)
    slot.close()
    return path


def reply_of(status: int = 200, body: bytes = REPLY, key: str = "key-1") -> KeptResponse:
    return KeptResponse(key=key, status=status, body=body)


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
    assert not [*(folder / FOLDER).glob("runner-*")]


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
    """Its removed file is nobody's: its count is not compared with a store that forgot it."""
    place = folder / FOLDER
    with Runner(place) as runner:
        runner.leaves_something = True
    locked = moments.at("runner locked").value

    def lock_late(file: BinaryIO) -> bool:
        (place / f"runner-{runner.name}").unlink()
        return locked(file)

    monkeypatch.setattr(*moments.at("runner locked").place, lock_late)
    assert DeadRunner.find(place, runner.name) is None


def test_what_belongs_to_a_live_runner_is_left_to_it(folder: Path, found: Batch) -> None:
    """Nothing is taken from a process that lives, however long it has been silent."""
    order = Order(account="a", amounts=dict.fromkeys(Measure, Decimal(1)))
    with Runner(folder / FOLDER):
        found.store.arm(order, item=(found.number, 1))
        with begun(folder) as other:
            assert recover(other, folder / FOLDER) == []
            assert other.entry(1).state is Stage.ARMED


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        (200, Stage.SUBMITTED),
        (400, Stage.REFUSED),
        (429, Stage.QUEUED),
        (502, Stage.AMBIGUOUS),
        (UNFINISHED, Stage.AMBIGUOUS),
    ],
)
def test_a_kept_reply_is_read(folder: Path, found: Batch, status: int, stage: Stage) -> None:
    """A response in a side file is judged as ever, and the file is removed then."""
    armed(found)
    path = kept(folder, reply_of(status, REPLY if status in (200, UNFINISHED) else b"{}"))
    recover(found, folder / FOLDER)
    entry = found.entry(1)
    assert (entry.state, entry.owner) == (stage, None)
    if status == 200:
        assert entry.task_id == "task-1"
    if status == UNFINISHED:
        assert (entry.candidate, entry.reason) == ("task-1", UNKNOWN_END.reason)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="names are flushed on POSIX systems alone")
def test_what_is_put_away_stays_away(
    folder: Path, found: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, no file of a runner is there whose purchase was pruned meanwhile."""
    place, steps, sync = folder / FOLDER, list[str](), os.fsync

    def noting(handle: int) -> None:
        sync(handle)
        if os.path.samestat(os.fstat(handle), place.stat()):
            steps.append("synced" if not list(place.glob("response-*")) else "too early")

    armed(found)
    kept(folder, reply_of())
    monkeypatch.setattr(os, "fsync", noting)
    recover(found, place)
    assert steps[-1:] == ["synced"]


def test_live_runners_hide_no_dead_one(folder: Path, found: Batch) -> None:
    """What a dead one has left is read, however many others are at work beside it."""
    armed(found)
    kept(folder, reply_of())
    with ExitStack() as stack:
        for _ in range(4):  # in no order: their names are random
            stack.enter_context(Runner(folder / FOLDER))
        recover(found, folder / FOLDER)
    assert found.entry(1).state is Stage.SUBMITTED


def test_without_a_reply_it_is_ambiguous(folder: Path, found: Batch) -> None:
    """An item whose create was under way may have been accepted."""
    armed(found)
    (entry,) = recover(found, folder / FOLDER)
    assert (entry.state, entry.reason) == (Stage.AMBIGUOUS, UNKNOWN_END.reason)


def test_a_late_reply_reaches_its_item(folder: Path, found: Batch) -> None:
    """A response that is read too late still gives the item its task."""
    armed(found)
    recover(found, folder / FOLDER)
    path = kept(folder, reply_of())
    assert recover(found, folder / FOLDER) == []
    entry = found.entry(1)
    assert (entry.state, entry.owner, entry.reason) == (Stage.SUBMITTED, None, None)
    assert (found.strays(), path.exists()) == ([], False)


def test_a_late_reply_to_an_item_that_was_sent_again_is_a_stray(folder: Path, found: Batch) -> None:
    """The item stays as it is, and the task of the first create is not lost."""
    armed(found)
    recover(found, folder / FOLDER)
    found.store.decide("key-1", Choice.RESUBMIT)
    armed(found, "key-2")
    found.store.conclude("key-2", LOST)
    kept(folder, reply_of())
    assert recover(found, folder / FOLDER) == []
    assert found.entry(1).state is Stage.AMBIGUOUS
    (stray,) = found.strays()
    assert (stray.number, stray.key, stray.task) == (1, "key-1", "task-1")


def test_a_reply_that_the_store_does_not_know(folder: Path, found: Batch) -> None:
    """A response to a create that the store has not recorded shows that it is an older copy."""
    armed(found)
    path = kept(folder, reply_of(key="key-9"))
    with pytest.raises(StoreUnusable, match=r"response-dead-0 belongs to: it is an older copy"):
        recover(found, folder / FOLDER)
    assert path.exists()
    assert found.entry(1).state is Stage.ARMED


def test_a_runner_that_the_store_does_not_know(folder: Path, found: Batch) -> None:
    """So does the purchase that a runner has armed last."""
    with Runner(folder / FOLDER) as runner:
        runner.note("key-9")
    with pytest.raises(StoreUnusable, match=r"runner-[0-9a-f]+ belongs to: it is an older copy"):
        recover(found, folder / FOLDER)


def test_a_file_of_a_runner_without_its_data(folder: Path, found: Batch) -> None:
    """After a power cut, its file may have its length alone, which says nothing of the store."""
    with Runner(folder / FOLDER) as runner:
        runner.leaves_something = True
        path = folder / FOLDER / f"runner-{runner.name}"
    path.write_bytes(bytes(path.stat().st_size))
    recover(found, folder / FOLDER)
    assert not path.exists()


def test_a_reply_to_an_item_that_cannot_be_read(tmp_path: Path) -> None:
    """The id in a response to an item of an unknown family is kept, for a person to decide."""
    with begun(tmp_path, [attrs.evolve(new_items(1)[0], family="imgz")]) as found:
        armed(found)
        kept(tmp_path, reply_of())
        recover(found, tmp_path / FOLDER)
        entry = found.entry(1)
        assert (entry.state, entry.candidate) == (Stage.AMBIGUOUS, "task-1")
        assert "its response was kept, but cannot be recorded" in (entry.reason or "")
        assert "imgz" in (entry.reason or "")


def _cut(data: bytes) -> bytes:
    return data[:270]


def _flipped(data: bytes) -> bytes:
    return data.replace(b"task-1", b"task-2")


def _empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("spoil", [_cut, _flipped, _empty])
def test_a_torn_side_file_is_no_reply(
    spoil: Callable[[bytes], bytes], folder: Path, found: Batch
) -> None:
    """A side file that was not written whole, or has changed, is not believed."""
    armed(found)
    path = kept(folder, reply_of())
    path.write_bytes(spoil(path.read_bytes()))
    (entry,) = recover(found, folder / FOLDER)
    assert entry.state is Stage.AMBIGUOUS


def test_a_side_file_has_its_room_beforehand(folder: Path) -> None:
    """Keeping the longest response takes no more room on the disk than the empty file had."""
    path = folder / FOLDER / "response-x-0"
    slot = ResponseSlot(path)
    before = path.stat().st_size
    slot.keep(reply_of(body=b"x" * RAW_LIMIT * 2))
    assert path.stat().st_size == before
    slot.close()
    assert path.exists()
