"""Cases 32, 43, 46 and 48 for text: memory grows by few times what an answer may have."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable

import pytest

from processes import Nursery
from transport.scripted_server import Peer

from .acts import DATA, HEAD, say
from .clients import DRIVERS
from .hostile_server import Act, HostileServer
from .memory_child import RESET
from .test_memory import MEBIBYTE, answer, nursery, without_end

__all__ = ["nursery"]

pytestmark = pytest.mark.skipif(not os.access(RESET, os.W_OK), reason="measures memory by /proc")

LIMIT = 32 * MEBIBYTE
"""Most bytes of an answer, unless told otherwise."""
BESIDE = MEBIBYTE
"""What any call takes beside its answer."""
TIMES = 10
"""The bytes, their text and their value, each of the last two in four bytes a character, and one
copy of a string that becomes wider."""
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


def part(share: int, piece: bytes, **ends: bytes) -> Make:
    """Return what answers with one record of a part of the largest size."""
    return lambda limit: lambda: one(filled(limit // share, piece, **ends))


def beside(share: int, piece: bytes) -> Make:
    """Return what answers with a long text, and one part in *share* of the largest size beside."""

    def make(limit: int) -> Callable[[], Act]:
        room = limit // share
        text = b'["%s",' % (b"y" * (limit - room))
        return lambda: one(filled(limit, piece, start=text))

    return make


def names(share: int, mark: str = "") -> Make:
    """Return what answers with one record of different names with *mark*, objects in objects."""

    def make(limit: int) -> Callable[[], Act]:
        chain = b'{"%s%%x":' % mark.encode() * 90 + b"1" + b"}" * 90 + b","
        room = limit // share - len(BEGUN) - 400
        count = room // (len(chain % tuple(range(4096, 4186))) + 180)
        body = b"".join(
            chain % tuple(range(n * 90, n * 90 + 90)) for n in range(1000, 1000 + count)
        )
        return lambda: one(BEGUN + b"[" + body[:-1] + b"]}")

    return make


def as_event(begin: bytes, end: bytes, *, lines: bool = False) -> Make:
    """Return what streams one event of the largest size between *begin* and *end*."""

    def make(limit: int) -> Callable[[], Act]:
        record = filled(
            limit - 70_000, b"y" * 999 + b'","' if lines else b"y", start=b'["', end=b'"]'
        )
        if lines:
            record = record.replace(b'","', b'",\ndata:"')
        return lambda: say(STREAM + begin + record + end)

    return make


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
    "a long text with a line end": event(b"y", start=b'"\\n', end=b'"'),
    "a long text with a line end and an accent": event(
        b"y", start=b'"\\n', end='\N{LATIN SMALL LETTER E WITH ACUTE}"'.encode()
    ),
    "a long text with an escaped accent": event(b"y", start=b'"\\n', end=b'\\u00e9"'),
    "a long text and an accent": event(
        b"y", start=b'["', end='","\N{LATIN SMALL LETTER E WITH ACUTE}"]'.encode()
    ),
    "a long text of accents": event(
        "\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), start=b'"', end=b'"'
    ),
    "accents in no text": event("\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), start=b"", end=b""),
    "a picture and a horse": event(b"QUJD", start='["\N{HORSE}","'.encode(), end=b'"]'),
    "a picture and many horses": event(
        b"QUJD", start=('["%s","' % ("\N{HORSE}. " * 99_999)).encode(), end=b'"]'
    ),
    **{
        f"{name}, a {share}th": part(share, piece)
        for share in (8, 16, 32, 64)
        for name, piece in {
            "objects in arrays": b'[{"a":[{}]}],',
            "arrays in arrays": b"[" * 90 + b"]" * 90 + b",",
            "objects in objects": b'{"a":' * 90 + b"1" + b"}" * 90 + b",",
            "short texts": b'"ab",',
        }.items()
    },
    **{f"different names, a {share}th": names(share) for share in (4, 8, 16, 32)},
    **{
        f"different names with {name}, a {share}th": names(share, mark)
        for share in (8, 16, 24)
        for name, mark in {
            "an accent": "\N{LATIN SMALL LETTER E WITH ACUTE}",
            "a Chinese character": "\u4e2d",
            "a horse": "\N{HORSE}",
        }.items()
    },
    **{
        f"objects in arrays, a {share}th, beside a long text": beside(share, b'[{"a":[{}]}],')
        for share in (8, 16, 32, 64, 128)
    },
    **{
        f"a long text with one horse, a {share}th": part(
            share, b"y", start='"\N{HORSE}'.encode(), end=b'"'
        )
        for share in (2, 4, 8)
    },
    "an error": lambda limit: (
        lambda: one(b'{"error": {"message": "' + b"y" * (limit - 99) + b'"}}')
    ),
}
STREAMS: dict[str, Make] = {
    "an event in an array": as_event(b"[", b"]"),
    "an event by itself": as_event(b"", b""),
    "an event without end": as_event(DATA, b""),
    "an event before white space": as_event(DATA, b" \n\n"),
    "an event after a byte order mark": as_event(DATA + b"\xef\xbb\xbf", b"\n\n"),
    "an event in many lines": as_event(DATA, b"\n\n", lines=True),
    "an event after a word": as_event(DATA + b"ping\n" + DATA, b"\n\n"),
    "an event after a long word": as_event(DATA + b"p" * 999 + b"\n" + DATA, b"\n\n"),
    "an event in two lines": as_event(DATA, b"\n" + DATA + b"\n\n"),
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
    ("asyncio", "text stream", "a picture"),
    ("requests", "text stream", "an event after a word"),
]


def check(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """Check that a call grows by no more than it may, whatever its outcome."""
    act = (EVERYWHERE | STREAMS)[name](LIMIT)()
    with HostileServer(on_request=act, warm=True) as server:
        answer = nursery.run(driver=driver, call=call, url=server.url, folder="", size_limit=LIMIT)
    assert answer["outcome"] in {"ok", "TextAmbiguous", "StreamInterrupted"}, answer
    growth = answer["growth"]
    assert growth <= TIMES * LIMIT + BESIDE, f"{growth / LIMIT:.2f} times the answer"


@pytest.mark.parametrize(("driver", "call", "name"), SAMPLE)
def test_text(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The process grows by at most ten times what an answer may have, whatever it is."""
    check(nursery, driver, call, name)


@pytest.mark.nightly
@pytest.mark.parametrize(("call", "name"), CELLS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_all_text(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The same for every call under every driver."""
    check(nursery, driver, call, name)
