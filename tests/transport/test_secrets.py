"""The key goes only to the service, and the query of a signed URL is never shown."""

from __future__ import annotations

import copy
import pickle
import traceback
import urllib.parse
from typing import Any

import pytest

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport, TransportError
from muybridge_protocol.http import Reason

from .calls import AUTHORIZATION, KEY, QUERY, call, get
from .scripted_server import (
    Script,
    ScriptedServer,
    read_request,
    response_bytes,
    send,
    serve,
)


@pytest.mark.parametrize(
    "fault",
    [[read_request], [read_request, send(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")]],
    ids=["closed", "malformed"],
)
def test_no_frame_of_a_library(requests_transport: RequestsTransport, fault: Script) -> None:
    """A traceback has no frame of http.client and urllib3, which are given the key."""
    with ScriptedServer(fault) as server, pytest.raises(TransportError) as caught:
        call(requests_transport, get(server.url))
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [name for name in frames if "http/client" in name or "urllib3" in name]


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


def test_pickle(transport: Transport) -> None:
    """Neither a transport nor an exchange can be pickled or copied."""
    streamed = transport.stream(get("http://127.0.0.1:1/"), timeout=5, authorization=AUTHORIZATION)
    for thing in (transport, streamed):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.copy(thing)


@pytest.mark.parametrize("status", [200, 302])
def test_no_cache_keeps_a_signed_link(transport: Transport, status: int) -> None:
    """The standard library caches the URLs that it takes apart, and is given no signed one."""
    split: Any = urllib.parse.urlsplit
    location = response_bytes(status, b"", location=f"/elsewhere?{QUERY}")
    with ScriptedServer([read_request, send(location)]) as server:
        split.cache_clear()
        assert call(transport, get(f"{server.url}/picture.png?{QUERY}")).status == status
        assert split.cache_info().currsize == 0
