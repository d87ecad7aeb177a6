"""Requests made from the service's own tables: valid, nearly valid and odd, over real HTTP.

None gets a status of 500 or above, or no answer; and nothing but a file is had without a key.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge.local import LocalService
from muybridge_protocol.emulator import TextMarker
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.text.models import TEXT_MODELS

from .routes import VALUES, Route, routes

ROUTES = routes()
PATIENCE = 20.0
"""Seconds after which a request without an answer is taken to hang."""
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND")
STRANGERS: Mapping[str, tuple[str, ...]] = {
    "no key": (),
    "another key": ("Bearer nobody",),
    "no scheme": ("{key}",),
    "another scheme": ("Basic {key}",),
    "a lower-case scheme": ("bearer {key}",),
    "two spaces": ("Bearer  {key}",),
    "an empty key": ("Bearer",),
    "more than the key": ("Bearer {key} x",),
    "two keys": ("Bearer {key}", "Bearer {key}"),
}


@attrs.frozen
class Sent:
    """A request of the fuzzer's.

    Args:
        method: The method.
        target: The path and query.
        headers: Header fields beside the key and the length.
        body: The body.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Caller:
    """Sends requests to the service, each on a connection of its own.

    Args:
        service: The service.

    Attributes:
        image: The id of an image that can be had.
    """

    def __init__(self, service: LocalService) -> None:
        self.service = service
        self.image = ""
        self.address = urlsplit(service.base_url).netloc

    def send(self, sent: Sent, *keys: str) -> tuple[int, bytes]:
        """Send a request with *keys* as its authorization, and return status and body."""
        connection = HTTPConnection(self.address, timeout=PATIENCE)
        authorization = [key.format(key=self.service.api_key) for key in keys]
        with contextlib.closing(connection):
            named = any(name == "Host" for name, _ in sent.headers)
            connection.putrequest(
                sent.method, sent.target, skip_host=named, skip_accept_encoding=True
            )
            for name, value in (*sent.headers, *(("Authorization", key) for key in authorization)):
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(sent.body)))
            connection.endheaders(sent.body)
            with contextlib.closing(connection.getresponse()) as reply:
                return reply.status, reply.read()

    def known(self, sent: Sent) -> tuple[int, bytes]:
        """Send a request with a good key."""
        return self.send(sent, "Bearer {key}")


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    with LocalService(speed=100_000) as service:
        calling = Caller(service)
        headers = (("Content-Type", "application/json"),)
        asked = Sent("POST", "/v1/imga/images", headers, b'{"model": "imga", "prompt": "a horse"}')
        status, body = calling.known(asked)
        assert status == 200
        calling.image = json.loads(body)["id"]
        yield calling


def test_every_route_is_found() -> None:
    """The routes that the emulator is asked about are the ones that it has."""
    assert len(set(ROUTES)) == len(ROUTES) > len(FAMILIES)
    assert {str(route) for route in ROUTES} >= {"/v1/messages", "/v1/result/<task_id>"}
    assert {name for route in ROUTES for name in map(route.segments.__getitem__, route.free)} == {
        *VALUES
    }


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_every_route_is_one(caller: Caller, route: Route) -> None:
    """With a key, some method is not answered by 404 for want of such an endpoint."""
    target = route.path(lambda name: VALUES[name][0])
    replies = [caller.known(Sent(method, target)) for method in METHODS]
    assert any(b"no such endpoint" not in body for _, body in replies if body)
    assert all(status < 500 for status, _ in replies)


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_route_without_a_key(caller: Caller, route: Route, stranger: str) -> None:
    """Without a good key every route answers 401, whatever the method and the body."""
    for at, method in enumerate(METHODS):
        target = route.path(lambda name, at=at: VALUES[name][at % len(VALUES[name])])
        headers = (("Content-Type", "application/json"),)
        status, body = caller.send(Sent(method, target, headers, b"{}"), *STRANGERS[stranger])
        assert status == 401, method
        assert caller.service.api_key.encode() not in body


# What a request is made of.

any_text = st.text(max_size=20)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
words = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
links = st.sampled_from(
    ["https://example.com/a.png", "https://example.com/a.mp4", "asset://asset-1", "asset://x"]
)


def _fields(family: Family) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from([field.wire for field in family.fields])
    values = json_values | links | st.lists(links, max_size=4)
    return st.dictionaries(names, values, max_size=4)


