"""Only a whole, well-formed response within its bounds counts as a response."""

from __future__ import annotations

import gzip
import ssl
import zlib
from collections.abc import Callable

import pytest

from muybridge.wire.transport import Transport, TransportError
from muybridge_protocol.http import HttpRequest, Phase, Reason

from .calls import AUTHORIZATION, call, failure_of, get, post
from .scripted_server import (
    ScriptedServer,
    hang,
    in_turn,
    read_request,
    reply,
    response_bytes,
    send,
    serve,
)

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'6;ext=1\r\n{"id":\r\nA\r\n "abcdef"}\r\n0\r\nX-Sum: 1\r\n\r\n'
)
COUNTED = response_bytes(200, b'{"id": "abcdef"}', content_type="application/json")
PACKED = response_bytes(200, gzip.compress(b'{"id": "abcdef"}'), content_encoding="gzip")


@pytest.mark.parametrize("whole", [COUNTED, CHUNKED, PACKED], ids=["counted", "chunked", "gzip"])
def test_every_cut(transport: Transport, tls: ssl.SSLContext | None, whole: bytes) -> None:
    """A response that the connection's end cuts off anywhere fails; only a whole one succeeds."""
    cuts = range(len(whole))
    scripts = [[read_request, send(whole[:cut])] for cut in cuts]
    with ScriptedServer(in_turn(*scripts, [read_request, send(whole)]), tls=tls) as server:
        for cut in cuts:
            failure = failure_of(transport, post(server.url))
            assert failure.sent
            if cut < whole.index(b"\r\n\r\n") + 4:
                assert (failure.phase, failure.status) == (Phase.HEAD, None)
                assert failure.reason is (Reason.TRUNCATED if cut else Reason.CLOSED)
                assert failure.partial == whole[:cut]
            else:
                assert (failure.phase, failure.status) == (Phase.BODY, 200)
                assert failure.reason is Reason.TRUNCATED
        assert call(transport, post(server.url)).body == b'{"id": "abcdef"}'
        assert server.posts == len(whole) + 1


def head(*lines: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])


