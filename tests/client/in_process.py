"""The whole service inside the test's process, with a clock of its own.

Hours of polling take milliseconds, and every query is recorded with its time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import attrs
import trio
from trio.lowlevel import in_trio_task

from muybridge.testing import FakeTransport
from muybridge.testing.fake_transport import BrokenOff, FakeResponse, Sent
from muybridge.wire.transport import StreamedResponse, Transport, TransportError
from muybridge_protocol.emulator import Access, Emulator, MediaState, ServiceRequest, Timing
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse, TransportFailure

KEY = "sk-canary-5e1fa0b7c2d94"

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 100
MP4 = b"\x00\x00\x00\x18ftypmp42" + b"film" * 200


class VirtualClock:
    """A clock that goes forward only when somebody waits, or by *tick* whenever it is read."""

    def __init__(self, *, wall: float = 1_800_000_000.0, tick: float = 0.0) -> None:
        self._epoch = wall
        self._tick = tick
        self.elapsed = 0.0

    def monotonic(self) -> float:
        self.elapsed += self._tick
        return self.elapsed

    def wall(self) -> float:
        return self._epoch + self.elapsed

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.elapsed += seconds


@attrs.frozen
class Seen:
    """A request that the service has seen, and when."""

    at: float
    method: str
    path: str
    authorization: str | None


Answer = HttpResponse | TransportFailure | None
Reply = HttpResponse | BrokenOff


class World:
    """The service and its clock; drivers reach it by `answer`.

    Args:
        timing: How long tasks take.
        assets: The ids of the assets in the library.
        clock: The one clock of service and client.
        key: The API key that it accepts.
        latency: Seconds that each exchange takes.
        ids: What the ids of tasks are made of, with `{}` for a number.
    """

    url = "https://service.test"

    def __init__(
        self,
        *,
        timing: Timing | None = None,
        assets: Iterable[str] = ("asset-1",),
        clock: VirtualClock | None = None,
        key: str = KEY,
        latency: float = 0.0,
        ids: str = "task-{}",
    ) -> None:
        self._ids = ids
        self.clock = clock if clock is not None else VirtualClock()
        self.key = key
        self.latency = latency
        self.seen: list[Seen] = []
        self._numbers = itertools.count(1)
        self.instead: deque[Answer] = deque()
        """What the next requests are answered instead; None stands for the emulator's answer."""
        self.always: Answer = None
        """What every request is answered instead, once `instead` is used up."""
        self.emulator = Emulator(
            keys={key: Access()}, public_url=self.url, timing=timing, assets=assets
        )

    @property
    def posts(self) -> list[Seen]:
        """The requests that cost money."""
        return [seen for seen in self.seen if seen.method == "POST"]

    @property
    def queries(self) -> list[Seen]:
        """The result queries."""
        return [seen for seen in self.seen if seen.path.startswith("/v1/result/")]

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        """Return what *request* comes to on its way here and back."""
        return self.answer(request, authorization)

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        """Answer *request*.

        Raises:
            TransportError: As it was told to.
        """
        # The header does not show itself: encoding it is the one way to its content.
        shown = None if authorization is None else authorization.encode().decode()
        path = request.url.removeprefix(self.url)
        self.clock.elapsed += self.latency
        number = next(self._numbers)
        self.seen.append(Seen(self.clock.elapsed, request.method, path, shown))
        told = self.instead.popleft() if self.instead else self.always
        if isinstance(told, TransportFailure):
            raise TransportError(told)
        if told is not None:
            return told
        if path.startswith("/media/"):
            return self._media(path)
        headers = request.headers
        if shown is not None:
            headers = (*headers, ("Authorization", shown))
        return self.emulator.handle(
            ServiceRequest(request.method, path, headers, request.body or b""),
            now=self.clock.wall(),
            new_id=self._ids.replace("{}", str(number)),
        )

    def _media(self, path: str) -> HttpResponse:
        name, _, suffix = unquote(path.rpartition("/")[2]).rpartition(".")
        match self.emulator.media(name, self.clock.wall()):
            case MediaState.AVAILABLE:
                kind, body = ("image/png", PNG) if suffix == "png" else ("video/mp4", MP4)
                length = ("Content-Length", str(len(body)))
                return HttpResponse(200, (("Content-Type", kind), length), body)
            case MediaState.EXPIRED:
                return HttpResponse(410)
            case _:
                return HttpResponse(404)


class Watched(World):
    """A service at which something happens when a request that costs money arrives."""

    watch: Callable[[], object] = staticmethod(lambda: None)
    """What happens, before it is answered."""

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        if request.method == "POST":
            self.watch()
        return super().exchange(request, authorization)


class Recording(World):
    """The emulator in process, which also remembers what was sent to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.bodies: list[bytes] = []

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        self.bodies.append(request.body or b"")
        return super().answer(request, authorization)


class _Reply(FakeResponse):
    def _piece_of(self, body: bytes) -> int:
        return max(100, len(body) // 100)


class InProcessTransport(FakeTransport):
    """A `FakeTransport` that is answered by a `World` instead of a script."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> FakeResponse:
        if timeout < 0:
            raise ValueError("an exchange began after its deadline")
        return _Reply(self._answer, Sent(request, timeout, authorization))

    def _answer(self, sent: Sent) -> Reply:
        return self._world.exchange(sent.request, sent.authorization)


async def sleep(seconds: float) -> None:
    """Wait, under trio or asyncio."""
    if in_trio_task():
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


class AsyncFace:
    """The asynchronous face of a blocking transport, with checkpoints as a real one has them.

    Args:
        transport: What answers.
        connecting: Seconds before the request is sent.
        replying: Seconds from then to the response's head.
    """

    def __init__(
        self, transport: Transport, *, connecting: float = 0.0, replying: float = 0.0
    ) -> None:
        self.offline: bool = getattr(transport, "offline", False)
        self._transport = transport
        self._connecting = connecting
        self._replying = replying

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> _AsyncReply:
        reply = self._transport.stream(request, timeout=timeout, authorization=authorization)
        return _AsyncReply(reply, self._connecting, self._replying, shielded=request.shielded)

    async def close(self) -> None:
        self._transport.close()


class _AsyncReply:
    def __init__(
        self,
        context: AbstractContextManager[StreamedResponse],
        connecting: float,
        replying: float,
        *,
        shielded: bool,
    ) -> None:
        self._context = context
        self._connecting = connecting
        self._replying = replying
        self._shielded = shielded
        self.sent = False

    async def _pass(self, seconds: float) -> None:
        with trio.CancelScope(shield=self._shielded) if in_trio_task() else nullcontext():
            await sleep(seconds)

    async def __aenter__(self) -> Self:
        await sleep(self._connecting)
        self.sent = True
        self._reply = self._context.__enter__()
        await self._pass(self._replying)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._context.__exit__(kind, error, traceback)

    @property
    def head(self) -> HttpHead:
        return self._reply.head

    def pieces(self) -> AsyncIterator[bytes]:
        self._pieces = self._reply.pieces()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        await self._pass(0)
        return piece
