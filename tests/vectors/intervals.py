"""When a task is polled: the times for each family and model, and for what callers know or set."""

from __future__ import annotations

import json
from collections.abc import Iterator

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Poll, Send
from muybridge_protocol.records.tasks import Task

from .telling import NOW, SERVICE, WALL, Told

_POLLS = 8


def interval_cases() -> list[Told]:
    """Return the times of the first polls of a task, if each is answered at once."""
    return [_timed(name, task, **options) for name, task, options in _tasks()]


def _tasks() -> Iterator[tuple[str, Told, Told]]:
    for family in FAMILIES.values():
        new = {"id": "task-1", "family": family.name, "submitted_at": WALL}
        yield f"{family.name}", new, {}
        for model in family.models:
            yield f"{family.name} {model.name}", {**new, "requested_model": model.name}, {}
        yield f"{family.name}, a model that is not listed", {**new, "requested_model": "new"}, {}
    vidv = {"id": "task-1", "family": "vidv"}
    yield "submitted ten seconds ago", {**vidv, "submitted_at": WALL - 10}, {}
    yield "submitted an hour ago", {**vidv, "submitted_at": WALL - 3600}, {}
    yield "submitted at an unknown time", vidv, {}
    yield "not to be polled yet", {**vidv, "submitted_at": WALL, "next_poll_at": WALL + 45}, {}
    yield "not to be polled for a year", {**vidv, "next_poll_at": WALL + 31_536_000}, {}
    yield "a caller's own interval", {**vidv, "submitted_at": WALL}, {"poll_interval": 7}
    yield "a bare id", {"id": "task-1"}, {}
    for model in ("imga", "vidsa_1_5_pro_480p", "vidsb_2_0_fast", "imga-9", "vidv_4", "unheard-of"):
        yield f"a bare id whose record names {model}", {"id": "task-1"}, {"model": model}


def _timed(name: str, task: Told, *, model: str | None = None, **options: float) -> Told:
    poll = Poll.start(Task(**task), SERVICE, now=NOW, wall=WALL, seed=0, wait=None, **options)
    record = {"id": "task-1", "status": "processing", **({} if model is None else {"model": model})}
    response = HttpResponse(200, (), json.dumps(record).encode())
    times: list[float] = []
    while len(times) < _POLLS:
        now = poll.due
        assert isinstance(poll.next_action(now), Send)
        times.append(now)
        poll = poll.receive(response, now)
    told: Told = {"name": name, "task": task, **options}
    return {**told, **({} if model is None else {"model": model}), "polled_at": times}
