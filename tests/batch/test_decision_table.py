"""Many decisions in a CSV table: what is written, what is refused, and what is applied."""

from __future__ import annotations

import csv
import io
import json
import pickle
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from muybridge.batch.decisions.table import COLUMNS
from muybridge.batch.journal_entries import NewItem
from muybridge.batch.port import Journal
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.testing.journal_conformance.any_journal import SERVICE, TOKEN

from muybridge import batch
from muybridge.batch import Decision, InvalidDecisions, SharedBatch, Stage
from muybridge.batch.items.reading import BatchProblem
from muybridge.batch.shared import Place, open_journal
from muybridge.cli.commands import muybridge

NAMES = ("walk", '=HYPERLINK("http://evil.test")', "+1", "Füße", "3", "", "late")


@attrs.frozen
class Kept:
    """A batch of seven items: the first six are ambiguous, the last one has task-7.

    Args:
        place: Where it is.
        words: The same, as words of the command.
    """

    place: Place
    words: list[str]

    def states(self) -> list[str]:
        """Return the states of the items."""
        with open_journal(self.place) as journal:
            return [entry.state.value for entry in journal.entries()]


@pytest.fixture(params=["folder", "database"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """The same batch in a folder and in a database."""
    items = [
        NewItem(name=name, stem=str(n), family="imgb", body={"model": "imgb-2", "prompt": "-1\n2"})
        for n, name in enumerate(NAMES)
    ]
    if request.param == "folder":
        place = tmp_path / "out"
        _spoil(SqliteJournal.create(place, SERVICE, items))
        return Kept(place, [str(place)])
    postgres = request.getfixturevalue("postgres")
    from muybridge.batch.postgres import PostgresJournal

    url = postgres.fresh()
    _spoil(PostgresJournal.create(url, "horses", SERVICE, items))
    return Kept(SharedBatch(url, "horses"), ["--journal", url, "horses"])


def _spoil(journal: Journal) -> None:
    journal.register("one")
    for number in range(1, len(NAMES) + 1):
        entry = journal.take("one", creates=True)
        assert entry is not None
        journal.arm(entry, 1, by="one", lasts=0)
        if number == len(NAMES):
            token = TOKEN.replace("task-1", "task-7")
            journal.move(entry, Stage.ARMED, Stage.SUBMITTED, by="one", token=token)
        else:
            facts: dict[str, Any] = {"owner": None, "candidate": "-t", "reason": "lost, or not"}
            journal.move(entry, Stage.ARMED, Stage.AMBIGUOUS, by="one", **facts)
    journal.close()


Fill = Callable[[dict[int, tuple[str, str]]], Path]


@pytest.fixture
def fill(kept: Kept, tmp_path: Path) -> Fill:
    """Fill in the table of the batch, and return the file."""

    def filled(decisions: dict[int, tuple[str, str]]) -> Path:
        rows = list(csv.DictReader(io.StringIO(batch.decision_table(kept.place))))
        for row in rows:
            row["decision"], row["task"] = decisions.get(int(row["item"]), ("", ""))
        path = tmp_path / "decisions.csv"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return path

    return filled


def invoke(*words: str) -> Result:
    return CliRunner().invoke(muybridge, ["batch", *words])


def test_the_table(kept: Kept) -> None:
    """Each ambiguous item is a line with two empty columns, and no cell is a formula."""
    done = invoke("ambiguous", *kept.words, "--csv")
    assert (done.exit_code, done.stdout) == (0, batch.decision_table(kept.place))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    table = "transports/muybridge/batch/decisions/table.py"
    heading, *lines = csv.reader(io.StringIO(done.stdout))
    filled = {name for line in lines for name, text in zip(heading, line, strict=False) if text}
    for name in COLUMNS:
        assert name in {*filled, "decision", "task"}, f"fill `{name}` in _described of {table}"
    assert {len(line) for line in lines} == {len(heading)}, f"cells without a column in {table}"
    assert rows[0] == {
        "item": "1",
        "name": "walk",
        "family": "imgb",
        "model": "imgb-2",
        "prompt": "'-1 2",
        "candidate": "'-t",
        "reason": "lost, or not",
        "decision": "",
        "task": "",
    }
    assert [row["name"] for row in rows][1:] == [f"'{NAMES[1]}", "'+1", "Füße", "3", ""]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(tuple("=+-@"))]


def test_the_list(kept: Kept) -> None:
    """For people the items are a line each, and for programs a JSON object each."""
    done = invoke("ambiguous", *kept.words)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "item 1 (walk)")
    assert "item 1 (walk) is ambiguous: lost, or not" in done.stderr
    named = kept.words if len(kept.words) == 1 else ["--journal", "URL", "horses"]
    assert f"then decide: muybridge batch resolve {shlex.join(named)} ITEM --adopt" in done.stderr
    done = invoke("ambiguous", *kept.words, "--json")
    first, *others = [json.loads(line) for line in done.stdout.splitlines()]
    assert (first["number"], first["request"]["model"], len(others)) == (1, "imgb-2", 5)
    assert [entry.number for entry in batch.ambiguous(kept.place)] == [1, 2, 3, 4, 5, 6]


