"""A fleet whose driver did not send what was dispatched: it had an outcome, or has to wait."""

from __future__ import annotations

import pytest

from muybridge_protocol.errors import CreateAmbiguous
from muybridge_protocol.families import ImgaRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet, FleetOutcome
from muybridge_protocol.operations import Wait
from muybridge_protocol.records.tasks import Task

from .driving import LINK, SERVICE, WALL, result

IMGA = ImgaRequest(model="imga", prompt="a horse")
TASK = Task(id="task-1", family="imga")


def begun(*, connections: int = 1) -> tuple[Fleet[str], Dispatch[str]]:
    """Return a fleet of two creates, and the first dispatch."""
    fleet: Fleet[str] = Fleet(SERVICE, wall_offset=WALL, seed=1, connections=connections)
    fleet.add("one", IMGA, 0.0)
    fleet.add("two", IMGA, 0.0)
    sent = fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    return fleet, sent


def test_a_create_that_has_a_task() -> None:
    """A create that turns out to have a task is never sent: its task is waited for."""
    fleet, sent = begun()
    fleet.settle(sent.ticket, TASK, 1.0)
    assert fleet.paid == 0
    fleet.drop("two")
    poll = fleet.next_action(1.0)
    assert isinstance(poll, Dispatch)
    assert poll.request.url.endswith("/v1/result/task-1")
    fleet.receive(poll.ticket, result("completed", "task-1", image_url=LINK), 1.0)
    ended = fleet.next_action(1.0)
    assert isinstance(ended, FleetOutcome)
    assert (ended.key, ended.request, ended.unwrap().id) == ("one", IMGA, "task-1")


def test_a_create_that_has_an_error() -> None:
    """A create that turns out to have failed ends with that error."""
    fleet, sent = begun()
    error = CreateAmbiguous(reason="it may have been accepted")
    fleet.settle(sent.ticket, error, 1.0)
    ended = fleet.next_action(1.0)
    assert isinstance(ended, FleetOutcome)
    assert (ended.key, ended.error, ended.task) == ("one", error, None)


def test_a_create_that_is_put_off() -> None:
    """A create that is put off makes room for others, and is dispatched again later."""
    fleet, sent = begun()
    assert isinstance(fleet.next_action(0.0), Busy)
    fleet.postpone(sent.ticket, 5.0, 1.0)
    other = fleet.next_action(1.0)
    assert isinstance(other, Dispatch)
    assert other.key == "two"
    fleet.drop("two")
    assert fleet.next_action(1.0) == Wait(5.0)
    again = fleet.next_action(5.0)
    assert isinstance(again, Dispatch)
    assert (again.key, again.request) == ("one", sent.request)
    fleet.postpone(again.ticket, 9.0, 5.0)
    fleet.stop()
    assert isinstance(fleet.next_action(9.0), Done)
    (left,) = fleet.outstanding()
    assert (left.key, left.task, left.under_way) == ("one", None, False)


def test_a_ticket_that_does_not_exist() -> None:
    """A dispatch is ended once."""
    fleet, sent = begun()
    fleet.postpone(sent.ticket, 5.0, 1.0)
    with pytest.raises(RuntimeError, match="is under way: report the end"):
        fleet.postpone(sent.ticket, 5.0, 1.0)
    with pytest.raises(RuntimeError, match="is under way: report the end"):
        fleet.settle(sent.ticket, TASK, 1.0)
