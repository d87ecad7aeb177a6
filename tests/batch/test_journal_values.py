"""Whatever reaches the journal is stored, or is one item's error; the journal stays usable."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from any_json import responses
from muybridge import batch
from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.journal_errors import Unstorable
from muybridge.batch.recovery import recover
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.cli.batch_progress import entry_record
from muybridge_protocol.service import Service

SERVICE = Service(base_url="https://service.test")
MEMORY = Path("/dev/shm")  # noqa: S108  each test has a folder of its own there
BODY = {"model": "imgb-2", "prompt": "A horse"}
TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(["\ud83d", "a\nb\x1b[2J\x00", ""])
NUMBERS = st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**4400]) | st.integers()
ANY = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.floats(),
    TEXTS,
    st.binary(max_size=20),
    st.lists(TEXTS, max_size=2),
    st.builds(object),
)
COLUMNS = st.sampled_from(
    ["attempt", "reply_status", "reply", "token", "candidate", "result", "expires", "reason",
     "path", "size", "sha256", "began", "ended"]
)  # fmt: skip


@contextmanager
def journal_of(*items: NewItem) -> Generator[SqliteJournal, None, None]:
    """Give the journal of a new batch, in memory where the system can: nothing has to last."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        with SqliteJournal.create(Path(folder), SERVICE.require_base_url(), items) as journal:
            yield journal
        check_shown(Path(folder))


def check_shown(folder: Path) -> None:
    """Check that a batch can be looked at."""
    report = batch.status(folder)
    sheet = batch.write_sheet(report.folder)
    assert sheet.read_bytes().decode().count("<figure") == len(report.entries)
    for entry in report.entries:
        assert entry_record(entry)
        assert repr(entry)


def new_item(stem: str = "0001", **values: Any) -> NewItem:
    known: dict[str, Any] = {"name": "", "family": "imgb", "body": BODY}
    return NewItem(stem=stem, **(known | values))


@given(facts=st.dictionaries(COLUMNS, ANY, max_size=4))
def test_any_fact(facts: dict[str, Any]) -> None:
    """A fact of any type and size is stored, or the item stays as it was and takes other steps."""
    with journal_of(new_item(), new_item("0002")) as journal:
        before = journal.entry(1)
        try:
            journal.move(before, State.QUEUED, State.QUEUED, by=None, **facts)
        except Unstorable:
            assert journal.entry(1) == before
        entry = journal.entry(1)
        assert entry.reason is None or entry.reason.isprintable()
        journal.move(entry, State.QUEUED, State.CLAIMED, by=None, reason="next")
        assert journal.entry(1).reason == "next"
        assert journal.entry(2).state is State.QUEUED


@given(
    name=TEXTS | ANY,
    stem=TEXTS,
    family=TEXTS | st.just("imgb"),
    body=st.dictionaries(TEXTS, ANY, max_size=3),
)
def test_any_item(name: Any, stem: str, family: str, body: dict[str, Any]) -> None:
    """An item with any values is added, or none of its batch is."""
    with journal_of(new_item("a")) as journal:
        items = [new_item("b"), new_item(stem, name=name, family=family, body=body)]
        try:
            journal.add(items, after=1)
        except Unstorable:
            assert len(list(journal.entries())) == 1
            journal.add([new_item("b")], after=1)
        assert journal.entry(2).stem == "b"


@given(
    status=st.sampled_from([200, 201, 400, 402, 429, 500, 0, 302]) | st.integers(0, 999),
    reply=responses() | responses("task-1"),
    body=st.just(BODY) | st.dictionaries(TEXTS, TEXTS, max_size=2),
)
@example(status=200, reply=b'{"id":"task-1","created":9223372036854775807}', body=BODY)
@example(status=200, reply=b'{"id":"task-1","model":"\\ud83d"}', body=BODY)
def test_any_kept_response(status: int, reply: bytes, body: dict[str, Any]) -> None:
    """Whatever response a dead runner has kept, its item continues, ends or becomes ambiguous."""
    with journal_of(new_item(body=body), new_item("0002")) as journal:
        for _ in range(2):
            entry = journal.take("dead", creates=True)
            assert entry is not None
            journal.move(entry, State.CLAIMED, State.ARMED, by="dead", attempt=1)
            reply_of: dict[str, Any] = {"reply_status": status, "reply": reply}
            journal.move(entry, State.ARMED, State.ARMED, by="dead", **reply_of)
        found = recover(journal, SERVICE, journal.path.parent, but="x")
        assert [entry.number for entry in found] == [1, 2]
        assert journal.owners() == []
        for entry in found:
            check_judged(entry, status, reply)


def check_judged(entry: Entry, status: int, reply: bytes) -> None:
    """Check that an id that was in a response is with its item."""
    assert entry.state in (State.SUBMITTED, State.AMBIGUOUS, State.REFUSED, State.QUEUED)
    if status == 200 and reply.startswith(b'{"id":"task-1"'):
        assert "task-1" in (entry.task_id, entry.candidate)
