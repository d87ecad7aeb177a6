"""The key goes to the service and into nothing else; nor does the query of a signed URL."""

from __future__ import annotations

import contextlib
import gc
import http.client
import logging
import pickle
import ssl
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    KEY,
    Checks,
    call,
    get,
    given,
    no_failure,
    only_transport_errors,
    post,
    serving,
)
from muybridge.testing.conformance.event_loops import EventLoopThread
from muybridge.testing.conformance.lessons import KEY as MONEY
from muybridge.testing.conformance.lessons import WHOLE, Lesson, promises
from muybridge.testing.scripted_server import (
    Script,
    read_request,
    reply,
    reset,
    response_bytes,
    send,
    serve,
)
from muybridge.wire.transport import Transport, TransportError

_QUERY = "signature=conformance-77e0"
_MOST_OBJECTS = 20_000

_HEAD = f"HTTP/1.1 200 OK\r\nX: {AUTHORIZATION}\r\n"
_ECHOES: dict[str, Script] = {
    "key as status": [read_request, send(f"HTTP/1.1 {KEY} {AUTHORIZATION}\r\n\r\n".encode())],
    "key as content coding": [read_request, reply(200, b"{}", content_encoding=f"br, {KEY}")],
}
_IN_DOUBT: dict[str, Script] = {
    "key in no field": [read_request, send(f"{_HEAD}none {KEY}\r\n\r\n".encode())],
    "key as length": [read_request, send(f"{_HEAD}Content-Length: {KEY}\r\n\r\n".encode())],
    "key as transfer coding": [read_request, reply(200, b"{}", transfer_encoding=KEY)],
}
_FAULTS: dict[str, Script] = {
    "reset at once": reset,
    "closed": [read_request],
    "reset": [read_request, reset],
    "cut head": [read_request, send(response_bytes()[:20])],
    "cut body": [read_request, send(response_bytes()[:-1])],
}


MISSED = Lesson(
    WHOLE,
    "test_instead_of_a_response, test_cut_body, test_bad_coding and test_ambiguous_framing, which "
    "say why it is none: fix these first",
)


