"""Threads, processes, slow and huge responses, and settings that cannot be right."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge import (
    CreateAmbiguous,
    DownloadFailed,
    InvalidAddress,
    LocalError,
    MuybridgeWarning,
    PlainHttpWarning,
    ServiceUnreachable,
    WaitTimeout,
)
from muybridge_protocol.http import Reason
from muybridge_protocol.records.tasks import Status
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    closed_port,
    hang,
    read_request,
    response_bytes,
    send,
    serve,
)

from .children import forking
from .drivers import AnyClient, MakeClient
from .in_process import KEY, World
from .requests_made import image, small

RESULT = json.dumps({"id": "task-1", "status": "processing", "created": 1}).encode()
SLACK = 0.5
"""Seconds by which a call may end after its time."""


def test_many_threads(make_client: MakeClient, driver: str) -> None:
    """Thirty-two threads share a client, and every create is sent and answered once."""
    if driver == "asyncio":
        pytest.skip("a client belongs to one event loop, and that one to one thread")
    numbers = itertools.count(1)

    def script(peer: Peer) -> None:
        while True:
            posted = peer.read_request().startswith(b"POST")
            number = next(numbers) if posted else 0
            record = {"id": f"task-{number}", "status": "queued", "created": 1}
            peer.send(response_bytes(200, json.dumps(record).encode()))

    with ScriptedServer(script) as server:
        client = make_client(server.url)

        def use(_: int) -> str:
            client.get("task-0")
            return client.create(image()).id

        with ThreadPoolExecutor(32) as threads:
            ids = list(threads.map(use, range(320)))
        assert server.posts == 320
    assert sorted(ids) == sorted(f"task-{number}" for number in range(1, 321))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork_after_use(driver: str) -> None:
    """A forked process can use the client, on a connection of its own."""
    with ScriptedServer(serve(200, RESULT)) as server:
        said = forking(driver, server.url)
        assert len(server.peers) == 2
        assert [peer.received.count(b"GET ") for peer in server.peers] == [2, 1]
    assert said.splitlines() == ["before processing", "child processing", "parent processing"]


def test_use_after_closing(make_client: MakeClient) -> None:
    """A client can be closed twice, and opens no connection after that."""
    with ScriptedServer(serve(200, RESULT)) as server:
        client = make_client(server.url)
        client.get("task-1")
        client.close()
        with pytest.raises(RuntimeError, match="closed, and nothing was sent"):
            client.get("task-1")
        assert len(server.peers) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc")
def test_no_descriptor_leaks(make_client: MakeClient, tmp_path: Path) -> None:
    """However often things go wrong, no file and no connection stays open."""
    half = [read_request, send(response_bytes(200, RESULT)[:-1])]
    for script in (half, serve(500), serve(200, b"<html>", content_type="video/mp4")):
        with ScriptedServer(script) as server:
            client = make_client(server.url)
            before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a count
            for _ in range(10):
                with pytest.raises(CreateAmbiguous):
                    client.create(image())
                with pytest.raises(DownloadFailed):
                    client.download(f"{server.url}/a.mp4", tmp_path, timeout=0.5)
            client.close()
            for peer in server.peers:
                peer.close()
            assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208  a count


def head_drip(peer: Peer) -> None:
    """Send a head that takes forever, a byte at a time."""
    peer.read_request()
    peer.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    peer.drip(b"x" * 10_000, every=0.02)


def body_drip(peer: Peer) -> None:
    """Send a body that takes forever, a byte at a time."""
    peer.read_request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 10000\r\n\r\n")
    peer.drip(b"x" * 10_000, every=0.02)


def flood(peer: Peer) -> None:
    """Send nothing but word that a response is to come."""
    peer.read_request()
    peer.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, every=0.02, size=25)


@pytest.mark.parametrize("script", [head_drip, body_drip, flood, [read_request, hang]])
def test_deadlines(make_client: MakeClient, tmp_path: Path, script: Step | list[Step]) -> None:
    """Every call ends at its timeout, however slowly the response arrives."""
    with ScriptedServer(script) as server:
        client = make_client(server.url, timeout=0.3)
        calls: list[tuple[Callable[[], Any], type[Exception], float]] = [
            (lambda: client.create(image()), CreateAmbiguous, 0.3),
            (lambda: client.call("POST", "/v1/any"), CreateAmbiguous, 0.3),
            (lambda: client.get("task-1"), ServiceUnreachable, 0.9),
            (lambda: client.wait("task-1", timeout=0.2), WaitTimeout, 0.2),
            (
                lambda: client.download(f"{server.url}/a.mp4", tmp_path, timeout=0.3),
                DownloadFailed,
                0.3,
            ),
        ]
        for call, kind, limit in calls:
            began = time.monotonic()
            with pytest.raises(kind):
                call()
            assert time.monotonic() - began < limit + SLACK
        assert server.posts == 2


def bomb() -> bytes:
    """Return a response of 100 kB that is 100 MiB of JSON."""
    packed = gzip.compress(b'{"id": "task-1", "x": "' + b"0" * (100 * 1024**2) + b'"}', 9)
    return response_bytes(200, packed, content_encoding="gzip")


def huge() -> bytes:
    """Return a response of 9 MiB."""
    return response_bytes(200, b'{"id": "task-1", "x": "' + b"0" * (9 * 1024**2) + b'"}')


@pytest.mark.parametrize("make", [huge, bomb])
def test_huge_replies(make_client: MakeClient, make: Callable[[], bytes]) -> None:
    """A response of more than 8 MiB, compressed or not, is rejected within little memory."""
    reply = make()

    def script(peer: Peer) -> None:
        while True:
            peer.read_request()
            peer.send(reply)

    with ScriptedServer(script) as server:
        client = make_client(server.url)
        client_calls = (lambda: client.create(image()), lambda: client.get("task-1"))
        for call, kind in zip(client_calls, (CreateAmbiguous, ServiceUnreachable), strict=True):
            tracemalloc.start()
            try:
                with pytest.raises(kind) as caught:
                    call()
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 32 * 1024**2
            if isinstance(caught.value, CreateAmbiguous):
                assert caught.value.failure is not None
                assert caught.value.failure.reason is Reason.TOO_LARGE
                assert caught.value.candidate_id == "task-1"
                assert len(caught.value.raw) <= 64 * 1024


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://a.test/v/"]
)
def test_addresses(make_client: MakeClient, address: str) -> None:
    """Plain http is accepted for loopback, and https for every host, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_client(address)