def _creates(family: Family) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies for *family*: many are valid, and many nearly so."""
    said = {
        "model": st.sampled_from([model.name for model in family.models] or [family.name]),
        "prompt": any_text | st.just("a horse"),
    }
    good = st.fixed_dictionaries(said, optional={"duration": st.integers(1, 12)})
    return good | st.builds(_merged, good, _fields(family))


def _merged(some: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**some, **more}


parts = st.fixed_dictionaries({}, optional={"text": any_text, "inlineData": json_values})
turns = st.fixed_dictionaries(
    {"parts": st.lists(parts, max_size=2)}, optional={"role": st.sampled_from(["user", "model"])}
)
spoken = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "x"]), "content": json_values}
)
texts = st.fixed_dictionaries(
    {
        "model": st.sampled_from([*TEXT_MODELS, "nobody"]),
        "contents": st.lists(turns, max_size=2) | json_values,
        "messages": st.lists(spoken, max_size=2) | json_values,
    },
    optional={
        "max_tokens": st.integers(-1, 50),
        "stream": st.booleans() | json_values,
        "generationConfig": json_values,
        "system": json_values,
    },
)
BODIES = {family.create_path: _creates(family) for family in FAMILIES.values()}
"""By the path that they are for; where there is none, they are for text."""


@st.composite
def bodies(draw: st.DrawFn, path: str) -> bytes:
    """Draw a body for *path*: valid, nearly valid, odd, or no JSON at all."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=60))
    body = json.dumps(draw(BODIES.get(path, texts) | json_values)).encode()
    assert not any(marker.encode() in body for marker in TextMarker)  # those that ask for 500
    return body


odd_headers = st.tuples(
    st.sampled_from(
        ["Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Type", "Cookie",
         "If-Match", "If-None-Match", "If-Range", "Origin", "Range", "TE", "X-HTTP-Method-Override"]
    )
    | st.from_regex(r"\AX-[A-Za-z0-9-]{1,12}\Z"),
    words
    | st.sampled_from(["bytes=0-", "bytes=9-1", "bytes=-1", "*/*", "close", "gzip", "", "\xff"]),
)  # fmt: skip
headers = st.tuples(
    st.sampled_from(["application/json", "Application/JSON; charset=utf-8", "text/plain"]).map(
        lambda kind: ("Content-Type", kind)
    )
) | st.lists(odd_headers, max_size=3).map(tuple)


@st.composite
def targets(draw: st.DrawFn, route: Route) -> str:
    """Draw a target of *route*, and now and then one that is nearly it."""

    def fill(name: str) -> str:
        return draw(st.sampled_from(VALUES[name]) | any_text.map(lambda text: quote(text, "")))

    path = route.path(fill)
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(path)))
        path = path[:at] + draw(st.sampled_from(["/", "//", "%2F", "%", "..", ":", ";x", "%00"]))
        path = f"/{path.lstrip('/')}"
    return path + draw(st.sampled_from(["", "?", "?alt=sse", "?alt=%", "?a=b&a=c"]))


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """Draw a request: three of four have the method POST, with which most routes do something."""
    route = draw(st.sampled_from(ROUTES))
    method = draw(st.sampled_from(METHODS + ("POST",) * 3 * len(METHODS)))
    target = draw(targets(route))
    body = draw(bodies(target.partition("?")[0]))
    return Sent(method, target, draw(headers), body)


@given(sent=requests())
def test_whatever_is_sent(caller: Caller, sent: Sent) -> None:
    """Whatever is sent with a key is answered, with a status below 500."""
    status, body = caller.known(sent)
    assert 200 <= status < 500, body
    assert caller.service.api_key.encode() not in body


@given(sent=requests(), stranger=st.sampled_from(list(STRANGERS)))
def test_whatever_a_stranger_sends(caller: Caller, sent: Sent, stranger: str) -> None:
    """Whatever is sent without a good key gets 401, be there such an endpoint or not.

    But for the page at the root, which has nothing in it that a key would guard.
    """
    status, body = caller.send(sent, *STRANGERS[stranger])
    if sent.target.partition("?")[0] == "/":
        assert status == (200 if sent.method == "GET" else 405)
        assert caller.service.api_key.encode() not in body
    else:
        assert status == 401


