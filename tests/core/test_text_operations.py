"""The delivery table's column of text requests, transcribed by hand, for whole and streamed ones.

A text request costs money and names no task: it is resent only where it certainly did nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from email.utils import formatdate
from itertools import product
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.delivery import backoff
from muybridge_protocol.errors import (
    Forbidden,
    NotSent,
    OverBudget,
    RateLimited,
    Refused,
    ServiceError,
    TextAmbiguous,
    Unauthorized,
)
from muybridge_protocol.events import Ambiguous, Throttled, WillRetry
from muybridge_protocol.http import HttpHead, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Fetch, Operation, Send, Settled, Wait
from muybridge_protocol.operations.text import OpenStream
from muybridge_protocol.text.responses import GenerateContentResponse

from .driving import (
    SERVICE,
    WALL,
    After,
    Reaction,
    Run,
    Streamed,
    drive,
    lost,
    media,
    next_action,
    open_stream,
    raw,
    repeat,
    reply,
    text_call,
    unsent,
)
from .test_operation_properties import bodies, check_message, codes, headers, reactions, scripts

START: dict[str, Callable[..., Operation[Any]]] = {"whole": text_call, "streamed": open_stream}
ANSWER = {"candidates": [{"content": {"parts": [{"text": "a horse"}]}, "finishReason": "STOP"}]}

each = pytest.mark.parametrize("start", START.values(), ids=START.keys())
Start = Callable[..., Operation[Any]]


def answered(outcome: object) -> bool:
    """Whether an operation ended as it should: with the response, or with the stream's head."""
    return outcome == GenerateContentResponse(ANSWER) or outcome == HttpHead(200)


# "DNS, refused, connect timeout, TLS reset or hang, CONNECT refused": up to 3 tries.
UNSENT = [
    (Phase.RESOLVE, Reason.NAME_RESOLUTION),
    (Phase.CONNECT, Reason.REFUSED),
    (Phase.CONNECT, Reason.UNREACHABLE),
    (Phase.CONNECT, Reason.TIMED_OUT),
    (Phase.TLS, Reason.RESET),
    (Phase.TLS, Reason.TIMED_OUT),
    (Phase.PROXY, Reason.PROXY_REFUSED),
    (Phase.SEND, Reason.RESET),
    (Phase.HEAD, Reason.TIMED_OUT),
    (Phase.CONNECT, Reason.OTHER),
]


@each
@pytest.mark.parametrize(("phase", "reason"), UNSENT)
def test_unsent_is_tried_again(start: Start, phase: Phase, reason: Reason) -> None:
    """A failure before the first byte is retried, three attempts in all; then it was not sent."""
    run = drive(start(), *repeat(3, unsent(reason, phase)))
    assert type(run.outcome) is NotSent
    assert run.outcome.attempts == len(run.requests) == 3
    assert [type(event) for event in run.events] == [WillRetry, WillRetry]
    assert all(gap > 0 for gap in run.gaps)
    found = drive(start(), *repeat(2, unsent(reason, phase)), reply(200, ANSWER))
    assert answered(found.outcome)
    assert found.requests == [found.requests[0]] * 3


@each
@pytest.mark.parametrize(
    "reason", [Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS, Reason.REFUSED_HERE]
)
def test_certificates_stop(start: Start, reason: Reason) -> None:
    """What a second try would meet again ends a text request at once, and nothing was sent."""
    run = drive(start(), unsent(reason, Phase.TLS))
    assert type(run.outcome) is NotSent
    assert len(run.requests) == 1


@each
@pytest.mark.parametrize("phase", [Phase.SEND, Phase.HEAD, Phase.BODY])
def test_sent_is_ambiguous(start: Start, phase: Phase) -> None:
    """Once a byte has left, a text request without a whole response is ambiguous, never resent."""
    for reason, before in product(Reason, ([], [unsent()], [reply(429)])):
        run = drive(start(), *before, lost(phase, reason, partial=b"{", status=200))
        assert type(run.outcome) is TextAmbiguous
        assert run.outcome.failure == lost(phase, reason, partial=b"{", status=200)
        assert (run.outcome.raw, run.outcome.status) == (b"{", 200)
        assert len(run.requests) == 1 + len(before)
        assert type(run.events[-1]) is Ambiguous


def meaning(start: Start, status: int) -> type[Any]:
    """Return how a text request ends if its first response has *status*, and a retry succeeds."""
    said = {"error": {"code": status, "message": "no", "status": "X"}}
    first = reply(status, said, Location="https://x.example/", Retry_After="1")
    run = drive(start(), first, reply(200, ANSWER))
    if answered(run.outcome):
        return Again
    outcome: Any = run.outcome
    assert len(run.requests) == 1
    assert outcome.status == status
    kind = cast("type[Any]", type(outcome))
    if issubclass(kind, Refused):
        assert outcome.message == "no"
    else:
        assert outcome.raw == json.dumps(said).encode()
    return kind


