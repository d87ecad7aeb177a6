"""What cannot be saved, recorded or shown belongs to one item: the others are done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

import moments
from muybridge import batch
from muybridge.batch import Entry, Stage
from muybridge.batch.items.folder import own_store
from muybridge.credentials import Credentials
from muybridge.drivers.fleet_team import End
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.purchases import Item, Outcome

from .billing import BillingServer
from .conftest import Run
from .poison import LOST, SURVIVED, Poison, poisoning
from .runner_process import horses


def check_shown(entry: Entry) -> None:
    """Check that all that is shown of *entry* is one line that can be printed."""
    for text in (entry.reason, entry.candidate, entry.task_id):
        assert text is None or text.isprintable()
        assert len(text or "") < 3000
    assert repr(entry).encode()


@pytest.mark.parametrize("poison", [*SURVIVED, *LOST])
def test_one_poisoned_item_ends_alone(poison: str, server: BillingServer, run: Run) -> None:
    """A poisoned response ends its own item, with the id or as ambiguous, and no other.

    Running the batch again changes nothing, and sends nothing.
    """
    chosen: Poison = {**SURVIVED, **LOST}[poison]
    server.write = poisoning(frozenset({"horse 1"}), chosen)
    report = run(server, horses(2), concurrency=1)
    first, second = report.entries
    assert second.state is Stage.DOWNLOADED
    check_shown(first)
    if poison in LOST:
        assert first.state is Stage.AMBIGUOUS
    else:
        assert first.state in (Stage.DOWNLOADED, Stage.FAILED)
        assert first.task_id == server.accepted["horse 1"][0]
    assert report.sheet is not None
    assert 'id="item-1"' in report.sheet.read_text(encoding="utf-8")
    again = run(server, None)
    assert (tuple(again.entries), server.posts) == ((first, second), 2)


def test_every_item_is_poisoned(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A batch of nothing but poison ends, and each item can be decided about."""
    poisons = list({**SURVIVED, **LOST}.values())

    def write(prompt: str, kind: str, record: dict[str, Any]) -> bytes:
        number = int(prompt.removeprefix("horse ")) - 1
        return poisoning(frozenset({prompt}), poisons[number])(prompt, kind, record)

    server.write = write
    report = run(server, horses(len(poisons)))
    assert report.counts[Stage.AMBIGUOUS] == len(LOST)
    assert server.posts == len(poisons)
    for entry in report.ambiguous:
        assert batch.abandon(tmp_path / "out", entry.number).state is Stage.ABANDONED
    assert run(server, None).done


def _refuse(
    monkeypatch: pytest.MonkeyPatch, moment: str, error: Exception, counts: Callable[..., bool]
) -> None:
    """Let the store refuse one step, once: what no test knows of beforehand."""
    step, left = moments.at(moment), [error]
    original = step.value

    def refusing(*arguments: Any, **more: Any) -> Any:
        if left and counts(*arguments, **more):
            raise left.pop()
        return original(*arguments, **more)

    monkeypatch.setattr(*step.place, refusing)


def _of_second(_store: object, _order: object, *, item: tuple[int, int], **_: object) -> bool:
    return item[1] == 2


def _saved_second(_store: object, item: Item, after: Stage, **_: object) -> bool:
    return (item.number, after) == (2, Stage.DOWNLOADED)


@pytest.mark.parametrize(
    ("moment", "counts", "state", "error"),
    [
        ("purchase armed", _of_second, Stage.QUEUED, OverflowError("too large")),
        ("item moved", _saved_second, Stage.COMPLETED, TypeError("odd")),
        ("item moved", _saved_second, Stage.COMPLETED, UnicodeEncodeError("utf-8", "", 0, 1, "")),
    ],
)
def test_a_step_that_cannot_be_recorded_is_its_items_own_failure(
    moment: str,
    counts: Callable[..., bool],
    state: Stage,
    error: Exception,
    server: BillingServer,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An item that cannot be recorded is left where it is, with its id; the others are done."""
    _refuse(monkeypatch, moment, error, counts)
    report = run(server, horses(3), concurrency=1)
    first, second, third = report.entries
    assert (first.state, third.state) == (Stage.DOWNLOADED, Stage.DOWNLOADED)
    assert second.state is state
    assert second.owner is None
    assert second.reason is not None
    assert "cannot be saved, recorded or shown" in second.reason
    assert run(server, None).counts == {Stage.DOWNLOADED: 3}
    assert (server.posts, server.doubles) == (3, [])


def _booked(_booking: object, end: End, _now: float) -> bytes:
    return end.body if isinstance(end, HttpResponse) else b""


def _recorded(_store: object, _key: str, outcome: Outcome) -> bytes:
    return b"" if outcome.task is None else outcome.task.id.encode()


@pytest.mark.parametrize(
    ("moment", "said"), [("verdict booked", _booked), ("verdict recorded", _recorded)]
)
def test_an_outcome_that_cannot_be_recorded_leaves_its_item_ambiguous(
    moment: str,
    said: Callable[..., bytes],
    server: BillingServer,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A response that cannot be judged or recorded makes its item ambiguous, and shows the id."""

    def counts(*told: object) -> bool:
        ids = server.accepted.get("horse 2", [])
        return any(task_id.encode() in said(*told) for task_id in ids)

    _refuse(monkeypatch, moment, OverflowError("too large"), counts)
    report = run(server, horses(3), concurrency=1)
    second = report.entries[1]
    assert (second.state, second.candidate) == (Stage.AMBIGUOUS, server.accepted["horse 2"][0])
    assert report.counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 2}
    batch.adopt(report.folder, 2, second.candidate or "")
    assert run(server, None).counts == {Stage.DOWNLOADED: 3}
    assert server.posts == 3


def test_what_breaks_a_paid_request_off_ends_the_run(
    server: BillingServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the exchange itself, which every other item would meet, is raised."""
    monkeypatch.setattr(Credentials, "authorization_for", _broken)
    with pytest.raises(RuntimeError, match="broken"):
        run(server, horses(5), concurrency=1)
    assert server.requests == 0


def _broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("broken")


def test_an_unreadable_token_is_no_obstacle(
    server: BillingServer, run: Run, tmp_path: Path
) -> None:
    """An item whose token cannot be read is shown with its id, and left alone."""
    server.status = "processing"
    run(server, horses(2), timeout=0.01)
    with closing(sqlite3.connect(own_store(tmp_path / "out"))) as db, db:
        db.execute(
            "UPDATE muybridge_purchases SET token = "
            "replace(token, '\"muybridge_task\":1', '\"muybridge_task\":9') WHERE number = 1"
        )
    server.status = "completed"
    report = run(server, None)
    assert report.counts == {Stage.SUBMITTED: 1, Stage.DOWNLOADED: 1}
    assert report.entries[0].task is None
    assert report.entries[0].task_id == server.accepted["horse 1"][0]
    assert attrs.evolve(report.entries[0], token=None).task_id is None
    assert server.posts == 2
