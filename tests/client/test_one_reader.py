"""A stream, or a watch, is read by one task or thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from muybridge.testing.conformance.event_loops import CancelledAt
from muybridge.testing.fake_transport import FakeResponse
from muybridge_protocol.http import HttpRequest

from .answers import ASKED, MODEL, PROMPT, STREAMS
from .drivers import requests_client
from .in_process import InProcessTransport, World
from .requests_made import image
from .virtual_loops import VirtualLoop, in_virtual_loop

READS = pytest.mark.parametrize("read", [*STREAMS, "watch"])


def asked(client: Any, read: str) -> Any:
    """Return a stream or a watch of *client*."""
    if read == "watch":
        return client.watch("task-1")
    native = read == "stream_generate_content"
    return getattr(client, read)(*((MODEL, PROMPT) if native else ({**ASKED, "max_tokens": 5},)))


@READS
@in_virtual_loop
async def test_two_tasks(loop: VirtualLoop, read: str) -> None:
    """Whenever a second task reads it is refused, and the first one reads on to the end."""
    items: list[Any] = []
    async with loop.client(loop.world(), latency=1.0) as client:
        await client.create(image())
        async with asked(client, read) as reading:

            async def read_all() -> None:
                items.extend([item async for item in reading])

            def read_beside() -> None:
                with pytest.raises(RuntimeError, match="another task or thread is already reading"):
                    reading.__anext__().send(None)

            together = CancelledAt(1, read_all(), read_beside, again=True)
            await together
    assert together.requests >= 3
    assert len(items) >= 2


class Watched(InProcessTransport):
    """A transport that calls *meanwhile* while a response is being read."""

    meanwhile: Callable[[], None]

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> FakeResponse:
        reply = super().stream(request, timeout=timeout, authorization=authorization)
        pieces = reply.pieces

        def watched() -> Iterator[bytes]:
            for piece in pieces():
                self.meanwhile()
                yield piece

        reply.pieces = watched  # type: ignore[method-assign]  # of this one
        return reply


@READS
def test_two_threads(world: World, read: str) -> None:
    """A second thread that reads is refused, and the first one reads on to the end."""
    refused: list[str] = []
    transport = Watched(world)
    transport.meanwhile = lambda: None
    with ExitStack() as closing:
        client = requests_client(closing)(world, transport=transport)
        client.create(image())
        reading = asked(client, read)

        def read_beside() -> None:
            try:
                next(reading)
            except (RuntimeError, ValueError) as error:  # Python's own of a generator, for `watch`
                refused.append(str(error))

        def meanwhile() -> None:
            thread = threading.Thread(target=read_beside)
            thread.start()
            thread.join(10)

        if read != "watch":
            closing.enter_context(reading)
        transport.meanwhile = meanwhile
        items = list(reading)
    assert items
    assert refused
    assert all("already" in one for one in refused)
