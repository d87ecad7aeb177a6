"""The checked-in test vectors: they are up to date, of their form, and what the core does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from jsonschema import Draft202012Validator

from every_event import sample
from muybridge_protocol.events import Event
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.records.convert import wire_names
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service

from .files import make
from .replay import (
    FOLDER,
    assert_events,
    assert_request,
    assert_value,
    begin,
    build,
    bytes_of,
    load,
    play,
    problems,
    read_stream,
    response_of,
)
from .telling import told_event

ROOT = Path(__file__).parents[2]
NAMES = (
    "families", "rules", "delivery", "requests", "invalid-requests", "responses", "operations",
    "intervals", "streams", "budgets",
)  # fmt: skip
FILES: dict[str, Any] = {name: load(f"{name}.json") for name in NAMES}


def service_of(name: str) -> Service:
    return Service(**FILES[name]["service"])


def test_the_files_are_up_to_date() -> None:
    """The files are what `python -m tests.generators.vectors` writes from the tables."""
    made = make()
    assert set(made) == {path.name for path in FOLDER.glob("*.json")}
    for name, text in made.items():
        is_new = (FOLDER / name).read_bytes() == text.encode()
        assert is_new, f"run python -m tests.generators.vectors: {name}"


@pytest.mark.parametrize("name", NAMES)
def test_the_files_have_their_form(name: str) -> None:
    """Each file satisfies its schema, which is sound itself and lets nothing else pass."""
    schema = load(f"schema/{name}.json")
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema)
    assert [error.message[:300] for error in validator.iter_errors(FILES[name])] == []
    first = FILES[name]["cases"][0]
    for broken in ({**first, "odd": 1}, {**first, "name": 5}, {"name": "x"}):
        assert not validator.is_valid({**FILES[name], "cases": [broken]})
    assert not validator.is_valid({**FILES[name], "version": 2})


@pytest.mark.parametrize("name", NAMES)
def test_every_case_has_a_name(name: str) -> None:
    """No two cases of a file have one name."""
    names = [case["name"] for case in FILES[name]["cases"]]
    assert len(set(names)) == len(names)


def test_every_rule_is_explained() -> None:
    """Each rule of the tables, and each that a request breaks, is among the rules."""
    explained = {case["name"] for case in FILES["rules"]["cases"]}
    families = FILES["families"]["cases"]
    of_values = [
        rule for family in families for field in family["fields"] for rule in field["rules"]
    ]
    of_values += [
        rule
        for family in families
        for model in family["models"]
        for rules in model["limits"].values()
        for rule in rules
    ]
    of_relations = [rule for family in families for rule in family["relations"]]
    broken = [each for case in FILES["invalid-requests"]["cases"] for each in case["problems"]]
    assert {each["rule"] for each in (*of_values, *of_relations, *broken)} == explained


def test_requests() -> None:
    """For each request exactly that is sent which the vectors say, to the byte."""
    service = service_of("requests")
    for case in FILES["requests"]["cases"]:
        assert_request(build(case, service), case["request"])


def test_invalid_requests() -> None:
    """Each invalid request has all the problems that the vectors say, and no others."""
    for case in FILES["invalid-requests"]["cases"]:
        told = [(problem["field"], problem["rule"]) for problem in case["problems"]]
        assert problems(case) == told, case["name"]


def test_responses() -> None:
    """A response means for each kind of operation what the vectors say."""
    told = FILES["responses"]
    for case in told["cases"]:
        operation = begin(case["operation"], told["start"], service_of("responses"))
        operation = operation.receive(response_of(case["response"]), case["now"])
        assert_events(operation.events, case["events"])
        if "outcome" in case:
            assert_value(operation.settled.outcome, case["outcome"])
        else:
            assert operation.settled is None
            assert operation.due == pytest.approx(case["again_at"])


@pytest.mark.parametrize("case", FILES["operations"]["cases"], ids=lambda case: case["name"])
def test_operations(case: dict[str, Any]) -> None:
    """An operation does and tells what its script says."""
    play(case, service_of("operations"))


@pytest.mark.parametrize("case", FILES["streams"]["cases"], ids=lambda case: case["name"])
def test_streams(case: dict[str, Any]) -> None:
    """A streamed response holds the same, wherever it is cut."""
    body = bytes_of(case)
    told = {**case, "payloads": [bytes_of(payload) for payload in case["payloads"]]}
    cuts = [[body], [body[at : at + 1] for at in range(len(body))]]
    cuts += [[body[:at], body[at:]] for at in range(1, len(body))]
    for pieces in cuts:
        found = read_stream(case, pieces)
        assert found == {name: told[name] for name in found}


@pytest.mark.parametrize("kind", get_args(Event))
def test_every_event_can_be_told(kind: type[Event]) -> None:
    """The vectors can tell each kind of event that operations report, in the form of the schema."""
    told = told_event(cast("Event", sample(kind)))
    for name in ("operations", "responses"):
        schema = load(f"schema/{name}.json")
        validator: Any = Draft202012Validator(
            {**schema["$defs"]["event"], "$defs": schema["$defs"]}
        )
        advice = f"add {kind.__name__} to $defs/event of tests/vectors/data/schema/{name}.json"
        assert validator.is_valid(told), advice


def outcomes_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each outcome of the vectors within *value*."""
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        if "type" in told:
            yield told
        for inner in told.values():
            yield from outcomes_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from outcomes_in(inner)


@pytest.mark.parametrize("kind", [Task, Result])
def test_every_field_of_a_record(kind: type[Task | Result]) -> None:
    """Some response of the vectors has each field of a record, so that ports read it."""
    told = outcomes_in([FILES["responses"]["cases"], FILES["operations"]["cases"]])
    found = {name for outcome in told if outcome["type"] == kind.__name__ for name in outcome}
    lacking = wire_names(kind).keys() - found
    assert not lacking, f"add a response with {lacking} to tests/vectors/scripts.py"


def test_every_family_and_every_field() -> None:
    """There are vectors for each model, and for each field, right ones and wrong ones."""
    for family in FAMILIES.values():
        for name in ("requests", "invalid-requests"):
            inputs = inputs_of(name, family.name)
            assert {field.wire for field in family.fields} <= {
                wire for body in inputs for wire in body
            }
        models = [body.get("model") for body in inputs_of("requests", family.name)]
        assert all(model.name in models for model in family.models)


def inputs_of(name: str, family: str) -> list[dict[str, Any]]:
    return [case["input"] for case in FILES[name]["cases"] if case.get("family") == family]


def test_the_key_is_in_no_vector() -> None:
    """No request holds the key: it is added last, by whoever sends it."""
    for name in NAMES:
        assert "Authorization" not in json.dumps(FILES[name])


@pytest.mark.skipif(shutil.which("node") is None, reason="the example on the page is JavaScript")
def test_the_example_on_the_page(tmp_path: Path) -> None:
    """The example of the page about vectors replays what it says it does."""
    page = (ROOT / "docs" / "vectors.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```js\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```console\n\$ node replay.mjs\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "replay.mjs"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(  # noqa: S603  our own example
        ["node", str(script)],  # noqa: S607  whichever is installed
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout == printed
