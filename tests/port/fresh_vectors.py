"""Requests and scripts that nobody has written: the port has to do what the Python core does."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.vectors.files import VECTORS, VERSION
from tests.vectors.operations import played
from tests.vectors.requests_made import created, refused
from tests.vectors.scripts import (
    ACCEPTED,
    BAD_CERTIFICATE,
    CUT_OFF,
    DONE,
    NO_RESPONSE,
    RECORDS,
    REFUSALS,
    STATUSES,
    UNSENT,
    Reaction,
    Slow,
    raw,
    response,
    result,
)
from tests.vectors.telling import SERVICE, WALL, Told
from tests.vectors.values import near, wrong_types

from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.families.examples import examples
from muybridge_protocol.http import HttpResponse, TransportFailure

_WAITS = (
    "0",
    "1",
    "7",
    "30",
    "90.5",
    "120",
    "121",
    "1000",
    "soon",
    "-1",
    "Thu, 09 Oct 2025 08:54:00 GMT",
)
_MODELS = ("imga", "vidsa_1_5_pro_480p", "vidsb_2_0_fast", "vidv_4", "unheard-of")


def write_vectors(folder: Path, count: int, seed: int) -> None:
    """Write vectors with *count* new scripts and *count* new requests into *folder*."""
    draw = random.Random(seed)  # noqa: S311  scripts, not keys
    (folder / "schema").mkdir(parents=True)
    bodies = [_body(draw) for _ in range(count)]
    reports = [(family, body, family.check(body).problems) for family, body in bodies]
    made: dict[str, list[Told]] = {
        "operations": [_script(draw, number) for number in range(count)],
        "requests": [created(family, body) for family, body, problems in reports if not problems],
        "invalid-requests": [refused(*report) for report in reports if report[2]],
    }
    service = {"base_url": SERVICE.base_url, "text_base_url": SERVICE.text_base_url}
    for name, cases in made.items():
        shutil.copy(VECTORS / "schema" / f"{name}.json", folder / "schema")
        of = {} if name == "invalid-requests" else {"service": service}
        text = json.dumps({"vectors": name, "version": VERSION, **of, "cases": cases})
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    for name in ("families.json", "schema/families.json"):
        shutil.copy(VECTORS / name, folder / name)


def _body(draw: random.Random) -> tuple[Family, Told]:
    """Return a request with some fields, of which most are acceptable by themselves."""
    family = draw.choice([*FAMILIES.values()])
    body = dict(draw.choice(_filled(family.name)))
    for field in draw.sample(family.fields, draw.randint(1, min(5, len(family.fields)))):
        values = _values(family.name, field.wire)
        fine = [value for value in values if field.problem(value, field.rules) is None]
        pick = draw.choice((fine, fine, fine, values, wrong_types(field)))
        if pick:
            body[field.wire] = draw.choice(pick)
    for wire in draw.sample([*body], draw.randint(0, 2) if len(body) > 1 else 0):
        del body[wire]
    copied: Told = json.loads(json.dumps(body))  # as it arrives: no two values are one object
    return family, copied


@cache
def _filled(family: str) -> list[Told]:
    """Return a request of each model."""
    return [*examples(FAMILIES[family]).values()]


@cache
def _values(family: str, wire: str) -> list[object]:
    """Return values at the limits of a field, and beyond them."""
    field = FAMILIES[family].field(wire)
    assert field is not None
    return [*near(field, field.rules)]


def _script(draw: random.Random, number: int) -> Told:
    told, reactions = draw.choice((_create, _poll, _poll, _query))(draw)
    script = (_slowly(draw, reaction) for reaction in reactions)
    return played(f"{told['kind']} {number}", told, script, seed=draw.getrandbits(32))


def _slowly(draw: random.Random, reaction: Reaction) -> Reaction:
    if draw.random() < 0.2 and isinstance(reaction, HttpResponse | TransportFailure):
        return Slow(reaction, draw.choice((5, 45, 59)))
    return reaction


def _create(draw: random.Random) -> tuple[Told, Iterator[Reaction]]:
    family = draw.choice([*FAMILIES.values()])
    body = draw.choice(_filled(family.name))
    often: tuple[Callable[[], Reaction], ...] = (
        lambda: UNSENT,
        lambda: response(429),
        lambda: response(429, Retry_After=draw.choice(_WAITS)),
    )
    seldom: tuple[Callable[[], Reaction], ...] = (
        lambda: ACCEPTED,
        lambda: NO_RESPONSE,
        lambda: CUT_OFF,
        lambda: BAD_CERTIFICATE,
        lambda: raw(draw.choice(STATUSES), draw.choice((*REFUSALS, *RECORDS["create"]))),
    )
    told = {"kind": "create", "family": family.name, "input": body}
    return told, (draw.choice(draw.choice((often, often, seldom)))() for _ in itertools.count())


def _poll(draw: random.Random) -> tuple[Told, Iterator[Reaction]]:
    told: Told = {"kind": "poll", "task": _task(draw), "wait": draw.choice((0, 10, 100, 700, 3600))}
    if draw.random() < 0.2:
        told["poll_interval"] = draw.choice((3, 20, 400))
    return told, _results(draw)


def _query(draw: random.Random) -> tuple[Told, Iterator[Reaction]]:
    return {"kind": "query", "task": _task(draw)}, _results(draw)


def _task(draw: random.Random) -> Told:
    task: Told = {"id": "task-1"}
    if draw.random() < 0.7:
        task["family"] = draw.choice([*FAMILIES])
        task["submitted_at"] = WALL - draw.choice((0, 0, 5, 50, 4_000, 90_000))
    if draw.random() < 0.2:
        task["next_poll_at"] = WALL + draw.choice((-50, 3, 100, 1_000))
    return task


def _results(draw: random.Random) -> Iterator[Reaction]:
    often: tuple[Callable[[], Reaction], ...] = (
        lambda: result(draw.choice(("queued", "processing", "paused"))),
        lambda: result("processing", model=draw.choice(_MODELS)),
        lambda: NO_RESPONSE,
        lambda: UNSENT,
        lambda: response(draw.choice((429, 503)), Retry_After=draw.choice(_WAITS)),
        lambda: response(draw.choice((404, 405, 408, 410, 429, 500, 503))),
        lambda: raw(200, b"{", Retry_After="90"),
    )
    seldom: tuple[Callable[[], Reaction], ...] = (
        lambda: DONE,
        lambda: result("completed"),
        lambda: BAD_CERTIFICATE,
        lambda: raw(200, draw.choice(RECORDS["poll"])),
        lambda: raw(draw.choice(STATUSES), b'{"message": "because"}'),
    )
    return (draw.choice(draw.choice((*[often] * 6, seldom)))() for _ in itertools.count())
