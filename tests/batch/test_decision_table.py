"""Many decisions in a CSV table: what is written, what is refused, and what is applied."""

from __future__ import annotations

import csv
import io
import json
import pickle
import shlex
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result

from muybridge import batch
from muybridge.batch import Decision, SharedBatch
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.decision_table import COLUMNS
from muybridge.batch.shared import Place, open_batch
from muybridge.cli.commands import muybridge
from muybridge.purchases import Choice, Measure, open_store
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.purchases import UNKNOWN_END, Order

from .begun import LOST, SERVICE, accepted, begun, bought, new_items

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
        with open_batch(self.place) as found:
            return [entry.state.value for entry in found.entries()]


@pytest.fixture(params=["folder", "database"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """The same batch in a folder and in a database."""
    items = [
        attrs.evolve(item, name=name, body=json.dumps({"model": "imgb-2", "prompt": "-1\n2"}))
        for name, item in zip(NAMES, new_items(len(NAMES)), strict=True)
    ]
    if request.param == "folder":
        place = tmp_path / "out"
        with begun(place, items) as found:
            _spoil(found)
        return Kept(place, ["--batch", str(place)])
    url = request.getfixturevalue("postgres").fresh()
    with open_store(url) as store:
        _spoil(Batch.begin(store, "horses", items, service=SERVICE))
    return Kept(SharedBatch(url, "horses"), ["--batch", "horses", "--store", url])


def _spoil(found: Batch) -> None:
    for number in range(1, len(NAMES)):
        bought(found, number, attrs.evolve(LOST, candidate="-t", reason="lost, or not"))
    accepted(found, len(NAMES), "task-7")


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
    return CliRunner().invoke(muybridge, [*words])


def test_the_table(kept: Kept) -> None:
    """Each ambiguous item is a line with two empty columns, and no cell is a formula."""
    done = invoke("undecided", *kept.words, "--csv")
    assert (done.exit_code, done.stdout) == (0, batch.decision_table(kept.place))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    table = "transports/muybridge/batch/items/decision_table.py"
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
    done = invoke("undecided", *kept.words)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "item 1 (walk)")
    assert "item 1 (walk) is ambiguous: lost, or not" in done.stderr
    options = f"--batch {shlex.quote(kept.words[1])}"
    if "--store" in kept.words:
        options = f"--store URL {options}"
    assert f"then decide: muybridge decide {options} ITEM --adopt" in done.stderr
    done = invoke("undecided", *kept.words, "--json")
    first, *others = json.loads(done.stdout)["undecided"]
    assert (first["number"], first["request"]["model"], len(others)) == (1, "imgb-2", 5)
    assert [entry.number for entry in batch.ambiguous(kept.place)] == [1, 2, 3, 4, 5, 6]


def test_a_table_is_applied(kept: Kept, fill: Fill) -> None:
    """Every line with a decision is applied, and a line without one is left as it is."""
    table = fill(
        {1: ("Adopt", "task-1"), 2: ("abandon", ""), 3: ("resubmit", ""), 5: ("adopt", "'-t5")}
    )
    done = invoke("decide", *kept.words, "--from", str(table), "--i-may-pay-twice")
    assert done.exit_code == 0, done.output
    assert "item 1 (walk) is submitted now" in done.stderr
    assert "decisions recorded: 4; to resume: muybridge" in done.stderr
    expected = ["submitted", "abandoned", "queued", "ambiguous", "submitted", "ambiguous"]
    assert kept.states()[:-1] == expected
    with open_batch(kept.place) as found:
        assert [found.entry(number).task_id for number in (1, 5)] == ["task-1", "-t5"]


def test_a_table_may_be_applied_again(kept: Kept, fill: Fill) -> None:
    """Decisions that items already have change nothing."""
    table = fill({1: ("adopt", "task-1"), 2: ("abandon", "")})
    assert len(batch.decide_all(kept.place, table)) == 2
    before = kept.states()
    done = invoke("decide", *kept.words, "--from", str(table), "--json")
    assert json.loads(done.stdout) == {"ok": True, "items": []}
    assert kept.states() == before


PROBLEMS = [
    ("1,forget,", "line 2: 'forget' is not one of adopt, release, abandon, resubmit"),
    ("99,abandon,", "line 3: there is no item 99 in the batch"),
    ("99999999999999999999,abandon,", "line 4: there is no item '99999999999999999999'"),
    ("7,abandon,", "line 5: item 7 (late) is submitted: there is nothing to decide about it"),
    ("2,resubmit,", "If it is sent again, you may pay twice"),
    ("2,adopt,task-2", 'line 7: item 2 (=HYPERLINK("http://evil.test")) is already in line 6'),
    ("3,adopt,task-3", None),
    ("4,adopt,task-3", "line 9: task task-3 is already in line 8"),
    ("5,adopt,task-7", "(item 7 of the batch"),
    ("6,adopt,", "line 11: to adopt item 6, give its task"),
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
    done = invoke("decide", *kept.words, "--from", str(table))
    assert done.exit_code == 2
    expected = [said for _, said in PROBLEMS if said is not None]
    assert f"{len(expected)} problems in the decisions (nothing was decided):" in done.stderr
    lines = done.stderr.splitlines()[1:]
    assert [said for said, line in zip(expected, lines, strict=False) if said not in line] == []
    assert kept.states() == before
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as raised:
        batch.decide_all(kept.place, table)
    assert len(raised.value.problems) == len(expected)


def test_the_table_of_another_batch_is_refused(kept: Kept, fill: Fill) -> None:
    """If an item has another name in the batch, the table is that of another batch."""
    table = fill({2: ("abandon", "")})
    table.write_text(table.read_text(encoding="utf-8").replace("HYPERLINK", "SUM"))
    with pytest.raises(InvalidInput, match=r"line 3: item 2 is called '=HYPERLINK.*in this"):
        batch.decide_all(kept.place, table)


@pytest.mark.parametrize("kept", ["database"], indirect=True)
def test_what_may_still_be_sending_is_refused(kept: Kept) -> None:
    """No item is resubmitted while the create of another one of them may be under way."""
    with open_batch(kept.place) as found:
        found.store.decide(str(found.entry(1).purchase), Choice.RESUBMIT)
        order = Order(account="a", amounts=dict.fromkeys(Measure, Decimal(1)))
        armed = found.store.arm(order, item=(found.number, 1), lasts=60)
        found.store.conclude(armed.key, UNKNOWN_END)
    decisions = [Decision(item=number, choice="resubmit") for number in (2, 1)]
    with pytest.raises(InvalidInput, match=r"decision 2: .*may still be under way"):
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
    begun(tmp_path / "out").store.close()
    table = tmp_path / "decisions.csv"
    table.write_bytes(content)
    with pytest.raises(InvalidInput, match=said):
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
    items = [attrs.evolve(item, body=json.dumps(body)) for item in new_items(7)]
    _spoil(begun(tmp_path, items))
    first = next(csv.DictReader(io.StringIO(batch.decision_table(tmp_path))))
    assert first["prompt"] == "a" * 200 + end


def test_the_error_can_be_pickled() -> None:
    """Another process gets the problems, however they were given."""
    problem = InputProblem("line 2", "the item is missing")
    error = InvalidInput("the decisions", (one for one in [problem]))
    assert pickle.loads(pickle.dumps(error)).problems == (problem,)  # noqa: S301  our own


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("decide --batch out", "give either a KEY with a decision, or --from FILE"),
        ("decide --batch out 1 --from TABLE", "give either a KEY"),
        ("decide --batch out --abandon --from TABLE", "give either a KEY"),
        ("decide --batch out 1 --abandon --resubmit", "give one of --adopt TASK"),
        ("undecided --batch out --csv --json", "give one of --csv and --json"),
    ],
)
def test_options_that_do_not_go_together(words: str, said: str, tmp_path: Path) -> None:
    """A command that is not clear decides nothing."""
    table = tmp_path / "t.csv"
    table.touch()
    done = invoke(*words.replace("TABLE", str(table)).split())
    assert done.exit_code == 2
    assert said in done.output
