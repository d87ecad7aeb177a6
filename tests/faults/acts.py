"""What a hostile server does, in small pieces to put together."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable

from transport.scripted_server import Peer, response_bytes

from .hostile_server import Act, good_reply

Change = Callable[[bytes], bytes]

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
DATA = b"data: "
"""What an event of a stream begins with."""
UNHEARD = "127.0.0.1:9"
"""Where the links in odd records lead: the service's host, at a port where nobody listens."""
EVERY = 0.02
"""Seconds between two drops."""


def parts_of(whole: bytes) -> tuple[bytes, bytes]:
    """Return the head and the body of a response."""
    head, blank, body = whole.partition(b"\r\n\r\n")
    return head + blank, body


def honest(peer: Peer) -> bytes:
    """Read one request and return the response that it deserves."""
    return good_reply(peer.read_request(), f"http://{UNHEARD}")


def body_of(peer: Peer) -> bytes:
    """Read one request and return the body of the response that it deserves."""
    return parts_of(honest(peer))[1]


def steps(*acts: Act) -> Act:
    """Return what does one thing after the other."""

    def act(peer: Peer) -> None:
        for step in acts:
            step(peer)

    return act


def say(data: bytes) -> Act:
    """Return what reads a request and sends *data*."""

    def act(peer: Peer) -> None:
        peer.read_request()
        peer.send(data)

    return act


def say_slowly(data: Change) -> Act:
    """Return what reads a request and then drips what *data* makes of its body, without end."""

    def act(peer: Peer) -> None:
        rest = data(body_of(peer))
        while not peer.stopping.is_set():
            peer.drip(rest, every=EVERY)

    return act


def drops(data: bytes) -> Act:
    """Return what sends *data* again and again, slowly, without end."""

    def act(peer: Peer) -> None:
        while not peer.stopping.wait(EVERY):
            peer.send(data)

    return act


def flood(data: bytes) -> Act:
    """Return what sends *data* again and again, as fast as it is read, without end."""

    def act(peer: Peer) -> None:
        while not peer.stopping.is_set():
            peer.send(data)

    return act


def changed(change: Change, status: int = 200, **headers: str) -> Act:
    """Return what answers with the record it should, changed; of a stream, its second event."""

    def record_of(body: bytes) -> bytes:
        if not body.startswith(DATA):
            return change(body)
        first, second, *others = body.split(b"\n\n")
        return b"\n\n".join((first, DATA + change(second.removeprefix(DATA)), *others))

    return rewritten(record_of, status, **headers)


def rewritten(change: Change, status: int = 200, **headers: str) -> Act:
    """Return what answers with the body it should have, changed."""
    fields = {"content_type": "application/json", **headers}

    def act(peer: Peer) -> None:
        peer.send(response_bytes(status, change(body_of(peer)), **fields))

    return act


def told(change: Change) -> Act:
    """Return what answers with the whole response it should send, head and all, changed."""
    return lambda peer: peer.send(change(honest(peer)))


def with_head(*lines: bytes) -> Act:
    """Return what answers with the body it should have, below a head of these lines."""
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])
    return lambda peer: peer.send(head + body_of(peer))


def inserted(text: bytes) -> Change:
    """Return what puts *text* at the end of a JSON object."""
    return lambda body: body[:-1] + b", " + text + b"}"


def status(code: int, body: bytes = b"<html>no</html>", **headers: str) -> Act:
    """Return what answers with *code*."""
    return say(response_bytes(code, body, **headers))


def plain_end(peer: Peer) -> None:
    """End the connection as a server does that has said all: under TLS with a closing alert."""
    if isinstance(peer.sock, ssl.SSLSocket):
        with contextlib.suppress(OSError):
            peer.sock.unwrap()


def refuse_early(peer: Peer) -> None:
    """Refuse a request of which only the head has been read."""
    peer.read_head()
    peer.send(response_bytes(413, b'{"error": "too large"}', connection="close"))
    peer.stopping.wait(0.02)


def half_then_reset(peer: Peer) -> None:
    """Send half of the response, and reset the connection when it may have been read."""
    whole = honest(peer)
    peer.send(whole[: len(whole) // 2])
    peer.stopping.wait(0.01)
    peer.reset()


def stall(peer: Peer) -> None:
    """Read the beginning of a request, and nothing more of it."""
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.read_head()
    peer.stopping.wait()
