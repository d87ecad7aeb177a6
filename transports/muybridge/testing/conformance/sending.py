"""Requests go out exactly as described, and once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    KEY,
    Checks,
    call,
    failure_of,
    get,
    given,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import KEY as MONEY
from muybridge.testing.conformance.lessons import ONCE, Lesson, shown
from muybridge.testing.scripted_server import Peer, ScriptedServer, response_bytes, serve
from muybridge.wire.transport import Transport
from muybridge_protocol.http import HttpRequest

_METHODS = ["GET", "HEAD", "DELETE", "POST"]
_OWN = frozenset({b"host", b"accept-encoding", b"content-length", b"connection"})
"""Fields that a transport may add on its own."""

DESCRIBED = Lesson(
    "what the core has checked is what must arrive: a changed target, header or body is another "
    "request, and may be charged as one",
    "where HttpRequest becomes the library's own request: which fields, encodings or "
    "normalisations of URLs it adds by itself",
)


def _fields(head: bytes) -> list[tuple[bytes, bytes]]:
    lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    pairs = [line.partition(b":")[::2] for line in lines]
    return [(name.lower(), value.strip()) for name, value in pairs]


def _request(method: str, url: str) -> HttpRequest:
    return post(url) if method == "POST" else HttpRequest(method=method, url=url)


def _require_one(server: ScriptedServer, method: str, lesson: Lesson) -> None:
    lines = re.findall(rb"([A-Z]+) [^ \r\n]+ HTTP/1\.1\r\n", server.received)
    expected = f"one {method} and no other request"
    lesson.require(lines == [method.encode()], expected, f"{len(lines)} requests: {lines}")


class Sending(Checks):
    """How requests are sent."""

    def test_request_line(self, transport: Transport) -> None:
        """Method and target are those of the request, its escapes untouched."""
        target = "/a%2fb/%7Ec/../d?sig=%2b%2F&x=a+b"
        with (
            serving(serve()) as server,
            given(f"HttpRequest(url='http://{server.address}{target}#fragment')"),
        ):
            call(transport, get(f"{server.url}{target}#fragment"), DESCRIBED)
            line = server.received.partition(b"\r\n")[0].decode("latin-1")
            wanted = f"GET {target} HTTP/1.1"
            DESCRIBED.equal(line, wanted, f"the request line {wanted}")

    def test_headers_and_body(self, transport: Transport) -> None:
        """Headers and body arrive unchanged, and nothing is added that reveals the library."""
        headers = (("Accept", "text/event-stream"), ("User-Agent", "muybridge/1.2"))
        with serving(serve()) as server:
            url, body = server.url, b'{"prompt":"caf\xc3\xa9"}'
            request = HttpRequest(method="POST", url=url, headers=headers, body=body, paid=True)
            with given(f"HttpRequest(headers={headers}, body={body!r})"):
                call(transport, request, DESCRIBED)
                head, _, sent = server.received.partition(b"\r\n\r\n")
                DESCRIBED.equal(sent, body, f"the body {body!r}")
                wanted = sorted((name.lower().encode(), value.encode()) for name, value in headers)
                fields = _fields(head)
                own = [field for field in fields if field[0] not in _OWN | {b"authorization"}]
                DESCRIBED.equal(sorted(own), wanted, f"the fields {wanted} and no other")
                lengths = [value for name, value in fields if name == b"content-length"]
                DESCRIBED.equal(lengths, [b"18"], "Content-Length: 18, once")

    def test_content_codings_asked_for(self, transport: Transport) -> None:
        """Only the request says which content coding is asked for: decoding might exceed bounds."""
        for coding in ("identity", "gzip"):
            with serving(serve()) as server:
                request = get(server.url, headers=(("Accept-Encoding", coding),))
                call(transport, request, DESCRIBED)
                fields = _fields(server.received)
                asked = [value for name, value in fields if name == b"accept-encoding"]
                expected = f"Accept-Encoding: {coding}, once, as the request says"
                DESCRIBED.equal(asked, [coding.encode()], expected)

    def test_large_body(self, transport: Transport) -> None:
        """A body of a megabyte arrives whole."""
        body = bytes(range(256)) * 4096
        with serving(serve()) as server:
            call(transport, post(server.url, body), DESCRIBED)
            arrived = server.received.partition(b"\r\n\r\n")[2]
            found = f"{len(arrived)} bytes, which are not these"
            DESCRIBED.require(arrived == body, f"the {len(body)} bytes of the body", found)

    def test_authorization(self, transport: Transport) -> None:
        """The key is sent once, unchanged, and only if it was given."""
        lesson = Lesson(
            f"{MONEY}: it goes where the driver says, and only there",
            "default headers of a session or client: nothing there may hold the key",
        )
        with serving(serve()) as server:
            call(transport, get(server.url), lesson)
            call(transport, get(server.url), lesson, authorization=None)
            requests = server.received.split(b"GET ")[1:]
            sent = [[v for n, v in _fields(head) if n == b"authorization"] for head in requests]
            wanted = [[AUTHORIZATION.encode()], []]
            expected = f"Authorization: {AUTHORIZATION} in the first request and not in the second"
            lesson.equal(sent, wanted, expected)

    def test_netrc(
        self, transport: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The credentials of a netrc file are not sent."""
        lesson = Lesson(
            "a transport has no credentials of its own: the service must not be sent passwords "
            "that are meant for others",
            "an option such as trust_env",
        )
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login someone password else\n")
        netrc.chmod(0o600)
        monkeypatch.setenv("NETRC", str(netrc))
        with (
            serving(serve()) as server,
            given("authorization=None, and a netrc file that names the host"),
        ):
            call(transport, get(server.url), lesson, authorization=None)
            found = dict(_fields(server.received)).get(b"authorization")
            lesson.equal(found, None, "no Authorization")

    def test_cookies(self, transport: Transport) -> None:
        """A cookie that a response sets is not sent back."""
        lesson = Lesson(
            "a transport keeps nothing between requests: a cookie would tie them together",
            "the cookie jar of a session or client: leave the session out, or empty the jar",
        )
        with serving(serve(200, b"{}", set_cookie="a=b; Path=/")) as server:
            call(transport, get(server.url), lesson)
            call(transport, get(server.url), lesson)
            heads = server.received.lower()
            lesson.require(b"\r\ncookie:" not in heads, "no Cookie in the second request", heads)

    @pytest.mark.parametrize("method", _METHODS)
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 401, 407, 408, 413, 429, 503])
    def test_no_policy(self, transport: Transport, status: int, method: str) -> None:
        """Redirects, challenges and invitations to retry are returned unchanged."""
        lesson = Lesson(
            f"{ONCE}; and a redirect would carry the key to another host",
            "options for redirects, retries and authentication: the core decides all of that",
        )
        fields = {"location": "/elsewhere", "retry_after": "0", "www_authenticate": "Basic"}
        body = b"" if method == "HEAD" else b"no"
        with serving(serve(status, body, **fields)) as server:
            response = call(transport, _request(method, server.url), lesson)
            lesson.equal(response.status, status, f"status {status}")
            lesson.equal(response.header("location"), "/elsewhere", "Location: /elsewhere")
            _require_one(server, method, lesson)

    @pytest.mark.parametrize("method", _METHODS)
    @pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
    def test_redirect_to_another_host(self, transport: Transport, status: int, method: str) -> None:
        """A redirect sends nothing to another host: not the key, and not the request without it."""
        lesson = Lesson(
            f"{MONEY}, and a redirect may name any host; a request that is repeated there is "
            "made twice, and a download could be led into your network. The core checks where a "
            "redirect leads, and follows it only for downloads",
            "the library's option for redirects, which many have on for GET: set it for each "
            "request, whatever its method (allow_redirects=False, follow_redirects=False, "
            "redirect=False)",
        )
        with serving(serve()) as other:
            for place in (f"http://localhost:{other.port}/x", f"//localhost:{other.port}/x"):
                with serving(serve(status, b"", location=place)) as server:
                    # Only a download is sent without the key.
                    for key in (AUTHORIZATION, None)[: 2 if method == "GET" else 1]:
                        request = _request(method, server.url)
                        response = call(transport, request, lesson, authorization=key)
                        sent = other.received
                        found = f"a request with{'' if KEY.encode() in sent else 'out'} the key"
                        nothing = f"nothing sent to the host that `Location: {place}` names"
                        lesson.require(not other.peers, nothing, f"{found}, {sent[:80]!r}")
                        lesson.equal(response.status, status, f"{status}")

    @pytest.mark.parametrize("method", _METHODS)
    def test_no_retry(self, transport: Transport, method: str) -> None:
        """A lost response costs one request, also on a connection that was used before."""
        lesson = Lesson(
            f"{ONCE}; and polls that a library repeats by itself double the load of a service "
            "that is in trouble",
            "retries that the library makes by itself when a connection breaks",
        )
        lost: list[bytes] = []

        def script(peer: Peer) -> None:
            """Answer a request for /first, and meet every other one with a reset."""
            while (request := peer.read_request()).startswith(b"GET /first "):
                peer.send(response_bytes())
            lost.append(request)
            peer.reset()

        with serving(script) as server:
            call(transport, get(f"{server.url}/first"), lesson)
            failure = failure_of(transport, _request(method, server.url), lesson)
            found = f"{len(lost)} {method}s, {shown(failure)}"
            lesson.require(len(lost) == 1, f"one {method}", found)

    @pytest.mark.parametrize("method", _METHODS)
    def test_no_body(self, transport: Transport, method: str) -> None:
        """A request without a body has none; a POST says that its length is 0."""
        with serving(serve(200, b"")) as server:
            request = HttpRequest(method=method, url=server.url, paid=method == "POST")
            call(transport, request, DESCRIBED)
            head, _, body = server.received.partition(b"\r\n\r\n")
            line = head.partition(b"\r\n")[0].decode("latin-1")
            DESCRIBED.equal(line, f"{method} / HTTP/1.1", f"{method} / HTTP/1.1")
            DESCRIBED.equal(body, b"", "no body")
            fields = _fields(head)
            coding = dict(fields).get(b"transfer-encoding")
            DESCRIBED.equal(coding, None, "no Transfer-Encoding")
            lengths = [value for name, value in fields if name == b"content-length"]
            right = lengths == [b"0"] or (not lengths and method != "POST")
            expected = "Content-Length: 0, once, without which servers answer a POST with 411"
            DESCRIBED.require(right, expected, lengths)
