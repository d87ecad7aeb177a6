"""What the checks of a journal have in common: how journals are made, and what they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final

from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.port import Journal
from muybridge.testing.conformance.lessons import Lesson
from muybridge.testing.journal_conformance.lessons import FENCE, FIRST

SERVICE: Final = "https://service.test"
"""Where the tasks of every batch are."""
TOKEN: Final = '{"muybridge_task":1,"id":"task-1","family":"imgb"}'  # noqa: S105  it holds no secret


def new_items(count: int) -> list[NewItem]:
    """Return *count* items with names."""
    return [
        NewItem(name=f"h{number}", stem=f"h{number}", family="imgb", body={"prompt": "A horse"})
        for number in range(1, count + 1)
    ]


class AnyJournal:
    """Makes journals, and closes them after each test."""

    def make_journal(self, items: Sequence[NewItem]) -> Journal:
        """Return the journal of a new batch of *items*, whose tasks are at `SERVICE`."""
        raise NotImplementedError(f"{type(self).__name__} must say how its journal is made")

    def reopen(self, journal: Journal) -> Journal:
        """Return a journal of the same batch, opened as by another process."""
        raise NotImplementedError(f"{type(self).__name__} must say how its journal is opened")

    def setup_method(self) -> None:
        """Prepare to close every journal."""
        self._open: ExitStack = ExitStack()

    def teardown_method(self) -> None:
        """Close every journal."""
        self._open.close()

    def _journal(self, count: int = 3, *workers: str) -> Journal:
        journal = self._open.enter_context(closing(self.make_journal(new_items(count))))
        for worker in workers or ("one",):
            journal.register(worker)
        return journal

    def _taken(self, journal: Journal, owner: str) -> Entry:
        entry = journal.take(owner, creates=True)
        FIRST.require(entry, f"an item for {owner}", "none")
        assert entry is not None  # noqa: S101  for type checkers
        return entry

    def _submitted(self, journal: Journal, task: str = "task-1") -> Entry:
        """Create the next queued item."""
        done = [entry.number for entry in journal.entries() if entry.state is not State.QUEUED]
        entry = journal.take("one", creates=True, besides=done)
        FIRST.require(entry, "a queued item", "none")
        assert entry is not None  # noqa: S101  for type checkers
        journal.arm(entry, 1, by="one", lasts=60)
        token = TOKEN.replace("task-1", task)
        journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=token)
        return entry

    def _lost(self) -> tuple[Journal, Entry]:
        """Return a journal whose item 1 is ambiguous, because its worker was declared dead."""
        journal = self._journal(1)
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        FENCE.require(journal.bury("one", ended=True), "one is dead", "it is not")
        journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None, reason="lost")
        return journal, entry


@contextmanager
def refused(kind: type[Exception], lesson: Lesson, what: str) -> Generator[None, None, None]:
    """Check that the block raises *kind*."""
    __tracebackhide__ = True
    try:
        yield
    except kind:
        return
    lesson.refuse(f"{kind.__name__}: {what}", "it was accepted")


def at_once(work: Callable[[str], None], names: Sequence[str]) -> None:
    """Do *work* for each name in a thread of its own, and raise the first error."""
    errors: list[BaseException] = []

    def guarded(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001  raised below, where pytest sees it
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
