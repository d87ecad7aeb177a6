"""Transports that hand over something else than what came, or at another time."""

from __future__ import annotations

import gzip
import logging
import math
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

import attrs

from muybridge.wire.transport import StreamedResponse, TransportError
from muybridge_protocol.http import (
    API_BODY_LIMIT,
    HttpHead,
    HttpRequest,
    Phase,
    Reason,
    TransportFailure,
)

from .wrong_transports import Given, Wrong


class DecodesTwice(Wrong):
    """Decodes a body until it is no longer coded."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            body = b"".join(reply.pieces())
            decoded = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
            yield Given(reply.head, decoded)


class DecodesInPart(Wrong):
    """Takes what could be decoded for the whole of it."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            packed = reply.head.header("content-encoding") is not None
            yield Lenient(reply) if packed else reply


@attrs.frozen
class Lenient:
    """A response whose end is taken for its end, whatever it is."""

    reply: StreamedResponse

    @property
    def head(self) -> HttpHead:
        return self.reply.head

    def pieces(self) -> Iterator[bytes]:
        try:
            yield from self.reply.pieces()
        except TransportError:
            return


class ReadsText(Wrong):
    """Reads every body as text."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            text = b"".join(reply.pieces()).decode("utf-8-sig", "replace")
            yield Given(reply.head, "\n".join(text.splitlines()).encode())


class JoinsFields(Wrong):
    """Keeps header fields in a dict."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            headers = tuple(dict(reply.head.headers).items())
            yield Given(HttpHead(reply.head.status, headers), b"".join(reply.pieces()))


class LeavesChunks(Wrong):
    """Hands chunks over with what stands between them."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            body = b"".join(reply.pieces())
            yield Given(reply.head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


class GuessesAtFraming(Wrong):
    """Takes a head that leaves the body's end in doubt for the likelier one."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            with super().around(request, timeout, authorization) as reply:
                yield reply
                return
        except TransportError as error:
            if error.failure.reason is not Reason.MALFORMED:
                raise
        yield Given(HttpHead(200), b"{}")


class WaitsForBodies(Wrong):
    """Waits for as many bytes as Content-Length says, whatever the method and status."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            body = b"".join(reply.pieces())
            if (reply.head.header("content-length") or "0") != str(len(body)):
                raise failed(Reason.TIMED_OUT)
            yield Given(reply.head, body)


class WantsALength(Wrong):
    """Takes the end of a connection for a fault in every case."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            if reply.head.header("content-length") is None:
                raise failed(Reason.TRUNCATED)
            yield reply


class LeavesTheRest(Wrong):
    """Reads the rest of the last body as the beginning of the next one."""

    rest = b""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            body, self.rest = self.rest + b"".join(reply.pieces()), b"the rest"
            yield Given(reply.head, body)


class KeepsEverything(Wrong):
    """Keeps the whole of what had arrived for the failure."""

    def told(self, failure: TransportFailure) -> TransportFailure:
        return attrs.evolve(failure, partial=failure.partial * 2)


class LimitsEverything(Wrong):
    """Has a limit of its own."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        limit = API_BODY_LIMIT if request.body_limit is None else request.body_limit
        return attrs.evolve(request, body_limit=limit)


class LimitsTheWire(Wrong):
    """Counts the bytes on the wire against the limit, and not the decoded ones."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        free = attrs.evolve(request, body_limit=None)
        with super().around(free, timeout, authorization) as reply:
            body = b"".join(reply.pieces())
            limit = request.body_limit
            if limit is not None and len(zlib.compress(body, 1)) > limit:
                raise failed(Reason.TOO_LARGE)
            yield Given(reply.head, body)


class IgnoresSilence(Wrong):
    """Knows the deadline alone."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, idle_timeout=None)


class AddsSilence(Wrong):
    """Has a timeout of its own for each read."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, idle_timeout=request.idle_timeout or 0.05)


class KeepsTheTimeout(Wrong):
    """Sets the timeout of a connection when it is opened."""

    first: float | None = None

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        self.first = timeout if self.first is None else self.first
        with super().around(request, self.first, authorization) as reply:
            yield reply


class GivesMoreTime(Wrong):
    """Takes no time left for a little, and all the time for none."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if math.isinf(timeout):
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        with super().around(request, max(timeout, 1.0), authorization) as reply:
            yield reply


class OneAtATime(Wrong):
    """Has one connection, for which every other request waits."""

    lock = threading.Lock()

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with self.lock, super().around(request, timeout, authorization) as reply:
            yield reply


class TakesAllForTheNetwork(Wrong):
    """Takes every exception for one of the network."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        try:
            with super().around(request, timeout, authorization) as reply:
                yield reply
        except TransportError:
            raise
        except Exception:  # noqa: BLE001  # this is what is wrong
            raise failed(Reason.OTHER) from None


class LogsReplies(Wrong):
    """Logs what comes."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            logging.getLogger("wrong").debug("received %r", reply.head)
            yield reply


class ShowsTheKey(Wrong):
    """Has an exchange that shows what it was made with."""

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedResponse]:
        return Shown(self.around(request, timeout, authorization), authorization)


@attrs.frozen
class Shown(AbstractContextManager[StreamedResponse]):
    """An exchange whose repr attrs has written."""

    inner: AbstractContextManager[StreamedResponse]
    authorization: str | None

    def __enter__(self) -> StreamedResponse:
        return self.inner.__enter__()

    def __exit__(self, *error: object) -> bool | None:
        return self.inner.__exit__(*error)  # type: ignore[arg-type]


def failed(reason: Reason) -> TransportError:
    """Return the error of a request that was sent."""
    return TransportError(TransportFailure(phase=Phase.BODY, sent=True, reason=reason))