@pytest.mark.parametrize(
    "address",
    ["http://service.test", "http://192.168.1.1", "http://127.0.0.1.evil.test", "http://0.0.0.0"],
)
def test_plain_http(make_client: MakeClient, address: str) -> None:
    """Plain http to another host is rejected unless it is allowed, and then warned about."""
    with pytest.raises(InvalidAddress, match="clear text"):
        make_client(address)
    with pytest.warns(PlainHttpWarning, match="clear text") as caught:
        make_client(address, allow_plain_http=True)
    assert len(caught) == 1


def test_plain_http_is_warned_of_where_it_is_asked_for() -> None:
    """The warning points at the line that makes the client."""
    with pytest.warns(PlainHttpWarning) as caught:
        muybridge.Client(KEY, "http://service.test", allow_plain_http=True).close()
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "address",
    ["service.test", "//service.test", "ftp://service.test", "https://", "https://a b", "https://[",
     "https://user:secret@service.test", "https://service.test?x=secret", "https://a.test:x"],
)  # fmt: skip
def test_addresses_that_are_none(make_client: MakeClient, address: str) -> None:
    """An invalid address is rejected, without showing what is secret in it."""
    with pytest.raises(InvalidAddress) as caught:
        make_client(address)
    assert "secret" not in str(caught.value)


def test_missing_settings(make_client: MakeClient) -> None:
    """Without key or base URL the message names the variable that may hold it."""
    with pytest.raises(InvalidAddress, match="MUYBRIDGE_BASE_URL"):
        make_client("")
    with pytest.raises(LocalError, match="MUYBRIDGE_API_KEY"):
        make_client("https://service.test", api_key=None)


