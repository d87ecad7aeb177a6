"""What a worker under a job queue takes from messages, and what from its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from muybridge.workers.environment import TURN, WorkerSettings
from muybridge.workers.messages import TASK, check_message
from muybridge_protocol.errors import LocalError

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
HEADERS = {"task": TASK, "id": "1", "timelimit": [None, None], "retries": 0}
EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
BODY: list[Any] = [["horses"], {}, EMBEDDED]
SETTINGS = {"MUYBRIDGE_STORE": "postgresql://me:secret@db/studio", "MUYBRIDGE_OUT": "out"}


def check(
    headers: Mapping[str, object] = HEADERS,
    body: Any = BODY,
    content_type: str = "application/json",
) -> dict[str, object]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return check_message(headers, raw, content_type, "utf-8", NOW)


ACCEPTED = {
    "lang": "py",
    "task": TASK,
    "id": "1",
    "eta": None,
    "retries": 0,
    "argsrepr": "('horses',)",
    "kwargsrepr": "{}",
    "ignore_result": True,
}


def test_the_message_that_is_accepted() -> None:
    """A message that names a batch is accepted, at once or after a pause."""
    assert check() == ACCEPTED
    assert check({"task": TASK, "id": "1"}, [["horses"], {}, {}]) == ACCEPTED
    later = "2026-11-23T10:01:00+00:00"
    for eta, begins in [
        (later, later),
        ("2026-11-23T12:01:00+02:00", later),
        ("2026-11-23T10:01:00", later),
        ("2026-11-23T09:59:00+00:00", None),
    ]:
        assert check({**HEADERS, "eta": eta}) == {**ACCEPTED, "eta": begins}


def test_headers_without_an_effect() -> None:
    """Headers that a turn does not need are dropped, also those that Celery would act upon."""
    more = {
        "traceparent": "00-1-2-01",
        "ignore_result": False,
        "shadow": "another\ntask",
        "argsrepr": "two\nlines",
        "chain": [{"task": TASK}],
        "callbacks": [{"task": TASK}],
    }
    assert check({**HEADERS, **more}, [["horses"], {}, {}]) == ACCEPTED


def nested(depth: int) -> Any:
    value: Any = ""
    for _ in range(depth):
        value = [value]
    return value


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"headers": {**HEADERS, "task": "celery.map"}}, "it is for another task"),
    ({"headers": {}}, "it is for another task"),
    ({"headers": {**HEADERS, "timelimit": [1, None]}}, "it has a time limit"),
    ({"content_type": "application/x-python-serialize"}, "it is not JSON"),
    ({"body": b"\x80\x04"}, "it is not JSON"),
    ({"body": b"[" * 5000}, "it is not JSON"),
    ({"body": [["x" * 9000], {}, {}]}, "the limit is 8192"),
    ({"body": [["x" * 201], {}, {}]}, "not the name of a batch"),
    ({"body": [["two\nlines"], {}, {}]}, "not the name of a batch"),
    ({"body": [[""], {}, {}]}, "not the name of a batch"),
    ({"body": [[7], {}, {}]}, "not the name of a batch"),
    ({"body": [[], {}, {}]}, "not the name of a batch"),
    ({"body": [["horses", "s3://mine"], {}, {}]}, "not the name of a batch"),
    ({"body": [["horses"], {"out": "s3://mine"}, {}]}, "not the name of a batch"),
    ({"body": {"task": TASK, "args": ["horses"]}}, "not the name of a batch"),
    ({"body": [["horses"], {}, {"chain": [{"task": TASK}]}]}, "other tasks afterwards"),
    ({"body": [["horses"], {}, {"is_eager": True}]}, "not that of a turn"),
    ({"headers": {"task": TASK}}, "its id"),
    ({"headers": {**HEADERS, "id": "1]\nTask muybridge.take_turn[2"}}, "its id"),
    ({"headers": {**HEADERS, "id": "1" * 101}}, "its id"),
    ({"headers": {**HEADERS, "id": ["1"]}}, "its id"),
    ({"headers": {**HEADERS, "retries": "many"}}, "it is a retry"),
    ({"headers": {**HEADERS, "retries": 3}}, "it is a retry"),
    ({"headers": {**HEADERS, "retries": False}}, "it is a retry"),
    ({"headers": {**HEADERS, "retries": None}}, "it is a retry"),
    ({"headers": {**HEADERS, "eta": "2999-01-01T00:00:00+00:00"}}, "more than an hour"),
    ({"headers": {**HEADERS, "eta": "2026-11-23T11:00:01+00:00"}}, "more than an hour"),
    ({"headers": {**HEADERS, "eta": "9999-12-31T23:59:59-14:00"}}, "not a time"),
    ({"headers": {**HEADERS, "eta": "0001-01-01T00:00:00+14:00"}}, "not a time"),
    ({"headers": {**HEADERS, "eta": "tomorrow"}}, "not a time"),
    ({"headers": {**HEADERS, "eta": 7}}, "not a time"),
    ({"headers": {**HEADERS, "expires": "2026-11-23T11:00:01+00:00"}}, "it expires"),
    ({"headers": {**HEADERS, "compression": "application/x-gzip"}}, "it is compressed"),
    ({"headers": {**HEADERS, "x": "x" * 9000}}, "the limit is 8192"),
    ({"headers": {**HEADERS, "x": nested(200_000)}}, "nested too deeply"),
]


@pytest.mark.parametrize(("forged", "said"), FORGED)
def test_forged_messages(forged: dict[str, Any], said: str) -> None:
    """A message that asks for anything else is refused, with a reason that does not repeat it."""
    with pytest.raises(ValueError, match=said) as caught:
        check(**forged)
    assert len(str(caught.value)) < 120


def test_the_environment() -> None:
    """Settings are read from the environment; what is missing or not valid is named."""
    settings = WorkerSettings.read(SETTINGS)
    assert (settings.out, settings.spool, settings.seconds) == ("out", None, TURN)
    assert "secret" not in repr(settings)
    more = {"MUYBRIDGE_WORKER_CREATES": "2", "MUYBRIDGE_SPOOL": "spool"}
    settings = WorkerSettings.read({**SETTINGS, **more})
    assert (settings.creates, settings.spool) == (2, "spool")
    assert WorkerSettings.read({**SETTINGS, "MUYBRIDGE_OUT": ""}).out is None
    with pytest.raises(LocalError, match="MUYBRIDGE_STORE is not set"):
        WorkerSettings.read({**SETTINGS, "MUYBRIDGE_STORE": ""})
    for text in ("0", "-1", "two", "1e3", "\u0661", "1000001", "9" * 5000):
        with pytest.raises(LocalError, match="MUYBRIDGE_WORKER_TURN must be a whole number"):
            WorkerSettings.read({**SETTINGS, "MUYBRIDGE_WORKER_TURN": text})
    assert WorkerSettings.read({**SETTINGS, "MUYBRIDGE_WORKER_CREATES": "256"}).creates == 256
    for name in ("MUYBRIDGE_WORKER_CREATES", "MUYBRIDGE_WORKER_CONCURRENCY"):
        with pytest.raises(LocalError, match=f"{name} must be a .* from 1 to 256"):
            WorkerSettings.read({**SETTINGS, name: "257"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MUYBRIDGE_STORE", "mysql://me:secret@db/studio", "not the address of a database"),
        ("MUYBRIDGE_STORE", "studio", "not the address of a database"),
        ("MUYBRIDGE_OUT", "s3:/studio", "results go to a folder or to s3://BUCKET/PREFIX"),
        ("MUYBRIDGE_OUT", "s3://studio?secret", "this is not a place in S3"),
    ],
)
def test_places_that_cannot_work(name: str, value: str, said: str) -> None:
    """An address or a place that is not valid is refused before a worker starts."""
    pytest.importorskip("psycopg")
    pytest.importorskip("obstore")
    WorkerSettings.read(SETTINGS).check()
    with pytest.raises(LocalError, match=f"{name}: .*{said}") as caught:
        WorkerSettings.read({**SETTINGS, name: value}).check()
    assert "secret" not in str(caught.value)
