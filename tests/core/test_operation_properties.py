"""Whatever comes back, an operation ends lawfully, never pays twice and never loses an id."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import signature
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muybridge_protocol import errors
from muybridge_protocol.delivery import THROTTLED_TRIES, UNSENT_TRIES
from muybridge_protocol.errors import CreateAmbiguous, Refused, ServiceError
from muybridge_protocol.families import ImgbRequest
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.operations import Create, Operation
from muybridge_protocol.operations.download import DownloadStage, Part, Saved
from muybridge_protocol.records.convert import wire_names
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import is_identifier, is_printable_id
from sampling import examples

from .driving import (
    LINK,
    SERVICE,
    WALL,
    After,
    Reaction,
    Run,
    Streamed,
    call,
    create,
    delete,
    download,
    drive,
    newborn_poll,
    poll,
    query,
    task,
)

DOCUMENTED = {
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ServiceError) and kind is not ServiceError
}

ids = st.sampled_from(["t1", "t1", "t1", "t2", "a/b", "..", "", "t1\n", "\ud800", "x" * 300])
urls = st.sampled_from(
    [LINK, f"{LINK}?sig=1", "http://x.example/a", "https://127.0.0.1/", "", "a", "https://u:p@x/",
     "file:///x", "https://[", "//x.example/b", "/b", "\ud800", "https://api.example.com/v1/x"]
)  # fmt: skip
JUNK: list[Any] = [
    *(None, True, 0, -1, 10**400, 1.5, 1e308, "", "x", "\x00\r\n", "\ud800", "x" * 600),
    *([], [[]], {}, {"id": "i"}, {"message": "no"}, ["t1"]),
]
junk = st.sampled_from(JUNK)
statuses = st.sampled_from(
    ["queued", "processing", "completed", "completed", "failed", "cancelled", "weird", ""]
)
records = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(wire_names(Result).values(), junk),
        "id": ids | junk,
        "status": statuses | junk,
        "image_url": urls | junk,
        "video_url": urls | junk,
        "code": st.sampled_from(["0", "1", 0]) | junk,
        "msg": junk,
    },
)
good_records = st.fixed_dictionaries(
    {"id": st.just("t1"), "status": statuses}, optional={"video_url": urls, "error": junk}
)


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def cut_off(body: bytes, length: int) -> bytes:
    return body[:length]


bodies = st.one_of(
    good_records.map(as_bytes),
    records.map(as_bytes),
    st.builds(cut_off, records.map(as_bytes), st.integers(0, 60)),
    junk.map(as_bytes),
    st.binary(max_size=20),
    st.sampled_from([b"", b"<html>", b"[" * 5000, b'{"id":"t1"}', b'{"id":"t1","id":"t1"}',
                     b'\xef\xbb\xbf{"id":"t1","status":"queued"}', '{"id":"t1"}'.encode("utf-16")]),
)  # fmt: skip
codes = st.one_of(
    st.sampled_from([200, 200, 200, 201, 206, 302, 307, 400, 401, 403, 404, 408, 410, 416, 425, 429,
                     429, 500, 502, 503]),
    st.integers(100, 599),
    st.integers(0, 999),
)  # fmt: skip
DATES = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:51:37 GMT",
         "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 99999 23:59:59 GMT"]  # fmt: skip
NUMBERS = ["0", "1", "5", "60", "120", "121", "-5", "1e9", "inf", "٣", "9" * 5000]
HEADERS = [
    *(("Retry-After", text) for text in (*NUMBERS, *DATES)),
    *(("Date", text) for text in DATES),
    *(("Content-Length", text) for text in NUMBERS),
    *(("Content-Type", text) for text in ("text/html", "video/mp4", ";", "")),
    *(("Content-Encoding", text) for text in ("gzip", "identity", "")),
    *(("ETag", text) for text in ('"a"', 'W/"a"', '"b"', "a", "")),
    *(("content-range", text) for text in ("bytes 0-4/5", "bytes 2-4/5", "bytes 2-4/*", "x")),
    ("", ""),
    ("\x00", "\ud800"),
]
headers = st.lists(st.sampled_from(HEADERS) | st.tuples(st.just("Location"), urls), max_size=4).map(
    tuple
)
failures = st.builds(
    TransportFailure,
    phase=st.sampled_from(Phase),
    sent=st.booleans(),
    reason=st.sampled_from(Reason),
    bytes_sent=st.integers(0, 500),
    partial=bodies,
    status=st.none() | codes,
    detail=st.sampled_from(["", "\x1b[2J\ud800"]),
)
pieces = st.lists(
    st.sampled_from([b"", b"\x00", b"\x89P", b"\x80" * 3, b"<", b"\x80" * 9]), max_size=4
)
streamed = st.builds(
    Streamed,
    st.builds(HttpHead, codes, headers),
    pieces.map(tuple),
    st.none() | failures,
)
replies = st.builds(HttpResponse, codes, headers, bodies)
reactions: st.SearchStrategy[Reaction] = replies | failures
timed = st.builds(After, st.sampled_from([0.0, 0.5, 30.0, 60.0, 700.0]), reactions)
scripts = st.lists(reactions | timed, max_size=12)
lasts = reactions
download_scripts = st.lists(streamed | replies | failures, max_size=12)


def safe_call(**options: Any) -> Operation[Any]:
    return call("GET", **options)


def old_poll(**options: Any) -> Operation[Any]:
    return poll(task(family="vidsa", submitted_at=WALL - 10**6), **options)


STARTS: dict[str, tuple[Callable[..., Operation[Any]], tuple[type[Any], ...]]] = {
    "create": (create, (Task,)),
    "call": (call, (HttpResponse,)),
    "safe call": (safe_call, (HttpResponse,)),
    "delete": (delete, (type(None),)),
    "query": (query, (Result,)),
    "poll": (poll, (Result,)),
    "newborn poll": (newborn_poll, (Result,)),
    "poll of an old vidsa": (old_poll, (Result,)),
}


def legal(outcome: object, values: tuple[type[Any], ...]) -> bool:
    return isinstance(outcome, values) or type(outcome) in DOCUMENTED


def check_message(outcome: object) -> None:
    if isinstance(outcome, ServiceError):
        assert str(outcome).isprintable()
        assert outcome.next_step()


def told(outcome: object) -> object:
    """Return an outcome as something that can be compared: errors are no values."""
    if isinstance(outcome, ServiceError):
        fields = {name: getattr(outcome, name) for name in signature(type(outcome)).parameters}
        return type(outcome), str(outcome), repr(fields)
    return outcome


def seen(run: Run) -> tuple[object, ...]:
    return told(run.outcome), run.requests, run.times, run.events, run.actions, bytes(run.disk)


@pytest.mark.parametrize("name", STARTS)
@given(script=scripts, last=lasts, seed=st.integers(0, 2**32))
def test_every_operation_ends_lawfully(
    name: str, script: list[Reaction | After], last: Reaction, seed: int
) -> None:
    """Any responses and failures lead to a legal outcome within a bounded number of actions."""
    start, values = STARTS[name]
    run = drive(start(seed=seed), *script, forever=last, limit=5000)
    assert legal(run.outcome, values), run.outcome
    check_message(run.outcome)
    if "poll" in name:
        assert run.now <= 3600 + 700
        if isinstance(run.outcome, ServiceError):
            assert run.outcome.task is not None
    else:
        most = UNSENT_TRIES + THROTTLED_TRIES
        assert len(run.requests) <= most


@given(
    script=download_scripts,
    last=streamed | replies | failures,
    about=st.booleans(),
    part=st.sampled_from(
        [None, Part(offset=2, validator='"a"', total=5), Part(offset=2, validator='"a"')]
    ),
    limit=st.sampled_from([None, 0, 4, 100]),
    seed=st.integers(0, 9),
    link=st.booleans(),
)
def test_every_download_ends_lawfully(
    script: list[Reaction],
    last: Reaction,
    about: bool,  # noqa: FBT001  a drawn case
    part: Part | None,
    limit: int | None,
    seed: int,
    link: bool,  # noqa: FBT001  a drawn case
) -> None:
    """Any responses, pieces and failures lead to a saved file of the right size, or an error."""
    known = task() if about or not link else None
    start = download(LINK if link else None, about=known, part=part, size_limit=limit, seed=seed)
    run = drive(start, *script, forever=last, disk=b"\x80\x80", limit=5000)
    assert legal(run.outcome, (Saved,)), run.outcome
    check_message(run.outcome)
    assert run.now <= 3600
    assert not any(request.authorized for request in run.requests if request.url == LINK)
    for request in run.requests:
        assert SERVICE.owns(request.url) or not request.authorized
        assert request.url.startswith("https://")
    if isinstance(run.outcome, Saved):
        assert run.outcome.size == len(run.disk) > 0
        assert limit is None or run.outcome.size <= limit
    elif isinstance(run.outcome, ServiceError):
        assert run.outcome.task == known
    if known is None:
        assert all("/v1/result/" not in request.url for request in run.requests)
    assert sum("/v1/result/" in request.url for request in run.requests) <= 10


# The billing oracle: who may have been charged, judged by what left and what came back alone.


def certainly_free(reaction: Reaction) -> bool:
    if isinstance(reaction, TransportFailure):
        return not reaction.sent
    return isinstance(reaction, HttpResponse) and reaction.status == 429


@pytest.mark.parametrize("start", [create, call], ids=["create", "call"])
@given(script=scripts, last=lasts, seed=st.integers(0, 99))
def test_nothing_is_paid_twice(
    start: Callable[..., Operation[Any]],
    script: list[Reaction | After],
    last: Reaction,
    seed: int,
) -> None:
    """A paid request is sent again only while every earlier one certainly did nothing."""
    run = drive(start(seed=seed), *script, forever=last, limit=1000)
    answers = [*script, *[last] * 50][: len(run.requests)]
    bare = [answer.reaction if isinstance(answer, After) else answer for answer in answers]
    assert all(certainly_free(answer) for answer in bare[:-1])
    assert all(request == run.requests[0] for request in run.requests)
    assert all(request.paid for request in run.requests)
    if not certainly_free(bare[-1]) and isinstance(run.outcome, errors.NotSent):
        pytest.fail("a request that may have arrived is said not to have been sent")


def id_in(reaction: Reaction) -> str | None:
    """Return the id that a response to a create returned, by a reading of our own."""
    body = reaction.body if isinstance(reaction, HttpResponse) else b""
    try:
        name: object = read_object(body).get("id")
    except InvalidJson:
        return None
    return name if isinstance(name, str) and is_identifier(name) else None


@given(script=scripts, last=lasts)
def test_no_id_is_lost(script: list[Reaction | After], last: Reaction) -> None:
    """A create whose response held a task's id ends with it at hand, whatever else was odd."""
    request = ImgbRequest(model="imgb-2", prompt="x")
    for start in (create(), Create.start(request, SERVICE, now=0, wall=0, seed=0)):
        run = drive(start, *script, forever=last, limit=1000)
        answers = [*script, *[last] * 50][: len(run.requests)]
        final = answers[-1].reaction if isinstance(answers[-1], After) else answers[-1]
        name = id_in(final)
        if name is None:
            continue
        match run.outcome:
            case Task(id=at_hand) | CreateAmbiguous(candidate_id=at_hand):
                assert at_hand == name
            case Refused(body=body):
                # An id alone, in a refusal, may be that of the request.
                assert read_object(body).keys().isdisjoint({"status", "object"})
            case other:
                pytest.fail(f"the id {name} was lost to {other!r}")


