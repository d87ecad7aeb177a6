"""Recover what runners leave behind: each item returns to a state that is safe to resume from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import (
    ClaimLost,
    JournalUnusable,
    TaskTaken,
    older_than,
    unusable,
)
from muybridge.batch.journaled_create import judge_kept_reply, taken_task, verdict
from muybridge.batch.port import Journal
from muybridge.batch.runner_files import UNFINISHED, DeadRunner, KeptReply, known_runners
from muybridge.files.durable import sync_folders
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.service import Service

UNKNOWN_END = (
    "the runner was stopped while the request was on its way: it may have been accepted and charged"
)


def judge_late(journal: Journal, service: Service) -> None:
    """Give ambiguous items the tasks that their responses name.

    A response may have been recorded after its item had become ambiguous, by a worker that was
    stopped before it could judge the response.
    """
    if not journal.counts().get(State.AMBIGUOUS):
        return
    for entry in journal.entries(State.AMBIGUOUS):
        if entry.reply_status in (None, UNFINISHED):
            continue
        try:
            after, facts = judge_kept_reply(entry, service, wall=time.time())
            if after is State.SUBMITTED:
                journal.move(entry, State.AMBIGUOUS, after, by=None, judged=True, **facts)
        except JournalUnusable:
            raise
        except Exception:  # noqa: BLE001, S112  a person decides about this one
            continue


def recover(journal: Journal, service: Service, place: Path, *, but: str) -> list[Entry]:
    """Take the items of dead workers away from them, and return those items.

    Responses that the journal could not take are recorded first, if they are on this machine.

    Raises:
        JournalOutdated: It lacks what workers on this machine have recorded.
        JournalUnusable: What they have left cannot be put away.

    Args:
        journal: The batch's journal.
        service: Where the batch's tasks are.
        place: The folder of the files of this machine's workers.
        but: The worker that recovers them.
    """
    found: list[Entry] = []
    for worker in sorted({*journal.owners(), *known_runners(place)} - {but}):
        dead = DeadRunner.find(place, worker)
        if dead is None:
            continue
        with dead:
            if dead.writes is not None and not journal.has_written(worker, dead.writes):
                raise older_than(dead.path, journal.name)
            for path, kept in dead.replies():
                _check_known(journal, path, kept)
                _take_over(journal, kept, service, worker)
            if journal.bury(worker, ended=dead.was_here):
                found += release(journal, service, worker)
        if dead.was_here:
            # Its file must not outlast what the journal knows of it, not even in a power cut.
            with unusable(place, "Nothing was sent. Make room on the disk, then run again."):
                sync_folders(place)
            journal.forget(worker)
    return found


def _check_known(journal: Journal, path: Path, kept: KeptReply) -> None:
    """Check that the journal knows the create whose response is in *path*.

    Raises:
        JournalOutdated: It does not, so it is an older copy, which would pay again.
    """
    with suppress(LookupError):
        if journal.entry(kept.number).attempt >= kept.attempt:
            return
    raise older_than(path, journal.name)


def _take_over(journal: Journal, kept: KeptReply, service: Service, worker: str) -> None:
    """Copy a response from a side file to the journal, if it belongs to the last create."""
    entry = journal.entry(kept.number)
    reply: dict[str, Any] = {"reply_status": kept.status, "reply": kept.body}
    while entry.owner == worker:
        if (entry.state, entry.attempt, entry.reply) != (State.ARMED, kept.attempt, None):
            return
        try:
            journal.move(entry, State.ARMED, State.ARMED, by=worker, judged=True, **reply)
        except ClaimLost:  # another machine has just judged it
            entry = journal.entry(kept.number)
        else:
            return

    # The item was taken away before the response could be recorded.
    def record(after: State, facts: Mapping[str, Any]) -> None:
        told = {**reply, **facts}
        journal.report_late(kept.number, kept.attempt, after, by=worker, **told)

    _judge(journal, attrs.evolve(entry, **reply), service, None, record)


def release(journal: Journal, service: Service, worker: str) -> list[Entry]:
    """Release the items of *worker*, which has stopped, and return them."""
    found: list[Entry] = []
    for entry in journal.owned_by(worker):
        current, judged = entry, None
        while current.owner == worker and current != judged:
            try:
                found.append(release_item(journal, current, service))
                break
            except ClaimLost:  # its response has arrived, or somebody recovers it at this moment
                current, judged = journal.entry(entry.number), current
    return found


def release_item(
    journal: Journal, entry: Entry, service: Service, *, reason: str | None = None
) -> Entry:
    """Release *entry*, and return it as it is afterwards.

    Args:
        journal: The batch's journal.
        entry: The item, as it is in the journal.
        service: Where the batch's tasks are.
        reason: Why its owner can do no more for it, or None to leave the item's reason as it is.
    """
    given: dict[str, Any] = {} if reason is None else {"reason": reason}

    def record(after: State, facts: Mapping[str, Any]) -> None:
        told: dict[str, Any] = {**facts, "owner": None}
        journal.move(entry, entry.state, after, by=entry.owner, judged=True, **told)

    if entry.state is State.ARMED:
        _judge(journal, entry, service, reason, record)
    else:
        record(State.QUEUED if entry.state is State.CLAIMED else entry.state, given)
    return journal.entry(entry.number)


def _judge(
    journal: Journal,
    entry: Entry,
    service: Service,
    reason: str | None,
    record: Callable[[State, Mapping[str, Any]], None],
) -> None:
    """Record the next state of an armed item, as far as its response is known."""
    candidate = find_id(entry.reply or b"")
    if entry.reply_status in (None, UNFINISHED):
        record(State.AMBIGUOUS, {"candidate": candidate, "reason": reason or UNKNOWN_END})
        return
    try:
        record(*judge_kept_reply(entry, service, wall=time.time()))
    except (JournalUnusable, ClaimLost):
        raise
    except TaskTaken:
        record(*verdict(taken_task(journal, candidate or "")))
    except Exception as error:  # noqa: BLE001  it concerns this item only
        said = reason or f"{type(error).__name__}: {error}"
        kept = f"its response was kept, but cannot be recorded ({said})"
        record(State.AMBIGUOUS, {"candidate": candidate, "reason": kept})
