"""Whatever cancels a call under asyncio, and wherever: no paid id is lost, and none is paid twice.

The books of a server on real sockets are compared with what the caller was told.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest

import muybridge
from batch.billing import PNG, BillingServer
from client.answers import EVENTS, HEAD, LAST, MODEL, PROMPT, WHOLE
from client.answers import part as chunked
from muybridge import batch
from muybridge.batch import Stage
from muybridge.wire.async_transport import AsyncStreamedResponse, AsyncTransport
from muybridge.wire.asyncio_transport import AsyncioTransport
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import Peer, ScriptedServer, response_bytes

from .suspensions import (
    CAN_BE_EAGER,
    LIMIT,
    WAYS,
    Way,
    at_every_suspension,
    by_ctrl_c_twice,
    run_struck,
)

KEY = "sk-canary-5e1fa0b7c2d94"
FOREVER = 100 * LIMIT
_numbers = itertools.count(1)


class Books(BillingServer):
    """A server whose books can be closed."""

    def settle(self) -> None:
        """Wait until everything that was sent has been booked."""
        # Connections are accepted one after another: this one is the last.
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as last:
            last.sendall(b"GET /v1/result/none HTTP/1.1\r\n\r\n")
            assert last.recv(1)
        # A second Ctrl-C may leave connections open. Nothing more is read from them, though what
        # was sent before is.
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
        for thread in self._threads[1:]:
            thread.join(10)
            assert not thread.is_alive()


class OwnTransport:
    """A transport as users write one: it neither shields an exchange nor says what was sent."""

    def __init__(self) -> None:
        self._transport = AsyncioTransport(connect_timeout=FOREVER)

    @asynccontextmanager
    async def stream(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  the transport keeps it
        authorization: str | None = None,
    ) -> AsyncGenerator[AsyncStreamedResponse]:
        unshielded = attrs.evolve(request, interruptible=True)
        async with self._transport.stream(
            unshielded, timeout=timeout, authorization=authorization
        ) as reply:
            yield reply

    async def close(self) -> None:
        await self._transport.close()


TRANSPORTS: dict[str, Callable[[], AsyncTransport]] = {
    "ours": lambda: AsyncioTransport(connect_timeout=FOREVER),
    "their own": OwnTransport,
}


@attrs.define
class Attempt:
    """One call that is struck, and what the caller was told."""

    url: str
    way: Way
    transport: AsyncTransport
    prompt: str = attrs.field(factory=lambda: f"horse {next(_numbers)}")
    told: list[str] = attrs.field(factory=list[str])
    errors: list[BaseException] = attrs.field(factory=list[BaseException])
    finished: bool = False

    def image(self, number: int = 0) -> muybridge.ImgaRequest:
        return muybridge.ImgaRequest(model="imga", prompt=f"{self.prompt} {number}")

    def hear(self, task: Task) -> None:
        self.told.append(task.id)

    def run(
        self,
        use: Callable[[muybridge.AsyncClient], Awaitable[object]],
        strike_at: int,
        *,
        eager: bool = False,
    ) -> bool:
        """Do *use*, strike, and return whether it came to that."""

        async def call() -> None:
            client = muybridge.AsyncClient(
                KEY,
                self.url,
                self.url,
                timeout=FOREVER,
                poll_interval=0.001,
                on_submitted=self.hear,
                transport=self.transport,
            )
            try:
                await use(client)
                self.finished = True
            except BaseException as error:
                self.errors.append(error)
                raise

        struck = run_struck(self.way, call, strike_at, eager=eager)
        asyncio.run(self.transport.close())
        return struck

    def accepted(self, server: Books) -> set[str]:
        """Return the ids that the *server* has booked for this attempt."""
        server.settle()
        booked = server.accepted.items()
        mine = [ids for prompt, ids in booked if prompt.startswith(f"{self.prompt} ")]
        assert all(len(ids) == 1 for ids in mine), "a create was sent twice"
        return {ids[0] for ids in mine}

    @property
    def said(self) -> str:
        """What the exceptions and their notes say."""
        return "\n".join(_said(error) for error in self.errors)

    def check(self, server: Books) -> None:
        """Check that no id is lost: it was told, or the caller knows that there may be one."""
        lost = self.accepted(server) - {*self.told, *re.findall(r"task-[\w-]+", self.said)}
        assert not lost or re.search("may (have been|be) accepted", self.said)
        if isinstance(self.transport, AsyncioTransport) and self.way is not by_ctrl_c_twice:
            assert not lost


def _said(error: BaseException | None) -> str:
    if error is None:
        return ""
    notes = getattr(error, "__notes__", ())
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    causes = [error.__cause__, error.__context__, *inner]
    return "\n".join([str(error), *notes, *map(_said, causes)])


@pytest.fixture(scope="module")
def server() -> Iterator[Books]:
    with Books() as serving:
        yield serving


@pytest.fixture(params=["lazy", "eager"])
def eager(request: pytest.FixtureRequest, way: str) -> bool:
    """Whether tasks begin at once."""
    began: bool = request.param == "eager"
    if began and not CAN_BE_EAGER:
        pytest.skip("tasks can begin at once since Python 3.12")
    if began and way == "anyio task group":
        pytest.skip("anyio's own task groups fail if tasks begin at once")
    return began


async def create(client: muybridge.AsyncClient, attempt: Attempt) -> None:
    task = await client.create(attempt.image())
    attempt.told.append(task.id)


async def call(client: muybridge.AsyncClient, attempt: Attempt) -> None:
    body = {"model": "imga", "prompt": f"{attempt.prompt} 0"}
    reply = await client.call("POST", "/v1/imga/images", body)
    attempt.told += re.findall(r"task-[\w-]+", reply.body.decode())


async def run(client: muybridge.AsyncClient, attempt: Attempt) -> None:
    await client.run(attempt.image(), timeout=None)


async def run_all(client: muybridge.AsyncClient, attempt: Attempt) -> None:
    work = [attempt.image(number) for number in range(3)]
    async with client.run_all(work, concurrency=2, timeout=None) as outcomes:
        async for outcome in outcomes:
            assert outcome.task is not None
            attempt.told.append(outcome.task.id)


USES: dict[str, tuple[Callable[[muybridge.AsyncClient, Attempt], Awaitable[None]], int]] = {
    "create": (create, 3),
    "call": (call, 3),
    "run": (run, 5),
    "run_all": (run_all, 20),
}
"""What is called, and at least how often its tasks are suspended."""


EVERY = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.nightly)])
"""How many suspensions to go on from one strike to the next, where there are many."""


# A second Ctrl-C ends the event loop, which then leaves tasks and connections as they are. Python
# warns of them when the garbage collector finds them.
LEFT_BEHIND = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <(coroutine|socket)[. ]:pytest.PytestUnraisableExceptionWarning"
)


@LEFT_BEHIND
@EVERY
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use", USES)
def test_no_paid_id_is_lost(
    server: Books,
    use: str,
    way: str,
    transport: str,
    every: int,
    eager: bool,  # noqa: FBT001  a fixture
) -> None:
    """A create that is cancelled anywhere was not sent, or its id is told, or it is ambiguous."""
    function, least = USES[use]
    every = every if use == "run_all" else 1
    finished: list[bool] = []

    def attempt(strike_at: int) -> bool:
        attempted = Attempt(server.url, WAYS[way], TRANSPORTS[transport]())
        struck = attempted.run(lambda client: function(client, attempted), strike_at, eager=eager)
        attempted.check(server)
        finished.append(attempted.finished)
        return struck

    count = at_every_suspension(attempt, every, least=least)
    print(f"{use}, {way}, {transport}: {count} suspensions")  # noqa: T201  how many cells this test has
    assert count >= least
    assert finished[-1]
    assert not all(finished)


@LEFT_BEHIND
@EVERY
@pytest.mark.parametrize("way", WAYS)
def test_batch(server: Books, way: str, tmp_path: Path, every: int, eager: bool) -> None:  # noqa: FBT001  a fixture
    """A batch that is cancelled anywhere resumes, pays no item twice, and loses none."""

    def attempt(strike_at: int) -> bool:
        attempted = Attempt(server.url, WAYS[way], TRANSPORTS["ours"]())
        out = tmp_path / str(strike_at)
        items = [attempted.image(number) for number in range(2)]
        struck = attempted.run(
            lambda client: batch.run_async(client, items, out, timeout=None), strike_at, eager=eager
        )
        entries = batch.status(out).entries if out.exists() else ()
        known = {entry.task_id for entry in entries}
        ambiguous = [entry for entry in entries if entry.state is Stage.AMBIGUOUS]
        assert len(attempted.accepted(server) - known) <= len(ambiguous)
        return struck

    count = at_every_suspension(attempt, every, least=10)
    print(f"batch, {way}: {count} suspensions")  # noqa: T201  how many cells this test has
    assert count >= 10


@pytest.mark.parametrize("way", WAYS)
def test_download(
    server: Books,
    way: str,
    tmp_path: Path,
    eager: bool,  # noqa: FBT001  a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A download that is cancelled anywhere leaves a whole file or none."""
    picture = PNG + bytes(1024 * 1024)  # it comes in several pieces
    monkeypatch.setattr(server, "picture", picture)
    paid = Attempt(server.url, WAYS["cancel"], TRANSPORTS["ours"]())
    paid.run(lambda client: client.create(paid.image()), -1)
    (task,) = paid.accepted(server)

    def attempt(strike_at: int) -> bool:
        attempted = Attempt(server.url, WAYS[way], TRANSPORTS["ours"]())
        target = tmp_path / f"{strike_at}.png"
        struck = attempted.run(lambda client: client.download(task, target), strike_at, eager=eager)
        assert attempted.accepted(server) == set()
        if target.exists() or attempted.finished:
            assert target.read_bytes() == picture
        return struck

    count = at_every_suspension(attempt, least=5)
    print(f"download, {way}: {count} suspensions")  # noqa: T201  how many cells this test has
    assert count >= 5