class Again:
    """Stands for another try of the same request."""


@each
def test_every_status(start: Start) -> None:
    """The listed statuses refuse, 429 is retried, all others are ambiguous and not followed."""
    expected: dict[int, type[Any]] = dict.fromkeys(
        [*range(100, 200), *range(300, 600), 600, 999], TextAmbiguous
    )
    expected |= dict.fromkeys([400, 402, 404, 405, 413, 415, 422, 425], Refused)
    expected |= {401: Unauthorized, 403: Forbidden, 429: Again}
    assert {status: meaning(start, status) for status in expected} == expected


@each
def test_any_success_counts(start: Start) -> None:
    """Any 2xx answers a text request."""
    for status in range(200, 300):
        outcome = drive(start(), reply(status, ANSWER)).outcome
        assert outcome in (GenerateContentResponse(ANSWER), HttpHead(status))


@each
@pytest.mark.parametrize(("status", "kind"), [(400, Refused), (404, Refused), (500, TextAmbiguous)])
def test_no_id_is_looked_for(start: Start, status: int, kind: type[ServiceError]) -> None:
    """A refusal that looks like a task is a refusal all the same: text makes no tasks."""
    run = drive(start(), reply(status, {"id": "t1", "status": "queued", "object": "video"}))
    assert type(run.outcome) is kind
    assert run.outcome.task is None
    assert "t1" not in run.outcome.next_step()


# 429.


@each
def test_throttled(start: Start) -> None:
    """A text request that is answered with 429 is tried four times in all, as slowly as asked."""
    run = drive(start(), *repeat(4, reply(429, Retry_After="7")))
    assert type(run.outcome) is RateLimited
    assert run.outcome.retry_after == 7
    assert run.gaps == [7, 7, 7]
    assert run.events == [Throttled("text request", 7)] * 3


@each
def test_throttled_without_a_time(start: Start) -> None:
    """Without Retry-After a 429 waits with full jitter over 1, 2 and 4 seconds."""
    run = drive(start(seed=3), *repeat(4, reply(429)))
    assert run.gaps == pytest.approx([backoff(3, 1), backoff(3, 2), backoff(3, 3)])
    assert all(0 <= gap <= most for gap, most in zip(run.gaps, (1, 2, 4), strict=True))


@each
@pytest.mark.parametrize("asked", ["121", "9999999999"])
def test_throttled_for_too_long(start: Start, asked: str) -> None:
    """A 429 that asks for more than 120 seconds stops at once and says for how long."""
    run = drive(start(), reply(429, Retry_After=asked))
    assert type(run.outcome) is RateLimited
    assert run.now == 0
    assert f"{asked} s" in str(run.outcome)
    obeyed = drive(start(), reply(429, Retry_After="120"), reply(200, ANSWER))
    assert obeyed.gaps == [120]


@each
def test_throttled_over_the_deadline(start: Start) -> None:
    """A 429 that asks for more time than is left stops at once."""
    run = drive(start(timeout=60), reply(429, Retry_After="61"))
    assert type(run.outcome) is RateLimited
    late = drive(start(timeout=60), After(50, reply(429, Retry_After="11")))
    assert type(late.outcome) is RateLimited
    slow = drive(start(timeout=1), *repeat(2, After(5, unsent(Reason.TIMED_OUT))))
    assert type(slow.outcome) is NotSent
    assert slow.outcome.attempts == 1


# A whole reply.

UNREADABLE = [
    b"", b"<html>OK</html>", b"{", b"null", b"[]", b'"text"', b"[{},{}]", b"[[{}]]",
    b'{"a":"\xff"}', b'{"a":1} {"a":2}', b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: ascii(body)[:20])
