"""Each field of a record is shown wherever the record is, or left out there for a reason.

A new field fails here at every place that does not know it yet. The message names the file that
shows the record.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest
from click.testing import CliRunner

from batch.begun import accepted, begun
from batch.scripted_world import Script, ScriptedWorld, prompts
from cli.crooked_service import CrookedService, always, reply
from client.in_process import InProcessTransport
from moments import at
from muybridge import Client, batch
from muybridge.batch.items.folder import own_store
from muybridge.cli.commands import muybridge
from muybridge_protocol.emulator.responses import result_record, task_record
from muybridge_protocol.emulator.tasks import EmulatedTask
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.openapi.records import result_schema, task_schema
from muybridge_protocol.records.convert import partial as record_of
from muybridge_protocol.records.convert import wire_names
from muybridge_protocol.records.tasks import Result, Status, Task
from vectors.telling import told_outcome

HERE = "tests/core/test_shown_fields.py"
RAW = "the response as it was"
OBJECT = "says no more than the family"
OURS = "not in the service's records"
LINK = "its query may hold a signature"
COMMON: dict[str, Any] = {
    "id": "task-17",
    "status": Status.COMPLETED,
    "family": "vidr",
    "model": "the model",
    "object": "the object",
    "created": 1_760_000_000,
    "error": "the reason",
    "raw": {"x": 1},
}
TASK = Task(
    **COMMON, requested_model="the requested one", submitted_at=1_760_000_111.5, next_poll_at=1.5e9
)
RESULT = Result(
    **COMMON,
    image_url="https://cdn.example.com/17.png",
    video_url="https://cdn.example.com/17.mp4",
    actual_duration=17.25,
    total_tokens=171_717,
)


def differing(record: Task | Result, show: Callable[[Any], str]) -> set[str]:
    """Return the fields without which *show* shows something else."""
    whole = show(record)
    shown: set[str] = set()
    for field in attrs.fields(type(record)):
        absent: Any = "other" if field.default is attrs.NOTHING else None
        if field.name == "raw":
            absent = {}
        if show(attrs.evolve(record, **{field.name: absent})) != whole:
            shown.add(field.name)
    return shown


def html(record: Any) -> str:
    return record._repr_html_()


def told(record: Any) -> str:
    return json.dumps(told_outcome(record))


def named(kind: type, names: Collection[str]) -> set[str]:
    """Return the fields of *kind* whose names in the service's records are *names*."""
    return {field for field, wire in wire_names(kind).items() if wire in names}


def wire_record(result: Result) -> dict[str, Any]:
    """Return what a service sends of *result*."""
    return record_of(Result, **{name: getattr(result, name) for name in wire_names(Result)})


def emulated(show: Callable[[EmulatedTask, float], Mapping[str, object]]) -> set[str]:
    """Return the names in the emulator's records, of all families, completed and failed."""
    return {
        name
        for family in FAMILIES.values()
        for ending in (Status.COMPLETED, Status.FAILED)
        for name in show(
            EmulatedTask(
                id="task-17",
                family=family,
                model="the model",
                prompt="",
                sent=b"{}",
                created=0,
                starts_at=0,
                ends_at=0,
                ending=ending,
                seconds=5,
            ),
            1,
        )
    }


def emulated_result(task: EmulatedTask, now: float) -> Mapping[str, object]:
    return result_record(task, now, "http://127.0.0.1:1")


def lines_of_get() -> set[str]:
    """Return what the lines of `muybridge get` begin with."""
    with CrookedService(always(reply(200, wire_record(RESULT)))) as service:
        done = CliRunner().invoke(muybridge, ["get", RESULT.id], env=service.settings)
    assert done.exit_code == 0, done.output
    return {line.split()[0] for line in done.stdout.splitlines()}


def stored() -> set[str]:
    """Return the names of what a batch keeps of results, of a completed and a failed one."""
    polls = [{**wire_record(RESULT), "id": "id-horse1"}]
    polls.append({**polls[0], "id": "id-horse2", "status": "failed"})
    scripts = [Script(polls=(HttpResponse(200, (), json.dumps(one).encode()),)) for one in polls]
    world = ScriptedWorld(prompts(scripts))
    items = [{"family": "imgb", "model": "imgb-2", "prompt": f"horse{n}"} for n in (1, 2)]
    inside: dict[str, Any] = {"transport": InProcessTransport(world), "clock": world.clock}
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(world.key, world.url, **inside) as client,
    ):
        report = batch.run(client, items, folder, concurrency=1, timeout=200)
        kept = [json.loads(entry.result or "{}") for entry in report.entries]
    assert all(kept), kept
    return {name for one in kept for name in one}


def sheet(result: Result) -> str:
    """Return the contact sheet of a batch with an item whose store has all of *result*."""
    with tempfile.TemporaryDirectory() as folder:
        with begun(Path(folder) / "a") as found:
            accepted(found, 1, "task-17")
        with closing(sqlite3.connect(own_store(Path(folder) / "a"))) as db, db:
            db.execute("UPDATE muybridge_item SET result = ?", (json.dumps(wire_record(result)),))
        return batch.write_sheet(Path(folder) / "a").read_text("utf-8")


def to_an_agent(result: Result) -> str:
    """Return what the server for agents tells of a completed task."""
    return repr(getattr(*at("result told to an agent").place)(TASK, result))


