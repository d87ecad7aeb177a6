"""Many decisions at once, in a CSV table that a person fills in.

`decision_table` lists the ambiguous items. A person looks at the account, fills in the columns
`decision` and `task`, and `resolve_all` reads the table back. Such a table is edited by hand, in a
spreadsheet, and may be sorted, cut or that of another batch. So every line is checked before the
first decision is recorded, and every problem is reported with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from muybridge.batch.decisions.items import CannotResolve, Choice, Step, apply_all, find, step_of
from muybridge.batch.items import BatchProblem
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.port import Journal
from muybridge.batch.shared import Place, open_journal
from muybridge.files.tables import cell, plain, read_table, write_table
from muybridge_protocol.errors import LocalError
from muybridge_protocol.problems import list_problems
from muybridge_protocol.records.json import read_object, readable
from muybridge_protocol.records.tasks import as_task
from muybridge_protocol.remedies import Face, in_python

COLUMNS: Final = (
    "item", "name", "family", "model", "prompt", "candidate", "reason", "decision", "task",
)  # fmt: skip
_SHOWN: Final = 200
"""Characters of a prompt in the table."""


@attrs.frozen(kw_only=True)
class Decision:
    """A decision about an item.

    Args:
        item: The item's number or name.
        choice: `adopt`, `abandon` or `resubmit`.
        task: The id or the token of the task to adopt, or None.
        name: What the item must be called, or None to accept any name.
        where: Where the decision was read, for messages, or "".
    """

    item: int | str
    choice: Choice = attrs.field(converter=Choice)
    task: str | None = None
    name: str | None = None
    where: str = ""


class InvalidDecisions(LocalError):
    """Some decisions do not apply, so none was recorded.

    Args:
        problems: Every problem found.
    """

    def __init__(self, problems: Iterable[BatchProblem]) -> None:
        self.problems: tuple[BatchProblem, ...] = tuple(problems)
        super().__init__(self.problems)

    def describe(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all
        """Return every problem."""
        return list_problems(self.problems, "the decisions", "nothing was decided")


def ambiguous(out: Place) -> tuple[Entry, ...]:
    """Return the items that need a person's decision.

    Args:
        out: The folder of the batch, or a batch in a database.

    Raises:
        JournalUnusable: The journal cannot be used.
    """
    with open_journal(out) as journal:
        return tuple(journal.entries(State.AMBIGUOUS))


def decision_table(out: Place) -> str:
    """Return the ambiguous items as CSV, with empty columns `decision` and `task` to fill in.

    Args:
        out: The folder of the batch, or a batch in a database.

    Raises:
        JournalUnusable: The journal cannot be used.
    """
    with open_journal(out) as journal:
        return write_table(COLUMNS, map(_described, journal.entries(State.AMBIGUOUS)))


def resolve_all(
    out: Place,
    decisions: str | os.PathLike[str] | Iterable[Decision],
    *,
    i_may_pay_twice: bool = False,
) -> tuple[Entry, ...]:
    """Check all decisions, then apply them; if one does not apply, none is recorded.

    A decision that the item already has changes nothing, so a table that was applied in part
    can be applied again.

    Args:
        out: The folder of the batch, or a batch in a database.
        decisions: A CSV file with the columns `item`, `decision` and `task`, such as
            `decision_table` returns, or decisions. Lines without a decision are ignored.
        i_may_pay_twice: Required to resubmit ambiguous items.

    Returns:
        The items that were decided about, in their new state.

    Raises:
        InvalidDecisions: Some decisions do not apply; all problems are listed.
        CannotResolve: Another process changed an item after the check. None was recorded.
        JournalUnusable: The journal cannot be used.
        StoreUnusable: The store with a purchase cannot be used.
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
    with open_journal(out) as journal:
        checks = _Checks(journal, i_may_pay_twice=i_may_pay_twice)
        steps: list[Step] = []
        problems: list[BatchProblem] = []
        for one in given:
            if isinstance(one, BatchProblem):
                problems.append(one)
                continue
            try:
                step = checks.step(one)
            except LocalError as error:
                problems.append(BatchProblem(one.where, "", str(error)))
                continue
            steps += [] if step is None else [step]
        if problems:
            raise InvalidDecisions(problems)
        return apply_all(journal, steps)


class _Checks:
    """The checks of a table, whose lines must agree with each other, too.

    Args:
        journal: The batch's journal.
        i_may_pay_twice: Whether ambiguous items may be sent again.
    """

    def __init__(self, journal: Journal, *, i_may_pay_twice: bool) -> None:
        self._journal = journal
        self._i_may_pay_twice = i_may_pay_twice
        self._items: dict[int, str] = {}
        self._tasks: dict[str, str] = {}

    def step(self, decision: Decision) -> Step | None:
        """Return what *decision* does, or None if the item already has it.

        Raises:
            LocalError: It does not apply.
        """
        entry = self._entry(decision)
        where = self._items.setdefault(entry.number, decision.where)
        if where != decision.where:
            raise CannotResolve(f"{entry.label} is already in {where}")
        task = None
        if decision.choice is Choice.ADOPT:
            if not decision.task:
                raise CannotResolve(f"to adopt {entry.label}, fill in its task")
            task = as_task(decision.task)
            where = self._tasks.setdefault(task.id, decision.where)
            if where != decision.where:
                raise CannotResolve(f"task {task.id} is already in {where}")
            if entry.task_id == task.id:
                return None
        elif decision.task:
            raise CannotResolve(f"a task is given, but the decision is {decision.choice}")
        if decision.choice is Choice.ABANDON and entry.state is State.ABANDONED:
            return None
        return step_of(
            self._journal, entry, decision.choice, task, i_may_pay_twice=self._i_may_pay_twice
        )

    def _entry(self, decision: Decision) -> Entry:
        try:
            if isinstance(decision.item, int):
                entry = self._journal.entry(decision.item)
            else:
                entry = find(self._journal, decision.item)
        except LookupError:
            raise CannotResolve(f"there is no item {decision.item} in the batch") from None
        if decision.name is not None and decision.name not in (entry.name, cell(entry.name)):
            raise CannotResolve(
                f"item {entry.number} is called {entry.name!r} in this batch, and "
                f"{decision.name!r} here. If this is the right batch, remove the column 'name'"
            )
        return entry


def _read(path: Path) -> Iterator[Decision | BatchProblem]:
    """Yield the decisions of a table, or what is wrong with a line."""
    for line in read_table(path, COLUMNS, {"item", "decision"}):
        if line.problem:
            yield BatchProblem(line.where, "", line.problem)
        elif line.cells and (read := _decision(line.cells, line.where)) is not None:
            yield read


def _decision(row: dict[str, str], where: str) -> Decision | BatchProblem | None:
    """Return the decision of a line, what is wrong with it, or None if it has none."""
    item, said = row.get("item", "").strip(), row.get("decision", "").strip()
    task = plain(row.get("task", "").strip())
    if not said:
        if not task:
            return None
        problem = f"task {task} is given without a decision: write {Choice.ADOPT}, or remove it"
        return BatchProblem(where, "", problem)
    if not item:
        return BatchProblem(where, "", "the item is missing")
    try:
        choice = Choice(said.lower())
    except ValueError:
        return BatchProblem(where, "", f"{said!r} is not one of {', '.join(Choice)}")
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
