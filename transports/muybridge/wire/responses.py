"""What `stream` returns: an exchange as a context, in blocking and in asynchronous code.

An exchange has two ways to fail: while it begins (`_enter`), and while its body is read (`_next`).
Both raise the `TransportError` outside of the handler that has caught a library's exception. So no
frame of the library, or of ours that knew the key, is in its traceback or its context. Whatever did
not come from the network, such as a cancellation, an exception of a signal handler, or a defect,
propagates unchanged (`Exchange.failure` tells which it is); the connection is closed in any case.

The coroutines stand once. `AsyncFace` awaits them. `BlockingFace` runs each in one step, because
the waits of blocking code do not suspend. Our exchanges (`http1.response`) and those of other
libraries (`building`) differ only in how the head and the next piece arrive.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import CoroutineType, TracebackType
from typing import Any, NoReturn, Self, TypeVar, cast

from muybridge.wire.exchange import Exchange, Fault
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpRequest, Reason, TransportFailure

T = TypeVar("T")


class BaseResponse(ABC):
    """One exchange, from its first step to its last."""

    __slots__ = ("_exchange",)

    _request: HttpRequest
    _exchange: Exchange | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._request!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a connection and cannot be pickled")

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been handed to the network."""
        return self._exchange is not None and self._exchange.sent

    async def _enter(self) -> Self:
        """Send the request, and read the head of the response."""
        # What the caller was handling has nothing to do with this exchange, although Python will
        # chain them: the record has to tell the two apart.
        handled, failure = sys.exception(), None
        exchange = self._exchange = self._new_record()
        try:
            await self._ask(exchange)
        except BaseException as error:  # noqa: BLE001  # whatever is not a network error is raised again
            failure = self._failure(exchange, error, handled)
        if failure is not None:
            raise TransportError(failure)
        return self

    async def _next(self) -> bytes | TransportFailure:
        """Return the next piece, empty at the end of the body, or what went wrong."""
        handled, exchange = sys.exception(), self._exchange
        if exchange is None:
            raise RuntimeError("the exchange has not been entered")
        try:
            return await self._read(exchange)
        except BaseException as error:  # noqa: BLE001  # whatever is not a network error is raised again
            return self._failure(exchange, error, handled)

    def _failure(
        self, exchange: Exchange, error: BaseException, handled: BaseException | None
    ) -> TransportFailure:
        """Return what *error* means for the exchange; raise it if it is not a network error."""
        self._close()
        return exchange.failure(error, handled)

    @abstractmethod
    def _new_record(self) -> Exchange:
        """Return the record of the exchange, whose time begins."""

    @abstractmethod
    def _ask(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Send the request, and read the head of the response."""

    @abstractmethod
    async def _read(self, exchange: Exchange) -> bytes:
        """Return the next piece of the decoded body, or none at its end."""

    @abstractmethod
    def _close(self) -> None:
        """End the exchange at once, without waiting for anything."""


class AsyncFace(BaseResponse):
    """An exchange as an async context, and its body as an async iterator."""

    __slots__ = ()

    def __aenter__(self) -> CoroutineType[Any, Any, Self]:
        return self._enter()  # type: ignore[return-value]  # mypy has another name for the type

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the decoded body as it arrives.

        Raises:
            TransportError: While iterating: the body ended early, was malformed, stalled, missed
                the deadline of the exchange, or exceeded the request's limit.
        """
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._next()
        if isinstance(piece, TransportFailure):
            raise TransportError(piece)
        if not piece:
            raise StopAsyncIteration
        return piece


class BlockingFace(BaseResponse):
    """An exchange as a context, and its body as an iterator."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return run(self._enter())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def pieces(self) -> Iterator[bytes]:
        """Return an iterator over the decoded body as it arrives.

        Raises:
            TransportError: While iterating: the body ended early, was malformed, stalled, missed
                the deadline of the exchange, or exceeded the request's limit.
        """
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = run(self._next())
        if isinstance(piece, TransportFailure):
            raise TransportError(piece)
        if not piece:
            raise StopIteration
        return piece


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* returns, whose waits block the thread."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise RuntimeError("a coroutine of blocking code has suspended: it awaited something")


def left_early() -> Fault:
    """Return the fault of an exchange whose body is read although its context was left."""
    return Fault(Reason.CLOSED, "the exchange was left before its end")
