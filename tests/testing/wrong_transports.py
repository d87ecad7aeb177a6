"""Transports that are wrong on purpose: each makes a mistake that others make, and one alone."""

from __future__ import annotations

import gzip
import logging
import ssl
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import attrs
import requests

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import StreamedReply, TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Reason


class Wrong:
    """The right transport, but for what a subclass does in between.

    Args:
        ssl_context: What to make TLS connections with.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self.right = RequestsTransport(ssl_context=ssl_context)

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedReply]:
        return self.around(request, timeout, authorization)

    def close(self) -> None:
        self.right.close()

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply


@attrs.frozen
class Given:
    """A reply that is all there."""

    head: HttpHead
    body: bytes

    def pieces(self) -> Iterator[bytes]:
        yield self.body


class TriesAgain(Wrong):
    """Sends a request again when there was no reply to it."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
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
    """Tells a lost connection from a time-out, and not whether the request was sent."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        try:
            with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
                yield reply
        except TransportError as error:
            timed_out = error.failure.reason is Reason.TIMED_OUT
            failure = attrs.evolve(error.failure, sent=timed_out)
        else:
            return
        raise TransportError(failure)


class FollowsRedirects(Wrong):
    """Goes where a reply points to, with the key."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
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
    ) -> Generator[StreamedReply]:
        unbounded = attrs.evolve(request, body_limit=None)
        with self.right.stream(unbounded, timeout=timeout, authorization=authorization) as reply:
            yield Given(reply.head, b"".join(reply.pieces()))


class ForgetsPartial(Wrong):
    """Throws away what had arrived when a body is cut short."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        try:
            with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
                yield reply
        except TransportError as error:
            failure = attrs.evolve(error.failure, partial=b"", status=None)
        else:
            return
        raise TransportError(failure)


class StartsTimeAnew(Wrong):
    """Takes the time-out for that of a single read, as most libraries do."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        idle = attrs.evolve(request, idle_timeout=max(timeout, 0.001))
        longer = timeout * 20
        with self.right.stream(idle, timeout=longer, authorization=authorization) as reply:
            yield reply


class KeepsStale(Wrong):
    """Sends paid requests on whatever connection there is."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        free = attrs.evolve(request, paid=False)
        with self.right.stream(free, timeout=timeout, authorization=authorization) as reply:
            yield reply


class GoesAnywhere(Wrong):
    """Connects to private addresses, whatever the request says."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        anywhere = attrs.evolve(request, public_host_only=False)
        with self.right.stream(anywhere, timeout=timeout, authorization=authorization) as reply:
            yield reply


class AddsUserAgent(Wrong):
    """Adds a header of its own, and asks for packed replies."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        added = (*request.headers, ("User-Agent", "wrong/1.0"), ("Accept-Encoding", "gzip, br"))
        request = attrs.evolve(request, headers=added)
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply


class LeavesPacked(Wrong):
    """Hands over a coded body as it is on the wire."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            if reply.head.header("content-encoding") is None:
                yield reply
                return
            yield Given(reply.head, gzip.compress(b"".join(reply.pieces())))


class LogsTheKey(Wrong):
    """Logs what it sends."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        logging.getLogger("wrong").debug("sending %r with %s", request, authorization)
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply


class KeepsTheKey(Wrong):
    """Holds the key as long as it lives."""

    last: str | None = None

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        self.last = authorization = authorization or self.last
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.last})"


class RaisesItsOwn(Wrong):
    """Lets the library's exceptions out."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        try:
            with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
                yield reply
        except TransportError as error:
            raise requests.ConnectionError(str(error)) from error


class ChainsExceptions(Wrong):
    """Raises within `except`, so that the library's frames, which know the key, hang on."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedReply]:
        try:
            with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
                yield reply
        except TransportError as error:
            raise TransportError(error.failure) from error