async def ask(client: muybridge.AsyncClient) -> None:
    await client.generate_content(MODEL, PROMPT)


async def stream(client: muybridge.AsyncClient) -> None:
    async with client.stream_generate_content(MODEL, PROMPT) as chunks:
        async for _ in chunks:
            pass


def script(peer: Peer) -> None:
    """Answer with a stream, or whole."""
    streamed = b"stream" in peer.read_request()
    peer.send(HEAD if streamed else response_bytes(200, json.dumps(WHOLE).encode()))
    for part in map(chunked, EVENTS) if streamed else ():
        peer.send(part)
    if streamed:
        peer.send(LAST)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use", [ask, stream])
def test_text(way: str, use: Callable[[muybridge.AsyncClient], Awaitable[None]]) -> None:
    """A text request that is cancelled anywhere is not sent twice, and may have been charged."""

    def attempt(strike_at: int) -> bool:
        with ScriptedServer(script) as server:
            attempted = Attempt(server.url, WAYS[way], TRANSPORTS["ours"]())
            struck = attempted.run(use, strike_at)
        assert server.posts <= 1
        charged = server.posts and not attempted.finished
        # The client's own timeout passes together with the caller's, and may come first.
        says_so = ("may have been charged", "may have been accepted and charged")
        assert not charged or any(said in attempted.said for said in says_so)
        return struck

    count = at_every_suspension(attempt, least=2)
    print(f"{use.__name__}, {way}: {count} suspensions")  # noqa: T201  how many cells this test has
    assert count >= 2
