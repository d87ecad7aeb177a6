"""One decision about an item that may have been accepted is recorded in the store, too."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from muybridge import Client, ImgbRequest, batch
from muybridge.batch import Choice, Stage
from muybridge.batch.decisions.in_store import apply_decisions
from muybridge.batch.decisions.items import apply, step_of
from muybridge.batch.shared import open_journal
from muybridge.batch.items.folder import FOLDER, NAME, SqliteJournal
from muybridge.purchases import Choice as Decided
from muybridge.purchases import Purchase, StoreUnusable, open_store
from muybridge.purchases import State as Bought
from muybridge.testing.journal_conformance.any_journal import new_items
from muybridge_protocol.records.tasks import Task
from processes import Nursery
from stores import decide, purchases_at

from .billing import BillingServer, Fault
from .conftest import Run
from .runner_process import KEY, horses
from .test_runs import faults


def of_item(folder: Path, store: str | Path, number: int = 1) -> Purchase:
    """Return the purchase of an item."""
    item = batch.status(folder).entries[number - 1]
    assert item.purchase is not None
    [found] = [one for one in purchases_at(store) if one.key == item.purchase]
    return found


@attrs.frozen
class Decision:
    """A decision, and what it leads to.

    Args:
        in_batch: Decides about the item, given the folder and the task's id.
        choice: The same about its purchase.
        item: The state of the item after the next run.
        purchase: The state of the purchase after the decision.
        posts: How many creates the service has seen after the next run.
    """

    in_batch: Callable[[Path, str], object]
    choice: Decided
    item: Stage
    purchase: Bought
    posts: int


DECISIONS = {
    "adopt": Decision(
        lambda folder, task: batch.adopt(folder, 1, task),
        Decided.ADOPT,
        Stage.DOWNLOADED,
        Bought.ACCEPTED,
        1,
    ),
    "abandon": Decision(
        lambda folder, _: batch.abandon(folder, 1),
        Decided.ABANDON,
        Stage.ABANDONED,
        Bought.ABANDONED,
        1,
    ),
    "resubmit": Decision(
        lambda folder, _: batch.resubmit(folder, 1, i_may_pay_twice=True),
        Decided.RESUBMIT,
        Stage.DOWNLOADED,
        Bought.RESUBMITTED,
        2,
    ),
}
decided = pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS)


@decided
def test_it_is_recorded_in_the_store(
    run: Run, tmp_path: Path, store: str, decision: Decision
) -> None:
    """A decision about an ambiguous item is one about its purchase, and the next run acts on it."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        assert run(server, horses(1)).counts == {Stage.AMBIGUOUS: 1}
        before = of_item(folder, store)
        assert before.state is Bought.AMBIGUOUS
        decision.in_batch(folder, server.accepted["horse 1"][0])
        after = of_item(folder, store)
        assert (after.key, after.state) == (before.key, decision.purchase)
        assert run(server, None).counts == {decision.item: 1}
        assert server.posts == decision.posts
    assert [one for one in purchases_at(store) if one.state is Bought.AMBIGUOUS] == []


@decided
def test_a_decision_in_the_store(run: Run, tmp_path: Path, store: str, decision: Decision) -> None:
    """A decision about the purchase reaches the item with the next run."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        task = server.accepted["horse 1"][0] if decision.choice is Decided.ADOPT else None
        decide(store, of_item(folder, store).key, decision.choice, task)
        assert run(server, None).counts == {decision.item: 1}
        assert server.posts == decision.posts


@pytest.mark.parametrize("submitted_at", [5.0, None])
def test_when_a_task_named_in_the_store_began(
    run: Run, tmp_path: Path, store: str, submitted_at: float | None
) -> None:
    """The item's task began when its token says, or else when its create was recorded."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        bought = of_item(folder, store)
        task = Task(id="task-9", family="imgb", submitted_at=submitted_at)
        with open_store(store) as opened:
            opened.decide(bought.key, Decided.ADOPT, task)
    with open_journal(folder) as journal:
        apply_decisions(journal)
        item = journal.entry(1)
    assert item.task_id == "task-9"
    assert item.began == (bought.armed_at if submitted_at is None else submitted_at)


