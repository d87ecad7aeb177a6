"""Many decisions at once, in a CSV table that a person fills in.

`decision_table` lists the ambiguous items. A person looks at the account, fills in the columns
`decision` and `task`, and `decide_all` reads the table back. Such a table is edited by hand, in a
spreadsheet, and may be sorted, cut or that of another batch. So every line is checked before the
first decision is recorded, and every problem is reported with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.decisions import ItemDecision, decide_items, find, opened_to_decide
from muybridge.batch.items.entry import Entry
from muybridge.batch.shared import Place
from muybridge.files.tables import cell, plain, read_table, write_table
from muybridge_protocol.errors import InputProblem, InvalidInput, LocalError
from muybridge_protocol.purchases import CannotDecide, Choice, Stage
from muybridge_protocol.records.json import read_object, readable
from muybridge_protocol.records.tasks import as_task

COLUMNS: Final = (
    "item", "name", "family", "model", "prompt", "candidate", "reason", "decision", "task",
)  # fmt: skip
_SHOWN: Final = 200
"""Characters of a prompt in the table."""
DECISIONS: Final = "the decisions"
NOTHING_DECIDED: Final = "nothing was decided"
"""What messages call a table, and the consequence of a problem in it."""


@attrs.frozen(kw_only=True)
class Decision:
    """A decision about an item.

    Args:
        item: The item's number or name.
        choice: `adopt`, `abandon`, `release` or `resubmit`.
        task: The id or the token of the task to adopt, or None.
        name: What the item must be called, or None to accept any name.
        where: Where the decision was read, for messages, or "".
    """

    item: int | str
    choice: Choice = attrs.field(converter=Choice)
    task: str | None = None
    name: str | None = None
    where: str = ""


def ambiguous(out: Place) -> tuple[Entry, ...]:
    """Return the items that need a person's decision.

    Args:
        out: The folder of the batch, or a batch in a store.

    Raises:
        StoreUnusable: The store cannot be used.
    """
    with opened_to_decide(out) as batch:
        return tuple(batch.entries(Stage.AMBIGUOUS))


def decision_table(out: Place) -> str:
    """Return the ambiguous items as CSV, with empty columns `decision` and `task` to fill in.

    Args:
        out: The folder of the batch, or a batch in a store.

    Raises:
        StoreUnusable: The store cannot be used.
    """
    return write_table(COLUMNS, map(_described, ambiguous(out)))


def decide_all(
    out: Place,
    decisions: str | os.PathLike[str] | Iterable[Decision],
    *,
    not_charged: bool = False,
    i_may_pay_twice: bool = False,
) -> tuple[Entry, ...]:
    """Record many decisions, after checking all of them: all or none.

    A decision that an item has already changes nothing.

    Args:
        out: The folder of the batch, or a batch in a store.
        decisions: A CSV file with the columns `item`, `decision` and `task`, such as
            `decision_table` returns, or decisions. Lines without a decision are ignored.
        not_charged: Required to release items.
        i_may_pay_twice: Required to resubmit items.

    Returns:
        The items that were decided about, in their new state.

    Raises:
        InvalidInput: Some decisions do not apply; all problems are listed.
        StoreUnusable: The store cannot be used.
        OSError: The file cannot be read.
    """
    given = (
        list(_read(Path(decisions)))
        if isinstance(decisions, str | os.PathLike)
        else [
            decision if decision.where else attrs.evolve(decision, where=f"decision {number}")
            for number, decision in enumerate(decisions, start=1)
        ]
    )
    with opened_to_decide(out) as batch:
        lines = _Lines(batch)
        found: list[ItemDecision] = []
        places: list[str] = []
        problems: list[InputProblem] = []
        for one in given:
            if isinstance(one, InputProblem):
                problems.append(one)
                continue
            try:
                decision = lines.decision(one)
            except LocalError as error:
                problems.append(InputProblem(one.where, str(error)))
                continue
            if decision is not None:
                found.append(decision)
                places.append(one.where)
        if not (found or problems):
            return ()
        try:
            return decide_items(
                batch,
                found,
                not_charged=not_charged,
                i_may_pay_twice=i_may_pay_twice,
                only_checked=bool(problems),
            )
        except CannotDecide as error:
            problems += [
                InputProblem(places[n], str(reason)) for n, reason in error.reasons.items()
            ]
            problems.sort(key=_line)
            raise InvalidInput(DECISIONS, problems, NOTHING_DECIDED) from None


def _line(problem: InputProblem) -> int:
    """Return the number of the line of a problem, to report them in order."""
    return int(problem.where.rpartition(" ")[2])


class _Lines:
    """The lines of a table, which must agree with each other.

    Args:
        batch: The batch.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._items: dict[int, str] = {}
        self._tasks: dict[str, str] = {}

    def decision(self, line: Decision) -> ItemDecision | None:
        """Return the decision of a line, or None if the item already has it.

        Raises:
            LocalError: It contradicts another line, or there is no such item.
        """
        entry = self._entry(line)
        where = self._items.setdefault(entry.number, line.where)
        if where != line.where:
            raise CannotDecide(f"{entry.label} is already in {where}")
        if line.choice is Choice.ABANDON and entry.state is Stage.ABANDONED:
            return None
        if line.choice is not Choice.ADOPT or not line.task:
            task = as_task(line.task) if line.task else None
            return ItemDecision(entry=entry, choice=line.choice, task=task)
        task = as_task(line.task)
        where = self._tasks.setdefault(task.id, line.where)
        if where != line.where:
            raise CannotDecide(f"task {task.id} is already in {where}")
        if entry.task_id == task.id:
            return None
        return ItemDecision(entry=entry, choice=line.choice, task=task)

    def _entry(self, line: Decision) -> Entry:
        try:
            if isinstance(line.item, int):
                entry = self._batch.entry(line.item)
            else:
                entry = find(self._batch, line.item)
        except LookupError:
            raise CannotDecide(f"there is no item {line.item} in the batch") from None
        if line.name is not None and line.name not in (entry.name, cell(entry.name)):
            raise CannotDecide(
                f"item {entry.number} is called {entry.name!r} in this batch, and "
                f"{line.name!r} here. If this is the right batch, remove the column 'name'"
            )
        return entry


