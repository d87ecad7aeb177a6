"""How long a paid request may be retried, and what it is on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import (
    CreateAmbiguous,
    InvalidAddress,
    InvalidRequest,
    NotSent,
    RateLimited,
    ServiceUnreachable,
)
from muybridge_protocol.events import Throttled
from muybridge_protocol.families import ImgaRequest
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Call, Create, Operation, Send, Settled, Wait

from .driving import SEEDED, SERVICE, WALL, call, create, drive, lost, next_action, reply, unsent

Start = Callable[..., Operation[Any]]
STARTS = {"create": create, "call": call}
TIMES = [
    (0.5, 300.0),
    (60.0, 300.0),
    (299.0, 300.0),
    (300.0, 300.0),
    (301.0, 301.0),
    (900.0, 900.0),
]
"""What one exchange may take, and until when a paid request may be tried."""


def throttled(timeout: float, now: float, wait: int) -> Create:
    """Return a create after a 429 at *now* that asks for *wait* seconds."""
    return create(timeout=timeout).receive(reply(429, retry_after=str(wait)), now)


@pytest.mark.parametrize(("timeout", "deadline"), TIMES)
def test_tries_end_after_five_minutes(timeout: float, deadline: float) -> None:
    """A create may be tried for 300 s, or for as long as one exchange may take, if longer."""
    last = throttled(timeout, deadline - 7, 7)
    assert last.events == (Throttled(last.kind, 7.0),)
    assert next_action(last, deadline - 7) == Wait(deadline)
    resent = next_action(last, deadline)
    assert isinstance(resent, Send)
    assert resent.deadline == deadline + timeout
    late = next_action(throttled(timeout, deadline - 6, 7), deadline)
    assert isinstance(late, Settled)
    assert isinstance(late.outcome, RateLimited)


@pytest.mark.parametrize(("timeout", "deadline"), TIMES)
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_so_they_do_if_it_was_not_sent(start: Start, timeout: float, deadline: float) -> None:
    """The same limit holds if no byte was sent: a retry that would come too late is not made."""
    delay = start().fail(unsent(), 0.0).due
    assert 0 < delay < 1
    at_last = start(timeout=timeout).fail(unsent(), deadline - delay - 0.001)
    assert isinstance(next_action(at_last, deadline - delay - 0.001), Wait)
    late = next_action(start(timeout=timeout).fail(unsent(), deadline - delay + 0.001), deadline)
    assert isinstance(late, Settled)
    assert isinstance(late.outcome, NotSent)
    assert late.outcome.attempts == 1
    exactly = attrs.evolve(start(), deadline=delay).fail(unsent(), 0.0)
    assert next_action(exactly, 0.0) == Wait(delay)


def test_the_longest_wait() -> None:
    """A service that asks for 120 s is waited for; 121 s end the call."""
    assert next_action(throttled(60.0, 0.0, 120), 0.0) == Wait(120.0)
    assert isinstance(next_action(throttled(60.0, 0.0, 121), 0.0), Settled)


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_it_is_paid_and_wants_the_key(start: Start) -> None:
    """What may be charged says so, and goes to the service with the key."""
    action = next_action(start(), 0.0)
    assert isinstance(action, Send)
    assert action.request.paid
    assert action.request.authorized
    assert action.request.shielded


def test_a_proxy_that_wants_a_password() -> None:
    """The error says that 407 is a proxy's, which nobody can know from the number."""
    outcome = create().receive(HttpResponse(407, (), b""), 0.0).settled
    assert outcome is not None
    assert isinstance(outcome.outcome, CreateAmbiguous)
    assert outcome.outcome.reason == "status 407: a proxy requires a user name and a password"


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"", "status 500"), (b'{"error": "no horses today"}', "status 500: no horses today")],
)
def test_what_the_service_said(body: bytes, reason: str) -> None:
    """The error of an ambiguous status names it, and what the service said, if anything."""
    outcome = create().receive(HttpResponse(500, (), body), 0.0).settled
    assert outcome is not None
    assert isinstance(outcome.outcome, CreateAmbiguous)
    assert outcome.outcome.reason == reason


def test_what_is_no_request_is_refused() -> None:
    """Anything but a request is refused at once, by its type."""
    wrong: Any = {"model": "imga", "prompt": "a horse"}
    with pytest.raises(TypeError):
        Create.start(wrong, SERVICE, now=0, wall=WALL, **SEEDED)


def test_a_call_of_the_wrong_types_is_refused() -> None:
    """The method and the path of a call are strings, and the error says which is not."""
    wrong: Any = b"GET"
    with pytest.raises(TypeError, match="method must be a string"):
        Call.start(wrong, "/v1/models", SERVICE, now=0, **SEEDED)
    with pytest.raises(TypeError, match="path must be a string"):
        Call.start("GET", wrong, SERVICE, now=0, **SEEDED)


def test_extra_fields_travel_if_they_are_still_good() -> None:
    """Unknown fields are sent, and checked again: `extra` may have been changed since."""
    extra: dict[str, Any] = {"style": {"name": "sepia"}}
    request = ImgaRequest(model="imga", prompt="a horse", extra=extra)
    sent = Create.start(request, SERVICE, now=0, wall=WALL, **SEEDED).http_request
    assert json.loads(sent.body or b"")["style"] == {"name": "sepia"}
    style: Any = request.extra["style"]
    style["name"] = object()
    with pytest.raises(InvalidRequest):
        Create.start(request, SERVICE, now=0, wall=WALL, **SEEDED)


def test_a_create_does_not_show_what_is_created() -> None:
    """Prompts are not in the repr of a create, which ends up in logs."""
    request = ImgaRequest(model="imga", prompt="a horse named Occident")
    operation = Create.start(request, SERVICE, now=0, wall=WALL, **SEEDED)
    assert "Occident" not in repr(operation)


@pytest.mark.parametrize("method", ["get", "", "GET /", "P", "POST\n", "VERYLONGNAME"])
def test_no_methods(method: str) -> None:
    """A call with an invalid HTTP method is rejected before anything is sent."""
    with pytest.raises(InvalidAddress, match="method"):
        call(method)


def test_the_body_of_a_call() -> None:
    """A call has a body if it is given JSON, be it false or empty, and none otherwise."""
    values: list[object] = [{"a": 1}, {}, [], 0, False, ""]
    for value in values:
        sent = call(json=value).http_request
        assert json.loads(sent.body or b"") == value
        assert ("Content-Type", "application/json") in sent.headers
    assert call().http_request.body is None


def test_a_harmless_call_is_tried_four_times() -> None:
    """GET, HEAD and OPTIONS cost nothing: they are retried, four times in all."""
    for method in ("GET", "HEAD", "OPTIONS"):
        run = drive(call(method), forever=lost())
        assert len(run.requests) == 4
        assert isinstance(run.outcome, ServiceUnreachable)
        assert run.outcome.silent == 0
        assert min(run.gaps) > 0
        assert not any(request.paid for request in run.requests)
    paid = drive(call("PUT"), forever=lost())
    assert len(paid.requests) == 1
    assert isinstance(paid.outcome, CreateAmbiguous)
