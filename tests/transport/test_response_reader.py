"""A response is read the same, however its bytes are cut, and nothing behind it changes it."""

from __future__ import annotations

from functools import partial
from types import BuiltinMethodType, SimpleNamespace

import pytest
from httptools import HttpParserCallbackError, HttpResponseParser

from muybridge.wire.exchange import Fault
from muybridge.wire.http1 import response_reader
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge_protocol.http import Headers, HttpHead

HEAD = b"HTTP/1.1 200 OK\r\n"
PLAIN = HEAD + b"Content-Length: 2\r\nX-A:  b \r\n\r\nhi"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\nh\r\n1\r\ni\r\n0\r\nX-Sum: 1\r\n\r\n"
ENDLESS = HEAD + b"X-A: b\r\n\r\nhi"
INFORMED = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def read(*pieces: bytes) -> ResponseReader:
    reader = ResponseReader("GET")
    for piece in pieces:
        reader.feed(piece)
    return reader


def body_of(reader: ResponseReader) -> bytes:
    return b"".join(iter(reader.read, b""))


def status_of(reader: ResponseReader) -> int:
    assert reader.head is not None
    return reader.head.status


@pytest.mark.parametrize(
    ("whole", "fields", "ended"),
    [
        (PLAIN, (("Content-Length", "2"), ("X-A", "b")), True),
        (CHUNKED, (("Transfer-Encoding", "chunked"),), True),
        (ENDLESS, (("X-A", "b"),), False),
        (INFORMED, (("Content-Length", "2"), ("X-A", "b")), True),
    ],
    ids=["counted", "chunked", "endless", "informed"],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_cuts(whole: bytes, fields: Headers, size: int, *, ended: bool) -> None:
    """Status, fields and body are the same whole, byte by byte, and in pieces of any size."""
    reader = read(*[whole[at : at + size] for at in range(0, len(whole), size)])
    assert reader.head == HttpHead(200, fields)
    assert (body_of(reader), reader.complete, reader.is_followed) == (b"hi", ended, False)
    assert reader.keeps_alive is ended


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.0 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 110 Odd\r\nContent-Length: 4\r\n\r\n",
        b"HTTP/1.1 110 Odd\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["old", "closing", "counted", "chunked"],
)
@pytest.mark.parametrize("apart", [False, True])
def test_informed(before: bytes, *, apart: bool) -> None:
    """An informational response adds nothing to the response that follows it."""
    reader = read(*([before, PLAIN] if apart else [before + PLAIN]))
    assert (status_of(reader), body_of(reader), reader.keeps_alive) == (200, b"hi", True)
    assert (reader.complete, reader.is_followed) == (True, False)
    assert reader.head == HttpHead(200, (("Content-Length", "2"), ("X-A", "b")))


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 110 Odd\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 110 Odd\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n",
    ],
    ids=["counted", "chunked"],
)
@pytest.mark.parametrize("apart", [False, True])
def test_informed_with_a_body(before: bytes, *, apart: bool) -> None:
    """An informational response has no body, whatever it says: what is there is malformed."""
    with pytest.raises(Fault):
        read(*([before, PLAIN] if apart else [before + PLAIN]))


@pytest.mark.parametrize("status", [b"000", b"099"])
def test_no_status(status: bytes) -> None:
    """After a response with a nonexistent status, later bytes do not make it valid."""
    with pytest.raises(Fault):
        read(b"HTTP/1.1 " + status + b" No\r\nContent-Length: 2\r\n\r\nno" + PLAIN)


@pytest.mark.parametrize("pad", [b" ", b"    ", b"\t"])
def test_padded_size(pad: bytes) -> None:
    """White space behind the size of a chunk, as some servers write it, changes nothing."""
    chunks = b"2" + pad + b"\r\nhi\r\n0" + pad + b"\r\n\r\n"
    reader = read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert (body_of(reader), reader.complete, reader.is_followed) == (b"hi", True, False)


