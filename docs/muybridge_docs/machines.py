"""Diagrams of the state machines, from the table of statuses and by running the operations.

A walk gives an operation the same input again and again until it settles, and the diagram shows
what the operation did. So a diagram cannot show what the code does not do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from muybridge_docs.markdown import code, codes, table
from muybridge_docs.svg import Edge, fan, layers
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.families import IMGA, ImgaRequest
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Create, Operation, Poll, Settled, Wait
from muybridge_protocol.records.tasks import TRANSITIONS, Status, Task
from muybridge_protocol.service import Service

SERVICE = Service(base_url="https://service.test")
TASK = Task(id="task-1", family=IMGA.name, model="imga", status=Status.QUEUED, submitted_at=0.0)

Input = HttpResponse | TransportFailure
"""The possible results of an exchange."""


def _record(**fields: object) -> HttpResponse:
    return HttpResponse(200, (), json.dumps({"id": TASK.id, **fields}).encode())


def _failure(reason: Reason, *, sent: bool) -> TransportFailure:
    return TransportFailure(phase=Phase.HEAD if sent else Phase.CONNECT, sent=sent, reason=reason)


FAILURES: Mapping[str, Input] = {
    "not a byte was sent": _failure(Reason.REFUSED, sent=False),
    "wrong certificate": _failure(Reason.CERTIFICATE, sent=False),
    "lost after the first byte": _failure(Reason.RESET, sent=True),
}

AFTER_CREATE: Mapping[str, Input] = {
    "a task record": _record(status="queued"),
    "a record without an id": HttpResponse(200, (), b'{"status": "queued"}'),
    "failed, without an id": HttpResponse(200, (), b'{"status": "failed"}'),
    "400, 422": HttpResponse(400),
    "401": HttpResponse(401),
    "403": HttpResponse(403),
    "429": HttpResponse(429),
    "500, 3xx, any other": HttpResponse(500),
    **FAILURES,
}

AFTER_POLL: Mapping[str, Input] = {
    "queued, processing": _record(status="processing"),
    "completed": _record(status="completed", image_url="https://cdn.test/a.png"),
    "completed, without a URL": _record(status="completed"),
    "failed": _record(status="failed"),
    "cancelled": _record(status="cancelled"),
    "another task's record": HttpResponse(200, (), b'{"id": "other", "status": "queued"}'),
    "no JSON": HttpResponse(200, (), b"<html>"),
    "3xx": HttpResponse(302),
    "401": HttpResponse(401),
    "404": HttpResponse(404),
    "429": HttpResponse(429),
    "500, any other": HttpResponse(500),
    **FAILURES,
}


def task_states() -> str:
    """Return the diagram of a task's statuses."""
    edges = [
        Edge(str(before) if before else "create call", str(after))
        for before, afters in TRANSITIONS.items()
        for after in Status
        if after in afters
    ]
    ends = [str(status) for status, afters in TRANSITIONS.items() if not afters]
    return layers("The statuses of a task", edges, ends)


def create_machine() -> str:
    """Return the diagram of a create call."""
    return fan("Outcomes of a create call", list(walk(new_create, AFTER_CREATE)))


def poll_machine() -> str:
    """Return the diagram of waiting for a result."""
    return fan("Outcomes of waiting for a result", list(walk(new_poll, AFTER_POLL)))


def task_table() -> str:
    """Return the statuses of a task as a table."""
    rows = (
        (
            code(before) if before else "create call",
            codes(s for s in Status if s in afters) or "final",
        )
        for before, afters in TRANSITIONS.items()
    )
    return table(("Status", "May become"), rows)


def create_table() -> str:
    """Return the outcomes of a create call as a table."""
    return _steps(walk(new_create, AFTER_CREATE))


def poll_table() -> str:
    """Return the outcomes of waiting for a result as a table."""
    return _steps(walk(new_poll, AFTER_POLL))


def _steps(steps: Iterable[Step]) -> str:
    rows = (
        (
            step.label,
            "retries" if step.first == Wait.__name__ else code(step.first),
            code(step.last) if step.first == Wait.__name__ else "",
        )
        for step in steps
    )
    return table(("What happened", "The operation", "If it happens each time"), rows)


def new_create() -> Operation[Any]:
    """Return a new create call."""
    request = ImgaRequest(model="imga", prompt="a horse")
    return Create.start(request, SERVICE, now=0.0, wall=0.0, seed=0)


def new_poll() -> Operation[Any]:
    """Return a new wait for a result."""
    return Poll.start(TASK, SERVICE, now=0.0, wall=0.0, seed=0)


@attrs.frozen
class Step:
    """How an operation responds to an input.

    Args:
        label: The input, in words.
        first: The next action: `Wait`, or the outcome.
        last: The outcome if the same input repeats.
        tries: The number of requests sent by then.
    """

    label: str
    first: str
    last: str
    tries: int


def walk(start: Callable[[], Operation[Any]], inputs: Mapping[str, Input]) -> Iterator[Step]:
    """Yield how an operation responds to each of *inputs*, once and repeatedly.

    Args:
        start: Creates the operation.
        inputs: The possible results of an exchange, by label.
    """
    for label, given in inputs.items():
        reached: list[str] = []
        operation, now = start(), 0.0
        while not reached or reached[-1] == Wait.__name__:
            operation, now = _told(operation, given, now)
            reached.append(_wanted(operation, now))
            if len(reached) == _ENDLESS:
                break
        yield Step(label, reached[0], reached[-1], len(reached))


_ENDLESS = 10_000


def _told(operation: Operation[Any], given: Input, now: float) -> tuple[Operation[Any], float]:
    """Return the operation after *given*, and the time, which includes any wait before sending."""
    match operation.next_action(now):
        case Wait(until):
            return _told(operation, given, until)
        case Settled():
            return operation, now
        case _:
            pass
    if isinstance(given, HttpResponse):
        return operation.receive(given, now), now
    return operation.fail(given, now), now


def _wanted(operation: Operation[Any], now: float) -> str:
    action = operation.next_action(now)
    if not isinstance(action, Settled):
        return type(action).__name__
    outcome: object = action.outcome
    return type(outcome).__name__ if isinstance(outcome, ServiceError) else _value(outcome)


def _value(outcome: object) -> str:
    return type(outcome).__name__
