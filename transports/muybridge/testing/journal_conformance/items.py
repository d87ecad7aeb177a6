"""Items and their facts are kept as they are, and found."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from muybridge.batch.journal_entries import NewItem, State
from muybridge.batch.journal_errors import JournalUnusable, Unstorable
from muybridge.testing.journal_conformance.any_journal import SERVICE, AnyJournal, refused
from muybridge.testing.journal_conformance.lessons import FIRST, WHOLE


class Items(AnyJournal):
    """The checks of what a journal keeps."""

    def test_items_are_kept_as_they_are(self) -> None:
        """Every item is read as it was added, in order, by whoever opens the journal."""
        texts = ["plain", "Füße 🐎", "a\tb", 'quote " and \\', "nul \0 in it", "x" * 100_000]
        body = {"prompt": texts, "n": 1, "ratio": 0.1, "none": None, "yes": True}
        items = [NewItem(name=text[:50], stem=f"s{n}", family="imgb", body=body)
                 for n, text in enumerate(texts) if text.isprintable()]  # fmt: skip
        journal = self._open.enter_context(closing(self.make_journal(items)))
        with closing(self.reopen(journal)) as other:
            for number, (item, entry) in enumerate(zip(items, other.entries(), strict=True), 1):
                found = (entry.number, entry.name, entry.stem, entry.family)
                expected = (number, item.name, item.stem, item.family)
                WHOLE.equal(found, expected, f"item {number}: {expected}")
                WHOLE.equal(json.loads(entry.body), body, f"the body {body}")
                facts = (entry.state, entry.owner, entry.attempt, entry.token)
                unsent = (State.QUEUED, None, 0, None)
                WHOLE.equal(facts, unsent, f"a new item is {unsent}")
            WHOLE.equal(other.service, SERVICE, SERVICE)

    def test_items_are_added_whole_or_not_at_all(self) -> None:
        """Items are added after the last one, all of them, and only if nobody was faster."""
        journal = self._journal(3)
        fresh = [NewItem(name="", stem=f"n{n}", family="imgb", body={}) for n in range(2)]
        for wrong in (0, 2, 4):
            with refused(JournalUnusable, FIRST, "added after another number than the last one"):
                journal.add(fresh, after=wrong)
        unwritable = NewItem(name="", stem="x", family="imgb", body={"a": {1, 2}})
        with refused(Unstorable, WHOLE, "an item that cannot be written"):
            journal.add([*fresh, unwritable], after=3)
        journal.add(fresh, after=3)
        WHOLE.equal([entry.number for entry in journal.entries()], [1, 2, 3, 4, 5], "items 1 to 5")

    def test_items_are_found(self) -> None:
        """An item is found by number, name and task, and a file by its path."""
        journal = self._journal(3)
        entry = self._submitted(journal)
        journal.move(entry, State.SUBMITTED, State.COMPLETED, by="one", path="a.png")
        found = [entry.number for entry in (*journal.called("h2"), *journal.called("3"))]
        WHOLE.equal(found, [2, 3], "h2 is item 2, and 3 is item 3")
        WHOLE.equal(journal.called("h9"), [], "no item is called h9")
        labels = [journal.label_of_task(task) for task in ("task-1", "task-9")]
        WHOLE.equal(labels, ["item 1 (h1)", None], "item 1 has task-1, none task-9")
        recorded = [journal.is_recorded("a.png", besides=n) for n in (1, 2)]
        WHOLE.equal(recorded, [False, True], "a.png is item 1's")
        WHOLE.equal(journal.counts(), {State.QUEUED: 2, State.COMPLETED: 1})
        with pytest.raises(LookupError):
            journal.entry(4)

    @pytest.mark.parametrize(
        ("fact", "value", "stored"),
        [
            ("reason", "half \ud83d", "half \ufffd"),
            ("reason", "two\nlines", "two lines"),
            ("token", "Füße 🐎", "Füße 🐎"),
            ("size", 2**63 - 1, 2**63 - 1),
            ("size", 2**63, None),
            ("expires", 7, 7.0),
            ("began", 1767225600.123456, 1767225600.123456),
            ("reply", b"\xff\x00", b"\xff\x00"),
            ("reply", b"", b""),
            ("reply_status", 0, 0),
            ("result", '{"a": 1e400}', '{"a": 1e400}'),
        ],
    )
    def test_facts_are_kept_as_they_are(self, fact: str, value: object, stored: object) -> None:
        """A fact is read as it was written, and one that cannot be written is made writable."""
        journal, facts = self._journal(1), dict[str, Any]({fact: value})
        journal.move(journal.entry(1), State.QUEUED, State.QUEUED, by=None, **facts)
        with closing(self.reopen(journal)) as other:
            found = getattr(other.entry(1), fact)
        WHOLE.equal(found, stored, f"{fact}={stored!r}")

    @pytest.mark.parametrize(
        ("fact", "value"), [("reason", b"a"), ("reply", "a"), ("size", 1.5), ("attempt", None)]
    )
    def test_a_fact_of_another_kind_isrefused(self, fact: str, value: object) -> None:
        """A value that its column is not for changes nothing."""
        journal, facts = self._journal(1), dict[str, Any]({fact: value})
        before = journal.entry(1)
        with refused(Unstorable, WHOLE, f"{fact}={value!r}"):
            journal.move(before, State.QUEUED, State.QUEUED, by=None, **facts)
        WHOLE.equal(journal.entry(1), before, "nothing changed")
