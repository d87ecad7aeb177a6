"""Transports that are wrong on purpose: each makes a mistake that others make, and one alone."""

from __future__ import annotations

import gzip
import logging
import socket
import ssl
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from urllib.parse import urlsplit

import attrs
import requests

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import StreamedResponse, TransportError, exchange
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason, TransportFailure


class Wrong:
    """The right transport, but for what a subclass does in between.

    Args:
        ssl_context: What to make TLS connections with.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self.right = RequestsTransport(ssl_context=ssl_context)

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedResponse]:
        return self.around(request, timeout, authorization)

    def close(self) -> None:
        self.right.close()

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        request = self.asked(request)
        try:
            with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
                yield reply
        except TransportError as error:
            failure = self.told(error.failure)
        else:
            return
        raise TransportError(failure)

    def asked(self, request: HttpRequest) -> HttpRequest:
        """Return what is sent instead of *request*."""
        return request

    def told(self, failure: TransportFailure) -> TransportFailure:
        """Return what is said instead of *failure*."""
        return failure


@attrs.frozen
class Given:
    """A response that is all there."""

    head: HttpHead
    body: bytes

    def pieces(self) -> Iterator[bytes]:
        yield self.body


class TriesAgain(Wrong):
    """Sends a request again when there was no response to it."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with ExitStack() as opened:
            for tries_left in (1, 0):
                reply = self.right.stream(request, timeout=timeout, authorization=authorization)
                try:
                    entered = opened.enter_context(reply)
                except TransportError:
                    if not tries_left:
                        raise
                else:
                    yield entered
                    return


class TakesLostForUnsent(Wrong):
    """Tells a lost connection from a timeout, and not whether the request was sent."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        return attrs.evolve(failure, sent=failure.reason is Reason.TIMED_OUT)


class HidesTheHandshake(Wrong):
    """Takes a handshake for a part of connecting."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        is_tls = failure.phase is Phase.TLS
        return attrs.evolve(failure, phase=Phase.CONNECT) if is_tls else failure


class CountsNothing(Wrong):
    """Does not know how much of a request it has sent."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        return attrs.evolve(failure, bytes_sent=0)


class GivesNoReason(Wrong):
    """Says of every failure that it is another one."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        return attrs.evolve(failure, reason=Reason.OTHER)


class TakesCutForWhole(Wrong):
    """Takes any end of a connection for the end of the response."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            whole = exchange(self.right, request, timeout=timeout, authorization=authorization)
            reply = Given(HttpHead(whole.status, whole.headers), whole.body)
        except TransportError as error:
            reply = Given(HttpHead(error.failure.status or 200), error.failure.partial)
        yield reply


class TakesEarlyHints(Wrong):
    """Takes the first head for that of the response."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization):
            yield Given(HttpHead(103), b"")


class TakesUnasked(Wrong):
    """Takes what came unasked for the response to the next request."""

    asked_before = False

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            yield Given(HttpHead(200), b"somebody else's") if self.asked_before else reply
        self.asked_before = True


class DropsWhatFollows(Wrong):
    """Takes the first response for the whole, as HTTP libraries do."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            with super().around(request, timeout, authorization) as reply:
                body = b"".join(reply.pieces())
                yield Given(reply.head, body)
        except TransportError as error:
            if error.failure.status is None or "more bytes follow" not in error.failure.detail:
                raise
            yield Given(HttpHead(error.failure.status), b"no")


class FollowsRedirects(Wrong):
    """Goes where a response points to, with the key."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            place = reply.head.header("location")
            if not place or reply.head.status not in {301, 302, 303, 307, 308}:
                yield reply
                return
        request = attrs.evolve(request, url=request.url + place)
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply


class ReadsAll(Wrong):
    """Reads the whole body on entering, however long it becomes."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        unbounded = attrs.evolve(request, body_limit=None)
        with super().around(unbounded, timeout, authorization) as reply:
            yield Given(reply.head, b"".join(reply.pieces()))


class ForgetsPartial(Wrong):
    """Throws away what had arrived when a body is cut short."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        return attrs.evolve(failure, partial=b"", status=None)


class StartsTimeAnew(Wrong):
    """Takes the timeout for that of a single read, as most libraries do."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        idle = attrs.evolve(request, idle_timeout=max(timeout, 0.001))
        with super().around(idle, timeout * 20, authorization) as reply:
            yield reply


class OutlivesItsTimeout(Wrong):
    """Takes much longer than it may."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout * 20, authorization) as reply:
            yield reply


class KeepsStale(Wrong):
    """Sends paid requests on whatever connection there is."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, paid=False)


class GoesAnywhere(Wrong):
    """Connects to private addresses, whatever the request says."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, public_host_only=False)


class LooksUpAgain(Wrong):
    """Checks the address of one look-up, and connects to that of another."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        socket.getaddrinfo(urlsplit(request.url).hostname, None)
        return attrs.evolve(request, public_host_only=False)


class AddsUserAgent(Wrong):
    """Adds a header of its own, and asks for packed responses."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        added = (("User-Agent", "wrong/1.0"), ("Accept-Encoding", "gzip, br"))
        return attrs.evolve(request, headers=(*request.headers, *added))


class LeavesPacked(Wrong):
    """Hands over a coded body as it is on the wire."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            if reply.head.header("content-encoding") is None:
                yield reply
                return
            yield Given(reply.head, gzip.compress(b"".join(reply.pieces())))


class LogsTheKey(Wrong):
    """Logs what it sends."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        logging.getLogger("wrong").debug("sending %r with %s", request, authorization)
        with super().around(request, timeout, authorization) as reply:
            yield reply


class KeepsTheKey(Wrong):
    """Holds the key as long as it lives."""

    last: str | None = None

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        self.last = authorization = authorization or self.last
        with super().around(request, timeout, authorization) as reply:
            yield reply

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.last})"


class RaisesItsOwn(Wrong):
    """Lets the library's exceptions out."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            with super().around(request, timeout, authorization) as reply:
                yield reply
        except TransportError as error:
            raise requests.ConnectionError(str(error)) from error


class ChainsExceptions(Wrong):
    """Raises within `except`, so that the library's frames, which know the key, hang on."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            with super().around(request, timeout, authorization) as reply:
                yield reply
        except TransportError as error:
            raise TransportError(error.failure) from error