@given(
    method=st.sampled_from(METHODS),
    path=st.sampled_from(["/", "/live", "/docs", "/openapi.json"]),
    query=st.sampled_from(["", "?", "?key=x", "?%"]),
    host=st.sampled_from(["evil.example", "127.0.0.1.evil.example", "evil.example:8000", "x", ""])
    | words,
    more=st.lists(odd_headers, max_size=3),
    stranger=st.sampled_from(list(STRANGERS)),
)
def test_whatever_is_asked_of_pages(
    caller: Caller,
    method: str,
    path: str,
    query: str,
    host: str,
    more: list[tuple[str, str]],
    stranger: str,
) -> None:
    """By another name than this machine's, pages show no task, and none ever shows the key."""
    here = ((), (("Host", host),))
    for named in here:
        sent = Sent(method, f"{path}{query}", (*named, *more))
        status, body = caller.send(sent, *STRANGERS[stranger])
        assert caller.service.api_key.encode() not in body
        assert status in (200, 401, 405)
        if named and path in ("/", "/live"):
            assert status == 401
        else:
            assert (status == 200) is (method == "GET")
        assert (caller.image.encode() in body) is (
            path == "/live" and method == "GET" and not named
        )


@given(
    method=st.sampled_from(METHODS),
    name=st.sampled_from(["{image}.png", "{image}.mp4", "{image}", "", "x.png", "../{image}.png"]),
    more=st.lists(odd_headers, max_size=3),
)
def test_whatever_is_asked_of_files(
    caller: Caller, method: str, name: str, more: list[tuple[str, str]]
) -> None:
    """Files are had without a key, and with whatever ranges and conditions."""
    target = f"/media/{name.format(image=caller.image)}"
    status, body = caller.send(Sent(method, target, tuple(more)))
    assert status in (200, 206, 404, 405, 416)
    assert (status not in (200, 206)) or (method == "GET" and name == "{image}.png")
    assert status != 200 or body.startswith(b"\x89PNG")


request_lines = st.builds(
    "{} {} {}".format,
    st.sampled_from(METHODS) | words,
    st.sampled_from([route.path(lambda name: VALUES[name][0]) for route in ROUTES]) | words,
    st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2", "HTTP/9", "http/1.1", ""]),
)
header_lines = st.sampled_from(
    ["Host: x", "Host: x", "Content-Length: 2", "Content-Length: -1", "Content-Length: 2, 3",
     "Transfer-Encoding: chunked", "Transfer-Encoding: x", "Expect: 100-continue", "Expect: x",
     "Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket", "HTTP2-Settings: AAMAAABk",
     "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x", " folded", ": nothing", "A", "A: \0"]
) | words  # fmt: skip


@given(
    line=request_lines,
    lines=st.lists(header_lines, max_size=5),
    rest=st.sampled_from([b"", b"{}", b"2\r\n{}\r\n0\r\n\r\n", b"x\r\n"]) | st.binary(max_size=40),
)
def test_whatever_bytes_come(caller: Caller, line: str, lines: list[str], rest: bytes) -> None:
    """Bytes that may be no HTTP end their connection at most: no 500, and nothing is given."""
    received = exchange(caller, "\r\n".join([line, *lines, "", ""]).encode() + rest)
    statuses = [int(found) for found in re.findall(rb"HTTP/1\.1 ([0-9]{3})", received)]
    # 501 is what HTTP wants where a transfer coding is unknown.
    assert all(status < 500 or status == 501 for status in statuses), received
    assert 200 not in statuses
    assert caller.known(Sent("GET", "/v1/result/task-0"))[0] == 404


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/imga/images", "/media/x.png"])
def test_bytes_after_the_last_request(caller: Caller, path: str) -> None:
    """A client that goes on sending after its last request breaks nothing for the others."""
    last = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    for _ in range(20):
        exchange(caller, last.encode() + b"x\r\n")
        assert caller.known(Sent("GET", "/v1/result/task-0"))[0] == 404


def exchange(caller: Caller, sent: bytes) -> bytes:
    """Send bytes on a connection, and return all that comes until its end."""
    host, port = caller.address.split(":")
    received = b""
    with socket.create_connection((host, int(port)), PATIENCE) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while data := raw.recv(65_536):
                received += data
    return received
