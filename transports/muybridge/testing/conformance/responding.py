"""Only a complete, well-formed response within its bounds counts; it is passed on as it arrives."""

from __future__ import annotations

import functools
import gzip
import ssl
import threading
import tracemalloc
import zlib

import pytest

from muybridge.testing.conformance.calling import (
    ENOUGH,
    Checks,
    call,
    expect,
    failure_of,
    get,
    given,
    no_failure,
    post,
    server_tls,
    serving,
)
from muybridge.testing.conformance.lessons import BOUND, WHOLE, Lesson, promises
from muybridge.testing.conformance.wires import NEVER_WHOLE
from muybridge.testing.scripted_server import (
    Peer,
    hang,
    read_request,
    reply,
    response_bytes,
    send,
    serve,
)
from muybridge.wire.transport import PARTIAL_LIMIT, Transport
from muybridge_protocol.http import HttpRequest, Phase, Reason

_MEBIBYTE = 1024 * 1024
_TEXT = b'{"id": "task-1"}'

AS_IT_CAME = Lesson(WHOLE, "where the library's response becomes an HttpHead and pieces of bytes")
FINAL = Lesson(
    f"{WHOLE}; an informational response taken for the final one is incomplete, too",
    "where a status line is read: after a 1xx response comes another head; some libraries return "
    "103 as if it were the response, and have to be asked for the next one",
)
BODILESS = Lesson(
    "an exchange that waits for a body that never comes ends at its deadline, and the response is "
    "lost",
    "where a body's length is decided: responses to HEAD, and those of status 204 and 304, have no "
    "body, whatever Content-Length says; muybridge.wire.building.Response takes what the library "
    "reads",
)
ALERT = Lesson(
    f"{WHOLE}; an attacker who cuts the connection would decide where such a body ends",
    "what the library does with ssl.SSLEOFError, or with the option suppress_ragged_eofs of "
    "sockets: for a body without a length or chunks it must not count as an end",
)
DOUBT = Lesson(
    f"{WHOLE}; and what one reader takes for the body's end, another takes for the next response",
    "muybridge.wire.building.Response checks it; or the strictest setting of the parser",
)
CODED = Lesson(
    f"{WHOLE}, and a coded body ends where its coding does, whatever its length says",
    "what undoes the content coding: it has to be told of the body's end, and its errors are "
    "Reason.MALFORMED or Reason.TRUNCATED in Phase.BODY; muybridge.wire.building.Response does it",
)
LIMIT = Lesson(
    BOUND,
    "where pieces are handed over: count the decoded bytes, stop at HttpRequest.body_limit, and "
    "decode no more than 64 KiB at a time",
)


def _head(*lines: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])


@functools.cache
def _bomb() -> bytes:
    return gzip.compress(bytes(64 * _MEBIBYTE), 9)


