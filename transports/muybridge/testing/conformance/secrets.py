"""The key goes to the service and into nothing else; nor does the query of a signed URL."""

from __future__ import annotations

import contextlib
import gc
import http.client
import pickle
import traceback
from pathlib import Path

import pytest

from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    KEY,
    Checks,
    call,
    get,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import KEY as MONEY
from muybridge.testing.conformance.lessons import Kept, Lesson, promises
from muybridge.testing.scripted_server import (
    Script,
    in_turn,
    read_request,
    reply,
    reply_bytes,
    reset,
    send,
    serve,
)
from muybridge.wire.transport import Transport, TransportError

_QUERY = "signature=conformance-77e0"
_MOST_OBJECTS = 20_000

_ECHOES: list[Script] = [
    [read_request, send(f"HTTP/1.1 {KEY} {AUTHORIZATION}\r\n\r\n".encode())],
    [read_request, send(f"HTTP/1.1 200 OK\r\nX: {AUTHORIZATION}\r\nnone {KEY}\r\n\r\n".encode())],
    [read_request, send(f"HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n".encode())],
    [read_request, reply(200, b"{}", content_encoding=KEY)],
    [read_request, reply(200, b"{}", transfer_encoding=KEY)],
]
_FAULTS: list[Script] = [
    reset,
    [read_request],
    [read_request, reset],
    [read_request, send(reply_bytes()[:20])],
    [read_request, send(reply_bytes()[:-1])],
]


class Secrets(Checks):
    """What is shown of the key."""

    def test_logs(
        self,
        transport: Transport,
        capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """At DEBUG, no logger is told the key or a URL's query, whatever goes wrong."""
        self._check_logs(transport, [*_FAULTS, serve()], capfd, monkeypatch)

    @promises("hides_echoes")
    def test_logs_of_echoes(
        self,
        transport: Transport,
        capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Nor if a server repeats it in the head of its reply."""
        echo = reply(200, b"{}", x_echo=AUTHORIZATION)
        self._check_logs(transport, [*_ECHOES, [read_request, echo]], capfd, monkeypatch)

    def _check_logs(
        self,
        transport: Transport,
        scripts: list[Script],
        capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lesson = Lesson(
            f"{MONEY}, and logs are read by many",
            "what the HTTP library logs at DEBUG: hold it back, or hand it no secret",
        )
        monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
        with serving(in_turn(*scripts)) as server, Kept() as kept:
            for _ in scripts:
                with contextlib.suppress(TransportError):
                    _exchange(transport, f"{server.url}/v1?{_QUERY}")
        lines = [*kept.told, *"".join(capfd.readouterr()).splitlines()]
        for secret in (KEY, _QUERY):
            telling = [line for line in lines if secret in line]
            lesson.require(not telling, f"nothing that shows {secret}", telling)

    @pytest.mark.parametrize("fault", [*_FAULTS, *_ECHOES])
    def test_exceptions(self, transport: Transport, fault: Script) -> None:
        """A failure shows no key: not itself, not its traceback with the variables of frames."""
        lesson = Lesson(
            f"{MONEY}, and a traceback ends up with whoever collects errors",
            "raise TransportError outside of the `except` block, in a frame that never knew the "
            "key: the exception must have no cause, no context, and no frame of the library",
        )
        try:
            with serving(fault) as server:
                _exchange(transport, f"{server.url}/v1?{_QUERY}")
        except TransportError as error:
            told = traceback.TracebackException.from_exception(error, capture_locals=True)
            frames = [frame for frame in told.stack if not _is_ours(frame.filename)]
            said = repr(error) + str(error.failure) + "".join(
                traceback.StackSummary.from_list(frames).format()
            )  # fmt: skip
            lesson.require(error.__cause__ is None, "no __cause__", type(error.__cause__))
            lesson.require(error.__context__ is None, "no __context__", type(error.__context__))
            lesson.require(KEY not in said, "no key", said)
            lesson.require(_QUERY not in said, "no query of a URL", said)
        except Exception as error:  # noqa: BLE001  # told to whoever wrote the transport
            lesson.refuse("TransportError", type(error).__name__)
        else:
            lesson.refuse("TransportError", "a reply")

    def test_repr(self, transport: Transport) -> None:
        """Neither a transport nor an exchange shows the key, or can be pickled with it."""
        lesson = Lesson(
            MONEY,
            "__repr__ and __reduce__ of the transport and of what its `stream` returns, which "
            "must not be generated from their attributes",
        )
        url = f"http://127.0.0.1:1/v1?{_QUERY}"
        exchange = transport.stream(get(url), timeout=ENOUGH, authorization=AUTHORIZATION)
        for thing in (transport, exchange):
            said = repr(thing) + str(thing)
            lesson.require(KEY not in said and _QUERY not in said, "no secret", said)
            try:
                kept = pickle.dumps(thing)
            except Exception:  # noqa: BLE001, S112  # just so
                continue
            lesson.require(KEY.encode() not in kept, "no key in its pickle", kept)

    def test_nothing_kept(self, transport: Transport) -> None:
        """After an exchange, neither it nor the transport holds the key any more."""
        lesson = Lesson(
            f"{MONEY}; it is the driver's to keep, and the driver's alone",
            "attributes that still hold the request as it was sent: take the key away before "
            "sending, and let go of the library's request",
        )
        with serving(serve()) as server:
            request = post(server.url)
            exchange = transport.stream(request, timeout=ENOUGH, authorization=AUTHORIZATION)
            with exchange as reply:
                b"".join(reply.pieces())
            gc.collect()
            holder = _holder_of_key([transport, exchange])
        lesson.require(holder is None, "no object that holds the key", holder)

    def test_keyless(self, transport: Transport) -> None:
        """A request without the key carries none, also right after one with it."""
        lesson = Lesson(MONEY, "what a connection or session keeps of the request before")
        with serving(serve()) as server:
            call(transport, get(server.url), lesson)
            before = len(server.received)
            call(transport, get(server.url), lesson, authorization=None)
            second = server.received[before:]
        lesson.require(KEY.encode() not in second, "no key in the second request", second)


def _exchange(transport: Transport, url: str) -> None:
    # Not by way of `exchange`, whose own frame knows the key.
    with transport.stream(get(url), timeout=ENOUGH, authorization=AUTHORIZATION) as reply:
        b"".join(reply.pieces())


def _is_ours(filename: str) -> bool:
    return Path(__file__).parent in Path(filename).parents


def _holder_of_key(roots: list[object]) -> str | None:
    """Return what, of all that can be reached from *roots*, holds the key."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < _MOST_OBJECTS:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        text = isinstance(thing, str) and KEY in thing
        if text or (isinstance(thing, bytes | bytearray) and KEY.encode() in thing):
            return f"a {type(thing).__name__} that the transport or its reply leads to"
        waiting.extend(gc.get_referents(thing))
    return None