class Place(NamedTuple):
    """Where a record is shown.

    Args:
        kind: The record's class.
        file: Where its fields are listed.
        shown: Returns the fields that are shown there.
        left_out: The fields that are not, and why.
    """

    kind: type[Task | Result]
    file: str
    shown: Callable[[], set[str]]
    left_out: Mapping[str, str]


TASKS = "protocol/muybridge_protocol/records/tasks.py"
TELLING = "told_outcome in tests/vectors/telling.py"
PLACES = {
    "a task in a notebook": Place(
        Task,
        f"Task._repr_html_ in {TASKS}",
        partial(differing, TASK, html),
        {"object": OBJECT, "raw": RAW, "next_poll_at": "for the client"},
    ),
    "a result in a notebook": Place(
        Result,
        f"Result._repr_html_ in {TASKS}",
        partial(differing, RESULT, html),
        {"object": OBJECT, "raw": RAW},
    ),
    "a token": Place(
        Task,
        f"_TOKEN in {TASKS}",
        partial(differing, TASK, Task.to_token),
        {"object": OBJECT, "raw": RAW, "error": "a failed task is over"},
    ),
    "`muybridge get`": Place(
        Result,
        "_SHOWN in transports/muybridge/cli/tasks.py",
        lambda: named(Result, lines_of_get()),
        {
            "family": OURS,
            "object": OBJECT,
            "created": "shown as the time until which the link works",
            "raw": RAW,
        },
    ),
    "the store of a batch": Place(
        Result,
        "_KEPT in transports/muybridge/batch/running/item_work.py",
        lambda: named(Result, stored()),
        {
            "id": "the item has the task's token",
            "family": "the item has it",
            "object": OBJECT,
            "image_url": LINK,
            "video_url": LINK,
            "raw": RAW,
        },
    ),
    "the contact sheet": Place(
        Result,
        "FACTS in transports/muybridge/batch/results/sheet/figures.py",
        partial(differing, RESULT, sheet),
        {
            "id": "the item has it",
            "status": "the item's state says it",
            "family": "the item has it",
            "object": OBJECT,
            "created": "`took` says how long it took",
            "image_url": LINK,
            "video_url": LINK,
            "total_tokens": "for accounts, not for viewers",
            "error": "the item's reason says it",
            "raw": RAW,
        },
    ),
    "what an agent is told": Place(
        Result,
        "_done in transports/muybridge/mcp/tools.py",
        partial(differing, RESULT, to_an_agent),
        {
            "id": "the token has it",
            **dict.fromkeys(("family", "model"), "the agent has chosen it"),
            "created": "told as the time until which the link works",
            "object": OBJECT,
            "video_url": "a result with both has the URL of the image",
            "total_tokens": "for accounts, not for viewers",
            "error": "a completed task has none",
            "raw": RAW,
        },
    ),
    "the OpenAPI schema of a task": Place(
        Task,
        "task_schema in protocol/muybridge_protocol/openapi/records.py",
        lambda: named(Task, task_schema(FAMILIES["imgb"])["properties"]),
        dict.fromkeys(("family", "requested_model", "submitted_at", "next_poll_at", "raw"), OURS),
    ),
    "the OpenAPI schema of a result": Place(
        Result,
        "result_schema in protocol/muybridge_protocol/openapi/records.py",
        lambda: named(Result, result_schema()["properties"]),
        dict.fromkeys(("family", "raw"), OURS),
    ),
    "a task record of the emulator": Place(
        Task,
        "task_record in protocol/muybridge_protocol/emulator/responses.py",
        lambda: named(Task, emulated(task_record)),
        dict.fromkeys(("family", "requested_model", "submitted_at", "next_poll_at", "raw"), OURS),
    ),
    "a result record of the emulator": Place(
        Result,
        "result_record in protocol/muybridge_protocol/emulator/responses.py",
        lambda: named(Result, emulated(emulated_result)),
        dict.fromkeys(("family", "raw"), OURS),
    ),
    "a task in the test vectors": Place(
        Task, TELLING, partial(differing, TASK, told), {"raw": RAW}
    ),
    "a result in the test vectors": Place(
        Result, TELLING, partial(differing, RESULT, told), {"family": OURS, "raw": RAW}
    ),
}


@pytest.mark.parametrize(("name", "sample"), [("TASK", TASK), ("RESULT", RESULT)])
def test_the_samples_set_every_field(name: str, sample: Task | Result) -> None:
    """The records of these tests have a value in every field, so that a place can show it."""
    for field in attrs.fields(type(sample)):
        value = getattr(sample, field.name)
        assert value not in (None, {}, field.default), f"add `{field.name}` to {name} in {HERE}"


@pytest.mark.parametrize("place", PLACES)
def test_every_field_is_shown(place: str) -> None:
    """A place shows every field that it does not leave out for a reason, and no other."""
    kind, file, show, left_out = PLACES[place]
    shown = show()
    for name in attrs.fields_dict(kind):
        assert name in shown or name in left_out, (
            f"{place} does not show `{kind.__name__}.{name}`: add it to {file}, or say in "
            f"PLACES in {HERE} why it is left out"
        )
        assert not (name in shown and name in left_out), (
            f"{place} shows `{kind.__name__}.{name}`: remove it from {file}, or from those that "
            f"PLACES in {HERE} says are left out"
        )
    assert left_out.keys() <= attrs.fields_dict(kind).keys(), "a field that is left out is gone"
