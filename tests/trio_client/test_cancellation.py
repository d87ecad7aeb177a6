"""Whatever is cancelled, and wherever: a paid id is never lost, and nothing is paid twice."""

from __future__ import annotations

import json
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import trio_test

import moments
import muybridge
from client.alarms import LateAtAll
from client.in_process import PNG, World
from client.requests_made import image
from muybridge.drivers.on_trio import tell_abandoned
from muybridge.wire.async_transport import exchange
from muybridge.wire.trio_transport import TrioStream
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Task
from transport.certificates import client_context, server_context
from transport.scripted_server import Peer, ScriptedServer, hang, response_bytes

from .in_trio import at_every_checkpoint, client_of, mock_world, on_virtual_time

LATENCIES = pytest.mark.parametrize("latency", [0.0, 0.2])


@LATENCIES
@on_virtual_time
async def test_create(latency: float) -> None:
    """A create that was sent returns its task, cancelled or not; another one was never sent."""
    world = mock_world()
    told: list[Task] = []
    returned: list[Task] = []
    sent = [0]
    client = client_of(world, latency, on_submitted=told.append)

    async def create() -> None:
        returned.append(await client.create(image()))

    async def check(scope: trio.CancelScope) -> None:
        assert [task.id for task in returned] == [task.id for task in told]
        assert len(told) == len(world.posts)
        assert scope.cancelled_caught is (sent[-1] == len(world.posts))
        sent.append(len(world.posts))

    assert await at_every_checkpoint(create, check) >= 3
    assert sent[-1] >= 3