class Responding(Checks):
    """What counts as a response."""

    def test_head(self, transport: Transport) -> None:
        """Status and fields are passed on in order, repeated ones as often as they arrived."""
        fields = (("Set-Cookie", "a=1"), ("X-A", "caf\xe9"), ("Set-Cookie", "c=2"))
        lines = [f"{name}: {value}".encode("latin-1") for name, value in fields]
        with serving([read_request, send(_head(*lines, b"Content-Length: 0")), hang]) as server:
            headers = call(transport, get(server.url), AS_IT_CAME).headers
            plain = isinstance(headers, tuple)  # pyright: ignore[reportUnnecessaryIsInstance]  # of an unchecked transport
            AS_IT_CAME.require(plain, "HttpHead.headers: a tuple of pairs of str", headers)
            found = [(name.lower(), value) for name, value in headers[:3]]
            wanted = [(name.lower(), value) for name, value in fields]
            AS_IT_CAME.equal(found, wanted, f"the fields {wanted}")

    def test_informational(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """Informational responses are skipped; the final one is the response."""
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        final = response_bytes(200, _TEXT)
        with serving([read_request, send(early + final), hang], tls=tls) as server:
            response = call(transport, post(server.url), FINAL)
            expected = "status 200, that of the response after the informational ones (1xx)"
            FINAL.equal(response.status, 200, expected)
            FINAL.equal(response.header("link"), None, "no Link: it is not the final response's")
            FINAL.equal(response.body, _TEXT, f"the body {_TEXT!r}")

    @pytest.mark.parametrize(
        ("method", "whole"),
        [
            ("HEAD", response_bytes(200, b"", content_length="5000")),
            ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
            ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"),
        ],
        ids=["HEAD", "204", "304"],
    )
    def test_without_body(self, transport: Transport, method: str, whole: bytes) -> None:
        """If a response cannot have a body, the exchange does not wait for one."""
        with serving([read_request, send(whole), hang]) as server:
            request = HttpRequest(method=method, url=server.url)
            BODILESS.equal(call(transport, request, BODILESS, timeout=1.0).body, b"", "no body")

    def test_chunks(self, transport: Transport) -> None:
        """A chunked body is joined, without the chunk framing."""
        body = b'6;ext=1\r\n{"id":\r\nA\r\n "task-1"}\r\n0\r\nX-Sum: 1\r\n\r\n'
        whole = _head(b"Transfer-Encoding: chunked") + body
        with serving([read_request, send(whole), hang]) as server:
            response = call(transport, post(server.url), AS_IT_CAME)
            AS_IT_CAME.equal(response.body, _TEXT, f"the body {_TEXT!r}")

    def test_pieces_as_they_come(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """A piece is passed on when it arrives, not when the body is complete."""
        lesson = Lesson(
            "streamed text is shown while it is written; a stream that breaks has been paid for as "
            "far as it got, and everything that was not passed on is lost",
            "reading by blocks of a fixed size, or of the whole body, on entering the context",
        )
        taken, late = threading.Event(), threading.Event()

        def script(peer: Peer) -> None:
            """Send a chunk `first`, and `second` when that was taken, or after 1 s."""
            peer.read_request()
            peer.send(_head(b"Transfer-Encoding: chunked") + b"5\r\nfirst\r\n")
            if not taken.wait(1.0):
                late.set()
            peer.send(b"6\r\nsecond\r\n0\r\n\r\n")
            peer.hang()

        with serving(script, tls=tls) as server:
            with (
                no_failure(lesson),
                transport.stream(get(server.url), timeout=ENOUGH) as streamed,
            ):
                pieces = streamed.pieces()
                first = next(pieces, b"")
                taken.set()
                rest = b"".join(pieces)
            found = f"{first!r}, {'after' if late.is_set() else 'before'} the second was sent"
            in_time = first == b"first" and not late.is_set()
            lesson.require(in_time, "the first piece before the second is sent", found)
            lesson.equal(rest, b"second", "the second piece after it")

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_codings(self, transport: Transport, coding: str) -> None:
        """A content coding is decoded."""
        packed = gzip.compress(_TEXT) if coding == "gzip" else zlib.compress(_TEXT)
        with serving(serve(200, packed, content_encoding=coding)) as server:
            CODED.equal(call(transport, get(server.url), CODED).body, _TEXT, f"the body {_TEXT!r}")

    def test_coded_twice(self, transport: Transport) -> None:
        """A content coding is decoded once: a gzip file that was sent gzipped stays a gzip file."""
        file = gzip.compress(_TEXT)
        with serving(serve(200, gzip.compress(file), content_encoding="gzip")) as server:
            CODED.equal(call(transport, get(server.url), CODED).body, file, "the gzip file")

    def test_any_bytes(self, transport: Transport) -> None:
        """A body is bytes, whatever its Content-Type says about characters and line ends."""
        body = b"\xef\xbb\xbf" + bytes(range(256)) + b"\r\n\r\0\xff\xfe\n"
        for content_type in ("text/plain; charset=utf-16", "text/html", "application/json"):
            with serving(serve(200, body, content_type=content_type)) as server:
                received = call(transport, get(server.url), AS_IT_CAME).body
                AS_IT_CAME.equal(received, body, f"the bytes {body!r}")

    @pytest.mark.parametrize(
        ("packed", "coding"),
        [
            (b"no gzip at all", "gzip"),
            (gzip.compress(_TEXT)[:-3], "gzip"),
            (zlib.compress(_TEXT)[:-3], "deflate"),
            (b"{}", "br"),
        ],
        ids=["broken", "cut gzip", "cut deflate", "unknown"],
    )
    def test_bad_coding(self, transport: Transport, packed: bytes, coding: str) -> None:
        """A body that violates its coding, or is only a part of it, is not a response."""
        with serving([read_request, reply(200, packed, content_encoding=coding)]) as server:
            failure = failure_of(transport, get(server.url), CODED)
            expect(failure, CODED, reason={Reason.MALFORMED, Reason.TRUNCATED}, sent=True)

    def test_limit(self, transport: Transport) -> None:
        """A body of exactly the limit is a response; one byte more is too large."""
        with serving(serve(200, b"x" * 1000)) as server:
            response = call(transport, get(server.url, body_limit=1000), LIMIT)
            LIMIT.equal(len(response.body), 1000, "1000 bytes")
            with given("HttpRequest(body_limit=999), and a body of 1000 bytes"):
                failure = failure_of(transport, get(server.url, body_limit=999), LIMIT)
                expect(failure, LIMIT, reason=Reason.TOO_LARGE, phase=Phase.BODY)
                kept = failure.partial[:999] == b"x" * 999
                LIMIT.require(kept, "what had arrived in partial", failure)

    def test_no_limit(self, transport: Transport) -> None:
        """Without a limit, a body of any size is a response."""
        body = bytes(9 * _MEBIBYTE)
        with serving(serve(200, body)) as server:
            response = call(transport, get(server.url, body_limit=None), LIMIT)
            LIMIT.require(response.body == body, "9 MiB", f"{len(response.body)} bytes")

    def test_bomb(self, transport: Transport) -> None:
        """A body that decodes to far more than the limit is abandoned early, in little memory."""
        bomb = _bomb()
        with (
            serving([read_request, reply(200, bomb, content_encoding="gzip")]) as server,
            given("HttpRequest(body_limit=1 MiB), and a gzipped body that decodes to 64 MiB"),
        ):
            tracemalloc.start()
            try:
                failure = failure_of(transport, get(server.url, body_limit=_MEBIBYTE), LIMIT)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            expect(failure, LIMIT, reason=Reason.TOO_LARGE, phase=Phase.BODY, status=200)
            kept = len(failure.partial)
            LIMIT.require(kept == PARTIAL_LIMIT, f"{PARTIAL_LIMIT} bytes in partial", kept)
            modest = peak < 8 * _MEBIBYTE
            LIMIT.require(modest, "less than 8 MiB of memory", f"{peak / _MEBIBYTE:.0f} MiB")

    def test_endless(self, transport: Transport) -> None:
        """An endless body is abandoned at the limit."""

        def endless(peer: Peer) -> None:
            """Send a response of status 500 with a body of 64 MB."""
            peer.read_request()
            peer.send(b"HTTP/1.1 500 No\r\n\r\n")
            for _ in range(1000):
                peer.send(bytes(65536))

        with serving(endless) as server:
            failure = failure_of(transport, get(server.url, body_limit=300_000), LIMIT)
            expect(failure, LIMIT, reason=Reason.TOO_LARGE, status=500)

    @pytest.mark.parametrize("name", NEVER_WHOLE)
    def test_never_whole(self, transport: Transport, name: str) -> None:
        """What is cut off or contradicts itself is not a response."""
        with serving([read_request, send(NEVER_WHOLE[name])]) as server:
            failure = failure_of(transport, post(server.url), DOUBT)
            expect(failure, DOUBT, sent=True)

    @promises("refuses_ambiguous_framing")
    def test_ambiguous_framing(self, transport: Transport) -> None:
        """A head that is ambiguous about the end of the body is malformed; nothing is guessed."""
        chunks = b"2\r\n{}\r\n0\r\n\r\n"
        for whole in (
            _head(b"Content-Length: 2", b"Transfer-Encoding: chunked") + chunks,
            _head(b"Transfer-Encoding: gzip, chunked") + chunks,
            _head(b"no field at all", b"Content-Length: 2") + b"{}",
        ):
            with serving([read_request, send(whole), hang]) as server:
                failure = failure_of(transport, post(server.url), DOUBT, timeout=1.0)
                expect(failure, DOUBT, reason=Reason.MALFORMED, sent=True)

    def test_until_close(self, transport: Transport) -> None:
        """A body that ends with its connection is complete."""

        def polite(peer: Peer) -> None:
            """Send a body without a length or chunks, and close the connection properly."""
            peer.read_request()
            peer.send(_head() + b"all of it")
            if isinstance(peer.sock, ssl.SSLSocket):
                peer.sock.unwrap()

        for tls in (None, server_tls()):
            with serving(polite, tls=tls) as server:
                body = call(transport, get(server.url), AS_IT_CAME).body
                AS_IT_CAME.equal(body, b"all of it", "the body b'all of it'")

    @promises("detects_cut_tls")
    def test_cut_tls(self, transport: Transport) -> None:
        """Under TLS, a body that ends with its connection is complete only with a closing alert."""
        with serving([read_request, send(_head() + b"some")], tls=server_tls()) as server:
            failure = failure_of(transport, get(server.url), ALERT)
            expect(failure, ALERT, reason=Reason.TRUNCATED, phase=Phase.BODY)

    def test_early_leave(self, transport: Transport) -> None:
        """A stream may be left early; the next request gets its own response."""
        lesson = Lesson(
            WHOLE,
            "what leaving the context does: a connection whose response was not read to its end is "
            "closed, and does not go back to its pool",
        )
        with serving(serve(200, b"x" * 500_000)) as server:
            with (
                no_failure(lesson),
                transport.stream(get(server.url), timeout=ENOUGH) as streamed,
            ):
                next(streamed.pieces())
            size = len(call(transport, get(server.url), lesson).body)
            lesson.require(size == 500_000, "the whole next body", f"{size} bytes")  # noqa: PLR2004  # the same