@pytest.mark.parametrize("junk", [b"x", b"HTTP/1.1 500 No\r\nX-B: c\r\n\r\nno", b"H", b"\x00"])
@pytest.mark.parametrize("whole", [PLAIN, CHUNKED], ids=["counted", "chunked"])
@pytest.mark.parametrize("apart", [False, True])
def test_junk(whole: bytes, junk: bytes, *, apart: bool) -> None:
    """Bytes after a response are reported, and change nothing in it."""
    reader = read(*([whole, junk] if apart else [whole + junk]))
    assert (status_of(reader), body_of(reader), reader.is_followed) == (200, b"hi", True)
    assert reader.head is not None
    assert reader.head.header("X-B") is None


@pytest.mark.parametrize(
    ("head", "keeps_alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.1 200 OK\r\n", False),
    ],
)
def test_keep_alive(head: bytes, *, keeps_alive: bool) -> None:
    """The head says whether another request may follow; it is certain only at the end."""
    assert read(head + b"\r\nhi").keeps_alive is keeps_alive


@pytest.mark.parametrize("bad", [b"1_0\r\n", b"x\r\n", b"1\r\nhi\r\n", b"1\nh\n"])
def test_malformed_chunk(bad: bytes) -> None:
    """The data before a malformed chunk is returned, and then the fault."""
    reader = read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + bad)
    assert reader.read() == b"hi"
    with pytest.raises(Fault):
        body_of(reader)


@pytest.mark.parametrize(
    "flood",
    [
        [HEAD, *[b"X: " + b"y" * 1000 + b"\r\n"] * 70],
        [HEAD + b"X: ", *[b"y" * 1000] * 70],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"0" * 1000] * 70],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", *[b"x" * 1000] * 70],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", *[b"X: y\r\n" * 100] * 120],
    ],
    ids=["fields", "field", "size", "extension", "trailer"],
)
def test_bounds(flood: list[bytes]) -> None:
    """Only a body may be long: heads, chunk lines and trailers may not."""
    with pytest.raises(Fault):
        read(*flood)


def test_the_longest_head() -> None:
    """A head may have 100 fields and 64 KiB, and neither a field nor a byte more."""
    fields = HEAD + b"Content-Length: 0\r\n" + b"X: y\r\n" * 99
    assert status_of(read(fields + b"\r\n")) == 200
    with pytest.raises(Fault, match="too many headers"):
        read(fields + b"X: y\r\n\r\n")
    longest = HEAD + b"X: ".ljust(64 * 1024 - len(HEAD) - 4, b"y") + b"\r\n\r\n"
    assert status_of(read(longest)) == 200
    with pytest.raises(Fault, match="head is too long"):
        read(longest.replace(b"X", b"XX"))


def test_long_enough() -> None:
    """The body behind a head, or earlier responses, do not count towards the head's length."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 1000 + b"\r\n\r\n"
    head = HEAD + b"Content-Length: 20000\r\nX: " + b"y" * 60_000 + b"\r\n\r\n"
    reader = read(*[early] * 70, head[:50_000], head[50_000:] + b"z" * 20_000)
    assert (status_of(reader), body_of(reader)) == (200, b"z" * 20_000)
    reader = read(head[:50_000].replace(b"200", b"204"), head[50_000:] + b"junk" * 5000)
    assert (status_of(reader), reader.is_followed) == (204, True)


def test_small_chunks() -> None:
    """A body of very many small chunks does not count as a flood."""
    reader = read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(20_000):
        reader.feed(b"1\r\nx\r\n")
    assert len(body_of(reader)) == 20_000


def test_what_the_parser_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser calls nothing that a signal handler could interrupt."""
    told: list[SimpleNamespace] = []

    def note(protocol: SimpleNamespace) -> HttpResponseParser:
        told.append(protocol)
        return HttpResponseParser(protocol)

    monkeypatch.setattr(response_reader, "HttpResponseParser", note)
    read(CHUNKED)
    assert told
    for call in [call for protocol in told for call in vars(protocol).values()]:
        assert isinstance(call.func if isinstance(call, partial) else call, BuiltinMethodType)


def test_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running out of memory in a parser callback is not reported as a malformed response."""

    class Starved(HttpResponseParser):
        def feed_data(self, data: object) -> None:
            del data
            raise HttpParserCallbackError

    monkeypatch.setattr(response_reader, "HttpResponseParser", Starved)
    with pytest.raises(MemoryError):
        read(PLAIN)
