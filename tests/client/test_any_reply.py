"""Whatever a server replies, a call ends in a value or in an error of this library."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muybridge import MuybridgeError
from muybridge_protocol.emulator import Timing
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.tasks import Result, Status

from .drivers import DRIVERS, AnyClient
from .in_process import MP4, PNG, World
from .requests_made import image

TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "task-1",
        "completed",
        "failed",
        "cancelled",
        "queued",
        "0",
        "https://a.test/x.png",
        "",
        "\x00",
    ]
)
NUMBERS = st.integers() | st.floats() | st.integers(10**300, 10**301)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
NAMES = st.sampled_from(
    ["id", "object", "created", "model", "status", "error", "image_url", "video_url",
     "actualDuration", "totalTokens", "code", "msg", "data", "message", "detail"]
) | st.text(max_size=5)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=10,
)
RECORDS = st.fixed_dictionaries(
    {"id": st.just("task-1") | LEAVES, "status": TEXTS | VALUES},
    optional={"error": VALUES, "image_url": VALUES, "created": VALUES, "model": VALUES},
)


def _written(value: Any) -> bytes:
    return json.dumps(value).encode()


def _cut(body: bytes, length: int) -> bytes:
    return body[:length]


def _longer(body: bytes, more: bytes) -> bytes:
    return body + more


JSONS = (RECORDS | st.dictionaries(NAMES, VALUES, max_size=6) | VALUES).map(_written)
BODIES = st.one_of(
    st.binary(max_size=60),
    JSONS,
    st.builds(_cut, JSONS, st.integers(0, 60)),
    st.builds(_longer, JSONS, st.binary(max_size=3)),
    JSONS.map(lambda body: body.decode().encode("utf-16")),
    st.integers(1, 3000).map(lambda depth: b"[" * depth + b"]" * depth),
    st.integers(1, 3000).map(lambda depth: b'{"error":' * depth + b"1" + b"}" * depth),
    st.sampled_from([PNG, MP4, b"", b"<html>", b'{"code": "0"}', b'{"id": "task-1"}']),
)
FIELD_NAMES = st.sampled_from(
    ["Retry-After", "Content-Type", "Content-Length", "Content-Range", "Content-Encoding", "ETag",
     "Last-Modified", "Location", "Date", "Set-Cookie"]
) | st.text("abc-", min_size=1, max_size=5)  # fmt: skip
FIELD_VALUES = st.text(st.characters(max_codepoint=255), max_size=30) | st.sampled_from(
    ["0", "-5", "1e9", "9" * 30, "inf", "\u0663", "Fri, 31 Dec 9999 23:59:59 GMT",
     "Sat, 21 Nov 2026 00:00:00 GMT", "bytes 0-9/10", "bytes */5", "bytes 5-2/1", '"tag"', 'W/"x"',
     "/again", "https://10.0.0.1/", "https://[", "//", "video/mp4", "text/html", "gzip", "\r\n"]
)  # fmt: skip
STATUSES = st.sampled_from(
    [200, 200, 200, 201, 206, 301, 304, 400, 401, 403, 404, 408, 410, 416, 429, 500, 503]
) | st.integers(100, 999)
REPLIES = st.builds(
    HttpResponse,
    STATUSES,
    st.lists(st.tuples(FIELD_NAMES, FIELD_VALUES), max_size=5).map(tuple),
    BODIES,
)
FAILURES = st.builds(
    TransportFailure,
    phase=st.sampled_from(Phase),
    sent=st.booleans(),
    reason=st.sampled_from(Reason),
    partial=BODIES,
    status=st.none() | STATUSES,
    detail=st.text(max_size=10),
)
ANSWERS = st.lists(st.none() | REPLIES | FAILURES, max_size=6)

LINK = f"{World.url}/media/task-1.png"


CALLS: dict[str, Callable[[AnyClient, str], object]] = {
    "create": lambda client, _: client.create(image()),
    "get": lambda client, _: client.get("task-1"),
    "wait": lambda client, _: client.wait("task-1"),
    "watch": lambda client, _: list(client.watch("task-1")),
    "run": lambda client, _: client.run(image()),
    "delete": lambda client, _: client.delete_asset("asset-1"),
    "call GET": lambda client, _: client.call("GET", "/v1/any"),
    "call POST": lambda client, _: client.call("POST", "/v1/any", {}),
    "download": lambda client, folder: client.download("task-1", folder),
    "download link": lambda client, folder: client.download(LINK, folder),
    "download result": lambda client, folder: client.download(
        Result(id="task-1", status=Status.COMPLETED, image_url=LINK), folder
    ),
}


def nested(depth: int) -> HttpResponse:
    return HttpResponse(401, (), b'{"error":' + b"[" * depth + b"]" * depth + b"}")


@pytest.mark.parametrize("name", CALLS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(answers=ANSWERS, always=st.none() | REPLIES | FAILURES)
@example(answers=[nested(900)], always=None)
@example(answers=[nested(965)], always=None)
@example(answers=[nested(990)], always=None)
@example(answers=[], always=HttpResponse(200, (), b'{"id":"task-1","status":"completed"}'))
def test_any_reply(
    driver: str,
    name: str,
    answers: list[HttpResponse | TransportFailure | None],
    always: HttpResponse | TransportFailure | None,
) -> None:
    """Any replies and faults end in a value, or in an error that can be shown, kept and sent on."""
    world = World(timing=Timing(speed=10))
    with ExitStack() as closing, tempfile.TemporaryDirectory() as folder:
        client = DRIVERS[driver](closing)(world)
        client.create(image())
        world.seen.clear()
        world.instead.extend(answers)
        world.always = always
        try:
            outcome = CALLS[name](client, folder)
        except MuybridgeError as error:
            check_error(error)
            outcome = error
        saved = [path.name for path in Path(folder).iterdir() if ".part" not in path.name]
    assert len(saved) == isinstance(outcome, Path)
    assert repr(outcome)
    paid = [seen for seen in world.seen if seen.method == "POST"]
    again = sum(map(harmless, answers)) + 3 * harmless(always)
    assert len(paid) <= 1 + again


def harmless(answer: HttpResponse | TransportFailure | None) -> bool:
    """Whether a create may be sent again after such an answer."""
    if isinstance(answer, TransportFailure):
        return not answer.sent
    return answer is not None and answer.status == 429


def check_error(error: MuybridgeError) -> None:
    """Check that an error can be shown and pickled, and that its task has a token."""
    assert str(error)
    assert repr(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert str(again) == str(error)
    task = getattr(error, "task", None)
    if task is not None:
        assert task.to_token()
