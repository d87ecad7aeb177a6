"""The API key of a text request goes to the service and nowhere else, and is shown nowhere."""

from __future__ import annotations

import http.client
import json
import logging
import warnings
from typing import Any

import pytest
import trio

import muybridge
from muybridge import MuybridgeError, NotSent, PlainHttpWarning, StreamInterrupted
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    hang,
    read_request,
    response_bytes,
    send,
    serve,
)

from .answers import (
    ASKED,
    EVENTS,
    HEAD,
    MODEL,
    PLAIN,
    PROMPT,
    STREAMS,
    answering,
    ask,
    candidate,
    event,
    part,
    spend,
    streaming,
)
from .canaries import AWKWARD, echoes, everything, reachable
from .drivers import AnyClient, AnyStream, MakeClient
from .in_process import KEY, AsyncFace, InProcessTransport, World

ALL = (*PLAIN, *STREAMS)
BOTH = ("generate_content", "stream_generate_content")
KEYS = pytest.mark.parametrize("key", [KEY, AWKWARD], ids=["plain", "awkward"])


def hidden(key: str, shown: str) -> bool:
    """Whether no way of writing *key* is in what is *shown*."""
    return not any(way in shown for way in (key, repr(key)[1:-1], json.dumps(key)[1:-1]))


def outcome(client: AnyClient, method: str, **options: Any) -> Any:
    """Return the answer, or the error. No variable here knows the key."""
    try:
        return spend(client, method, **options)
    except MuybridgeError as error:
        return error


def read(stream: AnyStream[Any]) -> tuple[list[Any], StreamInterrupted]:
    """Return what a stream gives, and how it is cut off. No variable here knows the key."""
    given: list[Any] = []
    with pytest.raises(StreamInterrupted) as caught:
        given.extend(stream)
    return given, caught.value


@pytest.mark.parametrize("method", ALL)
def test_logs(
    make_client: MakeClient,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    """No log of any library shows the key at any level, and no client or stream does."""
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "requests", "muybridge", "http.client"):
        caplog.set_level(logging.DEBUG, logger=name)
    shown: list[str] = []
    for script in (answering, serve(503), serve(401), streaming(EVENTS[0])):
        with ScriptedServer(script) as server:
            client = make_client(server.url)
            asked = ask(client, method) if method in STREAMS else None
            shown.append(reachable(asked))
            came = outcome(client, method)
            shown.append(everything(came) if isinstance(came, MuybridgeError) else reachable(came))
            shown.append(reachable(client))
            assert KEY.encode() in server.received
    records = "".join(repr(vars(record)) for record in caplog.records)
    assert hidden(KEY, "".join([*shown, *capsys.readouterr(), caplog.text, records]))