@given(
    body=records.map(as_bytes),
    cut=st.integers(0, 200),
    name=st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True),
)
def test_no_cut_id_is_believed(body: bytes, cut: int, name: str) -> None:
    """A truncated response never yields a shortened id: the candidate is whole or there is none."""
    whole = b'{"id":"' + name.encode() + b'","rest":' + body + b"}"
    partial = whole[:cut]
    failure = TransportFailure(
        phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED, partial=partial
    )
    outcome = drive(create(), failure).outcome
    assert isinstance(outcome, CreateAmbiguous)
    if cut < len(name) + 8:
        assert outcome.candidate_id is None
    else:  # a record with a state and an id of its own, further in, is the task
        inner = str(json.loads(body).get("id", name))
        assert outcome.candidate_id in (name, inner if is_printable_id(inner) else None)
    assert outcome.raw == partial


# Values.


@pytest.mark.parametrize("name", STARTS)
@settings(max_examples=examples(40))
@given(script=st.lists(reactions, min_size=1, max_size=6), last=lasts, seed=st.integers(0, 99))
def test_same_inputs_same_outputs(
    name: str, script: list[Reaction], last: Reaction, seed: int
) -> None:
    """The same seed and responses give the same requests, waits, events and outcome."""
    start, _ = STARTS[name]
    one, other = (drive(start(seed=seed), *script, forever=last, limit=5000) for _ in range(2))
    assert seen(one) == seen(other)


