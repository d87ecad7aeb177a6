"""Transports that are wrong on purpose: the suite must fail on each of them.

Each is a mistake that other clients make. The store without fsync is one more, and is caught by
`batch/test_durability.py`.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Self

import attrs
import requests

from muybridge.wire.async_transport import whole
from muybridge.wire.http1.response import Response
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import StreamedResponse, Transport, TransportError
from muybridge.wire.trio_transport import TrioTransport
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)

TRIES = 3


class NaiveRetry(RequestsTransport):
    """Sends a request again when there was no response to it, as most clients do."""

    REASONS = frozenset(Reason)

    @contextmanager
    def _retried(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        for tried in range(1, TRIES + 1):
            try:
                with super().stream(request, timeout=timeout, authorization=authorization) as reply:
                    yield reply
                    return
            except TransportError as error:
                if tried == TRIES or error.failure.reason not in self.REASONS:
                    raise

    def stream(  # type: ignore[override]  # any context will do
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedResponse]:
        """Send it, and again."""
        return self._retried(request, timeout, authorization)


class RetryTimeouts(NaiveRetry):
    """Sends a request again when its response takes too long, as if it had been the network's."""

    REASONS = frozenset({Reason.TIMED_OUT})


class _Reply:
    """A response of requests."""

    def __init__(self, send: Callable[[], requests.Response]) -> None:
        self._send = send

    def __enter__(self) -> Self:
        self._response = self._send()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._response.close()

    @property
    def head(self) -> HttpHead:
        return HttpHead(self._response.status_code, tuple(self._response.headers.items()))

    def pieces(self) -> Iterator[bytes]:
        try:
            yield self._response.content
        except requests.RequestException as error:
            failure = _failure(error)
        else:
            return
        raise TransportError(failure)


def _failure(error: requests.RequestException) -> TransportFailure:
    # The mistake: a connection error is one that was never made, or one that was lost.
    sent = isinstance(error, requests.ReadTimeout)
    reason = Reason.TIMED_OUT if sent else Reason.RESET
    return TransportFailure(phase=Phase.CONNECT, sent=sent, reason=reason)


class PlainRequests:
    """Hands everything to requests, and takes its exceptions by their classes."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:  # noqa: ARG002  as the others
        self._session = requests.Session()
        self._session.trust_env = False  # one mistake is enough

    def close(self) -> None:
        """Close every idle connection."""
        self._session.close()

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> _Reply:
        """Send it."""
        return _Reply(lambda: self._send(request, timeout, authorization))

    def _send(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> requests.Response:
        headers: dict[str, str | bytes] = dict(request.headers)
        if authorization is not None:
            headers["Authorization"] = authorization.encode()
        try:
            return self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                stream=True,
            )
        except requests.RequestException as error:
            failure = _failure(error)
        raise TransportError(failure)


class KeyInSession(PlainRequests):
    """Keeps the key among the headers of a session, which go wherever it is sent."""

    def _send(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> requests.Response:
        if authorization is not None:
            self._session.headers["Authorization"] = authorization.encode()
        return super()._send(request, timeout, None)


class ReusesConnections(RequestsTransport):
    """Sends paid requests on connections that were used before."""

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Any:
        """Send it as if it cost nothing."""
        unpaid = attrs.evolve(request, paid=False)
        return super().stream(unpaid, timeout=timeout, authorization=authorization)


class TrioReusesConnections(TrioTransport):
    """The same for trio."""

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Response:
        """Send it as if it cost nothing."""
        unpaid = attrs.evolve(request, paid=False)
        return super().stream(unpaid, timeout=timeout, authorization=authorization)

    def exchange(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Awaitable[HttpResponse]:
        """Send it as if it cost nothing."""
        stream = self.stream(request, timeout=timeout, authorization=authorization)
        return whole(stream, paid=request.paid)


class Unbounded(PlainRequests):
    """Reads every body as a whole, however long it becomes."""


def _naive_retry(trust: ssl.SSLContext | None = None) -> Transport:
    return NaiveRetry(ssl_context=trust)


def _retry_timeouts(trust: ssl.SSLContext | None = None) -> Transport:
    return RetryTimeouts(ssl_context=trust)


VARIANTS: dict[str, Callable[..., Transport]] = {
    "naive retry": _naive_retry,
    "retry of time-outs": _retry_timeouts,
    "exception classes": PlainRequests,
    "key in the session": KeyInSession,
    "unbounded content": Unbounded,
}