@pytest.mark.usefixtures("store")
def test_a_task_that_another_request_has(run: Run, tmp_path: Path) -> None:
    """An item cannot be given a task that the store has for another request; it stays as it is."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        assert run(server, horses(1)).counts == {Stage.AMBIGUOUS: 1}
        with Client(KEY, server.url) as client:
            other = client.create_once("order 1", ImgbRequest(model="imgb-2", prompt="horse"))
        with pytest.raises(batch.CannotDecide, match=rf"\(order 1\) already has task {other.id}"):
            batch.adopt(folder, 1, other.id)
        assert batch.status(folder).counts == {Stage.AMBIGUOUS: 1}
        batch.adopt(folder, 1, server.accepted["horse 1"][0])
        assert run(server, None).counts == {Stage.DOWNLOADED: 1}


@pytest.mark.usefixtures("store")
def test_a_table_that_the_store_refuses(run: Run, tmp_path: Path) -> None:
    """Nothing of a refused table is decided, in the journal or in the store, nor sent later."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET, Fault.ACCEPTED_RESET)) as server:
        assert run(server, horses(2)).counts == {Stage.AMBIGUOUS: 2}
        with Client(KEY, server.url) as client:
            other = client.create_once("order 1", ImgbRequest(model="imgb-2", prompt="horse"))
        table = tmp_path / "decisions.csv"
        rows = ("item,decision,task", "1,resubmit,", f"2,adopt,{other.id}")
        table.write_text("\n".join(rows), encoding="utf-8")
        with pytest.raises(batch.CannotDecide, match=rf"already has task {other.id}"):
            batch.decide_all(folder, table, i_may_pay_twice=True)
        assert batch.status(folder).counts == {Stage.AMBIGUOUS: 2}
        posts = server.posts
        assert run(server, None).counts == {Stage.AMBIGUOUS: 2}
        assert server.posts == posts


def test_what_was_not_charged(run: Run, tmp_path: Path, store: str) -> None:
    """An item whose purchase is released because it was not charged is sent again."""
    with BillingServer(faults(Fault.LOST_RESET)) as server:
        run(server, horses(1))
        decide(store, of_item(tmp_path / "out", store).key, Decided.RELEASE)
        assert run(server, None).done
        assert (server.posts, len(server.accepted["horse 1"])) == (2, 1)


@pytest.mark.parametrize("driver", ["requests", "trio", "asyncio"])
def test_a_runner_that_was_killed(
    nursery: Nursery, tmp_path: Path, path: Path, driver: str
) -> None:
    """What a killed process leaves ambiguous in both places is decided once."""
    folder = tmp_path / "out"
    with BillingServer() as server:
        order = {"url": server.url, "folder": str(folder), "store": str(path)}
        killed = nursery.run(**order, items=1, kill_at="before: response kept", driver=driver)
        assert killed == -9
        assert nursery.run(**order) == 0
        assert batch.status(folder).counts == {Stage.AMBIGUOUS: 1}
        batch.adopt(folder, "h1", server.accepted["horse 1"][0])
        assert [one.state for one in purchases_at(path)] == [Bought.ACCEPTED]
        assert nursery.run(**order) == 0
        assert batch.status(folder).counts == {Stage.DOWNLOADED: 1}
        assert server.posts == 1


def test_a_wrong_task_is_named_first(run: Run, tmp_path: Path, store: str) -> None:
    """Until the task has ended, a person can correct the decision, in both places."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        batch.adopt(folder, 1, "another")
        task = server.accepted["horse 1"][0]
        batch.adopt(folder, 1, task)
        assert of_item(folder, store).task == task
        assert run(server, None).done


@pytest.mark.parametrize("gone", ["file", "purchase"])
def test_a_store_that_knows_nothing(run: Run, tmp_path: Path, path: Path, gone: str) -> None:
    """Without its purchase, an item is decided about all the same, and no store is made."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        if gone == "file":
            path.unlink()
        else:  # as if its process had died before it armed
            with closing(sqlite3.connect(folder / FOLDER / NAME)) as db, db:
                db.execute("UPDATE items SET purchase = 'another'")
        batch.adopt(folder, 1, server.accepted["horse 1"][0])
        assert path.exists() == (gone == "purchase")
        assert run(server, None).done


