"""Cases 32, 43, 46 and 48 for text: memory grows by few times what an answer may have."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable

import pytest

from transport.scripted_server import Peer

from .acts import DATA, HEAD
from .hostile_server import Act, HostileServer
from .memory_child import RESET
from .test_memory import MEBIBYTE, Nursery, answer, nursery, without_end

__all__ = ["nursery"]

pytestmark = pytest.mark.skipif(not os.access(RESET, os.W_OK), reason="measures memory by /proc")

LIMIT = 32 * MEBIBYTE
"""Most bytes of an answer, unless told otherwise."""
BESIDE = MEBIBYTE
"""What any call takes beside its answer."""
TIMES = {"text": 3, "text stream": 4}
"""The bytes, their text and their value; a stream keeps its bytes while it makes events of them."""
STREAM = HEAD + b"Content-Type: text/event-stream\r\n\r\n"
BEGUN = b'{"candidates": [{"content": {"parts": [{"text": "A horse"}]}}], "x": '
Make = Callable[[int], Callable[[], Act]]
"""Makes, given the limit, what makes an act."""


def filled(size: int, piece: bytes, *, start: bytes = b"[", end: bytes = b"]") -> bytes:
    """Return a record of just below *size* bytes that is nothing but *piece*."""
    room = size - 200 - len(BEGUN) - len(start) - len(end) - 1
    body = BEGUN + start + piece * (room // len(piece))
    return body[: -1 if piece.endswith(b",") else None] + end + b"}"


def event(piece: bytes, **ends: bytes) -> Make:
    """Return what answers with one record of the largest size, in an event if it is streamed."""
    return lambda limit: lambda: one(filled(limit, piece, **ends))


def one(record: bytes) -> Act:
    """Return what answers with *record*, to a streamed request as the one event that it has."""

    def act(peer: Peer) -> None:
        streamed = b":generateContent" not in peer.read_request()
        peer.send(STREAM)
        peer.send(DATA + record + b"\n\n" if streamed else record)

    return act


def endless(begin: bytes, piece: bytes) -> Make:
    return lambda _: without_end(STREAM + begin, piece)


def bomb(make: Callable[[int], bytes]) -> Make:
    """Return what answers with 256 MiB that are packed, beginning with what *make* makes."""

    def packed(limit: int) -> Callable[[], Act]:
        return answer(lambda: gzip.compress(make(limit), 6), content_encoding="gzip")

    return packed


EVERYWHERE: dict[str, Make] = {
    "an endless body": endless(BEGUN, b" "),
    "an endless text": endless(BEGUN + b'"', b"x"),
    "a gzip bomb": bomb(lambda _: BEGUN + b'"' + bytes(100 * MEBIBYTE)),
    "a bomb of JSON": bomb(lambda limit: filled(limit, b"{},")),
    "empty objects": event(b"{},"),
    "empty arrays": event(b"[],"),
    "numbers": event(b"1,"),
    "empty texts": event(b'"",'),
    "objects in arrays": event(b'[{"a":[{}]}],'),
    "a long text": event(b"y", start=b'"', end=b'"'),
    "a long text with one horse": event(b"y", start='"\N{HORSE}'.encode(), end=b'"'),
    "a long text with one Chinese character": event(b"y", start='"\u4e2d'.encode(), end=b'"'),
    "a long text of horses": event("\N{HORSE}".encode(), start=b'"', end=b'"'),
    "a long text of escapes": event(b"\\u0079", start=b'"', end=b'"'),
    "a long text of escaped quotes": event(b'\\",:[{', start=b'"', end=b'"'),
    "a long number": event(b"9", start=b"", end=b""),
    "brackets": event(b"[", start=b"", end=b""),
    "a picture": event(b"QUJD", start=b'"', end=b'"'),
    "an error": lambda limit: (
        lambda: one(b'{"error": {"message": "' + b"y" * (limit - 99) + b'"}}')
    ),
}
STREAMS: dict[str, Make] = {
    "an endless line": endless(b"", b"x"),
    "an endless line of data": endless(DATA, b"x"),
    "endless comments": endless(b"", b": still thinking\n\n"),
    "endless empty lines": endless(b"", b"\n"),
    "endless lines of one event": endless(b"", b"data:\n"),
    "endless events": endless(b"", DATA + b'{"candidates":[], "x": "%s"}\n\n' % (b"y" * 65_000)),
    "an endless array": endless(b"[", b'{"x": "%s"},' % (b"y" * 65_000)),
    "endless objects": endless(b"", b'{"x": "%s"}' % (b"y" * 65_000)),
    "an endless object": endless(b'{"x":', b'{"x":'),
    "endless backslashes": endless(b'{"x":"', b"\\"),
    "endless events of a mebibyte": endless(
        b"", DATA + filled(MEBIBYTE, b"y", start=b'"', end=b'"') + b"\n\n"
    ),
}
CELLS = [
    *(("text", name) for name in EVERYWHERE),
    *(("text stream", name) for name in (*EVERYWHERE, *STREAMS)),
]
SAMPLE = [
    ("requests", "text", "a picture"),
    ("trio", "text", "an endless body"),
    ("requests", "text stream", "an endless line"),
    ("trio", "text stream", "a picture"),
]


def check(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """Check that a call grows by no more than it may, whatever comes of it."""
    act = (EVERYWHERE | STREAMS)[name](LIMIT)()
    with HostileServer(on_request=act, warm=True) as server:
        answer = nursery.call(driver=driver, call=call, url=server.url, folder="", size_limit=LIMIT)
    assert answer["outcome"] in {"ok", "TextAmbiguous", "StreamInterrupted"}, answer
    growth = answer["growth"]
    assert growth <= TIMES[call] * LIMIT + BESIDE, f"{growth / LIMIT:.2f} times the answer"


@pytest.mark.parametrize(("driver", "call", "name"), SAMPLE)
def test_text(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The process grows by at most three or four times what an answer may have, whatever it is."""
    check(nursery, driver, call, name)


@pytest.mark.nightly
@pytest.mark.parametrize(("call", "name"), CELLS)
@pytest.mark.parametrize("driver", ["requests", "trio"])
def test_all_text(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The same for every call under both drivers."""
    check(nursery, driver, call, name)