def test_an_unreadable_reply_is_ambiguous(body: bytes) -> None:
    """A 2xx that is not a JSON object is ambiguous, the raw response is kept, nothing is resent."""
    run = drive(text_call(), raw(200, body))
    assert type(run.outcome) is TextAmbiguous
    reasons = ("the response cannot be read: ", "the response is not a JSON")
    assert run.outcome.reason.startswith(reasons)
    assert (run.outcome.raw, run.outcome.status) == (body, 200)
    words = "is in the error's `raw`" if body else "The answer is lost"
    assert words in str(run.outcome)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"error": {"message": "no\ncredit"}, "candidates": []}, "no credit"),
        ({"error": "no credit"}, "no credit"),
        ({"type": "error", "message": "no credit"}, "no credit"),
        ([{"error": "no credit"}], "no credit"),
        ({"error": {"code": 5, "message": ""}}, ""),
    ],
    ids=str,
)
def test_an_error_with_success_is_ambiguous(said: Any, words: str) -> None:
    """A response that contradicts its success with an error is ambiguous, and says the error."""
    run = drive(text_call(), reply(200, said))
    assert type(run.outcome) is TextAmbiguous
    assert run.outcome.reason == f"the response reports an error: {words}"


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"error": None},
        {"error": ""},
        {"error": {}},
        {**ANSWER, "error": {"code": 0, "message": ""}},
        {"candidates": 5},
    ],
    ids=str,
)
def test_any_other_object_is_an_answer(record: dict[str, Any]) -> None:
    """Any other JSON object is the answer: what it holds is for its reader."""
    assert drive(text_call(), reply(200, record)).outcome == GenerateContentResponse(record)


def test_an_array_of_one_answer() -> None:
    """An array with one object in it is that object, as in a stream."""
    assert drive(text_call(), reply(200, [ANSWER])).outcome == GenerateContentResponse(ANSWER)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_paid_answer_is_not_lost_over_a_number(number: bytes) -> None:
    """A number that JSON does not have is read as null."""
    outcome = drive(text_call(), raw(200, b'{"a":[' + number + b"]}")).outcome
    assert outcome == GenerateContentResponse({"a": [None]})


def test_a_long_reply_is_kept_whole() -> None:
    """A response that cannot be read is kept to its last byte, since it has been paid for."""
    body = b'{"a":"' + b"x" * 200_000
    outcome = drive(text_call(), raw(200, body)).outcome
    assert isinstance(outcome, TextAmbiguous)
    assert outcome.raw == body


def test_a_paid_answer_is_not_lost_over_a_name() -> None:
    """If a name is in an answer twice, the last one counts, as in a stream."""
    outcome = drive(text_call(), raw(200, b'{"a":1,"a":2}')).outcome
    assert outcome == GenerateContentResponse({"a": 2})


# A streamed reply.


def test_a_stream_opens_with_its_head() -> None:
    """A streamed request settles with the head of the response, before any of its body."""
    first = open_stream()
    action = next_action(first, 0)
    assert isinstance(action, Fetch)
    accepted = first.accept(HttpHead(200, (("A", "b"),)), 1)
    assert accepted.next_action(1) == Settled(HttpHead(200, (("A", "b"),)))


def test_a_refusal_is_read_whole() -> None:
    """A head with an error status settles nothing: its body says what is wrong."""
    first = open_stream()
    waiting = first.accept(HttpHead(400), 1)
    assert isinstance(waiting, OpenStream)
    assert waiting.settled is None
    assert type(drive(first, media(400, b'{"error":', b'"no"}')).outcome) is Refused
    broken = drive(first, media(400, b'{"err', broken=True)).outcome
    assert type(broken) is TextAmbiguous


# How it is sent.


@each
def test_how_it_is_sent(start: Start) -> None:
    """A text request is paid, wants the key, may be interrupted, and has ten minutes."""
    run = drive(start(), reply(200, ANSWER))
    (sent,) = run.requests
    assert (sent.paid, sent.authorized, sent.interruptible, sent.shielded) == (
        True,
        True,
        True,
        False,
    )
    assert sent.url.startswith("http://text.example.com/v1/models/textg-2.5-pro:")
    assert SERVICE.owns(sent.url)
    assert run.deadlines == [600]
    assert drive(start(timeout=5), reply(200, ANSWER)).deadlines == [5]


# What the errors say.

