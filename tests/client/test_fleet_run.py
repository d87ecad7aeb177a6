"""What a fleet's run does with a response whose handling is interrupted."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

import moments
from muybridge.drivers.calls import Calls
from muybridge.drivers.fleet_run import FleetRun, Work
from muybridge.drivers.listeners import Listeners
from muybridge_protocol.fleet import Dispatch
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.service import Service

from .requests_made import image

RECORD = json.dumps({"id": "task-1", "status": "queued", "created": 1}).encode()
NOTHING = b'{"error": {"message": "wait a moment"}}'


@pytest.mark.parametrize(
    ("work", "status", "body", "notes"),
    [
        (image(), 200, RECORD, ["Task task-1 was accepted"]),
        (image(), 429, NOTHING, []),
        (Task(id="task-1"), 200, RECORD, []),
    ],
    ids=["accepted", "refused", "polled"],
)
def test_an_interrupted_response(
    work: Work, status: int, body: bytes, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler's exception is raised; only for a paid response with an id it has a note."""
    error = RuntimeError("time is up")

    def struck(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(*moments.at("fleet told of a response").place, struck)
    run = FleetRun(
        Calls(service=Service(base_url="https://service.test"), timeout=5, poll_interval=None),
        Listeners(None, None),
        lambda: 0.0,
        [work],
        concurrency=1,
        per_family=None,
        timeout=None,
        now=0.0,
        wall=0.0,
    )
    sent = run.fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    run.sending(sent, 0.0)
    with pytest.raises(RuntimeError) as caught:
        run.take(sent, HttpResponse(status, (), body), 0.0)
    assert caught.value is error
    assert [note.partition(";")[0] for note in getattr(error, "__notes__", ())] == notes
