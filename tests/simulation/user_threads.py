"""The blocking client, in threads of a world.

Its coroutines never suspend, and neither do those of HTTP in a world, which switch below. So the
blocking client drives the same HTTP as the others, through its port for transports.

Worlds are written once, as coroutines. `AwaitableClient` has the calls of the blocking client as
coroutines, which block their thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import attrs

from muybridge import Client, Result, Task
from muybridge.client import Outcomes
from muybridge.drivers import blocking
from muybridge.drivers.fleet_run import Outcome
from muybridge.drivers.runtime import Work
from muybridge.wire.async_transport import AsyncStreamedResponse, AsyncTransport
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.http import HttpHead, HttpRequest
from muybridge_protocol.operations.poll import WAIT_TIMEOUT

from .world import Actor, Process, World


@attrs.frozen(eq=False)
class BlockingTransport:
    """A transport of coroutines that never suspend, for blocking code.

    Args:
        transport: The transport.
    """

    transport: AsyncTransport
    offline: ClassVar[bool] = True

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> BlockingStream:
        """Send *request*."""
        stream = self.transport.stream(request, timeout=timeout, authorization=authorization)
        return BlockingStream(stream)

    def close(self) -> None:
        """Close every idle connection."""
        blocking.run(self.transport.close)


@attrs.frozen(eq=False)
class BlockingStream:
    """An exchange under way."""

    stream: AbstractAsyncContextManager[AsyncStreamedResponse]

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been sent."""
        return bool(getattr(self.stream, "sent", True))

    def __enter__(self) -> BlockingResponse:
        return BlockingResponse(blocking.run(self.stream.__aenter__))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return blocking.run(self.stream.__aexit__, kind, error, traceback)


@attrs.frozen(eq=False)
class BlockingResponse:
    """A response whose body is still to be read."""

    reply: AsyncStreamedResponse

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self.reply.head

    def pieces(self) -> Iterator[bytes]:
        """Yield the body piece by piece."""
        pieces = self.reply.pieces()

        async def following() -> bytes | None:
            return await anext(pieces, None)

        while (piece := blocking.run(following)) is not None:
            yield piece


@attrs.frozen(eq=False)
class ThreadRuntime:
    """What the threads of a process wait with.

    Args:
        world: The world.
        process: The process.
    """

    world: World
    process: Process

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*."""
        self.world.stall(moment)

    def start(self, work: Work, name: str) -> Actor:
        """Start a thread that does *work*."""
        return self.world.start(self.process, lambda: blocking.run(work), name)


@attrs.frozen(eq=False)
class AwaitableClient:
    """The calls of a blocking client, as coroutines that block.

    Args:
        client: The client.
    """

    client: Client

    async def create(self, request: MediaRequest) -> Task:
        """Create a task."""
        return self.client.create(request)

    async def create_once(self, once: str, request: MediaRequest) -> Task:
        """Create a task once under a name."""
        return self.client.create_once(once, request)

    async def wait(self, task: Task | Result | str, *, timeout: float = WAIT_TIMEOUT) -> Result:  # noqa: ASYNC109  as the client has it
        """Wait for a task."""
        return self.client.wait(task, timeout=timeout)

    async def run(self, request: MediaRequest, *, timeout: float) -> Result:  # noqa: ASYNC109  as the client has it
        """Create a task, and wait for it."""
        return self.client.run(request, timeout=timeout)

    async def read(self, source: Result | Task | str) -> bytes:
        """Return the bytes of a result."""
        return self.client.read(source)

    async def download(self, source: Result | Task | str, path: Path) -> Path:
        """Save a result."""
        return self.client.download(source, path)

    def run_all(self, work: Iterable[MediaRequest], **settings: Any) -> AwaitableOutcomes:
        """Create many tasks, and wait for all of them."""
        return AwaitableOutcomes(self.client.run_all(work, **settings))


@attrs.frozen(eq=False)
class AwaitableOutcomes:
    """The outcomes of a blocking run."""

    outcomes: Outcomes

    async def __aenter__(self) -> Self:
        self.outcomes.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.outcomes.__exit__(kind, error, traceback)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Outcome:
        try:
            return next(self.outcomes)
        except StopIteration:
            raise StopAsyncIteration from None
