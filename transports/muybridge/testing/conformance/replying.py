"""Only a whole, well-formed reply within its bounds is a reply, and it comes as it comes."""

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
    failure_of,
    get,
    post,
    server_tls,
    serving,
    shown,
)
from muybridge.testing.conformance.lessons import BOUND, WHOLE, Lesson, promises
from muybridge.testing.scripted_server import (
    Peer,
    hang,
    read_request,
    reply,
    reply_bytes,
    send,
    serve,
)
from muybridge.wire.transport import Transport
from muybridge_protocol.http import HttpRequest, Phase, Reason

_MEBIBYTE = 1024 * 1024
_TEXT = b'{"id": "task-1"}'

AS_IT_CAME = Lesson(WHOLE, "where the library's reply becomes an HttpHead and pieces of bytes")
DOUBT = Lesson(
    f"{WHOLE}; and what one reader takes for the body's end, another takes for the next reply",
    "muybridge.wire.building.Reply checks it; or the strictest setting of the parser",
)
CODED = Lesson(
    f"{WHOLE}, and a coded body ends where its coding does, whatever its length says",
    "what undoes the content coding: it has to be told of the body's end, and its errors are "
    "Reason.MALFORMED or Reason.TRUNCATED in Phase.BODY; muybridge.wire.building.Reply does it",
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


class Replying(Checks):
    """What is a reply."""

    def test_head(self, transport: Transport) -> None:
        """Status and fields are handed over in order, repeated ones as often as they came."""
        fields = (("Set-Cookie", "a=1"), ("X-A", "caf\xe9"), ("Set-Cookie", "c=2"))
        lines = [f"{name}: {value}".encode("latin-1") for name, value in fields]
        with serving([read_request, send(_head(*lines, b"Content-Length: 0")), hang]) as server:
            response = call(transport, get(server.url), AS_IT_CAME)
        found = [(name.lower(), value) for name, value in response.headers[:3]]
        wanted = [(name.lower(), value) for name, value in fields]
        AS_IT_CAME.require(found == wanted, f"the fields {wanted}", found)

    def test_informational(self, transport: Transport) -> None:
        """Informational replies are passed over; the final one is the reply."""
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        with serving([read_request, send(early + reply_bytes(200, _TEXT)), hang]) as server:
            response = call(transport, post(server.url), AS_IT_CAME)
        AS_IT_CAME.require(response.status == 200, "status 200", response.status)  # noqa: PLR2004  # the one sent
        AS_IT_CAME.require(response.header("link") is None, "no Link", response.headers)

    @pytest.mark.parametrize(
        ("method", "whole"),
        [
            ("HEAD", reply_bytes(200, b"", content_length="5000")),
            ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
            ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"),
        ],
        ids=["HEAD", "204", "304"],
    )
    def test_without_body(self, transport: Transport, method: str, whole: bytes) -> None:
        """A reply that has no body by its nature does not wait for one."""
        with serving([read_request, send(whole), hang]) as server:
            request = HttpRequest(method=method, url=server.url)
            response = call(transport, request, AS_IT_CAME, timeout=1.0)
        AS_IT_CAME.require(response.body == b"", "no body", response.body)

    def test_chunks(self, transport: Transport) -> None:
        """A body in chunks is put together, without what stands between them."""
        body = b'6;ext=1\r\n{"id":\r\nA\r\n "task-1"}\r\n0\r\nX-Sum: 1\r\n\r\n'
        whole = _head(b"Transfer-Encoding: chunked") + body
        with serving([read_request, send(whole), hang]) as server:
            response = call(transport, post(server.url), AS_IT_CAME)
        AS_IT_CAME.require(response.body == _TEXT, f"the body {_TEXT!r}", response.body)

    def test_pieces_as_they_come(self, transport: Transport) -> None:
        """A piece is handed over when it arrives, not when the body is complete."""
        lesson = Lesson(
            "a stream of text is shown while it is written; a broken one has been paid for as far "
            "as it came, and only what was handed over is not lost",
            "reading by blocks of a fixed size, or of the whole body, on entering the context",
        )
        taken = threading.Event()

        def script(peer: Peer) -> None:
            peer.read_request()
            peer.send(_head(b"Transfer-Encoding: chunked") + b"5\r\nfirst\r\n")
            if taken.wait(1.0):
                peer.send(b"6\r\nsecond\r\n0\r\n\r\n")

        first = rest = b""
        with serving(script) as server:
            try:
                with transport.stream(get(server.url), timeout=ENOUGH) as streamed:
                    pieces = streamed.pieces()
                    first = next(pieces)
                    taken.set()
                    rest = b"".join(pieces)
            except Exception as error:  # noqa: BLE001  # told to whoever wrote the transport
                rest = repr(error).encode()
        lesson.require(
            first == b"first", "the first piece before the second is sent", first or rest
        )
        lesson.require(rest == b"second", "the second piece after it", rest)

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_codings(self, transport: Transport, coding: str) -> None:
        """A content coding is undone."""
        packed = gzip.compress(_TEXT) if coding == "gzip" else zlib.compress(_TEXT)
        with serving(serve(200, packed, content_encoding=coding)) as server:
            response = call(transport, get(server.url), CODED)
        CODED.require(response.body == _TEXT, f"the body {_TEXT!r}", response.body)

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
        """A body that is not what its coding says, or not all of it, is no reply."""
        with serving([read_request, reply(200, packed, content_encoding=coding)]) as server:
            failure = failure_of(transport, get(server.url), CODED)
        reasons = {Reason.MALFORMED, Reason.TRUNCATED}
        CODED.require(failure.reason in reasons, "malformed or truncated", shown(failure))
        CODED.require(failure.sent, "sent=True", shown(failure))

    def test_limit(self, transport: Transport) -> None:
        """A body of exactly the limit is a reply; one byte more is too large."""
        with serving(serve(200, b"x" * 1000)) as server:
            response = call(transport, get(server.url, body_limit=1000), LIMIT)
            LIMIT.require(len(response.body) == 1000, "1000 bytes", len(response.body))  # noqa: PLR2004  # the same
            failure = failure_of(transport, get(server.url, body_limit=999), LIMIT)
        LIMIT.require(failure.reason is Reason.TOO_LARGE, "Reason.TOO_LARGE", shown(failure))
        LIMIT.require(failure.phase is Phase.BODY, "Phase.BODY", failure.phase)
        LIMIT.require(failure.partial[:999] == b"x" * 999, "what had arrived", failure.partial)

    def test_no_limit(self, transport: Transport) -> None:
        """Without a limit, a body of any size is a reply."""
        body = bytes(9 * _MEBIBYTE)
        with serving(serve(200, body)) as server:
            response = call(transport, get(server.url, body_limit=None), LIMIT)
        LIMIT.require(response.body == body, "9 MiB", f"{len(response.body)} bytes")

    def test_bomb(self, transport: Transport) -> None:
        """A body that decodes to far more than the limit is given up early, within memory."""
        bomb = _bomb()
        with serving([read_request, reply(200, bomb, content_encoding="gzip")]) as server:
            tracemalloc.start()
            try:
                failure = failure_of(transport, get(server.url, body_limit=_MEBIBYTE), LIMIT)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        LIMIT.require(failure.reason is Reason.TOO_LARGE, "Reason.TOO_LARGE", shown(failure))
        LIMIT.require(
            peak < 8 * _MEBIBYTE, "less than 8 MiB of memory for a limit of 1 MiB", f"{peak} bytes"
        )

    def test_endless(self, transport: Transport) -> None:
        """A body without end is given up at the limit."""

        def endless(peer: Peer) -> None:
            peer.read_request()
            peer.send(b"HTTP/1.1 500 No\r\n\r\n")
            for _ in range(1000):
                peer.send(bytes(65536))

        with serving(endless) as server:
            failure = failure_of(transport, get(server.url, body_limit=300_000), LIMIT)
        LIMIT.require(failure.reason is Reason.TOO_LARGE, "Reason.TOO_LARGE", shown(failure))
        LIMIT.require(failure.status == 500, "status=500", failure.status)  # noqa: PLR2004  # the one sent

    @pytest.mark.parametrize(
        "whole",
        [
            _head(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
            _head(b"Content-Length: 2", b"Content-Length: 3") + b"{} ",
            _head(b"Content-Length: two") + b"{}",
            _head(b"Transfer-Encoding: gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
        ],
        ids=["both", "two lengths", "no number", "coded transfer"],
    )
    @promises("refuses_ambiguous_framing")
    def test_ambiguous_framing(self, transport: Transport, whole: bytes) -> None:
        """A head that leaves the body's end in doubt is malformed, not guessed at."""
        with serving([read_request, send(whole), hang]) as server:
            failure = failure_of(transport, post(server.url), DOUBT, timeout=1.0)
        DOUBT.require(failure.reason is Reason.MALFORMED, "Reason.MALFORMED", shown(failure))
        DOUBT.require(failure.sent, "sent=True", shown(failure))

    def test_until_close(self, transport: Transport) -> None:
        """A body that ends with its connection is whole."""

        def polite(peer: Peer) -> None:
            peer.read_request()
            peer.send(_head() + b"all of it")
            if isinstance(peer.sock, ssl.SSLSocket):
                peer.sock.unwrap()

        for tls in (None, server_tls()):
            with serving(polite, tls=tls) as server:
                response = call(transport, get(server.url), AS_IT_CAME)
            AS_IT_CAME.require(response.body == b"all of it", "the body", response.body)

    @promises("detects_cut_tls")
    def test_cut_tls(self, transport: Transport) -> None:
        """Under TLS, a body that ends with its connection needs a closing alert to be whole."""
        with serving([read_request, send(_head() + b"some")], tls=server_tls()) as server:
            failure = failure_of(transport, get(server.url), AS_IT_CAME)
        truncated = failure.reason is Reason.TRUNCATED
        AS_IT_CAME.require(truncated, "Reason.TRUNCATED", shown(failure))

    def test_early_leave(self, transport: Transport) -> None:
        """A stream may be left early; the next request is answered by its own reply."""
        with serving(serve(200, b"x" * 500_000)) as server:
            with transport.stream(get(server.url), timeout=ENOUGH) as streamed:
                next(streamed.pieces())
            response = call(transport, get(server.url), AS_IT_CAME)
        size = len(response.body)
        AS_IT_CAME.require(size == 500_000, "the whole next body", f"{size} bytes")  # noqa: PLR2004  # the same
