"""What a dead runner has left: each item goes back to where it is safe to go on from."""

from __future__ import annotations

import time

from muybridge.batch.creating import judge_kept_reply
from muybridge.batch.journal import Journal
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.runners import DeadRunner, known_runners
from muybridge_protocol.service import Service

UNKNOWN_END = (
    "the runner was stopped while the request was on its way: it may have been accepted and charged"
)


def recover(journal: Journal, service: Service, *, but: str) -> list[Entry]:
    """Take what belongs to dead runners away from them, and return the items concerned.

    Args:
        journal: The batch's journal.
        service: Where the batch's tasks are.
        but: The runner that does this.
    """
    found: list[Entry] = []
    for owner in sorted({*journal.owners(), *known_runners(journal.folder)} - {but}):
        dead = DeadRunner.find(journal.folder, owner)
        if dead is None:
            continue
        with dead:
            for kept in dead.replies():
                entry = journal.entry(kept.number)
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
            found += release(journal, service, owner)
    return found


def release(journal: Journal, service: Service, owner: str) -> list[Entry]:
    """Give back what belongs to *owner*, who does nothing more, and return the items concerned."""
    entries = journal.owned_by(owner)
    for entry in entries:
        match entry.state:
            case State.CLAIMED:
                journal.move(entry, State.CLAIMED, State.QUEUED, by=owner, owner=None)
            case State.ARMED if entry.reply_status is not None:
                after, facts = judge_kept_reply(entry, service, wall=time.time())
                journal.move(entry, State.ARMED, after, by=owner, **facts)
            case State.ARMED:
                journal.move(
                    entry, State.ARMED, State.AMBIGUOUS, by=owner, reason=UNKNOWN_END, owner=None
                )
            case state:
                journal.move(entry, state, state, by=owner, owner=None)
    return [journal.entry(entry.number) for entry in entries]
