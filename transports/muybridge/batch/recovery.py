"""Recover what runners leave behind: each item returns to a state that is safe to resume from."""

from __future__ import annotations

import time

from muybridge.batch.journal import Journal
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, JournalUnusable
from muybridge.batch.journaled_create import judge_kept_reply
from muybridge.batch.runner_files import UNFINISHED, DeadRunner, KeptReply, known_runners
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.service import Service

UNKNOWN_END = (
    "the runner was stopped while the request was on its way: it may have been accepted and charged"
)


def recover(journal: Journal, service: Service, *, but: str) -> list[Entry]:
    """Take the items of dead runners away from them, and return those items.

    Args:
        journal: The batch's journal.
        service: Where the batch's tasks are.
        but: The runner that recovers them.
    """
    found: list[Entry] = []
    for owner in sorted({*journal.owners(), *known_runners(journal.folder)} - {but}):
        dead = DeadRunner.find(journal.folder, owner)
        if dead is None:
            continue
        with dead:
            for kept in dead.replies():
                _take_over(journal, kept, owner)
            found += release(journal, service, owner)
    return found


def _take_over(journal: Journal, kept: KeptReply, owner: str) -> None:
    """Copy a response from a side file to the journal, if it belongs to the last create."""
    try:
        entry = journal.entry(kept.number)
    except LookupError:
        return
    mine = entry.owner == owner and entry.attempt == kept.attempt
    if mine and entry.state is State.ARMED and entry.reply is None:
        journal.move(
            entry,
            State.ARMED,
            State.ARMED,
            by=owner,
            reply_status=kept.status,
            reply=kept.body,
        )


def release(journal: Journal, service: Service, owner: str) -> list[Entry]:
    """Release the items of *owner*, which has stopped, and return them."""
    return [release_item(journal, entry, service) for entry in journal.owned_by(owner)]


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
    after = entry.state
    facts: dict[str, str | None] = {} if reason is None else {"reason": reason}
    if entry.state is State.CLAIMED:
        after = State.QUEUED
    elif entry.state is State.ARMED and entry.reply_status in (None, UNFINISHED):
        candidate = find_id(entry.reply or b"")
        after, facts = State.AMBIGUOUS, {"candidate": candidate, "reason": reason or UNKNOWN_END}
    elif entry.state is State.ARMED:
        try:
            after, judged = judge_kept_reply(entry, service, wall=time.time())
            journal.move(entry, State.ARMED, after, by=entry.owner, **judged)
            return journal.entry(entry.number)
        except (JournalUnusable, ClaimLost):
            raise
        except Exception as error:  # noqa: BLE001  it concerns this item only
            said = reason or f"{type(error).__name__}: {error}"
            facts = {
                "candidate": find_id(entry.reply or b""),
                "reason": f"its response was kept, but cannot be recorded ({said})",
            }
            after = State.AMBIGUOUS
    journal.move(entry, entry.state, after, by=entry.owner, owner=None, **facts)
    return journal.entry(entry.number)