def _read(path: Path) -> Iterator[Decision | InputProblem]:
    """Yield the decisions of a table, or what is wrong with a line."""
    for line in read_table(path, COLUMNS, {"item", "decision"}):
        if line.problem:
            yield InputProblem(line.where, line.problem)
        elif line.cells and (read := _decision(line.cells, line.where)) is not None:
            yield read


def _decision(row: dict[str, str], where: str) -> Decision | InputProblem | None:
    """Return the decision of a line, what is wrong with it, or None if it has none."""
    item, word = row.get("item", "").strip(), row.get("decision", "").strip()
    task = plain(row.get("task", "").strip())
    if not word:
        if not task:
            return None
        problem = f"task {task} is given without a decision: write {Choice.ADOPT}, or remove it"
        return InputProblem(where, problem)
    if not item:
        return InputProblem(where, "the item is missing")
    try:
        choice = Choice(word.lower())
    except ValueError:
        return InputProblem(where, f"{word!r} is not one of {', '.join(Choice)}")
    is_number = item.isascii() and item.isdigit() and len(item) < 19  # noqa: PLR2004  of 64 bits
    return Decision(
        item=int(item) if is_number else item,
        choice=choice,
        task=task or None,
        name=row.get("name"),
        where=where,
    )


def _described(entry: Entry) -> Iterator[str]:
    """Yield the cells of an item."""
    request = read_object(entry.body)
    yield str(entry.number)
    yield entry.name
    yield entry.family
    for name in ("model", "prompt"):
        value = request.get(name)
        yield readable(value, _SHOWN) if isinstance(value, str) else ""
    yield entry.possible_id or ""
    yield entry.reason or ""
    yield ""
    yield ""
