"""What a record says can be shown, encoded and stored, wherever a client hands it over."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from muybridge import CreateAmbiguous, TaskFailed
from muybridge_protocol.events import Polled, Submitted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.observations import AnyEvent, CallEnded
from muybridge_protocol.records.tasks import Result, Task

from .drivers import MakeClient
from .in_process import World
from .requests_made import image, small


def record(**values: Any) -> HttpResponse:
    said = {"id": "task-1", "created": 1_750_000_000, "model": "imgb-2", "status": "queued"}
    return HttpResponse(200, (), json.dumps({**said, **values}).encode())


def stored(*values: object) -> None:
    """Store *values* as a store does."""
    with closing(sqlite3.connect(":memory:")) as store:
        for value in values:
            store.execute("SELECT ?", (value,)).fetchone()


POISON = ["blocked: \ud83d", "no\nto resume: x\x1b[2J\u2028", "\ud83d" * 50_000, "x" * 7_000_000]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        pytest.param(
            field,
            text,
            id=f"{field}-{ascii(text)[:20]}",
            # Megabytes take a while, and every field that is shown goes the way of this one.
            marks=pytest.mark.nightly if len(text) > 1_000_000 and field != "error" else (),
        )
        for field in ("error", "model", "status", "object")
        for text in POISON
    ],
)
def test_a_poisoned_text(make_client: MakeClient, field: str, text: str) -> None:
    """A text that is half a character, many lines or megabytes is one short line everywhere."""
    world, told = World(), list[AnyEvent]()
    world.instead += [record(**{field: text}), record(**{"status": "failed", field: text})]
    world.always = record(status="failed", error=text)
    client = make_client(world, on_event=told.append)
    task = client.create(image())
    assert task.raw[field] == text
    with pytest.raises(TaskFailed) as caught:
        client.wait(task)
    error = caught.value
    assert error.result.raw["error" if field == "status" else field] == text
    records: list[Task | Result] = [task, error.result]
    records += [event.task for event in told if isinstance(event, Submitted)]
    records += [event.result for event in told if isinstance(event, Polled)]
    for each in records:
        texts = [each.error, each.model, each.status, each.object]
        stored(*texts)
        for shown in filter(None, texts):
            assert shown.isprintable()
            assert len(shown) <= 2003
        assert len(repr(each).encode()) < 10_000
    assert str(error).isprintable()
    assert len(str(error).encode()) < 10_000
    assert len(task.to_token()) < 2_000
    (ended,) = [event for event in told if isinstance(event, CallEnded) and event.error]
    assert ended.status == "failed"


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1, -(2**63) - 1, -1, 10**300])
def test_a_number_out_of_range(make_client: MakeClient, number: int) -> None:
    """A time or count that no date or database can hold is None; the raw record keeps it."""
    world = World()
    odd = {"created": number, "totalTokens": number, "actualDuration": number}
    link = {"status": "completed", "image_url": f"{world.url}/media/task-1.png"}
    world.instead += [record(**odd), record(**odd, **link)]
    client = make_client(world)
    task = client.create(image())
    result = client.wait(task)
    assert (task.created, result.created, result.expires_at) == (None, None, None)
    stored(result.created, result.total_tokens, result.actual_duration)
    assert task.raw["created"] == result.raw["totalTokens"] == number
    assert Task.from_token(task.to_token()).id == "task-1"


def test_a_time_that_is_one(make_client: MakeClient) -> None:
    """The latest time that is read is one that every date can hold, with its retention."""
    world = World()
    link = {"status": "completed", "image_url": f"{world.url}/media/task-1.png"}
    world.always = record(created=32_503_679_999, **link)
    client = make_client(world)
    result = client.wait(client.create(small()["imgb"]))
    assert result.expires_at is not None
    assert datetime.fromtimestamp(result.expires_at, UTC).year == 3000


@pytest.mark.parametrize("task_id", ["\ud83d", "a\nb", "\x1b[2J", "..", "x" * 1025])
def test_an_id_that_cannot_be_used(make_client: MakeClient, task_id: str) -> None:
    """An id that cannot be used is not altered: the error is ambiguous and keeps the response."""
    world = World()
    world.always = record(id=task_id)
    with pytest.raises(CreateAmbiguous) as caught:
        make_client(world).create(image())
    assert json.loads(caught.value.raw)["id"] == task_id
    assert caught.value.candidate_id in (None, "x" * 1025)
    assert str(caught.value).isprintable()
    assert str(caught.value).encode()
    assert len(world.posts) == 1