@pytest.mark.parametrize(
    "answer",
    [
        None,
        HttpResponse(400, (), b"{}"),
        TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT),
    ],
    ids=["accepted", "refused", "lost"],
)
def test_finished_creates_are_not_reported_at_exit(
    answer: HttpResponse | TransportFailure | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """At exit, the program reports only creates that are still under way."""
    tell_abandoned()
    said = capsys.readouterr().err

    async def create() -> None:
        world = mock_world()
        world.instead.append(answer)
        with suppress(muybridge.MuybridgeError):
            await client_of(world).create(image())
        assert len(world.posts) == 1

    on_virtual_time(create)()
    tell_abandoned()
    assert capsys.readouterr().err == said


@on_virtual_time
async def test_call(world: World) -> None:
    """A call that may cost money is shielded like a create, and one that asks is not."""
    client = client_of(world, 0.1)
    answered: list[int] = []
    body = {"model": "imga", "prompt": "a horse"}

    async def pay() -> None:
        reply = await client.call("POST", "/v1/imga/images", body)
        answered.append(json.loads(reply.body)["id"])

    async def check(_: trio.CancelScope) -> None:
        assert len(answered) == len(world.posts)

    await at_every_checkpoint(pay, check)
    with trio.move_on_after(0.15) as scope:
        await client.call("GET", "/v1/result/task-1")
    assert scope.cancelled_caught
    assert len(world.queries) == 1


@LATENCIES
@on_virtual_time
async def test_run(latency: float) -> None:
    """`run` cancelled at any checkpoint has told the id of what it paid for, which goes on."""
    world = mock_world()
    told: list[Task] = []
    client = client_of(world, latency, on_submitted=told.append)

    async def run() -> None:
        await client.run(image())

    async def check(_: trio.CancelScope) -> None:
        assert len(told) == len(world.posts)

    assert await at_every_checkpoint(run, check) >= 10
    for task in told:
        assert (await client.wait(task)).url is not None
    assert len(world.posts) == len(told)


@on_virtual_time
async def test_download(world: World, tmp_path: Path) -> None:
    """A download cancelled at any checkpoint leaves a whole file or none, and can be resumed."""
    client = client_of(world, 0.1)
    result = await client.run(image())
    runs = 0

    async def download() -> None:
        nonlocal runs
        runs += 1
        await client.download(result, tmp_path / f"{runs}.png")

    async def check(scope: trio.CancelScope) -> None:
        path = tmp_path / f"{runs}.png"
        assert path.exists() is not scope.cancelled_caught
        assert (await client.download(result, path)).read_bytes() == PNG
        assert parts(tmp_path) == []

    assert await at_every_checkpoint(download, check) >= len(PNG) / 200


def parts(folder: Path) -> list[Path]:
    return list(folder.glob("*.part*"))


class Service:
    """A service on a real socket that accepts every create, and counts them."""

    def __init__(self) -> None:
        self.accepted = 0

    def __call__(self, peer: Peer) -> None:
        while True:
            peer.read_request()
            self.accepted += 1
            record = {"id": f"task-{self.accepted}", "status": "queued", "created": 1}
            reply = response_bytes(200, json.dumps(record).encode())
            # In parts, so that there are more checkpoints to be cancelled at.
            for part in (reply[:10], reply[10:20], reply[20:-6], reply[-6:-3], reply[-3:]):
                peer.send(part)
                peer.stopping.wait(0.002)


@pytest.mark.parametrize("scheme", ["http", "https"])
@trio_test
async def test_create_on_a_socket(scheme: str) -> None:
    """Over sockets a create that was sent returns its task, cancelled or not."""
    authority = trustme.CA()
    tls: ssl.SSLContext | None = None
    if scheme == "https":
        tls = server_context(authority, "localhost")
    told: list[Task] = []
    returned: list[Task] = []
    service = Service()
    with ScriptedServer(service, tls=tls) as server:

        async def create() -> None:
            transport = muybridge.TrioTransport(ssl_context=client_context(authority))
            client = muybridge.TrioClient(
                "key",
                server.url.replace("127.0.0.1", "localhost"),
                transport=transport,
                on_submitted=told.append,
            )
            try:
                returned.append(await client.create(image()))
            finally:
                await transport.close()

        async def check(_: trio.CancelScope) -> None:
            assert len(told) == len(returned) == service.accepted

        assert await at_every_checkpoint(create, check) >= 5
        assert server.posts == len(told) >= 3
        assert [task.id for task in told] == [f"task-{n + 1}" for n in range(len(told))]


@trio_test
async def test_other_exchanges_are_not_shielded() -> None:
    """A query on its way is cancelled at once, and its connection is closed."""
    gone = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.hang()
        token.run_sync_soon(gone.set)

    transport = muybridge.TrioTransport()
    with ScriptedServer(script) as server, trio.fail_after(5):
        with trio.move_on_after(0.1) as scope:
            request = HttpRequest(method="GET", url=server.url)
            async with transport.stream(request, timeout=5):
                pass
        assert scope.cancelled_caught
        await gone.wait()


@trio_test
async def test_an_exception_as_a_wait_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal handler raises as a task begins to wait for bytes comes out as itself."""
    error = LateAtAll("time is up")

    async def wait_readable(stream: TrioStream) -> None:
        waiting = trio.lowlevel.wait_readable(stream.sock)  # noqa: ASYNC105  it is driven by hand
        waiting.send(None)  # trio believes from here on that the task waits
        waiting.close()
        raise error

    monkeypatch.setattr(*moments.at("wait for bytes", "trio").place, wait_readable)
    with ScriptedServer(hang) as server:
        request = HttpRequest(method="GET", url=server.url)
        with pytest.raises(LateAtAll) as caught:
            await exchange(muybridge.TrioTransport(), request, timeout=5)
    assert caught.value is error


@trio_test
async def test_shield_ends_with_the_time_out() -> None:
    """A create whose reply never comes ends with its timeout as ambiguous, cancelled or not."""
    scope = trio.CancelScope()
    token = trio.lowlevel.current_trio_token()

    def script(peer: Peer) -> None:
        peer.read_request()
        token.run_sync_soon(scope.cancel)
        peer.hang()

    with ScriptedServer(script) as server, trio.fail_after(5):
        async with muybridge.TrioClient("key", server.url, timeout=0.4) as client:
            with scope, pytest.raises(muybridge.CreateAmbiguous, match="timed out"):
                await client.create(image())
            assert scope.cancel_called
            assert not scope.cancelled_caught
        assert server.posts == 1


@trio_test
async def test_already_cancelled() -> None:
    """In a scope that is cancelled already, nothing is sent, not even on an open connection."""
    service = Service()
    with ScriptedServer(service) as server:
        async with muybridge.TrioClient("key", server.url) as client:
            await client.create(image())
            with trio.CancelScope() as scope:
                scope.cancel()
                await client.create(image())
            assert scope.cancelled_caught
        assert server.posts == service.accepted == 1
        assert len(server.peers) == 1
