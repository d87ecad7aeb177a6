"""One decision about an item that may have been accepted is recorded in the store, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from muybridge import Client, ImgbRequest, batch
from muybridge.batch import Choice, Entry, Stage
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.decisions import ItemDecision, decide_items
from muybridge.batch.items.folder import own_store
from muybridge.purchases import Choice as Decided
from muybridge.purchases import Purchase, Store, StoreUnusable, open_store
from muybridge.purchases import State as Bought
from muybridge.purchases.sqlite import SqliteDatabase
from muybridge_protocol.errors import InvalidInput, LocalError
from muybridge_protocol.purchases import Outcome
from muybridge_protocol.records.tasks import Task
from processes import Nursery
from stores import decide, purchases_at

from .begun import accepted, begun, bought, lost, new_items
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
        before = of_item(folder, store)
        task = Task(id="task-9", family="imgb", submitted_at=submitted_at)
        with open_store(store) as opened:
            opened.decide(before.key, Decided.ADOPT, task)
    (item,) = batch.status(folder).entries
    assert item.task_id == "task-9"
    assert item.began == (before.armed_at if submitted_at is None else submitted_at)


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
    """Nothing of a refused table is decided, in the store or in the store, nor sent later."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET, Fault.ACCEPTED_RESET)) as server:
        assert run(server, horses(2)).counts == {Stage.AMBIGUOUS: 2}
        with Client(KEY, server.url) as client:
            other = client.create_once("order 1", ImgbRequest(model="imgb-2", prompt="horse"))
        table = tmp_path / "decisions.csv"
        rows = ("item,decision,task", "1,resubmit,", f"2,adopt,{other.id}")
        table.write_text("\n".join(rows), encoding="utf-8")
        with pytest.raises(InvalidInput, match=rf"already has task {other.id}"):
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


def test_a_damaged_store(run: Run, tmp_path: Path, path: Path) -> None:
    """If the store cannot be used, nothing is decided."""
    folder = tmp_path / "out"
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
    path.write_bytes(b"notes" * 1000)
    with pytest.raises(StoreUnusable):
        batch.abandon(folder, 1)