def test_a_damaged_store(run: Run, tmp_path: Path, path: Path) -> None:
    """If the store cannot be used, nothing is decided: the two must not say different things."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
    path.write_bytes(b"notes" * 1000)
    with pytest.raises(StoreUnusable):
        batch.abandon(folder, 1)
    assert batch.status(folder).counts == {Stage.AMBIGUOUS: 1}


def test_the_last_create_counts(
    run: Run, tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that was sent again without a store has nothing to do with its earlier purchase."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET, Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        key = of_item(folder, store).key
        with pytest.raises(batch.CannotDecide, match="say that you may pay twice"):
            batch.resubmit(folder, 1)
        batch.resubmit(folder, 1, i_may_pay_twice=True)
        monkeypatch.delenv("MUYBRIDGE_STORE")
        assert run(server, None).counts == {Stage.AMBIGUOUS: 1}
        (item,) = batch.status(folder).entries
        assert (item.store, item.purchase) == (None, None)
        assert run(server, None).counts == {Stage.AMBIGUOUS: 1}
        assert server.posts == 2
    [found] = purchases_at(store)
    assert (found.key, found.state) == (key, Bought.RESUBMITTED)


def test_a_journal_without_these_columns(run: Run, server: BillingServer, tmp_path: Path) -> None:
    """An older journal is previewed as it is, and gets the columns when it is run."""
    folder = tmp_path / "out"
    run(server, horses(3), limit=1)
    path = folder / FOLDER / NAME
    with closing(sqlite3.connect(path)) as db, db:
        for name in ("store", "purchase"):
            db.execute(f"ALTER TABLE items DROP COLUMN {name}")
    content = path.read_bytes()
    assert batch.preview(None, folder).sends == 2
    assert path.read_bytes() == content
    before = tuple(batch.status(folder).entries)
    assert run(server, None, limit=0).entries[:] == before
    assert run(server, None).done
    assert server.posts == 3


def _lose(journal: SqliteJournal) -> None:
    """Make the first item ambiguous."""
    entry = journal.take("one", creates=True)
    assert entry is not None
    journal.arm(entry, 1, by="one", lasts=0)
    journal.move(entry, Stage.ARMED, Stage.AMBIGUOUS, by="one", owner=None)


TASK = Task(id="task-1", family="imgb")
ADOPTED = {"token": TASK.to_token(), "candidate": "task-1"}
NAMED_BY_THE_SERVICE = {"token": TASK.to_token(), "candidate": None}
EVERY = {*Choice}


@pytest.mark.parametrize(
    ("state", "facts", "choices"),
    [
        (Stage.AMBIGUOUS, {}, EVERY),
        (Stage.REFUSED, {}, {Choice.RESUBMIT}),
        (Stage.SUBMITTED, ADOPTED, {Choice.ADOPT, Choice.ABANDON}),
        (Stage.SUBMITTED, NAMED_BY_THE_SERVICE, set[Choice]()),
        (Stage.QUEUED, {}, {Choice.ABANDON}),
        *(
            (state, ADOPTED, set[Choice]())
            for state in (*Stage,)
            if state not in (Stage.AMBIGUOUS, Stage.REFUSED, Stage.SUBMITTED, Stage.QUEUED)
        ),
    ],
)
def test_what_may_be_decided(
    state: Stage, facts: dict[str, Any], choices: set[Choice], tmp_path: Path
) -> None:
    """Each decision applies to an item in these states, and to no other one."""
    items = [*new_items(1)]
    with SqliteJournal.create(tmp_path, "https://service.test", items) as journal:
        entry = attrs.evolve(journal.entry(1), state=state, **facts)
        task = Task(id="task-2", family="imgb")
        for choice in Choice:
            if choice in choices:
                step = step_of(journal, entry, choice, task, i_may_pay_twice=True)
                # What was abandoned keeps the response, which may tell more than we read in it.
                assert ("reply" in step.facts) is (choice is not Choice.ABANDON)
            else:
                with pytest.raises(batch.CannotDecide, match="there is nothing to decide"):
                    step_of(journal, entry, choice, task, i_may_pay_twice=True)
        with pytest.raises(batch.CannotDecide, match="the task of item 1"):
            step_of(journal, entry, Choice.ADOPT)
        if state is Stage.AMBIGUOUS:
            with pytest.raises(batch.CannotDecide, match="say that you may pay twice"):
                step_of(journal, entry, Choice.RESUBMIT)


def test_a_name_of_several_items(tmp_path: Path) -> None:
    """Which of several items with one name is meant, nobody guesses: nothing is decided."""
    items = [attrs.evolve(item, name="walk") for item in new_items(2)]
    with SqliteJournal.create(tmp_path, "https://service.test", items) as journal:
        _lose(journal)
    with pytest.raises(batch.CannotDecide, match="2 items are called 'walk'; give the number"):
        batch.abandon(tmp_path, "walk")
    assert batch.status(tmp_path).counts == {Stage.AMBIGUOUS: 1, Stage.QUEUED: 1}


def test_somebody_else_decides_first(tmp_path: Path) -> None:
    """If somebody decides between the check and the decision, the first decision stays."""
    with SqliteJournal.create(tmp_path, "https://service.test", new_items(1)) as journal:
        _lose(journal)
        step = step_of(journal, journal.entry(1), Choice.RESUBMIT, i_may_pay_twice=True)
        batch.abandon(tmp_path, 1)
        with pytest.raises(batch.CannotDecide):
            apply(journal, step)
        assert journal.entry(1).state is Stage.ABANDONED


def test_when_an_adopted_task_began(tmp_path: Path) -> None:
    """A token says when its task began; of a bare id it is not known, and counts from here."""
    with SqliteJournal.create(tmp_path, "https://service.test", new_items(1)) as journal:
        entry = attrs.evolve(journal.entry(1), state=Stage.AMBIGUOUS)
        for task, known in ((attrs.evolve(TASK, submitted_at=5.0), True), (TASK, False)):
            began = step_of(journal, entry, Choice.ADOPT, task).facts["began"]
            assert (began == 5.0) is known
            assert isinstance(began, float)
        body = json.dumps({"model": "imgb-2"})
        step = step_of(journal, attrs.evolve(entry, body=body), Choice.ADOPT, TASK)
        assert Task.from_token(step.facts["token"]).requested_model == "imgb-2"


def test_a_task_with_another_decision(tmp_path: Path) -> None:
    """Who names a task and does not adopt it has made a mistake, so nothing is decided."""
    with SqliteJournal.create(tmp_path, "https://service.test", new_items(1)) as journal:
        _lose(journal)
    wrong = batch.Decision(item=1, choice=Choice.ABANDON, task="task-9")
    with pytest.raises(batch.InvalidDecisions, match="a task is given, but the decision is aband"):
        batch.decide_all(tmp_path, [wrong])
    assert batch.status(tmp_path).counts == {Stage.AMBIGUOUS: 1}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('"item\n', "line 1: it is not CSV"),
        ("item,decision\n" + "9" * 18 + ",abandon\n", "line 2: there is no item " + "9" * 18),
        ("item,decision\n" + "9" * 19 + ",abandon\n", "line 2: there is no item '" + "9" * 19),
    ],
)
def test_the_line_of_a_mistake(table: str, said: str, tmp_path: Path) -> None:
    """A mistake in the first line has a line, too, and a number is one as long as it can be."""
    SqliteJournal.create(tmp_path, "https://service.test", new_items(1)).close()
    file = tmp_path / "decisions.csv"
    file.write_text(table, encoding="utf-8")
    with pytest.raises(batch.InvalidDecisions) as caught:
        batch.decide_all(tmp_path, file)
    assert said in str(caught.value)
