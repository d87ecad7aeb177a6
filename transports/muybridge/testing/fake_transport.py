"""Transports without a network: they answer from a script and record the requests.

transport = FakeTransport(json_response({"id": "task-1", "status": "queued"}), lost_response())
client = Client("key", "https://service.test", transport=transport, clock=VirtualClock())
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import ClassVar, NoReturn, Self

import attrs

from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)

_PIECE = 64 * 1024


@attrs.frozen
class BrokenOff:
    """A response whose body is interrupted.

    Args:
        response: The part that arrives.
        failure: How it ends.
    """

    response: HttpResponse
    failure: TransportFailure


Answer = HttpResponse | TransportFailure | BrokenOff
"""The outcome of a request."""

Script = Answer | Callable[[HttpRequest], Answer]
"""An answer, or a function that makes one from the request, and may raise anything."""


@attrs.frozen
class Sent:
    """A request that a fake transport was asked to send.

    Args:
        request: The request.
        timeout: Its timeout in seconds.
        authorization: The value of its `Authorization` header, or None.
    """

    request: HttpRequest
    timeout: float
    authorization: str | None = attrs.field(repr=False)


def json_response(record: object, status: int = 200, **headers: str) -> HttpResponse:
    """Return a response with *record* as its body.

    Args:
        record: Anything that JSON can hold.
        status: The HTTP status.
        headers: Further header fields; underscores in their names become hyphens.
    """
    fields = {"content_type": "application/json", **headers}
    named = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return HttpResponse(status, named, json.dumps(record).encode())


def not_sent(reason: Reason = Reason.REFUSED) -> TransportFailure:
    """Return a failure before the first byte: nothing was charged, and a retry is safe."""
    phases = {Reason.NAME_RESOLUTION: Phase.RESOLVE, Reason.CERTIFICATE: Phase.TLS}
    phase = phases.get(reason, Phase.CONNECT)
    return TransportFailure(phase=phase, sent=False, reason=reason, detail="scripted")


def lost_response(reason: Reason = Reason.RESET, *, bytes_sent: int = 200) -> TransportFailure:
    """Return a failure after the request went out: nobody knows whether it was accepted."""
    return TransportFailure(
        phase=Phase.HEAD, sent=True, reason=reason, bytes_sent=bytes_sent, detail="scripted"
    )


def broken_off(response: HttpResponse, after: int, reason: Reason = Reason.TRUNCATED) -> BrokenOff:
    """Return *response*, interrupted after so many bytes of its body."""
    part = response.body[:after]
    failure = TransportFailure(
        phase=Phase.BODY,
        sent=True,
        reason=reason,
        partial=part[:PARTIAL_LIMIT],
        status=response.status,
        detail="scripted",
    )
    return BrokenOff(attrs.evolve(response, body=part), failure)


_CHUNKED = ("Transfer-Encoding", "chunked")


class _Scripted:
    """What both fake transports have in common: a script and a record."""

    offline: ClassVar[bool] = True
    """No request leaves this machine, so that tests may send paid ones."""

    def __init__(self, *answers: Script, otherwise: Script | None = None) -> None:
        self._answers = deque(answers)
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self._sent: list[Sent] = []

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} may hold a key and cannot be pickled")

    @property
    def sent(self) -> list[Sent]:
        """What it was asked to send, in order."""
        with self._lock:
            return list(self._sent)

    @property
    def requests(self) -> list[HttpRequest]:
        """The requests that it was asked to send, in order."""
        return [sent.request for sent in self.sent]

    @property
    def posts(self) -> list[HttpRequest]:
        """The POST requests, which are those that cost money, in order."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def unused(self) -> int:
        """How many answers of the script are unused."""
        return len(self._answers)

    def script(self, *answers: Script) -> None:
        """Add *answers* to the end of the script."""
        with self._lock:
            self._answers.extend(answers)

    def _answer(self, sent: Sent) -> Answer:
        with self._lock:
            self._sent.append(sent)
            script = self._answers.popleft() if self._answers else self._otherwise
        if script is None:
            raise AssertionError(
                f"the script has no answer for {sent.request}, which is request number "
                f"{len(self.sent)}; give one more, or `otherwise=`"
            )
        return script(sent.request) if callable(script) else script


