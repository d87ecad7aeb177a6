"""The generated parts of docs/ are complete and correct."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from benchmarks.__main__ import BENCHMARKS

from muybridge.cli.batch_reports import ENDINGS
from muybridge.cli.commands import muybridge
from muybridge.cli.errors import EXIT_CODES
from muybridge.cli.exit_codes import DEFECT, DONE, INVALID, MEANINGS
from muybridge.cli.family_help import FamilyCommand
from muybridge_docs.comparison import comparisons
from muybridge_docs.delivery_tables import COLUMNS, word
from muybridge_docs.error_table import errors
from muybridge_docs.generated import GENERATED, fill, names_in, written
from muybridge_docs.machines import (
    AFTER_CREATE,
    AFTER_POLL,
    create_machine,
    new_create,
    new_poll,
    poll_machine,
    task_states,
    walk,
)
from muybridge_docs.public_names import MODULES, STABLE, explained, module_reference, public_names
from muybridge_protocol.delivery import LONGEST_WAIT, THROTTLED_TRIES, UNSENT_TRIES
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.operations.create import CREATE_DEADLINE
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.operations.poll import (
    GROWTH,
    NEWBORN,
    QUERY_TRIES,
    SILENCE,
    SILENT_TRIES,
    SPREAD,
    UNANSWERED_PACING,
    UNKNOWN_PACING,
    UNREADABLE_TRIES,
)
from muybridge_protocol.records.tasks import TRANSITIONS
from muybridge_protocol.text.models import TEXT_MODELS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def cells(name: str) -> list[list[str]]:
    """Return the cells of the first table of the generated part *name*, row by row."""
    lines = GENERATED[name]().split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def marked(name: str) -> set[str]:
    """Return all code in the generated part *name*."""
    return set(re.findall(r"`([^`]+)`", GENERATED[name]()))


def test_pages_ask_for_what_there_is() -> None:
    """Each generated part appears on exactly one page, and pages include no unknown parts."""
    asked = [name for page in PAGES for name in names_in(page.read_text(encoding="utf-8"))]
    assert sorted(asked) == sorted(GENERATED)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_can_be_read_in_a_clone(page: Path) -> None:
    """Pages contain their generated parts as `python -m tests.generators.pages` writes them."""
    text = page.read_text(encoding="utf-8")
    assert text == written(text, page.stem), "run python -m tests.generators.pages"


def test_a_page_that_asks_for_more_is_refused() -> None:
    """A mark with an unknown name raises an error that names the page."""
    with pytest.raises(ValueError, match=r"families: nothing is generated .*'family'"):
        fill("<!-- generated: family -->", "families")
    assert fill("a\n\n<!-- generated: retention -->\n\nb", "families").startswith("a\n\n| Family")


@pytest.mark.parametrize("name", ["families", "pacing", "retention"])
def test_families(name: str) -> None:
    """A table of families lists all of them, in the order of their names."""
    told = [row[0].strip("`") for row in cells(name)]
    assert [family for family in dict.fromkeys(told) if family != "a bare id"] == list(FAMILIES)


def test_models() -> None:
    """The tables list each model with its own limits, and each text model."""
    told = [(row[0].strip("`"), row[1].strip("`")) for row in cells("models")]
    assert told == [(f.name, m.name) for f in FAMILIES.values() for m in f.models]
    (stable,) = [row for row in cells("models") if row[1] == "`vidg_video3_max`"]
    assert "`duration`: use 6, 10, 12, 16, 20 or 30" in stable[2]
    assert stable[3] == "per second"
    assert set(TEXT_MODELS) <= marked("text models")


def test_fields() -> None:
    """Every field of every family is listed under both names, with the accepted values."""
    sections = re.split(r"^### Family `(\w+)`$", GENERATED["fields"](), flags=re.MULTILINE)[1:]
    told = dict(zip(sections[::2], sections[1::2], strict=True))
    assert list(told) == list(FAMILIES)
    for family in FAMILIES.values():
        for field in family.fields:
            row = rf"\| `{field.name}` \| `{field.wire}` \| {field.kind} \|"
            assert re.search(row, told[family.name]), (family.name, field.name)
    assert "at most 3840 px" in told["imgb"]
    assert "`last_image` needs `first_image`." in told["vidsb"]
    assert "`image` is the old name of `first_image`." in told["videos"]
    assert "`duration` is ignored with `reference_videos`:" in told["vidc"]
    assert "`ratio` is ignored with `size`:" in told["imgb"]
    assert "--" not in re.sub(r"\| --- ", "", GENERATED["fields"]())


def test_families_that_are_not_shown_in_full() -> None:
    """The page about models names the families whose fields the specification does not show."""
    page = (DOCS / "choose-a-model.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"The specification does not describe all fields of (.*?)\.", page)
    open_ones = {family.name for family in FAMILIES.values() if not family.body_shown}
    assert set(re.findall(r"`(\w+)`", told)) == open_ones


def test_pacing_and_retention() -> None:
    """Poll intervals and retention are those of the specification."""
    assert ["`vidsb`", "`vidsb_2_0_fast`, `vidsb_2_0_fast_pro`", "10-20 s", "10 s", ""] in cells(
        "pacing"
    )
    assert ["`vidv`", "all", "30-60 s", "30 s", ""] in cells("pacing")
    assert ["`imgb`", "24 hours"] in cells("retention")
    (vidsa,) = [row[1] for row in cells("retention") if row[0] == "`vidsa`"]
    assert "1 day" in vidsa
    assert "both are then deleted" in vidsa


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not a group, with its full name."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        shown = "FAMILY" if isinstance(inner, FamilyCommand) else name
        yield from commands(inner, f"{path} {shown}")


def test_commands() -> None:
    """Every option of every command is listed with its help, those of families as fields."""
    told = GENERATED["commands"]().replace("\\|", "|")
    parts = re.split(r"^## `(.+)`$", told, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert not any(mark in told for mark in ("\b", "`--json``"))
    assert "```\nmuybridge mcp --max-creates 5\n" in told
    of_fields = {field.name for family in FAMILIES.values() for field in family.fields}
    assert set(sections) == {path for path, _ in commands(muybridge, "muybridge")}
    for path, command in commands(muybridge, "muybridge"):
        plain = sections[path].replace("`", "")
        for option in command.params:
            if isinstance(command, FamilyCommand) and option.name in of_fields:
                continue
            if isinstance(option, click.Option):
                assert f"`{option.opts[-1]}" in sections[path], (path, option.name)
                assert option.help
                assert " ".join(option.help.split()) in plain, (path, option.name)
            else:
                assert f"| {option.human_readable_name}" in plain, path


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of a section's table that begin with a number."""
    section = (
        (DOCS / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| (\d+ \|.*) \|$", section.replace("`", ""), re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_exit_codes() -> None:
    """The exit codes are listed here and on the page about the command line, in the same words."""
    where = "the table in docs/cli.md, Exit codes"
    assert [int(row[0].strip("`")) for row in cells("exit codes")] == list(MEANINGS)
    (ambiguous,) = [row[2] for row in cells("exit codes") if row[0] == "`4`"]
    assert "{py:exc}`CreateAmbiguous`" in ambiguous
    rows = rows_of("cli.md", "Exit codes")
    listed = [int(row[0]) for row in rows]
    assert listed == [*map(int, MEANINGS)], f"give each code of exit_codes.py a row: {where}"
    for (_, accepted, said), code in zip(rows, MEANINGS, strict=True):
        assert accepted == code.accepted, f"correct `accepted?` of {code}: {where}"
        assert said.startswith(code.meaning), f"begin {code} with its meaning in the help: {where}"


def test_what_a_script_may_conclude_from_exit_codes() -> None:
    """The page about the command line says which codes mean "not sent", and which can resume."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for sentence in (
        f"Once `run` has a task, it never exits with {listed('or', 'no')}, because a script",
        f"After {listed('and', 'yes')}, the last line is `to resume:`",
    ):
        assert sentence in page, f"correct the sentence in docs/cli.md, Exit codes: {sentence}"


def listed(word: str, accepted: str) -> str:
    """Return the codes that say that a paid request was *accepted*, in words."""
    *others, last = [str(int(code)) for code in MEANINGS if code.accepted == accepted]
    return f"{', '.join(others)} {word} {last}"


def test_exit_codes_that_no_restart_repairs() -> None:
    """The unit for systemd restarts a worker only if that can help, or after a bug."""
    page = (DOCS / "many-machines.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^RestartPreventExitStatus=(.*)$", page, re.MULTILINE)
    ends = [code for code in MEANINGS if code not in (DONE, DEFECT)]
    for_good = [str(int(code)) for code in ends if code.accepted != "yes"]
    assert told.split() == for_good, "correct RestartPreventExitStatus in docs/many-machines.md"


def test_exit_codes_of_errors_on_pages() -> None:
    """A page that states the exit code of an error states the one that the command has."""
    stated = [
        (page.name, name, int(code))
        for page in PAGES
        for name, code in re.findall(
            r"`(\w+)`,? \(?exit code (\d+)", page.read_text(encoding="utf-8")
        )
    ]
    assert len(stated) >= 2
    for page, name, code in stated:
        kinds = {kind.__name__: kind for kind in EXIT_CODES}
        error = kinds.get(name) or getattr(import_module("muybridge"), name)
        expected = next(EXIT_CODES[kind] for kind in error.__mro__ if kind in EXIT_CODES)
        assert code == expected, f"{name} exits with {int(expected)}: correct docs/{page}"


def test_exit_codes_of_batches() -> None:
    """The codes of batches are on their page in the words of the help, and their precedence."""
    rows = {int(row[0]): row[1] for row in rows_of("batches.md", "Stop and resume")}
    assert set(rows) == {INVALID, *(code for code, _, _ in ENDINGS)}
    for code, _, meaning in ENDINGS:
        assert rows[code].startswith(meaning.partition(",")[0])
    first = [str(code) for code, *_ in ENDINGS if code is not DONE]
    page = (DOCS / "batches.md").read_text(encoding="utf-8")
    assert f"the code is the first of {', '.join(first[:-1])} and {first[-1]}." in page


def test_delivery() -> None:
    """The table shows the verdict on each status that operations get."""
    rows = {row[0]: row[1:] for row in cells("delivery")}
    for status in range(200, 600):
        named = next((key for key in rows if f"`{status}`" in key.split(", ")), None)
        classed = f"{status // 100}xx"
        row = rows[named or (classed if classed in rows else "any other status")]
        verdicts = [kind.judge_status(status) for kind in COLUMNS.values()]
        assert row == [word(verdict) for verdict in verdicts], status
    assert rows["a byte was sent, but no complete response came"] == [
        "**ambiguous**",
        *["retry"] * 3,
    ]
    assert rows["no byte was sent"] == ["retry"] * 4
    assert rows["`404`"] == ["refused", "missing", "missing", "missing"]
    assert rows["`405`, `413`, `415`, `425`"] == ["refused", "retry", "refused", "refused"]
    assert rows["3xx"] == ["**ambiguous**", "violation", "violation", "redirect"]
    assert "`UNSENT_TRIES` | 3 |" in GENERATED["tries"]()


def test_the_picture_of_a_task() -> None:
    """The diagram shows every status and step of the table, also to screen readers."""
    drawn = task_states()
    for before, afters in TRANSITIONS.items():
        assert f">{before or 'create call'}</text>" in drawn
        for after in afters:
            assert f"{before or 'create call'} to {after}" in drawn
    assert drawn.count('marker-end="') == sum(map(len, TRANSITIONS.values()))
    assert 'stroke="currentColor"' in drawn


def test_a_create_is_walked_through() -> None:
    """The diagram of a create shows every outcome, and the number of attempts."""
    steps = {step.label: step for step in walk(new_create, AFTER_CREATE)}
    assert steps["lost after the first byte"].first == "CreateAmbiguous"
    assert steps["500, 3xx, any other"].first == "CreateAmbiguous"
    unsent, throttled = steps["not a byte was sent"], steps["429"]
    assert (unsent.first, unsent.last, unsent.tries) == ("Wait", "NotSent", 3)
    assert (throttled.first, throttled.last, throttled.tries) == ("Wait", "RateLimited", 4)
    assert steps["a task record"].first == "Task"
    drawn = create_machine()
    assert all(f">{label}" in drawn for label in steps)
    assert "not a byte was sent, 3 times" in drawn
    assert "429, 4 times" in drawn


def test_a_poll_is_walked_through() -> None:
    """The diagram of a poll retries after nearly everything, and each walk ends."""
    steps = {step.label: step for step in walk(new_poll, AFTER_POLL)}
    assert steps["lost after the first byte"].first == "Wait"
    assert steps["completed"].first == "Result"
    assert steps["queued, processing"].last == "WaitTimeout"
    assert steps["500, any other"].last == "WaitTimeout"
    assert steps["wrong certificate"].last == "ServiceUnreachable"
    assert "Wait" not in {step.last for step in steps.values()}
    assert all(f">{step.last}</text>" in poll_machine() for step in steps.values())


def test_the_rules_of_operations_have_the_numbers_of_the_code() -> None:
    """The rules beside the tables of outcomes, for those who port, state the code's constants."""
    page = " ".join((DOCS / "operations.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"**Attempts**: {UNSENT_TRIES} in all that send nothing, and {THROTTLED_TRIES} in all",
        f"says more than {LONGEST_WAIT:g} s, the create ends",
        f"later than {CREATE_DEADLINE:g} s after the start is not made",
        f"Each attempt may take {API_TIMEOUT:g} s",
        f"retried for {NEWBORN:g} s after the task was submitted",
        f"After {SILENCE:g} s without a valid response",
        f"but at most {LONGEST_WAIT:g} s from now",
        f"**A bare id** has {UNKNOWN_PACING.shortest:g} to {UNKNOWN_PACING.longest:g} s.",
        f"While polls fail, the interval is at least {UNANSWERED_PACING.shortest:g} s",
        f"and grows up to {UNANSWERED_PACING.longest:g} s.",
    ):
        assert sentence in page, sentence
    assert (UNREADABLE_TRIES, QUERY_TRIES, SILENT_TRIES, GROWTH, SPREAD) == (3, 3, 3, 1.25, 0.25)


def test_comparisons_can_be_reproduced() -> None:
    """Each comparison is on the page of benchmarks, and its command exists."""
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    found = list(comparisons())
    assert {"openai", "fal-client"} <= {each.theirs for each in found}
    # Missed targets are listed too.
    lines = re.findall(r"^  (?:met   |MISSED) .* of .*openai.* \(target", page, re.MULTILINE)
    assert len([each for each in found if "openai" in each.theirs]) == len(lines)
    for each in found:
        assert each.benchmark in BENCHMARKS
        assert f"{each.ours}: {each.ratio} of {each.theirs} (target" in page


def test_every_public_module_is_in_the_reference() -> None:
    """Each module of docs/api.md is in docs/reference."""
    pages = (DOCS / "reference").glob("*.md")
    asked = [name for page in pages for name in names_in(page.read_text(encoding="utf-8"))]
    assert sorted(asked) == sorted(f"module {name}" for name in MODULES)
    assert {"muybridge", "muybridge_protocol.operations", "muybridge_protocol.errors"} <= set(
        STABLE
    )


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_explained(name: str) -> None:
    """A public name is documented on the page of its module, or that page links to it."""
    told = module_reference(name)
    here = {public.name: public for public in explained()[name]}
    for public in public_names(import_module(name)):
        if public in here:
            shown = here[public].shown if here[public].is_callable else public
            assert re.search(rf"^\.\. [\w:]+:: {re.escape(shown)}$", told, re.MULTILINE), public
        else:
            assert f"{{py:obj}}`{public} <" in told


def test_everything_is_explained_once() -> None:
    """No value is documented twice, and `import muybridge` is preferred."""
    shown = [public.shown for names in explained().values() for public in names]
    assert len(shown) == len(set(shown))
    assert {"muybridge.Client", "muybridge.Task", "muybridge.NotSent"} <= set(shown)
    assert "muybridge_protocol.records.tasks.Task" not in shown


def test_every_error_has_a_row() -> None:
    """The table of errors has each that `import muybridge` offers and that is raised itself."""
    rows = errors()
    bases = {"MuybridgeError", "ServiceError"}
    library = import_module("muybridge")
    for name in library.__all__:
        kind = getattr(library, name)
        if isinstance(kind, type) and issubclass(kind, library.MuybridgeError):
            assert (f"| `{name}` |" in rows) == (name not in bases)