@KEYS
@pytest.mark.parametrize("way", ["plain", "json", "slashes", "escapes", "percent"])
@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("status", [200, 401, 500])
def test_echoes(make_client: MakeClient, key: str, way: str, method: str, status: int) -> None:
    """A service that repeats the key in its responses does not get it into any error or answer."""

    def script(peer: Peer) -> None:
        fields = {"location": f"/x?key={key}", "x_key": f"it is {key}", "retry_after": "999"}
        serve(status, echoes(key)[way], **fields)(peer)

    with ScriptedServer(script) as server:
        came = outcome(make_client(server.url, api_key=key), method)
        assert key.encode() in server.received
    assert hidden(key, everything(came) if isinstance(came, MuybridgeError) else reachable(came))


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("size", [100, 64 * 1024])
def test_an_echo_cut_short(make_client: MakeClient, method: str, status: int, size: int) -> None:
    """No part of a key is kept of a response that ends, or is truncated, inside it."""
    begin = KEY[: len(KEY) // 2]
    rest = KEY[len(begin) :] if size > 100 else ""
    body = "x" * (size - len(begin)) + begin + rest
    with ScriptedServer(serve(status, body.encode())) as server:
        came = outcome(make_client(server.url), method)
    assert isinstance(came, MuybridgeError)
    assert hidden(begin, everything(came))


@KEYS
@pytest.mark.parametrize("method", ["stream_generate_content", "stream_messages"])
@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("way", ["plain", "escapes", "percent"])
def test_echoes_in_a_stream(
    make_client: MakeClient, key: str, method: str, size: int, way: str
) -> None:
    """Neither chunks nor an error within a stream, however cut, bring the key that they repeat."""
    said = {
        "plain": json.dumps(key),
        "escapes": '"' + "".join(f"\\u{ord(mark):04x}" for mark in key) + '"',
        "percent": '"' + "".join(f"%{ord(mark):02x}" for mark in key) + '"',
    }[way]
    chunk = json.dumps(candidate("<key>")).replace('"<key>"', said)
    error = '{"error": {"message": %s}, "x": [%s]}' % (said, said)  # noqa: UP031  braces inside
    body = f"data: {chunk}\n\ndata: {error}\n\n".encode()
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    with ScriptedServer(streaming(*parts)) as server:
        with ask(make_client(server.url, api_key=key), method) as stream:
            given, interruption = read(stream)
        shown = reachable(given) + reachable(stream.received()) + repr(stream)
    assert hidden(key, shown + everything(interruption))
    assert "[api key]" in json.dumps([getattr(chunk, "raw", chunk) for chunk in given])
    assert "[api key]" in json.dumps(interruption.error)
    assert "reported an error" in str(interruption)
    assert interruption.arrived == len(given) == 1


@pytest.mark.parametrize("cut", [1, 4, 8])
@pytest.mark.parametrize("end", [b"", b"0\r\n\r\n"], ids=["FIN", "whole"])
def test_echoes_that_break_off(make_client: MakeClient, cut: int, end: bytes) -> None:
    """If a stream is cut off inside the key, the beginning of the key is not in the error."""
    broken = f'data: {{"error": "bad key {KEY}'.encode()[:-cut]
    with ScriptedServer(streaming(EVENTS[0], broken, end=end)) as server:
        error = outcome(make_client(server.url), "stream_generate_content")
    assert KEY[:-cut] not in everything(error)
    assert error.raw.endswith(b"bad key [api key]")


@pytest.mark.parametrize(
    "script",
    [
        [read_request, hang],
        [read_request],
        [read_request, send(b"SSH-2.0\r\n\r\n")],
        [read_request, send(response_bytes(200, b"{", content_encoding="gzip"))],
        [read_request, send(HEAD + part(EVENTS[0]) + b"zzz\r\n")],
        streaming(b"data: {\n\n"),
        streaming(event(17)),
        streaming(EVENTS[0], end=b""),
    ],
    ids=["hang", "close", "ssh", "gzip", "chunk", "junk", "number", "cut"],
)
@pytest.mark.parametrize("method", BOTH)
def test_errors_show_no_key(make_client: MakeClient, method: str, script: list[Step]) -> None:
    """No error shows the key, nor do the variables in its traceback, nor its pickle."""
    with ScriptedServer(script) as server:
        error = outcome(make_client(server.url), method, timeout=0.2)
        assert KEY.encode() in server.received
    assert isinstance(error, MuybridgeError)
    assert hidden(KEY, everything(error))


@pytest.mark.parametrize("method", ALL)
def test_the_key_goes_to_the_service_alone(make_client: MakeClient, method: str) -> None:
    """Text goes to the text host with the key, and a redirect elsewhere gets neither."""
    with (
        ScriptedServer(answering) as base,
        ScriptedServer(answering) as other,
        ScriptedServer(serve(307, b"", location=f"{other.url}/v1")) as text,
    ):
        client = make_client(base.url, text_base_url=text.url)
        with pytest.raises(MuybridgeError):
            spend(client, method)
        client.get("task-1")
        assert text.received.count(KEY.encode()) == 1
        assert base.received.count(KEY.encode()) == 1
        assert base.posts == 0
        assert not other.peers


@pytest.mark.parametrize("method", ALL)
@pytest.mark.muybridge_paid_requests  # to a proxy on this machine
def test_proxies_on_plain_http(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A proxy is not shown a key that would pass it in clear text, and no second try is made."""
    with ScriptedServer(answering) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        client = make_client("https://service.test", text_base_url="http://text.test")
        with pytest.warns(PlainHttpWarning), pytest.raises(NotSent) as caught:
            spend(client, method)
        assert not proxy.received
    assert caught.value.failure.phase is Phase.PROXY
    assert caught.value.attempts == 1
    told = str(caught.value)
    assert all(remedy in told for remedy in ("allow_plain_http_proxy", "NO_PROXY"))
    assert "the network" not in told


@pytest.mark.parametrize("method", ALL)
@pytest.mark.muybridge_paid_requests  # to a proxy on this machine
def test_proxies_on_request(driver: str, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """A transport that was told so sends the key in clear text through a proxy."""
    with ScriptedServer(answering) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.warns(PlainHttpWarning):
            _through_a_proxy(driver, method)
        assert f"Authorization: Bearer {KEY}\r\n".encode() in proxy.received
        assert proxy.received.startswith(b"POST http://text.test/v1/")


def _through_a_proxy(driver: str, method: str) -> None:
    addresses = ("https://service.test", "http://text.test")
    if driver == "requests":
        through = muybridge.RequestsTransport(allow_plain_http_proxy=True)
        with muybridge.Client(KEY, *addresses, transport=through) as client:
            spend(client, method)
        through.close()
        return

    async def call() -> None:
        transport = muybridge.TrioTransport(allow_plain_http_proxy=True)
        async with muybridge.TrioClient(KEY, *addresses, transport=transport) as client:
            said = (MODEL, PROMPT) if method in BOTH else (ASKED,)
            asked = getattr(client, method)(*said)
            if method in PLAIN:
                await asked
            else:
                async with asked as stream:
                    assert [chunk async for chunk in stream]
        await transport.close()

    trio.run(call)


@pytest.fixture
def sent(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the world answer whatever is asked at any host, and return where that was."""
    urls: list[str] = []
    whole = HttpResponse(200, (), json.dumps(candidate("x", "STOP")).encode())
    streamed = HttpResponse(200, (), b"".join(EVENTS))

    def answer(request: HttpRequest, _: str | None) -> HttpResponse:
        urls.append(request.url)
        return whole if request.idle_timeout is None else streamed

    monkeypatch.setattr(world, "answer", answer)
    return urls


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("host", ["text.test", "192.168.1.1", "127.0.0.1.evil.test"])
def test_clear_text(
    make_client: MakeClient, world: World, sent: list[str], host: str, method: str
) -> None:
    """Text over plain http to another host is warned of once by each client, without the key."""
    for _ in range(2):
        client = make_client(world, text_base_url=f"http://{host}")
        with pytest.warns(PlainHttpWarning, match="clear text") as caught:
            _ = [spend(client, other) for other in (method, *ALL)]
        (warning,) = caught
        assert f"http://{host}" in str(warning.message)
        assert all(url.startswith(f"http://{host}/v1/") for url in sent)
        assert KEY not in str(warning)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "https://text.test", "https://x"],
)
def test_no_clear_text(
    make_client: MakeClient, world: World, sent: list[str], address: str
) -> None:
    """Plain http on this machine, and https anywhere, are not warned of."""
    client = make_client(world, text_base_url=address)
    for method in ALL:
        spend(client, method)
    assert len(sent) == len(ALL)