def test_settings_of_the_environment(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key and base URL come from the environment where they are not given."""
    with ScriptedServer(serve(200, RESULT)) as server:
        monkeypatch.setenv("MUYBRIDGE_API_KEY", "canary-of-the-environment")
        monkeypatch.setenv("MUYBRIDGE_BASE_URL", f"{server.url}/below/")
        make_client("", api_key=None).get("task-1")
        received = server.received
    assert b"GET /below/v1/result/task-1 HTTP/1.1\r\n" in received
    assert b"Authorization: Bearer canary-of-the-environment\r\n" in received


@pytest.mark.parametrize(
    ("family", "interval", "warned"),
    [("vidv", 29, True), ("vidv", 30, False), ("vidsb", 9, True), ("vidsa", 10, False),
     ("imga", 0.1, False), ("vidd", 1, False)],
)  # fmt: skip
def test_polling_too_often(
    make_client: MakeClient,
    world: World,
    family: str,
    interval: float,
    warned: bool,  # noqa: FBT001  a case
) -> None:
    """An interval below the stated minimum is warned of, and used."""
    client = make_client(world, poll_interval=interval)
    task = client.create(small()[family])
    if warned:
        with pytest.warns(MuybridgeWarning, match=f"family {family}"):
            client.wait(task)
    else:
        client.wait(task)
    assert world.queries[0].at == interval


def test_a_warning_to_code_of_no_module(make_client: MakeClient, world: World) -> None:
    """A warning reaches the caller even if that is code without a module, such as `exec` runs."""
    client = make_client(world, poll_interval=29)
    names: dict[str, object] = {"client": client, "task": client.create(small()["vidv"])}
    with pytest.warns(MuybridgeWarning, match="family vidv"):
        exec("result = client.wait(task)", names)  # noqa: S102  it is this test's own
    assert world.queries[0].at == 29


def test_polling_a_local_service_often(make_client: MakeClient) -> None:
    """On this machine any interval will do, without a warning."""
    done = {"id": "task-1", "status": "completed", "video_url": "http://127.0.0.1/a.mp4"}
    with ScriptedServer(serve(200, json.dumps(done).encode())) as server:
        client = make_client(server.url, poll_interval=0.01)
        task = client.create(small()["vidv"])
        assert client.wait(task).status is Status.COMPLETED


BAD_IDS = ["", "..", "a\r\nb", "a\x00", "\x1b[2J", "\ud800", "x" * 5000, "."]


@pytest.mark.parametrize("identifier", BAD_IDS, ids=lambda value: repr(value[:9]))
def test_identifiers(make_client: MakeClient, world: World, identifier: str) -> None:
    """Invalid ids are rejected, and nothing is sent."""
    client = make_client(world)
    calls: list[Callable[[AnyClient], Any]] = [
        lambda client: client.get(identifier),
        lambda client: client.wait(identifier),
        lambda client: list(client.watch(identifier)),
        lambda client: client.delete_asset(identifier),
        lambda client: client.download(identifier, "never"),
    ]
    for call in calls:
        with pytest.raises(LocalError) as caught:
            call(client)
        assert caught.value.argument in ("task_id", "asset_id")
    assert not world.seen


@pytest.mark.parametrize(
    "token", ["{", "{}", '{"muybridge_task": 2}', '{"muybridge_task":1,"id":"."}']
)
def test_tokens(make_client: MakeClient, world: World, token: str) -> None:
    """Invalid tokens are rejected, and nothing is sent."""
    for ask in (make_client(world).get, make_client(world).wait):
        with pytest.raises(LocalError) as caught:
            ask(token)
        assert caught.value.argument == "token"
    assert not world.seen


def test_nobody_there(make_client: MakeClient, tmp_path: Path) -> None:
    """Every call reports an unreachable service as such, in bounded time."""
    url = f"http://127.0.0.1:{closed_port()}"
    client = make_client(url)
    with pytest.raises(ServiceUnreachable):
        client.get("task-1")
    with pytest.raises(WaitTimeout):
        client.wait("task-1")
    for call in (lambda: client.delete_asset("a"), lambda: client.call("GET", "/v1")):
        with pytest.raises(muybridge.NotSent):
            call()
    with pytest.raises(DownloadFailed):
        client.download(f"{url}/a.mp4", tmp_path)
