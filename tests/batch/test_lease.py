"""The thread that keeps a worker's lease alive."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from muybridge.batch.journal_errors import ClaimLost, JournalOutdated, StoreUnusable
from muybridge.batch.lease import Lease
from muybridge.batch.port import Journal, SharedJournal

PATIENCE = 30.0
"""Seconds after which a test gives up."""


class Beating:
    """A journal whose lease is short, and whose renewals go as planned.

    Args:
        plan: What each renewal raises, or None; after the last one, all succeed.
    """

    def __init__(self, *plan: Exception | None) -> None:
        self.lease = 0.003
        self.opened = 0
        self.renewed: list[str] = []
        self.enough = threading.Event()
        self._plan = iter(plan)

    def reopen(self) -> Beating:
        self.opened += 1
        return self

    def close(self) -> None:
        self.opened -= 1

    def renew(self, worker: str) -> None:
        if (error := next(self._plan, None)) is not None:
            raise error
        self.renewed.append(worker)
        if len(self.renewed) == 3:
            self.enough.set()


def lease_of(
    journal: Beating,
    recovered: list[Journal],
    lost: list[ClaimLost | JournalOutdated],
    gone: threading.Event,
) -> Lease:
    def declared_dead(error: ClaimLost | JournalOutdated) -> None:
        lost.append(error)
        gone.set()

    return Lease(cast("SharedJournal", journal), "one", recovered.append, declared_dead)


@pytest.mark.parametrize(
    "plan", [(), (StoreUnusable("away"),), (None, StoreUnusable("away"), StoreUnusable("!"))]
)
def test_a_lease_is_renewed(plan: tuple[Any, ...]) -> None:
    """It is renewed until the turn ends, even if the database is away for a while."""
    journal, recovered, lost = Beating(*plan), list[Journal](), list[ClaimLost | JournalOutdated]()
    with lease_of(journal, recovered, lost, threading.Event()):
        assert journal.enough.wait(PATIENCE)
    assert set(journal.renewed) == {"one"}
    assert len(recovered) >= 2
    assert lost == []
    assert journal.opened == 0


def test_a_lost_lease_is_told() -> None:
    """A worker that was declared dead is told so once, and its lease is renewed no more."""
    journal, recovered, lost = (
        Beating(None, ClaimLost("dead")),
        list[Journal](),
        list[ClaimLost | JournalOutdated](),
    )
    gone = threading.Event()
    with lease_of(journal, recovered, lost, gone):
        assert gone.wait(PATIENCE)
    assert (journal.renewed, len(lost), journal.opened) == (["one"], 1, 0)
