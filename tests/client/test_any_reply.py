"""Whatever a server sends, a call ends in a value or in an error of this library."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from any_json import records, responses, written
from muybridge import CreateAmbiguous, MuybridgeError
from muybridge_protocol.emulator import Timing
from muybridge_protocol.http import MEBIBYTE, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Status, Task
from muybridge_protocol.service import is_identifier
from sampling import diagonal, examples

from .drivers import DRIVERS, AnyClient
from .in_process import MP4, PNG, World
from .requests_made import image

BODIES = st.one_of(
    responses("task-1"),
    responses(),
    responses("task-1").map(lambda body: body.decode("latin-1").encode("utf-16")),
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
FIELDS = st.lists(st.tuples(FIELD_NAMES, FIELD_VALUES), max_size=5).map(tuple)
REPLIES = st.builds(HttpResponse, STATUSES, FIELDS, BODIES)
SHORT_REPLIES = st.builds(
    HttpResponse, STATUSES, FIELDS, records("task-1").map(written) | st.binary(max_size=60)
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

UNHURRIED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

MOST_SAID = 6_100
"""Characters of three sentences."""

LINK = f"{World.url}/media/task-1.png"


CALLS: dict[str, Callable[[AnyClient, str], object]] = {
    "create": lambda client, _: client.create(image()),
    "get": lambda client, _: client.get("task-1"),
    "wait": lambda client, _: client.wait("task-1"),
    "watch": lambda client, _: tuple(client.watch("task-1")),
    "run": lambda client, _: client.run(image()),
    "delete": lambda client, _: client.delete_asset("asset-1"),
    "text": lambda client, _: client.generate_content("textg-2.5-pro", "A horse"),
    "chat": lambda client, _: client.chat_completions({"model": "m", "messages": []}),
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


@pytest.mark.parametrize(("name", "driver"), diagonal(CALLS, DRIVERS))
@settings(UNHURRIED, max_examples=examples(15))
@given(answers=ANSWERS, always=st.none() | SHORT_REPLIES | FAILURES)
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
    """Any responses and faults end in a value, or in an error that can be shown and pickled."""
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
    check_value(outcome)
    paid = [seen for seen in world.seen if seen.method == "POST"]
    again = sum(map(harmless, answers)) + 3 * harmless(always)
    assert len(paid) <= 1 + again


@pytest.mark.parametrize("kind", ["success", "refusal", "cut"])
@settings(UNHURRIED, max_examples=examples(25))
@given(
    record=st.text(min_size=1, max_size=20).filter(is_identifier).flatmap(records),
    status=st.sampled_from([400, 402, 404, 422, 429, 500, 302]),
    known=st.sampled_from(["queued", "processing", "completed", "failed", "cancelled", "new"]),
)
def test_an_id_is_never_lost(
    driver: str, kind: str, record: dict[str, Any], status: int, known: str
) -> None:
    """The id in a response to a create comes out, and the create is sent once."""
    body = written({**record, "status": known})
    world = World()
    match kind:
        case "success":
            world.always = HttpResponse(200, (), body)
        case "refusal":
            world.always = HttpResponse(
                status, (), written({"data": [{**record, "status": known}]})
            )
        case _:
            world.always = TransportFailure(
                phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED, partial=body[:-1], status=200
            )
    with ExitStack() as closing:
        client = DRIVERS[driver](closing)(world)
        try:
            found: str | None = client.create(image()).id
        except CreateAmbiguous as error:
            check_error(error)
            found = error.candidate_id
    assert found == record["id"]
    assert len(world.posts) == 1


def harmless(answer: HttpResponse | TransportFailure | None) -> bool:
    """Whether a create may be sent again after such an answer."""
    if isinstance(answer, TransportFailure):
        return not answer.sent
    return answer is not None and answer.status == 429


def check_error(error: MuybridgeError) -> None:
    """Check that an error can be shown and pickled, and that its task has a token."""
    said = str(error)
    assert said.isprintable()
    assert 0 < len(said) < MOST_SAID
    assert said.encode()
    assert repr(error).encode()
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert str(again) == said
    task = getattr(error, "task", None)
    if task is not None:
        assert Task.from_token(task.to_token()).id == task.id
    for name in ("body", "raw"):
        assert len(getattr(error, name, b"")) <= MEBIBYTE


def check_value(value: object) -> None:
    """Check that what a record says can be shown and stored, and that its task has a token."""
    assert repr(value).encode()
    if isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            check_value(each)
    if not isinstance(value, Task | Result):
        return
    task = value if isinstance(value, Task) else value.to_task()
    token = task.to_token()
    assert Task.from_token(token).to_token() == token
    for text, most in ((value.status, 203), (value.model, 203), (value.object, 203),
                       (value.error, 2003)):  # fmt: skip
        assert text is None or (text.isprintable() and len(text) <= most)
    if value.created is not None:
        datetime.fromtimestamp(value.created, UTC)
    if isinstance(value, Result):
        assert value.url is None or value.url.encode()
        for number in (value.actual_duration, value.total_tokens, value.expires_at):
            assert number is None or 0 <= number < 2**63 or isinstance(number, float)