def test_a_batch_stays_in_its_store(
    run: Run, server: BillingServer, tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch goes on where it was begun, whatever the environment says later."""
    folder = tmp_path / "out"
    assert run(server, horses(2), limit=1).counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 1}
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "another.sqlite3"))
    with pytest.raises(LocalError, match="is in the store"):
        run(server, None)
    assert server.posts == 1
    if "://" not in store and "=" not in store:
        monkeypatch.delenv("MUYBRIDGE_STORE")
        assert batch.status(folder).counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 1}
        assert run(server, None).done
    monkeypatch.setenv("MUYBRIDGE_STORE", store)
    assert run(server, None).done
    assert (server.posts, len(purchases_at(store))) == (2, 2)


def test_a_batch_with_a_store_of_its_own(
    run: Run, server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses another store, and a budget, which would count elsewhere."""
    run(server, horses(2), limit=1)
    assert (tmp_path / "out" / "state" / "store.sqlite3").exists()
    for variable, value in (
        ("MUYBRIDGE_STORE", str(tmp_path / "another.sqlite3")),
        ("MUYBRIDGE_MAX_CREATES", "9"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(variable, value)
            with pytest.raises(LocalError, match="begun with a store of its own"):
                run(server, None)
    assert server.posts == 1
    assert run(server, None).done


def _refuse(found: Batch) -> None:
    bought(found, 1, Outcome(state=Bought.RELEASED, leads_to=Stage.REFUSED, reason="no"))


def _adopt(found: Batch) -> None:
    lost(found, 1)
    found.store.decide(str(found.entry(1).purchase), Decided.ADOPT, "task-1")


def _download(found: Batch) -> None:
    accepted(found, 1, "task-1")
    found.move(found.item(1), Stage.DOWNLOADED, path="h1.png")


@pytest.mark.parametrize(
    ("stage", "come", "choices"),
    [
        (Stage.AMBIGUOUS, lambda found: lost(found, 1), {*Choice}),
        (Stage.REFUSED, _refuse, set[Choice]()),
        (Stage.SUBMITTED, _adopt, {Choice.ADOPT, Choice.ABANDON}),
        (Stage.SUBMITTED, lambda found: accepted(found, 1, "task-1"), set[Choice]()),
        (Stage.QUEUED, lambda _: None, {Choice.ABANDON}),
        (Stage.DOWNLOADED, _download, set[Choice]()),
    ],
)
@pytest.mark.parametrize("choice", Choice)
def test_what_may_be_decided(
    stage: Stage,
    come: Callable[[Batch], object],
    choices: set[Choice],
    choice: Choice,
    tmp_path: Path,
) -> None:
    """Each decision applies to an item in these stages, and to no other one."""
    found = begun(tmp_path)
    come(found)
    assert found.entry(1).state is stage
    decide_it: dict[Choice, Callable[[], Entry]] = {
        Choice.ADOPT: lambda: batch.adopt(tmp_path, 1, "task-2"),
        Choice.ABANDON: lambda: batch.abandon(tmp_path, 1),
        Choice.RELEASE: lambda: batch.release(tmp_path, 1, not_charged=True),
        Choice.RESUBMIT: lambda: batch.resubmit(tmp_path, 1, i_may_pay_twice=True),
    }
    if choice in choices:
        assert decide_it[choice]().state is not stage or choice is Choice.ADOPT
    else:
        with pytest.raises(batch.CannotDecide, match="there is nothing to decide"):
            decide_it[choice]()
        assert found.entry(1).state is stage


def test_what_has_to_be_said(tmp_path: Path) -> None:
    """Nobody releases or resubmits without saying what that may cost."""
    lost(begun(tmp_path), 1)
    with pytest.raises(batch.CannotDecide, match=r"item 1 \(h1\) may have been accepted.*twice"):
        batch.resubmit(tmp_path, 1)
    with pytest.raises(batch.CannotDecide, match="was not charged"):
        batch.release(tmp_path, 1)
    assert batch.status(tmp_path).counts == {Stage.AMBIGUOUS: 1}
    assert batch.release(tmp_path, 1, not_charged=True).state is Stage.QUEUED


def test_what_was_refused(tmp_path: Path) -> None:
    """Refused items are queued, all of them or those that are named, and nothing else is."""
    found = begun(tmp_path, 3)
    for number in (1, 2):
        bought(found, number, Outcome(state=Bought.RELEASED, leads_to=Stage.REFUSED, reason="no"))
    with pytest.raises(batch.CannotDecide, match=r"item 3 \(h3\) is queued, and not refused"):
        batch.retry(tmp_path, 1, 3)
    assert [entry.number for entry in batch.retry(tmp_path, "h2")] == [2]
    assert batch.status(tmp_path).counts == {Stage.QUEUED: 2, Stage.REFUSED: 1}
    batch.retry(tmp_path)
    assert batch.status(tmp_path).counts == {Stage.QUEUED: 3}


def test_an_item_that_is_given_twice_is_queued_once(tmp_path: Path) -> None:
    """A refused item may be given by its name and by its number."""
    found = begun(tmp_path, 2)
    for number in (1, 2):
        bought(found, number, Outcome(state=Bought.RELEASED, leads_to=Stage.REFUSED, reason="no"))
    assert [entry.number for entry in batch.retry(tmp_path, 2, "h2", "2")] == [2]
    assert batch.status(tmp_path).counts == {Stage.QUEUED: 1, Stage.REFUSED: 1}


class Interleaved(SqliteDatabase):
    """A database in which somebody else does something before each transaction.

    Args:
        path: The file.
        between: What happens.
    """

    def __init__(self, path: Path, between: Callable[[], object]) -> None:
        super().__init__(path)
        self._between = between

    def transaction(self, *, waited: float = 0.0) -> Any:
        """Begin a transaction, after what happens before."""
        self._between()
        return super().transaction(waited=waited)


@pytest.mark.parametrize("decide_again", [batch.retry, batch.abandon], ids=["retry", "abandon"])
def test_two_people_decide_at_once(decide_again: Callable[..., object], tmp_path: Path) -> None:
    """The second person is told the item's new state, and nothing is changed again."""
    found = begun(tmp_path)
    if decide_again is batch.retry:
        bought(found, 1, Outcome(state=Bought.RELEASED, leads_to=Stage.REFUSED, reason="no"))
    theirs = Store(Interleaved(own_store(tmp_path), lambda: decide_again(tmp_path, 1)))
    shared = batch.SharedBatch(theirs, found.name)
    decided = "queued" if decide_again is batch.retry else "abandoned"
    with pytest.raises(batch.CannotDecide, match=rf"item 1 \(h1\) is {decided} by now"):
        decide_again(shared, 1)
    assert batch.status(tmp_path).counts == {Stage(decided): 1}


def test_a_corrected_decision_leaves_no_stray(tmp_path: Path) -> None:
    """The task that a late response has named is no second one, once a person has adopted it."""
    found = begun(tmp_path)
    lost(found, 1)
    batch.adopt(tmp_path, 1, "task-wrong")
    late = Outcome(state=Bought.ACCEPTED, task=Task(id="task-1"))
    found.store.conclude(str(found.item(1).purchase), late)
    assert len(batch.status(tmp_path).strays) == 1
    assert batch.adopt(tmp_path, 1, "task-1").task_id == "task-1"
    assert batch.status(tmp_path).strays == ()


def test_a_name_of_several_items(tmp_path: Path) -> None:
    """Which of several items with one name is meant, nobody guesses: nothing is decided."""
    lost(begun(tmp_path, [attrs.evolve(item, name="walk") for item in new_items(2)]), 1)
    with pytest.raises(batch.CannotDecide, match="2 items are called 'walk'; give the number"):
        batch.abandon(tmp_path, "walk")
    assert batch.status(tmp_path).counts == {Stage.QUEUED: 1, Stage.AMBIGUOUS: 1}


@pytest.mark.parametrize("choice", [Choice.RELEASE, Choice.RESUBMIT])
def test_consent_is_required(tmp_path: Path, choice: Choice) -> None:
    """Without explicit consent, nothing is released or resubmitted."""
    found = begun(tmp_path)
    lost(found, 1)
    with pytest.raises(batch.CannotDecide):
        decide_items(found, [ItemDecision(entry=found.entry(1), choice=choice)])
    assert found.entry(1).state is Stage.AMBIGUOUS


def test_somebody_else_decides_first(tmp_path: Path) -> None:
    """If somebody decides between the check and the decision, the first decision stays."""
    found = begun(tmp_path)
    lost(found, 1)
    late = ItemDecision(entry=found.entry(1), choice=Choice.RESUBMIT)
    batch.abandon(tmp_path, 1)
    with pytest.raises(batch.CannotDecide):
        decide_items(found, [late], i_may_pay_twice=True)
    assert found.entry(1).state is Stage.ABANDONED


def test_a_task_with_another_decision(tmp_path: Path) -> None:
    """Who names a task and does not adopt it has made a mistake, so nothing is decided."""
    lost(begun(tmp_path), 1)
    wrong = batch.Decision(item=1, choice=Choice.ABANDON, task="task-9")
    with pytest.raises(InvalidInput, match="a task is given, but the decision is aband"):
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
    begun(tmp_path)
    file = tmp_path / "decisions.csv"
    file.write_text(table, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        batch.decide_all(tmp_path, file)
    assert said in str(caught.value)
