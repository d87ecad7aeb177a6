"""The key goes only to the service, and the query of a signed URL is never shown."""

from __future__ import annotations

import copy
import gc
import http.client
import io
import logging
import pickle
import ssl
import traceback
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport, TransportError
from muybridge_protocol.http import Reason

from .calls import AUTHORIZATION, KEY, QUERY, call, failure_of, get, post
from .conftest import MakeTransport
from .scripted_server import (
    Script,
    ScriptedServer,
    in_turn,
    read_request,
    reply,
    reply_bytes,
    reset,
    send,
    serve,
)

SOURCES = str(Path(muybridge.__file__).parent)
ECHO = f"X-Echo: {AUTHORIZATION}\r\nnot a header {AUTHORIZATION}\r\n\r\n".encode()
FAULTS: list[Script] = [
    reset,
    [read_request],
    [read_request, reset],
    [read_request, send(reply_bytes()[:20])],
    [read_request, send(reply_bytes()[:-1])],
    [read_request, send(f"HTTP/1.1 {KEY} {AUTHORIZATION}\r\n\r\n".encode())],
    [read_request, send(b"HTTP/1.1 200 OK\r\n" + ECHO)],
    [read_request, send(f"HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n".encode())],
    [read_request, reply(200, b"{}", content_encoding=f"br, {KEY}")],
    [read_request, reply(200, b"{}", transfer_encoding=KEY)],
]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that any logger receives, down to DEBUG."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def test_logs(
    transport: Transport,
    tls: ssl.SSLContext | None,
    log: io.StringIO,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At DEBUG, and with http.client's own debugging on, neither key nor query is shown."""
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    with ScriptedServer(in_turn(*FAULTS, serve()), tls=tls) as server:
        url = f"{server.url}/v1/tasks?{QUERY}"
        for _ in FAULTS:
            failure_of(transport, post(url))
        assert call(transport, post(url)).status == 200
        assert f"?{QUERY}".encode() in server.received
    shown = log.getvalue() + "".join(capfd.readouterr())
    # urllib3 tells its log the path; httptools has none.
    assert ("/v1/tasks" in shown) == isinstance(transport, RequestsTransport)
    assert KEY not in shown
    assert "canary" not in shown


@pytest.mark.parametrize("fault", FAULTS)
def test_tracebacks(transport: Transport, tls: ssl.SSLContext | None, fault: Script) -> None:
    """The traceback of a failure shows no key, not even with the variables of every frame."""
    with (
        ScriptedServer(fault, tls=tls) as server,
        pytest.raises(TransportError) as caught,
        transport.stream(
            get(f"{server.url}?{QUERY}"), timeout=5, authorization=AUTHORIZATION
        ) as streamed,
    ):
        b"".join(streamed.pieces())
    error = caught.value
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in told.stack if frame.filename.startswith(SOURCES)]
    assert ours
    assert KEY not in "".join(traceback.StackSummary.from_list(ours).format())
    modules = {frame.filename for frame in told.stack}
    assert not [name for name in modules if "http/client" in name or "urllib3" in name]
    assert error.__context__ is None
    assert error.__cause__ is None


def test_key_with_line_break(transport: Transport) -> None:
    """A key that would break the request apart is refused unsent, and not shown."""
    with ScriptedServer(serve()) as server:
        for bad in ("\r\nX: y", "\n", "\0", "\N{HORIZONTAL ELLIPSIS}"):
            with pytest.raises(TransportError) as caught:
                transport.stream(
                    get(server.url), timeout=5, authorization=AUTHORIZATION + bad
                ).__enter__()
            assert not caught.value.failure.sent
            assert caught.value.failure.reason is Reason.OTHER
            assert KEY not in repr(caught.value)
        assert server.peers == []


def test_repr(transport: Transport) -> None:
    """Neither the transport nor an exchange shows what it was given."""
    streamed = transport.stream(
        post(f"http://127.0.0.1:1/v1?{QUERY}"), timeout=5, authorization=AUTHORIZATION
    )
    for shown in (repr(transport), repr(streamed), str(streamed)):
        assert "canary" not in shown


def test_pickle(transport: Transport) -> None:
    """Neither a transport nor an exchange can be pickled or copied."""
    streamed = transport.stream(get("http://127.0.0.1:1/"), timeout=5, authorization=AUTHORIZATION)
    for thing in (transport, streamed):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.copy(thing)


def test_netrc(
    make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A netrc file's credentials are not sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    transport = make_transport()
    with ScriptedServer(serve()) as server:
        with transport.stream(get(server.url), timeout=5) as streamed:
            b"".join(streamed.pieces())
        assert b"Authorization" not in server.received


def test_nothing_kept(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """After an exchange neither it nor the transport holds the key any more."""
    with ScriptedServer(serve(), tls=tls) as server:
        request = post(server.url)
        with transport.stream(request, timeout=5, authorization=AUTHORIZATION) as streamed:
            b"".join(streamed.pieces())
        gc.collect()
        seen: set[int] = set()
        waiting: list[object] = [getattr(thing, "inner", thing) for thing in (transport, streamed)]
        while waiting:
            thing = waiting.pop()
            if id(thing) in seen or isinstance(thing, type) or len(seen) > 20_000:
                continue
            seen.add(id(thing))
            assert not (isinstance(thing, str) and KEY in thing)
            assert not (isinstance(thing, bytes) and KEY.encode() in thing)
            if type(thing).__module__ not in {"builtins_function", "module"} and not callable(
                thing
            ):
                waiting.extend(gc.get_referents(thing))


@pytest.mark.parametrize("status", [200, 302])
def test_no_cache_keeps_a_signed_link(transport: Transport, status: int) -> None:
    """The standard library caches the URLs that it takes apart, and is given no signed one."""
    split: Any = urllib.parse.urlsplit
    location = reply_bytes(status, b"", location=f"/elsewhere?{QUERY}")
    with ScriptedServer([read_request, send(location)]) as server:
        split.cache_clear()
        assert call(transport, get(f"{server.url}/picture.png?{QUERY}")).status == status
        assert split.cache_info().currsize == 0
