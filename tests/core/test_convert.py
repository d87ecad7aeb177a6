"""The one converter: what it reads strictly, what it keeps, and that nothing goes around it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

import moments
import muybridge
import muybridge_protocol
from muybridge.batch.events import BatchEvent, What
from muybridge.batch.items.entry import Entry
from muybridge.batch.running.side_files import KeptResponse, ResponseSlot
from muybridge.cli.batch_progress import entry_record, event_record
from muybridge.cli.records import (
    answer_record,
    family_record,
    model_record,
    result_record,
    task_record,
)
from muybridge_protocol.emulator import Access, Emulator, ServiceRequest, Timing
from muybridge_protocol.families import IMGB
from muybridge_protocol.openapi import openapi_document
from muybridge_protocol.records import convert
from muybridge_protocol.records.convert import (
    View,
    ours,
    partial,
    structure,
    unstructure,
    wire,
    wire_names,
)
from muybridge_protocol.records.json import InvalidJson
from muybridge_protocol.records.tasks import Result, Task, read_result, read_task
from muybridge_protocol.text.content import GenerationConfig, Part, as_turns
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentChunk, GenerateContentResponse


@attrs.frozen(kw_only=True)
class Horse:
    name: str
    legs: int = 4
    weight: float = 500.0
    is_tame: bool = attrs.field(default=True, metadata=wire(name="isTame"))
    rider: str | None = None
    raw: Mapping[str, Any] = attrs.field(factory=dict[str, Any], metadata=ours())


@attrs.frozen(kw_only=True)
class Saddle:
    made_of: str | None = attrs.field(default=None, metadata=wire(name="madeOf"))
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any])


def test_a_new_field_is_one_line() -> None:
    """A field is read and written under its name on the wire, which its own line tells."""
    record = {"name": "Sallie", "legs": 3, "weight": 480, "isTame": False, "rider": None}
    horse = structure(record, Horse)
    assert horse == Horse(name="Sallie", legs=3, weight=480, is_tame=False)
    assert unstructure(horse) == {**record, "raw": {}}
    assert partial(Horse, is_tame=True) == {"isTame": True}
    assert dict(wire_names(Horse)) == {
        "name": "name", "legs": "legs", "weight": "weight", "is_tame": "isTame", "rider": "rider"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "it has no name"),
        ({"name": None}, "None is not a str"),
        ({"name": 5}, "5 is not a str"),
        ({"name": "a", "legs": True}, "True is not an int"),
        ({"name": "a", "legs": 4.0}, "4.0 is not an int"),
        ({"name": "a", "legs": "4"}, "'4' is not an int"),
        ({"name": "a", "legs": None}, "None is not an int"),
        ({"name": "a", "weight": "500"}, "'500' is not a float"),
        ({"name": "a", "weight": True}, "True is not a float"),
        ({"name": "a", "isTame": 1}, "1 is not a bool"),
        ({"name": "a", "rider": 5}, "5 is not a str"),
    ],
)
def test_types_are_exact(fields: dict[str, Any], said: str) -> None:
    """No value is made one of another type, and the first one that is wrong is reported."""
    with pytest.raises(InvalidJson) as told:
        structure(fields, Horse)
    assert str(told.value) == said


def test_what_is_known_is_not_read() -> None:
    """A record sets no field that it is given beside the record."""
    record = {"name": "Sallie", "raw": {"key": "x"}, "unknown": 1}
    assert structure(record, Horse, raw=record).raw is record


@pytest.mark.parametrize("odd", [5, None, ["oak"]])
def test_what_a_field_does_not_take_is_kept(odd: Any) -> None:
    """A shape with an `extra` keeps there what it cannot read, and writes it again."""
    record = {"made_of": "leather", "madeOf": odd, "stirrups": [2]}
    read = structure({"madeOf": "leather", "stirrups": [2]}, Saddle)
    assert read == Saddle(made_of="leather", extra={"stirrups": [2]})
    assert unstructure(read) == {"madeOf": "leather", "stirrups": [2]}
    both = structure(record, Saddle)
    if odd is not None:
        assert both == Saddle(made_of="leather", extra={"madeOf": odd, "stirrups": [2]})


def test_a_view_holds_what_it_lists() -> None:
    """A view writes no field that it does not list, and none that is unset."""
    view = View(Horse, only=("name", "legs", "is_tame"))
    horse = Horse(name="Sallie", is_tame=False, rider="Stanford")
    assert unstructure(horse, view) == {"name": "Sallie", "isTame": False}
    assert structure({"name": "Sallie", "rider": "x"}, view) == Horse(name="Sallie")


# That nothing goes around it.

RECORD = {"id": "task-1", "status": "completed", "model": "imgb-2"}
TASK = Task(id="task-1", raw=RECORD)
RESULT = Result(id="task-1", status="completed", raw=RECORD)
EVENT = BatchEvent(what=What.STATUS, item=1, name="", finished=0, total=1)
ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"parts": [{"text": "a horse"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"totalTokenCount": 3},
    "promptFeedback": {"blockReason": "SAFETY"},
}
BODY = {"model": "imgb-2", "prompt": "a horse"}
UNKNOWN: dict[str, Any] = dict.fromkeys(attrs.fields_dict(Entry))
UNKNOWN["state"] = "queued"
ENTRY = Entry(**UNKNOWN)
SENT = {"contents": [{"parts": [{"text": "a horse"}]}]}


def ask(path: str, body: object) -> bytes:
    """Return what the emulator responds to a request."""
    emulator = Emulator(keys={"key": Access()}, public_url="http://127.0.0.1", timing=Timing())
    headers = (("Authorization", "Bearer key"), ("Content-Type", "application/json"))
    request = ServiceRequest("POST", path, headers, json.dumps(body).encode())
    return emulator.handle(request, now=0.0, new_id="task-1").body


def side_file(folder: Path) -> None:
    with closing(ResponseSlot(folder / "slot")) as slot:
        slot.keep(KeptResponse(key="key-1", status=200, body=b"{}"))


SHAPES: dict[str, Callable[[Path], object]] = {
    "task": lambda _: read_task(RECORD, family=None, requested_model=None, submitted_at=None),
    "result": lambda _: read_result(RECORD, family=None),
    "token, written": lambda _: TASK.to_token(),
    "token, read": lambda _: Task.from_token('{"muybridge_task":1,"id":"task-1"}'),
    "part": lambda _: as_turns([{"parts": [{"text": "a"}]}]),
    "settings": lambda _: GenerationConfig(top_p=1).known,
    "text request": lambda _: GenerateContentRequest.build("textg-2.5-pro", Part(text="a")),
    "answer": lambda _: GenerateContentResponse(ANSWER).content,
    "chunk": lambda _: GenerateContentChunk(ANSWER).finish_reason,
    "tokens counted": lambda _: GenerateContentResponse(ANSWER).usage_metadata,
    "prompt feedback": lambda _: GenerateContentResponse(ANSWER).prompt_feedback,
    "side file": side_file,
    "document of a task": lambda _: task_record(TASK),
    "document of a result": lambda _: result_record(RESULT),
    "document of an answer": lambda _: answer_record(GenerateContentResponse(ANSWER)),
    "document of an event": lambda _: event_record(EVENT),
    "document of an item": lambda _: entry_record(ENTRY),
    "schemas": lambda _: openapi_document(),
    "document of a family": lambda _: family_record(IMGB),
    "document of a model": lambda _: model_record(IMGB, IMGB.models[0]),
    "emulated task": lambda _: ask(IMGB.create_path, BODY),
    "emulated text": lambda _: ask("/v1/models/textg-2.5-pro:generateContent", SENT),
}


class Broken(Exception):
    """The converter was asked for something."""


class BrokenConverter:
    def __getattr__(self, name: str) -> Any:
        raise Broken(name)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_converted_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every shape is read and written with the converter, and fails without it."""
    folders = tmp_path / "with", tmp_path / "without"
    for folder in folders:
        folder.mkdir()
    SHAPES[name](folders[0])
    monkeypatch.setattr(*moments.constant("converter of records"), BrokenConverter())
    with pytest.raises(Broken):
        SHAPES[name](folders[1])


SOURCES = sorted(
    path
    for package in (muybridge, muybridge_protocol)
    for path in Path(str(package.__file__)).parent.rglob("*.py")
)


def test_no_module_converts_by_itself() -> None:
    """No other module has or uses a function that makes a record of a value, or a value of one."""
    own = re.compile(r"from_record|to_record|asdict|\bimport cattrs|\bfrom cattrs")
    found = {path for path in SOURCES if own.search(path.read_text("utf-8"))}
    assert found == {Path(convert.__file__)}


def copied(node: ast.Dict) -> set[str]:
    """Return the attributes of one value that *node* copies under their own names."""
    pairs = [
        (value.value.id, value.attr)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
        and isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and key.value == value.attr
    ]
    return {attribute for name, attribute in pairs if [name for name, _ in pairs].count(name) > 1}


def test_no_shape_is_written_out() -> None:
    """No other module copies two attributes of a value into a record under their own names.

    Those for tests may: a fixture gives a client the local service's address so.
    """
    own = [path for path in SOURCES if path.parent.name != "testing"]
    trees = [ast.parse(path.read_text("utf-8")) for path in own]
    dicts = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    assert [found for node in dicts if (found := copied(node))] == []