def test_a_table_is_applied(kept: Kept, fill: Fill) -> None:
    """Every line with a decision is applied, and a line without one is left as it is."""
    table = fill(
        {1: ("Adopt", "task-1"), 2: ("abandon", ""), 3: ("resubmit", ""), 5: ("adopt", "'-t5")}
    )
    done = invoke("resolve", *kept.words, "--from", str(table), "--i-may-pay-twice")
    assert done.exit_code == 0, done.output
    assert "item 1 (walk) is submitted now" in done.stderr
    assert "decisions recorded: 4; to resume: muybridge" in done.stderr
    expected = ["submitted", "abandoned", "queued", "ambiguous", "submitted", "ambiguous"]
    assert kept.states()[:-1] == expected
    with open_journal(kept.place) as journal:
        assert [journal.entry(number).task_id for number in (1, 5)] == ["task-1", "-t5"]


def test_a_table_may_be_applied_again(kept: Kept, fill: Fill) -> None:
    """Decisions that items already have change nothing."""
    table = fill({1: ("adopt", "task-1"), 2: ("abandon", "")})
    assert len(batch.decide_all(kept.place, table)) == 2
    before = kept.states()
    done = invoke("resolve", *kept.words, "--from", str(table), "--json")
    assert json.loads(done.stdout) == {"ok": True, "items": []}
    assert kept.states() == before


PROBLEMS = [
    ("1,forget,", "line 2: 'forget' is not one of adopt, abandon, resubmit"),
    ("99,abandon,", "line 3: there is no item 99 in the batch"),
    ("99999999999999999999,abandon,", "line 4: there is no item '99999999999999999999'"),
    ("7,abandon,", "line 5: item 7 (late) is submitted: there is nothing to decide about it"),
    ("2,resubmit,", "may have been accepted and charged: say that you may pay twice"),
    ("2,adopt,task-2", 'line 7: item 2 (=HYPERLINK("http://evil.test")) is already in line 6'),
    ("3,adopt,task-3", None),
    ("4,adopt,task-3", "line 9: task task-3 is already in line 8"),
    ("5,adopt,task-7", "line 10: task task-7 is item 7 (late) already"),
    ("6,adopt,", "line 11: to adopt item 6, fill in its task"),
    (",abandon,", "line 12: the item is missing"),
    ("1,,task-1", "line 13: task task-1 is given without a decision"),
    ("1,adopt,https://x.test/1", "line 14: https://x.test/1 is a link, not a task id"),
    ("walk,abandon,", "line 15: item 1 (walk) is already in line 14"),
    ("5,abandon,,", "line 16: it has 4 cells, and line 1 has 3"),
    (",,", None),
    ("trot,abandon,", "line 18: there is no item 'trot' in the batch"),
]