class FakeTransport(_Scripted):
    """A `Transport` that answers from a script. Safe to use from many threads.

    Args:
        answers: The outcomes of the requests, in order.
        otherwise: The outcome of every further request, or None to raise AssertionError.
    """

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> FakeResponse:
        """Answer *request* on entering the context.

        Raises:
            TransportError: On entering, if the script says so.
            AssertionError: On entering, if the script has no more answers.
        """
        return FakeResponse(self._answer, Sent(request, timeout, authorization))

    def close(self) -> None:
        """Do nothing: there is no connection."""


class AsyncFakeTransport(_Scripted):
    """An `AsyncTransport` for trio that answers from a script, with a checkpoint before each.

    Args:
        answers: The outcomes of the requests, in order.
        otherwise: The outcome of every further request, or None to raise AssertionError.
    """

    @asynccontextmanager
    async def stream(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  # nothing here takes time
        authorization: str | None = None,
    ) -> AsyncGenerator[AsyncFakeResponse]:
        """Answer *request* on entering the context.

        Raises:
            TransportError: On entering, if the script says so.
            AssertionError: On entering, if the script has no more answers.
        """
        # Imported here, so that the blocking half needs no trio.
        import trio

        await trio.lowlevel.checkpoint()
        with FakeResponse(self._answer, Sent(request, timeout, authorization)) as response:
            yield AsyncFakeResponse(response)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class FakeResponse:
    """One exchange of a `FakeTransport`."""

    def __init__(self, answer: Callable[[Sent], Answer], sent: Sent) -> None:
        self._answer = answer
        self._sent = sent
        self._response = HttpResponse(0)
        self._failure: TransportFailure | None = None

    def __enter__(self) -> Self:
        if self._sent.timeout <= 0:
            raise TransportError(not_sent(Reason.TIMED_OUT))
        answer = self._answer(self._sent)
        if isinstance(answer, TransportFailure):
            raise TransportError(answer)
        if isinstance(answer, BrokenOff):
            self._response, self._failure = answer.response, answer.failure
        else:
            self._response = answer
        limit, body = self._sent.request.body_limit, self._response.body
        if limit is not None and len(body) > limit:
            cut = broken_off(self._response, limit, Reason.TOO_LARGE)
            self._response, self._failure = cut.response, cut.failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    @property
    def head(self) -> HttpHead:
        """The status line and headers; without a length, the body is in chunks."""
        head = HttpHead(self._response.status, self._response.headers)
        return head if head.announces_end else attrs.evolve(head, headers=(*head.headers, _CHUNKED))

    def pieces(self) -> Iterator[bytes]:
        """Yield the body, at most 64 KiB at a time.

        Raises:
            TransportError: The script interrupts it, or it exceeds the request's limit.
        """
        body = self._response.body
        size = self._piece_of(body)
        yield from (body[start : start + size] for start in range(0, len(body), size))
        if self._failure is not None:
            raise TransportError(self._failure)

    def _piece_of(self, body: bytes) -> int:  # noqa: ARG002  a subclass has small ones
        """Return the most bytes of a piece of *body*."""
        return _PIECE


class AsyncFakeResponse:
    """One exchange of an `AsyncFakeTransport`."""

    def __init__(self, response: FakeResponse) -> None:
        self._response = response
        self._pieces: Iterator[bytes] = iter(())

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._response.head

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the body, at most 64 KiB at a time.

        Raises:
            TransportError: While iterating: the script interrupts it, or it exceeds the request's
                limit.
        """
        self._pieces = self._response.pieces()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece
