"""An asynchronous transport behind the blocking face that the checks know."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from muybridge.testing.conformance.event_loops import EventLoopThread
from muybridge.wire.async_transport import AsyncStreamedResponse, AsyncTransport
from muybridge_protocol.http import HttpHead, HttpRequest

Inner = TypeVar("Inner")


class _Face(Generic[Inner]):
    """The blocking face of an asynchronous thing, which is what the checks are about."""

    def __init__(self, thread: EventLoopThread, inner: Inner) -> None:
        self.thread = thread
        self.inner = inner

    def __repr__(self) -> str:
        return repr(self.inner)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy or a pickle is one of the transport itself, and not of this face.
        return _as_it_is, (self.inner,)

    def __copy__(self) -> object:
        return copy.copy(self.inner)


class BlockingResponse(_Face[AbstractAsyncContextManager[AsyncStreamedResponse]]):
    """One exchange of a `BlockingTransport`."""

    def __enter__(self) -> Self:
        self._entered: AsyncStreamedResponse = self.thread.run(self.inner.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.thread.run(lambda: self.inner.__aexit__(kind, error, traceback))

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._entered.head

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body as it comes in.

        Raises:
            TransportError: As the transport itself.
        """
        iterator = self._entered.pieces()

        async def step() -> bytes:
            return await anext(iterator, b"")

        while piece := self.thread.run(step):
            yield piece


class BlockingTransport(_Face[AsyncTransport]):
    """An asynchronous transport that blocks; a `Transport`.

    Args:
        thread: Where it works.
        inner: The transport.
    """

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> BlockingResponse:
        """Send *request* on entering the context, and hand over its response.

        Raises:
            TransportError: On entering, as the transport itself.
        """
        stream = self.inner.stream(request, timeout=timeout, authorization=authorization)
        return BlockingResponse(self.thread, stream)

    def close(self) -> None:
        """Close every idle connection."""
        self.thread.run(self.inner.close)


def _as_it_is(inner: object) -> object:
    return inner
