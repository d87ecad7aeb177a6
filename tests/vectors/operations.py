"""Operations, as scripts of what happens to them, with what they ask for and what they tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.request import parse
from muybridge_protocol.http import HttpResponse, TransportFailure
from muybridge_protocol.operations import (
    Create,
    DeleteAsset,
    Download,
    Fetch,
    Operation,
    Poll,
    Send,
    Settled,
    Wait,
)
from muybridge_protocol.operations.download import DownloadStage
from muybridge_protocol.operations.text import TextCall
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.text.encoding import encode_content
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentResponse

from .scripts import (
    OPERATIONS,
    RECORDS,
    REFUSALS,
    SCRIPTS,
    STATUSES,
    Film,
    Plain,
    Reaction,
    Slow,
    raw,
)
from .telling import (
    NOW,
    SERVICE,
    WALL,
    Told,
    told_action,
    told_body,
    told_event,
    told_failure,
    told_head,
    told_outcome,
    told_response,
)

EXCHANGE = 0.5
"""Seconds that an exchange of a script takes, unless it is a slow one."""


def begin(told: Told, *, now: float = NOW, seed: int = 0) -> Operation[Any]:
    """Return the operation that *told* describes, at its beginning."""
    task = Task(**told["task"]) if "task" in told else Task(id="")
    match told["kind"]:
        case "create":
            request = parse(FAMILIES[told["family"]], told["input"])
            return Create.start(request, SERVICE, now=now, wall=WALL, seed=seed)
        case "poll":
            options = {name: told[name] for name in ("wait", "poll_interval") if name in told}
            return Poll.start(task, SERVICE, now=now, wall=WALL, seed=seed, **options)
        case "query":
            return Poll.query(task, SERVICE, now=now, wall=WALL, seed=seed)
        case "delete_asset":
            return DeleteAsset.start(told["id"], SERVICE, now=now, seed=seed)
        case "generate_content":
            sent = encode_content(
                GenerateContentRequest.build(told["model"], told["input"]["contents"]), SERVICE
            )
            return TextCall[GenerateContentResponse].start(
                sent, GenerateContentResponse, SERVICE, now=now, seed=seed
            )
        case "download":
            return Download.start(told["url"], SERVICE, task=task, now=now, seed=seed)
        case kind:
            raise ValueError(kind)


def operation_cases() -> list[Told]:
    """Return scripts of what happens to an operation."""
    return [
        played(name, told, script, seed)
        for seed, (name, told, script) in enumerate(SCRIPTS, start=1)
    ]


def played(name: str, told: Told, script: Iterable[Reaction], seed: int) -> Told:
    """Return what an operation does in the course of *script*, which may be longer."""
    now = NOW
    operation = begin(told, now=now, seed=seed)
    reactions = iter(script)
    steps: list[Told] = []
    while True:
        action: Send | Fetch | Wait | Settled[Any] = operation.next_action(now)
        step: Told = {"now": now, "action": told_action(action)}
        steps.append(step)
        if isinstance(action, Settled):
            break
        if isinstance(action, Wait):
            now = action.until
            continue
        reaction = next(reactions)
        if isinstance(reaction, Slow):
            now += reaction.seconds
            reaction = reaction.reaction
        else:
            now += EXCHANGE
        operation, then = _react(operation, reaction, now)
        step["then"] = {"now": now, **then}
    start = {"now": NOW, "wall": WALL, "seed": seed}
    return {"name": name, "operation": told, "start": start, "steps": steps}


def _react(operation: Operation[Any], reaction: Plain, now: float) -> tuple[Operation[Any], Told]:
    told: Told
    if isinstance(reaction, HttpResponse):
        operation = operation.receive(reaction, now)
        told = {"response": told_response(reaction)}
    elif isinstance(reaction, TransportFailure):
        operation = operation.fail(reaction, now)
        told = {"failure": told_failure(reaction)}
    else:
        assert isinstance(operation, Download)
        return _read(operation, reaction, now)
    return operation, {**told, "events": [told_event(event) for event in operation.events]}


def _read(operation: Download, film: Film, now: float) -> tuple[Download, Told]:
    operation = operation.accept(film.head, now)
    events = [*operation.events]
    told: Told = {"head": told_head(film.head)}
    if operation.settled is None and operation.stage is DownloadStage.READING:
        told["offset"] = operation.part.offset
        told["pieces"] = [told_body(piece) for piece in film.pieces]
        for piece in film.pieces:
            operation = operation.take(piece)
            events += operation.events
            operation = attrs.evolve(operation, events=())
        if operation.settled is None:
            if film.failure is not None:
                told["failure"] = told_failure(film.failure)
                operation = operation.fail(film.failure, now)
            else:
                operation = operation.end(now)
            events += operation.events
    return operation, {**told, "events": [told_event(event) for event in events]}


def response_cases() -> list[Told]:
    """Return what a single response makes of an operation that has just been sent."""
    said = b'{"error": {"message": "because"}}'
    responses: list[tuple[str, HttpResponse]] = []
    for kind, bodies in RECORDS.items():
        responses += [(kind, raw(200, body)) for body in bodies]
        responses += [(kind, raw(status, said)) for status in STATUSES if status != 200]
    responses += [("create", raw(status, REFUSALS[0])) for status in (201, 429, 500)]
    responses += [("create", raw(400, body)) for body in REFUSALS]
    return [_judged(kind, answer) for kind, answer in responses]


def _judged(kind: str, answer: HttpResponse) -> Told:
    operation = begin(OPERATIONS[kind]).receive(answer, NOW + EXCHANGE)
    told: Told = {
        "name": f"{kind} {answer.status} {answer.body!r}",
        "operation": OPERATIONS[kind],
        "now": NOW + EXCHANGE,
        "response": told_response(answer),
        "events": [told_event(event) for event in operation.events],
    }
    if operation.settled is not None:
        told["outcome"] = told_outcome(operation.settled.outcome)
    else:
        told["again_at"] = operation.due
    return told