def snapshot(operation: Operation[Any]) -> dict[str, str]:
    return {
        field.name: repr(getattr(operation, field.name)) for field in attrs.fields(type(operation))
    }


@pytest.mark.parametrize("name", STARTS)
@settings(max_examples=examples(40))
@given(first=reactions, second=reactions, seed=st.integers(0, 99))
def test_operations_are_values(name: str, first: Reaction, second: Reaction, seed: int) -> None:
    """A transition leaves the earlier value as it was, and it can be used again."""
    start, _ = STARTS[name]
    before = start(seed=seed)
    kept = snapshot(before)
    action = before.next_action(0)

    def after(reaction: Reaction) -> Operation[Any]:
        if isinstance(reaction, TransportFailure):
            return before.fail(reaction, 1)
        assert isinstance(reaction, HttpResponse)
        return before.receive(reaction, 1)

    one = snapshot(after(first))
    after(second)
    assert snapshot(after(first)) == one
    assert snapshot(before) == kept
    assert before.next_action(0) == action
    for field in attrs.fields(type(before)):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(before, field.name, None)


@given(
    head=st.builds(HttpHead, codes, headers),
    piece=st.binary(max_size=5),
    now=st.floats(0, 100, allow_nan=False),
)
def test_downloads_are_values(head: HttpHead, piece: bytes, now: float) -> None:
    """Each step of a download leaves the earlier value as it was."""
    before = download(about=task(), part=Part(offset=2, validator='"a"'))
    kept = snapshot(before)
    accepted = before.accept(head, now)
    middle = snapshot(accepted)
    if accepted.settled is None and accepted.stage is DownloadStage.READING:
        taken = accepted.take(piece)
        if taken.settled is None:
            taken.end(now)
        assert snapshot(taken) == snapshot(accepted.take(piece))
    assert snapshot(accepted) == middle
    assert snapshot(before) == kept


@given(script=scripts, last=lasts)
def test_the_key_is_asked_for_at_home_alone(script: list[Reaction | After], last: Reaction) -> None:
    """Every request that wants the key goes to the service's own origin, and holds no key."""
    for start, _ in STARTS.values():
        run = drive(start(), *script, forever=last, limit=5000)
        for request in run.requests:
            assert isinstance(request, HttpRequest)
            assert request.authorized
            assert SERVICE.owns(request.url)
            assert "authorization" not in {name.lower() for name, _ in request.headers}