MESSAGES: list[tuple[list[Reaction], str]] = [
    (
        [lost(Phase.HEAD, Reason.RESET)],
        (
            "The request may have been accepted and charged, but the response is missing or "
            "unusable: connection reset while waiting for the response. It was not sent again. "
            "The answer is lost. Asking again may cost again."
        ),
    ),
    (
        [reply(500, {"error": "oops"})],
        (
            "The request may have been accepted and charged, but the response is missing or "
            "unusable: status 500: oops. It was not sent again. "
            "The answer is lost. Asking again may cost again."
        ),
    ),
    (
        repeat(3, unsent()),
        (
            "The request could not be sent (3 attempts): connection refused. "
            "Nothing was charged. Check the address and the network, then send the request again."
        ),
    ),
    (
        [reply(404, {"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}})],
        (
            "The service refused the request with status 404: no such model. "
            "Fix the reported problem, then send the request again."
        ),
    ),
    (
        [reply(429, {"error": {"message": "quota"}}, Retry_After="3600")],
        (
            "The service refused the request with status 429: quota. "
            "Nothing was charged. Try again in 3600 s."
        ),
    ),
]


@each
@pytest.mark.parametrize(("script", "message"), MESSAGES, ids=lambda value: str(value)[:40])
def test_the_errors_read_well(start: Start, script: list[Reaction], message: str) -> None:
    """Each error says what happened, whether it may have cost, and what to do next."""
    assert str(drive(start(), *script).outcome) == message


# Whatever comes.

ENDS = (NotSent, OverBudget, Refused, Unauthorized, Forbidden, RateLimited, TextAmbiguous)
streams = st.builds(
    Streamed,
    st.builds(HttpHead, codes, headers),
    st.lists(bodies, max_size=2).map(tuple),
    st.none() | st.just(lost(Phase.BODY, Reason.TRUNCATED)),
)
stream_scripts = st.lists(reactions | streams, max_size=8)


def certainly_free(reaction: Reaction | After) -> bool:
    bare = reaction.reaction if isinstance(reaction, After) else reaction
    if isinstance(bare, TransportFailure):
        return not bare.sent
    if isinstance(bare, Streamed):
        return bare.head.status == 429 and bare.failure is None
    return bare.status == 429


def check_walk(run: Run, script: Sequence[Reaction | After]) -> None:
    outcome, answers = run.outcome, script[: len(run.requests)]
    assert type(outcome) in ENDS or isinstance(outcome, GenerateContentResponse | HttpHead)
    assert all(map(certainly_free, answers[:-1]))
    assert all(request == run.requests[0] for request in run.requests)
    assert len(run.requests) <= 6
    if isinstance(outcome, NotSent | RateLimited):
        assert certainly_free(answers[-1])
    if isinstance(outcome, ServiceError):
        check_message(outcome)
        assert outcome.task is None


@given(script=scripts, last=reactions, seed=st.integers(0, 99))
def test_a_whole_reply_ends_lawfully(
    script: list[Reaction | After], last: Reaction, seed: int
) -> None:
    """Any responses and failures end a text request as documented, without paying twice."""
    run = drive(text_call(seed=seed), *script, forever=last, limit=1000)
    check_walk(run, [*script, *[last] * 50])
    assert run.now <= 600 + 700


@given(script=stream_scripts, last=reactions | streams, seed=st.integers(0, 99))
def test_a_stream_opens_lawfully(script: list[Reaction], last: Reaction, seed: int) -> None:
    """Any heads, pieces and failures end the opening of a stream as documented."""
    run = drive(open_stream(seed=seed), *script, forever=last, limit=1000)
    check_walk(run, [*script, *[last] * 50])


@each
@given(reaction=reactions, now=st.floats(0, 100))
def test_they_are_values(start: Start, reaction: Reaction, now: float) -> None:
    """A step leaves the operation as it was, and gives the same again."""
    before = start()
    kept = repr(before)
    action = before.next_action(0)
    assert isinstance(action, Send | Fetch | Wait)

    def after() -> str:
        if isinstance(reaction, TransportFailure):
            return repr(before.fail(reaction, now))
        assert isinstance(reaction, HttpResponse)
        return repr(before.receive(reaction, now))

    assert after() == after()
    assert repr(before) == kept
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        before.due = 1  # type: ignore[misc]  # on purpose


@pytest.mark.parametrize(("limit", "is_read"), [(10_000, False), (16_000_000, True), (None, True)])
def test_the_limit_of_an_answer(limit: int | None, is_read: bool) -> None:  # noqa: FBT001  a case
    """An answer is read within the limit of its request, or the one for text if it has none."""
    operation = text_call()
    request = attrs.evolve(operation.http_request, body_limit=limit)
    record = {"candidates": [], "numbers": [0] * 50_000}
    body = json.dumps(record).encode()
    limited = attrs.evolve(operation, http_request=request)
    settled = limited.receive(HttpResponse(200, (), body), 0.0).settled
    assert settled is not None
    kind = GenerateContentResponse if is_read else TextAmbiguous
    assert isinstance(settled.outcome, kind)


@each
def test_a_date_is_compared_with_the_time_of_its_response(start: Start) -> None:
    """Where a response has no `Date`, this machine's clock tells how long it is until then."""
    operation = start(now=5000.0, wall=WALL + 5000)
    asked = reply(429, Retry_After=formatdate(WALL + 5070, usegmt=True))
    assert drive(operation, After(10, asked), reply(401), now=5000.0).gaps == [70]