def test_a_warning_that_is_an_error(make_client: MakeClient, world: World, sent: list[str]) -> None:
    """Where the warning is an error, nothing is sent, the next time either."""
    client = make_client(world, text_base_url="http://text.test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ALL:
            with pytest.raises(PlainHttpWarning):
                spend(client, method)
    assert not sent


@pytest.mark.parametrize("method", ALL)
@pytest.mark.usefixtures("sent")
def test_clear_text_is_warned_of_where_it_is_asked_for(
    world: World, driver: str, method: str
) -> None:
    """The warning points at the line that asks for text."""
    said = (MODEL, PROMPT) if method in BOTH else (ASKED,)
    addresses = ("https://service.test", "http://text.test")

    async def on_trio() -> None:
        transport = AsyncFace(InProcessTransport(world))
        client = muybridge.TrioClient(KEY, *addresses, transport=transport)
        asked: Any = getattr(client, method)
        if method in PLAIN:
            await asked(*said)
        else:
            asked(*said)

    def blocking() -> None:
        client = muybridge.Client(KEY, *addresses, transport=InProcessTransport(world))
        asked: Any = getattr(client, method)
        asked(*said)

    with pytest.warns(PlainHttpWarning) as caught:
        trio.run(on_trio) if driver == "trio" else blocking()
    (warning,) = caught
    assert warning.filename == __file__
