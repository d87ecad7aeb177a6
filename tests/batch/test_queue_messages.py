"""What a worker under a job queue takes from messages, and what from its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from muybridge.workers.environment import TURN, WorkerMisconfigured, WorkerSettings
from muybridge.workers.messages import TASK, Refused, check_message

HEADERS = {"task": TASK, "id": "1", "timelimit": [None, None], "retries": 0}
EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
BODY: list[Any] = [["horses"], {}, EMBEDDED]
SETTINGS = {"MUYBRIDGE_JOURNAL": "postgresql://me:secret@db/studio", "MUYBRIDGE_OUT": "out"}


def check(
    headers: Mapping[str, object] = HEADERS,
    body: Any = BODY,
    content_type: str = "application/json",
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    check_message(headers, raw, content_type, "utf-8")


def test_the_message_that_is_accepted() -> None:
    """A message that names a batch is accepted, also when it is repeated."""
    check()
    check({**HEADERS, "retries": 3, "eta": "2026-11-23T10:00:00+00:00"})
    check({"task": TASK}, [["horses"], {}, {}])


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
]


@pytest.mark.parametrize(("forged", "said"), FORGED)
def test_forged_messages(forged: dict[str, Any], said: str) -> None:
    """A message that asks for anything else is refused, with a reason that does not repeat it."""
    with pytest.raises(Refused, match=said) as caught:
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
    with pytest.raises(WorkerMisconfigured, match="MUYBRIDGE_JOURNAL is not set"):
        WorkerSettings.read({**SETTINGS, "MUYBRIDGE_JOURNAL": ""})
    for text in ("0", "-1", "two", "1e3", "\u0661"):
        with pytest.raises(WorkerMisconfigured, match="MUYBRIDGE_WORKER_TURN is not a number"):
            WorkerSettings.read({**SETTINGS, "MUYBRIDGE_WORKER_TURN": text})