def test_every_problem_is_reported_and_nothing_decided(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All lines are checked before one is applied, and each problem has its line."""
    table = tmp_path / "decisions.csv"
    table.write_text("\n".join(["item,decision,task", *(line for line, _ in PROBLEMS)]))
    before = kept.states()
    done = invoke("resolve", *kept.words, "--from", str(table))
    assert done.exit_code == 2
    expected = [said for _, said in PROBLEMS if said is not None]
    assert f"{len(expected)} problems in the decisions (nothing was decided):" in done.stderr
    lines = done.stderr.splitlines()[1:]
    assert [said for said, line in zip(expected, lines, strict=False) if said not in line] == []
    assert kept.states() == before
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidDecisions) as raised:
        batch.decide_all(kept.place, table)
    assert len(raised.value.problems) == len(expected)


def test_the_table_of_another_batch_is_refused(kept: Kept, fill: Fill) -> None:
    """If an item has another name in the batch, the table is that of another batch."""
    table = fill({2: ("abandon", "")})
    table.write_text(table.read_text(encoding="utf-8").replace("HYPERLINK", "SUM"))
    with pytest.raises(InvalidDecisions, match=r"line 3: item 2 is called '=HYPERLINK.*in this"):
        batch.decide_all(kept.place, table)


@pytest.mark.parametrize("kept", ["database"], indirect=True)
def test_what_may_still_be_sending_is_refused(kept: Kept) -> None:
    """No item is resubmitted while the create of another one of them may be under way."""
    with open_journal(kept.place) as journal:
        entry = journal.entry(1)
        journal.move(entry, Stage.AMBIGUOUS, Stage.QUEUED, by=None)
        taken = journal.take("one", creates=True)
        assert taken is not None
        journal.arm(taken, 2, by="one", lasts=60)
        journal.move(taken, Stage.ARMED, Stage.AMBIGUOUS, by="one", owner=None)
    decisions = [Decision(item=number, choice="resubmit") for number in (2, 1)]
    with pytest.raises(InvalidDecisions, match=r"decision 2: .*may still be under way"):
        batch.decide_all(kept.place, decisions, i_may_pay_twice=True)
    assert kept.states()[:2] == ["ambiguous", "ambiguous"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: the column decision is missing"),
        (b"item,task\n", "line 1: the column decision is missing"),
        (b"item,item,decision\n", "line 1: the column item occurs twice"),
        (b"decision,item\nabandon\n", "line 2: the item is missing"),
        (b"item,decision\n1,\xff\n", "line 2: it is not UTF-8"),
        (b'item,decision\n1,abandon\n2,"x\n', "line 3: it is not CSV"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    """A file that is not a table of decisions is refused with what is wrong."""
    SqliteJournal.create(tmp_path / "out", SERVICE, []).close()
    table = tmp_path / "decisions.csv"
    table.write_bytes(content)
    with pytest.raises(InvalidDecisions, match=said):
        batch.decide_all(tmp_path / "out", table)


def test_semicolons_are_understood(kept: Kept, tmp_path: Path) -> None:
    """Where spreadsheets separate cells by semicolons, their tables are read as well."""
    table = tmp_path / "decisions.csv"
    table.write_text("Item;Decision;Task\n1;ABANDON;\n")
    assert [entry.number for entry in batch.decide_all(kept.place, table)] == [1]


def test_what_a_spreadsheet_makes_of_a_table(kept: Kept, tmp_path: Path) -> None:
    """Lines without their last cells are read, and so are cells that contain other separators."""
    table = tmp_path / "decisions.csv"
    table.write_text("prompt,item,decision,task\n;;;;;;;;; a horse,1,abandon\n,2,adopt,t\n")
    assert [entry.number for entry in batch.decide_all(kept.place, table)] == [1, 2]


@pytest.mark.parametrize(("cell", "task"), [("'-t5", "-t5"), ("t-5", "t-5"), ("-t5", "-t5")])
def test_the_id_of_a_task_is_read_as_it_is(kept: Kept, fill: Fill, cell: str, task: str) -> None:
    """Of an id, only the apostrophe that hides a formula is removed."""
    (entry,) = batch.decide_all(kept.place, fill({1: ("adopt", cell)}))
    assert entry.task_id == task


@pytest.mark.parametrize(("length", "end"), [(200, ""), (201, "...")])
def test_a_long_prompt(tmp_path: Path, length: int, end: str) -> None:
    """The table shows the first 200 characters of a prompt, and whether there are more."""
    body = {"model": "imgb-2", "prompt": "a" * length}
    items = [NewItem(name=n, stem=n, family="imgb", body=body) for n in "1234567"]
    _spoil(SqliteJournal.create(tmp_path, SERVICE, items))
    first = next(csv.DictReader(io.StringIO(batch.decision_table(tmp_path))))
    assert first["prompt"] == "a" * 200 + end


def test_the_error_can_be_pickled() -> None:
    """Another process gets the problems, however they were given."""
    problem = BatchProblem("line 2", "", "the item is missing")
    error = InvalidDecisions(one for one in [problem])
    assert pickle.loads(pickle.dumps(error)).problems == (problem,)  # noqa: S301  our own


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("resolve out", "give an ITEM with a decision, or --from FILE"),
        ("resolve out 1 --from TABLE", "give either --from FILE or an ITEM"),
        ("resolve out --abandon --from TABLE", "give either --from FILE or an ITEM"),
        ("resolve out 1 --abandon --resubmit", "give one of --adopt ID"),
        ("ambiguous out --csv --json", "give one of --csv and --json"),
    ],
)
def test_options_that_do_not_go_together(words: str, said: str, tmp_path: Path) -> None:
    """A command that is not clear decides nothing."""
    table = tmp_path / "t.csv"
    table.touch()
    done = invoke(*words.replace("TABLE", str(table)).split())
    assert done.exit_code == 2
    assert said in done.output
