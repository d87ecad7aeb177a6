"""The kit refuses transports that are wrong on purpose, and says what is to be learnt."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muybridge.testing.certificates import client_context
from muybridge.testing.conformance import Capabilities, NotConforming, TransportConformance
from muybridge.testing.conformance.calling import authority
from muybridge.testing.conformance.lessons import promises
from muybridge.testing.scripted_server import hang, read_request, reset, send
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from . import wrong_transports as wrong

Run = Callable[..., None]
PAGE = Path(__file__).parents[2] / "docs" / "write-a-transport.md"
CAN_DECLARE = "or declare: Capabilities({}=False)"
HALF = b"Content-Length: 30\r\n\r\n"


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """What runs one check of the kit on one transport."""
    closing: list[Transport] = []

    def run_check(
        kind: Callable[..., Transport],
        check: str,
        capabilities: Capabilities | None = None,
        **arguments: Any,
    ) -> None:
        made = kind(ssl_context=client_context(authority()))
        closing.append(made)
        declared = {"capabilities": capabilities or Capabilities()}
        suite = type("Suite", (TransportConformance,), declared)()
        method = getattr(suite, check)
        given = {"transport": made, **arguments}
        for name in inspect.signature(method).parameters:
            if name not in given:
                given[name] = request.getfixturevalue(name)
        method(**given)

    yield run_check
    for made in closing:
        made.close()


ROWS: list[tuple[type[wrong.Wrong], str, dict[str, Any], list[str]]] = [
    (wrong.TriesAgain, "test_no_retry", {}, ["one POST", "2 POSTs", "may be charged", "retries"]),
    (
        wrong.TriesAgain,
        "test_instead_of_a_reply",
        {"scheme": "http", "script": [read_request], "reasons": {Reason.CLOSED}},
        ["one POST", "paid for twice"],
    ),
    (
        wrong.TakesLostForUnsent,
        "test_instead_of_a_reply",
        {"scheme": "https", "script": [read_request, reset], "reasons": {Reason.RESET}},
        ["sent=True: the server has read", "sent=False", "paid for twice", "first byte"],
    ),
    (
        wrong.TakesLostForUnsent,
        "test_handshake",
        {"script": hang, "reason": Reason.TIMED_OUT},
        ["sent=False: the request has not begun", "ambiguous", "note it at the socket"],
    ),
    (wrong.TakesLostForUnsent, "test_in_the_request", {"how": "reset"}, ["some of it has arrived"]),
    (
        wrong.GivesNoReason,
        "test_instead_of_a_reply",
        {"scheme": "http", "script": [read_request], "reasons": {Reason.CLOSED}},
        [
            "given: a server that is to read one whole request, close the connection",
            "expected: reason=Reason.CLOSED",
            "sent=True, reason=Reason.OTHER",
            "building.reason_of",
        ],
    ),
    (
        wrong.GivesNoReason,
        "test_refused",
        {"scheme": "http"},
        ["given: a port at which nobody listens", "reason=Reason.REFUSED", "building.reason_of"],
    ),
    (
        wrong.TakesCutForWhole,
        "test_cut_body",
        {"form": "counted", "end": "closed"},
        ["expected: TransportError", "status 201 with a body of 17 bytes", "Content-Length"],
    ),
    (
        wrong.TakesCutForWhole,
        "test_cut_tls",
        {},
        [
            "given: a server with TLS that is to read one whole request, send b'HTTP/1.1 200 OK",
            "a reply of status 200 with a body of 4 bytes, b'some'",
            "ssl.SSLEOFError",
            CAN_DECLARE.format("detects_cut_tls"),
        ],
    ),
    (
        wrong.TakesCutForWhole,
        "test_exceptions",
        {"fault": [read_request, send(b"HTTP/1.1")]},
        ["send b'HTTP/1.1', close", "found: a whole reply", "test_cut_body", "mend these first"],
    ),
    (
        wrong.TakesEarlyHints,
        "test_informational",
        {},
        [
            "103 Early Hints",
            "status 200, that of the reply after",
            "found: 103",
            "after a reply of",
        ],
    ),
    (
        wrong.TakesUnasked,
        "test_unasked_reply",
        {},
        [
            "for connection 1: read one whole request, send ",
            'found: b"somebody else\'s"',
            "bytes after the reply's end",
            CAN_DECLARE.format("discards_unasked_replies"),
        ],
    ),
    (
        wrong.FollowsRedirects,
        "test_no_policy",
        {"status": 307},
        ["one POST", "carry the key to another host", "options for redirects"],
    ),
    (wrong.ReadsAll, "test_limit", {}, ["expected: TransportError", "take the memory"]),
    (wrong.ReadsAll, "test_bomb", {}, ["expected: TransportError", "64 KiB at a time"]),
    (
        wrong.ReadsAll,
        "test_pieces_as_they_come",
        {},
        ["the first piece before", "after the second was sent", "fixed size"],
    ),
    (
        wrong.ForgetsPartial,
        "test_cut_body",
        {"form": "counted", "end": "closed"},
        ["status=201", "the id of a paid task", "keep the first 64 KiB"],
    ),
    (
        wrong.ForgetsPartial,
        "test_cut_head",
        {},
        ["partial=b'HTTP/1.1 200", "partial=b''", CAN_DECLARE.format("keeps_cut_heads")],
    ),
    (wrong.ForgetsPartial, "test_most_of_what_is_kept", {}, ["the first 65536 bytes", "0 bytes"]),
    (
        wrong.StartsTimeAnew,
        "test_drops",
        {"phase": Phase.BODY, "begun": b"HTTP/1.1 200 OK\r\n" + HALF, "drops": b"x" * 30},
        ["a byte every", "expected: TransportError", "a reply of status 200", "outlives", "anew"],
    ),
    (wrong.StartsTimeAnew, "test_handshake_in_drops", {}, ["Reason.TIMED_OUT", "anew"]),
    (
        wrong.KeepsStale,
        "test_stale_connection",
        {},
        ["a new connection for the POST", "paid for twice"],
    ),
    (wrong.GoesAnywhere, "test_private_address", {"host": "127.0.0.1"}, ["metadata service"]),
    (
        wrong.GoesAnywhere,
        "test_one_private_address",
        {},
        ["expected: TransportError", "building.addresses_of"],
    ),
    (
        wrong.LooksUpAgain,
        "test_rebound_name",
        {},
        ["first public, then 127.0.0.1", "a reply of status 200", "look the name up once"],
    ),
    (wrong.AddsUserAgent, "test_headers_and_body", {}, ["and no other", "user-agent"]),
    (wrong.AddsUserAgent, "test_content_codings_asked_for", {}, ["identity", "gzip, br"]),
    (wrong.LeavesPacked, "test_codings", {"coding": "gzip"}, ["the body b", "content coding"]),
    (wrong.LogsTheKey, "test_logs", {}, ["nothing that shows sk-", "spends your money", "DEBUG"]),
    (wrong.KeepsTheKey, "test_authorization", {}, ["and not in the second", "default headers"]),
    (wrong.KeepsTheKey, "test_keyless", {}, ["no key in the second request"]),
    (wrong.KeepsTheKey, "test_nothing_kept", {}, ["no object that holds the key", "a str"]),
    (
        wrong.RaisesItsOwn,
        "test_refused",
        {"scheme": "http"},
        ["a driver knows no other exception", "requests.exceptions.ConnectionError"],
    ),
    (
        wrong.RaisesItsOwn,
        "test_exceptions",
        {"fault": reset},
        ["expected: TransportError", "given: a server that is to meet the client with a reset"],
    ),
    (wrong.ChainsExceptions, "test_exceptions", {"fault": reset}, ["no __cause__", "traceback"]),
]


@pytest.mark.parametrize(
    ("kind", "check", "arguments", "taught"),
    ROWS,
    ids=[f"{kind.__name__} {check}" for kind, check, _, _ in ROWS],
)
def test_lesson(
    run: Run,
    kind: type[wrong.Wrong],
    check: str,
    arguments: dict[str, Any],
    taught: list[str],
) -> None:
    """A mistake fails its check with what was expected, why it matters and where to look."""
    with pytest.raises(NotConforming) as caught:
        run(kind, check, **arguments)
    message = str(caught.value)
    for words in ("given: ", "expected: ", "found: ", "why: ", "look at: ", *taught):
        assert words in message


def test_the_page_shows_a_lesson(run: Run) -> None:
    """What the page on writing a transport shows of a failed check is what is printed."""
    with pytest.raises(NotConforming) as caught:
        run(wrong.TakesCutForWhole, "test_cut_tls")
    assert str(caught.value) in PAGE.read_text(encoding="utf-8").replace("```console", "")


def test_every_mistake_is_caught() -> None:
    """Each of the wrong transports stands in the table."""
    assert {kind for kind, *_ in ROWS} == set(wrong.Wrong.__subclasses__())


@pytest.mark.parametrize(("kind", "check", "arguments", "taught"), ROWS[:1])
def test_the_right_one(
    run: Run, kind: object, check: str, arguments: dict[str, Any], taught: object
) -> None:
    """What the mistakes are made around passes, so that it is they that are caught."""
    del kind, taught
    run(RequestsTransport, check, **arguments)


def test_declared(run: Run) -> None:
    """What a transport declares not to do is an expected failure, told as such."""
    declared = Capabilities(checks_connected_address=False)
    with pytest.raises(pytest.xfail.Exception, match="checks_connected_address=False"):
        run(wrong.GoesAnywhere, "test_private_address", declared, host="127.0.0.1")


def test_declared_and_done(run: Run) -> None:
    """What it declares not to do, and does, is to be declared."""
    declared = Capabilities(checks_connected_address=False)
    with pytest.raises(NotConforming, match="declare checks_connected_address=True"):
        run(RequestsTransport, "test_private_address", declared, host="127.0.0.1")


def test_declared_and_worse(run: Run) -> None:
    """An exception that no driver knows fails its check, whatever is declared."""
    declared = Capabilities(keeps_cut_heads=False)
    with pytest.raises((NotConforming, pytest.xfail.Exception)) as caught:
        run(wrong.RaisesItsOwn, "test_cut_head", declared)
    assert "a driver knows no other exception" in str(caught.value)
    assert "or declare" not in str(caught.value)


def test_no_such_capability() -> None:
    """A check of a capability that nobody can declare is a mistake of the kit's own."""
    with pytest.raises(ValueError, match="no capability"):
        promises("flies")


def test_not_told_how() -> None:
    """Whoever forgets to say how the transport is made is told so."""
    with pytest.raises(NotImplementedError, match="how its transport is made"):
        TransportConformance().make_transport(ssl.create_default_context())


def test_every_check_is_a_sentence() -> None:
    """Each check says what must be true."""
    for name, check in inspect.getmembers(TransportConformance, inspect.isfunction):
        if name.startswith("test_"):
            assert (check.__doc__ or "").strip().endswith("."), name


def test_every_id_can_be_read() -> None:
    """What a check is run with has a name of its own, and no number."""
    for name, check in inspect.getmembers(TransportConformance, inspect.isfunction):
        marks: list[pytest.Mark] = getattr(check, "pytestmark", [])
        for mark in marks:
            values = mark.kwargs.get("ids") or mark.args[1]
            assert all(isinstance(value, str | int | float) for value in values), name