class Secrets(Checks):
    """Where the key must not show up."""

    def test_logs(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """At DEBUG, no logger gets the key or a URL's query, whatever goes wrong."""
        scripts = [*_FAULTS.values(), serve()]
        self._check_logs(transport, tls, scripts, capfd, caplog, monkeypatch)

    @promises("hides_echoes")
    def test_logs_of_echoes(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Nor if a server repeats the key in the head of its response."""
        echo = reply(200, b"{}", x_echo=AUTHORIZATION)
        scripts = [*_ECHOES.values(), *_IN_DOUBT.values(), [read_request, echo]]
        self._check_logs(transport, tls, scripts, capfd, caplog, monkeypatch)

    def _check_logs(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        scripts: list[Script],
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lesson = Lesson(
            f"{MONEY}, and logs are read by many",
            "what the HTTP library logs or prints when it is told to (all loggers are at DEBUG, "
            "and http.client.HTTPConnection.debuglevel is 1): hold it back, or hand it no secret",
        )
        monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
        for script in scripts:
            caplog.clear()
            with serving(script, tls=tls) as server, caplog.at_level(logging.DEBUG):
                with contextlib.suppress(TransportError), only_transport_errors():
                    _exchange(transport, f"{server.url}/v1?{_QUERY}")
                lines = [f"{r.name}: {r.getMessage()} {r.args!r}" for r in caplog.records]
                lines += "".join(capfd.readouterr()).splitlines()
                for secret in (KEY, _QUERY):
                    telling = [line for line in lines if secret in line]
                    lesson.require(not telling, f"nothing that shows {secret}", telling)

    @pytest.mark.parametrize(
        "fault", [*_FAULTS.values(), *_ECHOES.values()], ids=[*_FAULTS, *_ECHOES]
    )
    def test_exceptions(
        self, transport: Transport, tls: ssl.SSLContext | None, fault: Script
    ) -> None:
        """A failure shows no key: not itself, not its traceback with the variables of frames."""
        self._check_exception(transport, tls, fault)

    @pytest.mark.parametrize("fault", _IN_DOUBT.values(), ids=_IN_DOUBT)
    @promises("refuses_ambiguous_framing", decides=False)
    def test_exceptions_in_doubt(
        self, transport: Transport, tls: ssl.SSLContext | None, fault: Script
    ) -> None:
        """Nor does a failure over a head that is ambiguous about where the body ends."""
        self._check_exception(transport, tls, fault)

    def _check_exception(
        self, transport: Transport, tls: ssl.SSLContext | None, fault: Script
    ) -> None:
        lesson = Lesson(
            f"{MONEY}, and tracebacks end up in error reports",
            "raise TransportError outside of the `except` block, in a frame that never knew the "
            "key: the exception must have no cause, no context, and no frame of the library; "
            "muybridge.wire.building.Response does it",
        )
        with serving(fault, tls=tls) as server:
            try:
                with only_transport_errors():
                    _exchange(transport, f"{server.url}/v1?{_QUERY}")
            except TransportError as error:
                cause, context = error.__cause__, error.__context__
                lesson.equal(cause, None, "no __cause__")
                lesson.equal(context, None, "no __context__")
                texts = [repr(error), str(error.failure), *_frames(error)]
                for secret, name in ((KEY, "the key"), (_QUERY, "the query of its URL")):
                    telling = [line for line in texts if secret in line]
                    lesson.require(not telling, f"nothing that shows {name}", "; ".join(telling))
            else:
                MISSED.refuse("TransportError, to see what it shows", "a whole response")

    def test_repr(self, transport: Transport) -> None:
        """Neither a transport nor an exchange shows the key, or can be pickled with it."""
        lesson = Lesson(
            MONEY,
            "__repr__ and __reduce__ of the transport and of what its `stream` returns, which "
            "must not be generated from their attributes",
        )
        url = f"http://127.0.0.1:1/v1?{_QUERY}"
        with no_failure(lesson):
            exchange = transport.stream(get(url), timeout=ENOUGH, authorization=AUTHORIZATION)
        with given("the transport, and what its stream returns, before it is entered"):
            for thing in (transport, exchange):
                text = repr(thing) + str(thing)
                hidden = KEY not in text and _QUERY not in text
                lesson.require(hidden, "a repr without the key and the URL's query", text)
                try:
                    kept = pickle.dumps(thing)
                except Exception:  # noqa: BLE001, S112  # just so
                    continue
                found = f"pickle.dumps of the {type(thing).__name__} holds it"
                lesson.require(KEY.encode() not in kept, "no key in its pickle", found)

    def test_nothing_kept(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """After an exchange, neither it nor the transport holds the key."""
        lesson = Lesson(
            f"{MONEY}; it is the driver's to keep, and the driver's alone",
            "attributes that still hold the request as it was sent: remove the key before sending, "
            "and drop the library's request",
        )
        with serving(serve(), tls=tls) as server:
            request = post(server.url)
            with no_failure(lesson):
                exchange = transport.stream(request, timeout=ENOUGH, authorization=AUTHORIZATION)
                with exchange as response:
                    b"".join(response.pieces())
            gc.collect()
            holder = _holder_of_key([transport, exchange])
            lesson.equal(holder, None, "no object that holds the key")

    def test_keyless(self, transport: Transport) -> None:
        """A request without the key carries none, even right after one with it."""
        lesson = Lesson(MONEY, "what a connection or session keeps of the request before")
        with serving(serve()) as server:
            call(transport, get(server.url), lesson)
            before = len(server.received)
            call(transport, get(server.url), lesson, authorization=None)
            second = server.received[before:]
            lesson.require(KEY.encode() not in second, "no key in the second request", second)


def _exchange(transport: Transport, url: str) -> None:
    # Not by way of `exchange`, whose own frame knows the key.
    with transport.stream(get(url), timeout=ENOUGH, authorization=AUTHORIZATION) as response:
        b"".join(response.pieces())


def _frames(error: Exception) -> Iterator[str]:
    """Yield each variable of each frame of its traceback that is not the kit's own."""
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if not _is_ours(frame.filename):
            where = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
            yield f"{where}: {frame.line}"
            for name, value in (frame.locals or {}).items():
                yield f"{where}: {name} = {value}"


def _is_ours(filename: str) -> bool:
    return Path(__file__).parent in Path(filename).parents


def _holder_of_key(roots: list[object]) -> str | None:
    """Return what, of all that can be reached from *roots*, holds the key."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < _MOST_OBJECTS:
        thing = waiting.pop()
        beyond = isinstance(thing, type | ModuleType | EventLoopThread)
        if id(thing) in seen or beyond or callable(thing):
            continue
        seen.add(id(thing))
        text = isinstance(thing, str) and KEY in thing
        if text or (isinstance(thing, bytes | bytearray) and KEY.encode() in thing):
            return f"a {type(thing).__name__} that the transport or its response leads to"
        waiting.extend(gc.get_referents(thing))
    return None