@pytest.mark.parametrize(
    "whole",
    [
        head(b"Content-Length: two") + b"{}",
        head(b"Content-Length: -2") + b"{}",
        head(b"Content-Length: +2") + b"{}",
        head(b"Content-Length: 0x2") + b"{}",
        head(b"Content-Length: 1_0") + b"{}",
        head(b"Content-Length:") + b"{}",
        head(b"Content-Length: \xb2") + b"{}",
        head(b"Content-Length: 2", b"Content-Length: 3") + b"{}",
        head(b"Content-Length: 2, 3") + b"{}",
        head(b"Content-Length: 99999999999999999999") + b"{}",
        head(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
        head(b"Transfer-Encoding: gzip") + b"{}",
        head(b"Transfer-Encoding: gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
        head(b"Transfer-Encoding: chunked, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
        head(b"Content-Encoding: br", b"Content-Length: 2") + b"{}",
        head(b"Content-Encoding: gzip, gzip", b"Content-Length: 2") + b"{}",
        head(b"Content-Encoding: gzip", b"Content-Encoding: gzip", b"Content-Length: 2") + b"{}",
        head(b"no colon here", b"Content-Length: 2") + b"{}",
        head(b" folded: first", b"Content-Length: 2") + b"{}",
        head(b"X: folded\r\n later", b"Content-Length: 2") + b"{}",
        head(*[b"X-%d: y" % n for n in range(101)], b"Content-Length: 2") + b"{}",
        head(b"X: " + b"y" * 66_000, b"Content-Length: 2") + b"{}",
    ],
)
def test_malformed_head(transport: Transport, whole: bytes) -> None:
    """A head that leaves the body's end or coding in doubt is malformed, not guessed at."""
    with ScriptedServer([read_request, send(whole), hang]) as server:
        failure = failure_of(transport, post(server.url))
    assert (failure.phase, failure.sent, failure.reason) == (Phase.HEAD, True, Reason.MALFORMED)
    assert failure.status == 200


@pytest.mark.parametrize(
    "coding", [[b"br"], [b"gzip, gzip"], [b"gzip", b"gzip"], [b"aws-chunked, zstd"]]
)
def test_undecodable(transport: Transport, coding: list[bytes]) -> None:
    """Where nothing was paid, a head with such a coding is passed on, and then its body fails."""
    fields = [b"Content-Encoding: " + value for value in coding]
    whole = head(*fields, b"Content-Length: 2") + b"{}"
    with ScriptedServer([read_request, send(whole), hang]) as server:
        failure = failure_of(transport, get(server.url))
    assert (failure.phase, failure.sent, failure.reason) == (Phase.BODY, True, Reason.MALFORMED)
    assert failure.status == 200


@pytest.mark.parametrize("label", [b"", b"none", b"aws-chunked", b"utf-8", b"identity, ,x"])
def test_a_label_that_is_no_coding(transport: Transport, label: bytes) -> None:
    """A `Content-Encoding` that names no registered coding says nothing about the body."""
    whole = head(b"Content-Encoding: " + label, b"Content-Length: 2") + b"{}"
    with ScriptedServer([read_request, send(whole), hang]) as server:
        assert call(transport, post(server.url)).body == b"{}"


@pytest.mark.parametrize(
    "whole",
    [
        b"HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 99 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ],
)
def test_malformed_status_line(transport: Transport, whole: bytes) -> None:
    """A status line that is not one of HTTP/1 is malformed, and no status is made of it."""
    with ScriptedServer([read_request, send(whole), hang]) as server:
        failure = failure_of(transport, post(server.url))
    assert (failure.phase, failure.sent, failure.reason) == (Phase.HEAD, True, Reason.MALFORMED)
    assert (failure.status, failure.partial) == (None, whole)


def test_malformed_head_behind_another_one(transport: Transport) -> None:
    """The status of a malformed head is its own, not that of an informational one before it."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
    malformed = b"HTTP/1.1 402 Payment Required\r\nContent-Length: two\r\n\r\n{}"
    with ScriptedServer([read_request, send(early + malformed), hang]) as server:
        failure = failure_of(transport, post(server.url))
    assert (failure.phase, failure.status, failure.reason) == (Phase.HEAD, 402, Reason.MALFORMED)


IN_CHUNKS = head(b"Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("cut", "detail"),
    [
        (b"", "the connection was closed before the response"),
        (b"HTTP/1.1 20", "the connection was closed within the head of the response"),
        (head(b"Content-Length: 9") + b"{", "the body ended 8 bytes early"),
        (IN_CHUNKS + b"1\r\n{\r\n", "the chunked body ended early"),
    ],
    ids=["nothing", "head", "counted", "chunked"],
)
def test_what_is_said_of_a_cut(
    transport: Transport, tls: ssl.SSLContext | None, cut: bytes, detail: str
) -> None:
    """A closed connection is reported in the same words by each transport, and over TLS."""
    with ScriptedServer([read_request, send(cut)], tls=tls) as server:
        assert failure_of(transport, post(server.url)).detail == detail


@pytest.mark.parametrize(
    ("field", "detail"),
    [
        (
            b"Transfer-Encoding: gzip",
            "unknown Transfer-Encoding, or one with Content-Length",
        ),
        (b"Content-Encoding: br", "Content-Encoding is neither gzip nor deflate"),
    ],
    ids=["framing", "coding"],
)
def test_what_is_said_of_a_malformed_head(transport: Transport, field: bytes, detail: str) -> None:
    """A malformed head is reported in the same words by each transport."""
    with ScriptedServer([read_request, send(head(field) + b"{}"), hang]) as server:
        assert failure_of(transport, post(server.url)).detail == detail


def test_nothing_follows_the_end(transport: Transport) -> None:
    """Reading on after the end of a body returns nothing, and raises no error."""
    with (
        ScriptedServer(serve(200, b"all")) as server,
        transport.stream(get(server.url), timeout=5) as streamed,
    ):
        assert b"".join(streamed.pieces()) == b"all"
        assert list(streamed.pieces()) == []


@pytest.mark.parametrize(
    "body",
    [
        b"-5\r\n{}\r\n0\r\n\r\n",
        b"+2\r\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"1_0\r\n{}\r\n0\r\n\r\n",
        b"\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}junk\r\n0\r\n\r\n",
        b"7" * 70_000,
        b"2;" + b"x" * 70_000,
        b"0\r\n" + b"X-Y: z\r\n" * 9000,
    ],
    ids=lambda body: body[:8].decode(),
)
def test_malformed_chunks(transport: Transport, body: bytes) -> None:
    """Chunks that are not what they say, or have no end, are malformed after a bounded read."""
    whole = head(b"Transfer-Encoding: chunked") + body
    with ScriptedServer([read_request, send(whole), hang]) as server:
        failure = failure_of(transport, post(server.url))
    assert (failure.phase, failure.status, failure.reason) == (Phase.BODY, 200, Reason.MALFORMED)


def bare_deflate(text: bytes) -> bytes:
    return zlib.compress(text)[2:-4]


def two_members(text: bytes) -> bytes:
    return gzip.compress(text[:50]) + gzip.compress(text[50:])


@pytest.mark.parametrize("text", [b"", b"{}", b"\0\xff" * 100_000])
@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("gzip", two_members),
    ],
)
def test_codings(
    transport: Transport, text: bytes, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    """Each content coding that may be used is undone, whether all comes at once or in drops."""
    packed = pack(text)
    with ScriptedServer(serve(200, packed, content_encoding=coding)) as server:
        assert call(transport, get(server.url)).body == text
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in packed[:3000])
    if len(packed) <= 3000:
        fields = (b"Transfer-Encoding: chunked", b"Content-Encoding: " + coding.encode())
        script = [read_request, send(head(*fields) + chunks + b"0\r\n\r\n"), hang]
        with ScriptedServer(script) as server:
            assert call(transport, get(server.url)).body == text


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"no gzip", Reason.MALFORMED),
        (gzip.compress(b'{"id": "abc"}')[:-3], Reason.TRUNCATED),
    ],
    ids=["broken", "cut"],
)
def test_reasons_of_a_bad_coding(transport: Transport, packed: bytes, reason: Reason) -> None:
    """Our transports tell a body that its coding cannot have made from one that is cut short."""
    with ScriptedServer([read_request, reply(200, packed, content_encoding="gzip")]) as server:
        failure = failure_of(transport, get(server.url))
    assert (failure.phase, failure.reason) == (Phase.BODY, reason)


def test_kept_beyond_the_limit(transport: Transport) -> None:
    """Of a body that is too large, our transports keep the last piece whole."""
    with ScriptedServer(serve(200, b"x" * 1000)) as server:
        failure = failure_of(transport, get(server.url, body_limit=999))
        assert (failure.reason, failure.partial) == (Reason.TOO_LARGE, b"x" * 1000)


@pytest.mark.parametrize(
    ("method", "status", "fields"),
    [
        ("HEAD", 200, {"content_length": "5000"}),
        ("HEAD", 200, {"transfer_encoding": "chunked", "content_length": "0"}),
        ("GET", 204, {}),
        ("GET", 304, {"content_length": "5000"}),
    ],
)
def test_bodiless(transport: Transport, method: str, status: int, fields: dict[str, str]) -> None:
    """A response that has no body by its nature does not wait for one."""
    if "transfer_encoding" in fields:
        whole = head(b"Transfer-Encoding: chunked")
    else:
        whole = response_bytes(status, b"", **fields)
    with ScriptedServer([read_request, send(whole), read_request, send(whole), hang]) as server:
        for _ in range(2):
            response = call(transport, HttpRequest(method=method, url=server.url))
            assert (response.status, response.body) == (status, b"")
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    "whole",
    [
        b"HTTP/1.0 100 Continue\r\n\r\n" + COUNTED,
        b"HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n" + COUNTED,
        head(b"Transfer-Encoding: chunked") + b'10  \r\n{"id": "abcdef"}\r\n0  \r\n\r\n',
    ],
    ids=["old", "closing", "padded"],
)
def test_forgiven(transport: Transport, whole: bytes) -> None:
    """Odd responses that leave no doubt are accepted: nobody loses a paid task over them."""
    with ScriptedServer([read_request, send(whole), hang]) as server:
        assert call(transport, post(server.url)).body == b'{"id": "abcdef"}'


def test_duplicate_headers(transport: Transport) -> None:
    """Header fields are handed over in order, repeated ones as often as they came."""
    whole = head(b"Set-Cookie: a=1", b"X-A: b", b"Set-Cookie: c=2", b"Content-Length: 0")
    with ScriptedServer([read_request, send(whole), hang]) as server:
        headers = call(transport, get(server.url)).headers
    assert headers[:3] == (("Set-Cookie", "a=1"), ("X-A", "b"), ("Set-Cookie", "c=2"))


def test_request_on_the_wire(transport: Transport) -> None:
    """What goes out is the request as described, its target untouched, and the key."""
    with ScriptedServer(serve()) as server:
        url = f"{server.url}/a%2fb/%7Ec?sig=%2b%2F&x=a+b#fragment"
        request = HttpRequest(
            method="POST", url=url, headers=(("X-Thing", "caf\xe9"),), body=b"\0body", paid=True
        )
        call(transport, request)
        sent = server.received
    assert sent.startswith(b"POST /a%2fb/%7Ec?sig=%2b%2F&x=a+b HTTP/1.1\r\n")
    lines = sent.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    assert sorted(lines) == sorted(
        [
            b"Host: " + server.address.encode(),
            b"Accept-Encoding: identity",
            b"X-Thing: caf\xe9",
            b"Content-Length: 5",
            b"Authorization: " + AUTHORIZATION.encode(),
        ]
    )
    assert sent.endswith(b"\r\n\r\n\0body")


def test_early_leave(transport: Transport) -> None:
    """Leaving a stream early closes its connection, and a later failure is still a failure."""
    with ScriptedServer(serve(200, b"x" * 200_000)) as server:
        with transport.stream(get(server.url), timeout=5) as streamed:
            next(streamed.pieces())
        with pytest.raises(TransportError):
            b"".join(streamed.pieces())
        assert call(transport, get(server.url)).status == 200
        assert len(server.peers) == 2
