"""Building blocks for a transport of your own: what each one would otherwise get wrong by itself.

An `Account` keeps book of one exchange, `Reply` is the context that a blocking transport hands
out, and `fields_of` the header fields that go out. `docs/write-a-transport.md` shows them at work.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import NoReturn, Self

import attrs

from muybridge.wire._addressing import (
    METHODS_WITH_BODY,
    Origin,
    check_fields,
    refuse_metadata,
    split_url,
)
from muybridge.wire._environment import checked_proxy
from muybridge.wire._network_errors import network_error
from muybridge.wire._reply_body import PIECE, Framing, Inflation
from muybridge.wire._watched_exchange import Fault, reason_of, refuse_early_bytes
from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.hosts import is_public_address
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, TransportFailure
from muybridge_protocol.http import Reason as Reason  # noqa: PLC0414  # it is handed on

__all__ = [
    "PIECE",
    "Account",
    "Fault",
    "Opened",
    "Origin",
    "Reason",
    "Reply",
    "addresses_of",
    "checked_proxy",
    "fields_of",
    "locate",
    "reason_of",
    "refuse_early_bytes",
]

_LONGEST_WAIT = 86_400.0  # a socket takes no infinite time-out
_DETAIL_LIMIT = 200


class Account:
    """The book kept of one exchange: how far it has come, and how long it may still take.

    Args:
        request: The request.
        timeout: Seconds that the whole exchange may take.
        wrappers: Exceptions in which a library wraps what the operating system has said.

    Attributes:
        phase: What the exchange is doing. `addresses_of`, `begin`, `awaiting` and `Reply` set it;
            only that the TLS handshake begins (`Phase.TLS`) is for the transport to set.
        sent: Whether any byte of the request may have been handed to the network.
        bytes_sent: How many have been, for people to read.
        status: The reply's status, once its head has arrived.
        arrived: The beginning of what has arrived: of the head, then of the decoded body.
        ended: Whether the other side has closed its end.
    """

    def __init__(
        self,
        request: HttpRequest,
        timeout: float,
        wrappers: tuple[type[Exception], ...] = (),
    ) -> None:
        self.request: HttpRequest = request
        self.phase: Phase = Phase.RESOLVE
        self.sent: bool = False
        self.bytes_sent: int = 0
        self.status: int | None = None
        self.arrived: bytes = b""
        self.ended: bool = False
        self._deadline = time.monotonic() + timeout
        self._wrappers = wrappers

    def remaining(self, most: float | None = None) -> float:
        """Return the seconds that the next step may take, at most *most*.

        Raises:
            TimeoutError: None are left.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for the whole exchange is up")
        return min(left, _LONGEST_WAIT if most is None else most)

    def begin(self, *, tunnel: bool = False) -> None:
        """Note that the request begins to be sent, or one to a proxy for a tunnel.

        Raises:
            Fault: It was sent already, and a library is about to send it again by itself.
        """
        if self.sent:
            raise Fault(Reason.CLOSED, "the HTTP library was about to send the request again")
        self.phase = Phase.PROXY if tunnel else Phase.SEND

    def send(
        self,
        data: bytes,
        write: Callable[[bytes, float], object],
        sock: socket.socket | None = None,
    ) -> None:
        """Write *data* piece by piece, and note what the network took of the request.

        Args:
            data: What to write.
            write: Writes bytes, all of them, within so many seconds.
            sock: The socket that it writes to. With it, `refuse_early_bytes` is called before
                the first byte of a paid request.

        Raises:
            TimeoutError: No time is left.
            Fault: Something arrived on *sock* before the paid request was sent.
        """
        sending = self.phase is Phase.SEND
        if sending and not self.sent and self.request.paid and sock is not None:
            refuse_early_bytes(sock)
        self.sent = self.sent or sending
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            write(piece, self.remaining())
            if sending:
                self.bytes_sent += len(piece)

    def awaiting(self) -> float:
        """Note that the network is about to be read, and return the seconds that this may take.

        Raises:
            TimeoutError: None are left.
        """
        if self.phase is Phase.SEND:
            self.phase = Phase.HEAD
        return self.remaining(self.request.idle_timeout)

    def receive(self, data: bytes) -> bytes:
        """Note and return *data*, which has come in from the network; nothing is its end."""
        self.ended = not data
        if self.phase is Phase.HEAD:
            self.keep(data)
        return data

    def keep(self, data: bytes) -> None:
        """Keep *data* for a failure to show, as far as 64 KiB go."""
        self.arrived += data[: max(0, PARTIAL_LIMIT - len(self.arrived))]

    def failure(self, error: Exception) -> TransportFailure:
        """Describe the exchange's end by *error*, without keeping anything of *error*.

        What an HTTP library says about a reply is left out: it quotes the reply, which may
        quote the key.
        """
        error = self._unwrapped(error)
        reason, detail = reason_of(error), type(error).__name__
        replying = self.phase in (Phase.HEAD, Phase.BODY)
        cut = reason is Reason.CLOSED or (self.ended and not isinstance(error, TimeoutError))
        if isinstance(error, Fault):
            detail = error.detail
        elif replying and cut:
            early = self.phase is Phase.HEAD and not self.arrived
            reason = Reason.CLOSED if early else Reason.TRUNCATED
            detail = f"the connection was closed before the end of the reply ({detail})"
        elif isinstance(error, OSError | UnicodeError):
            detail = str(error)[:_DETAIL_LIMIT]
        elif replying:
            reason = Reason.MALFORMED
        elif self.phase is Phase.PROXY:
            reason = Reason.PROXY_REFUSED
        return TransportFailure(
            phase=self.phase,
            sent=self.sent,
            reason=reason,
            bytes_sent=self.bytes_sent,
            partial=self.arrived,
            status=self.status,
            detail=detail,
        )

    def _unwrapped(self, error: Exception) -> Exception:
        """Return what the operating system said, which a library may have wrapped."""
        if not isinstance(error, self._wrappers):
            return error
        # Some libraries raise the wrapper `from None`, and keep the rest among its arguments.
        wrapped = (error.__cause__, error.__context__, *error.args)
        inner = next((known for known in wrapped if isinstance(known, Exception)), None)
        return error if inner is None else self._unwrapped(inner)


@attrs.frozen
class Opened:
    """A reply whose head has arrived.

    Args:
        head: Its status and headers.
        pieces: The body as it was transferred: without its chunks, with its content coding.
        close: Ends the exchange: the connection goes back to its pool if the whole body was
            read, and is closed if not.
    """

    head: HttpHead
    pieces: Iterator[bytes]
    close: Callable[[], object]


class Reply:
    """What a blocking transport's `stream` returns: sent on entering, ended on leaving.

    It turns whatever a library raises into a `TransportError`, and nothing else: what a signal
    handler raises, and a `TypeError` or another sign of a defect, comes out as itself. It notices a
    body that is shorter than its length, undoes the content coding in small pieces, keeps the body
    within `HttpRequest.body_limit`, and keeps no key.

    Args:
        send: Sends the account's request with a value for `Authorization`, or none, and returns
            the reply. It may raise what the HTTP library raises.
        account: The account of the exchange.
        authorization: The value of the `Authorization` header, or None.
    """

    def __init__(
        self,
        send: Callable[[Account, str | None], Opened],
        account: Account,
        authorization: str | None,
    ) -> None:
        self._send = send
        self._account = account
        self._authorization = authorization
        self._opened: Opened | None = None
        self._body: Iterator[bytes] = iter(())
        self._size = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._account.request!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a connection and cannot be pickled")

    def __enter__(self) -> Self:
        failure = self._enter()
        # Raised out here, so that no frame that knows the key stays in the traceback.
        if failure is not None:
            raise TransportError(failure)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been handed to the network."""
        return self._account.sent

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._head

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body, at most 64 KiB at a time, as it comes in.

        Raises:
            TransportError: The body ended early, was malformed, stalled, took longer than the
                exchange may, or grew over the request's limit.
        """
        while True:
            piece = self._next(sys.exception())
            if isinstance(piece, TransportFailure):
                raise TransportError(piece)
            if not piece:
                return
            yield piece

    def _enter(self) -> TransportFailure | None:
        account, authorization, self._authorization = self._account, self._authorization, None
        handled = sys.exception()
        try:
            account.remaining()
            opened = self._opened = self._send(account, authorization)
            account.status, account.arrived = opened.head.status, b""
            self._head = opened.head
            self._body = _decoded(account.request.method, opened)
            account.phase = Phase.BODY
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            return self._failure(error, handled)
        return None

    def _next(self, handled: BaseException | None) -> bytes | TransportFailure:
        """Return the next piece, nothing at the body's end, or what went wrong."""
        account, limit = self._account, self._account.request.body_limit
        try:
            piece = next(self._body, b"")
            self._size += len(piece)
            account.keep(piece)
            if limit is not None and self._size > limit:
                raise Fault(Reason.TOO_LARGE, f"the body is larger than {limit} bytes")  # noqa: TRY301  # one way out for all
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            return self._failure(error, handled)
        if not piece:
            self._close()
        return piece

    def _failure(self, error: BaseException, handled: BaseException | None) -> TransportFailure:
        """Return what *error* means for the exchange, or raise what is not the network's."""
        self._close()
        return self._account.failure(network_error(error, handled, any_library=True))

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


def locate(request: HttpRequest) -> tuple[Origin, str]:
    """Return where *request* goes, and its request target exactly as it stands in the URL.

    Raises:
        Fault: Its URL is no absolute http or https URL in plain ASCII.
    """
    place, target = split_url(request.url)
    return Origin.read(place), target


def addresses_of(account: Account, host: str, port: int, *, proxy: bool = False) -> list[str]:
    """Look up *host*, and return the addresses to connect to, one after another.

    Where the request is for public hosts only, all of them are public: connect to these and do
    not look the name up again, for the answer may have changed.

    Args:
        account: The account of the exchange.
        host: The name or address to look up.
        port: The port.
        proxy: Whether *host* is a proxy, which may be anywhere.

    Raises:
        Fault: An address is that of a cloud's metadata service, or is not public and the request
            asks for that.
        OSError: The name does not resolve.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in entries]
    if not proxy:
        refuse_metadata(addresses)
    public_only = account.request.public_host_only and not proxy
    if public_only and not all(map(is_public_address, addresses)):
        raise Fault(Reason.PRIVATE_ADDRESS, "the host has an address that is not public")
    account.phase = Phase.CONNECT
    return addresses


def fields_of(
    request: HttpRequest, origin: Origin, authorization: str | None
) -> list[tuple[str, bytes]]:
    """Return the header fields to send for *request*, `Authorization` last.

    Args:
        request: The request.
        origin: Where it goes.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        Fault: A name or value has characters that would break the request apart.
    """
    check_fields(request.headers, authorization)
    fields = [("Host", origin.authority)]
    if not any(name.lower() == "accept-encoding" for name, _ in request.headers):
        fields.append(("Accept-Encoding", "identity"))
    fields += request.headers
    if request.body is not None or request.method in METHODS_WITH_BODY:
        fields.append(("Content-Length", str(len(request.body or b""))))
    if authorization is not None:
        fields.append(("Authorization", authorization))
    return [(name, value.encode("latin-1")) for name, value in fields]


def _decoded(method: str, opened: Opened) -> Iterator[bytes]:
    """Return the body without its coding.

    Raises:
        Fault: The headers leave in doubt where the body ends, or how it is coded; or, on
            reading, it ended early.
    """
    framing = Framing.read(
        method,
        opened.head.status,
        transfer_encoding=_values(opened.head, "transfer-encoding"),
        content_length=_values(opened.head, "content-length"),
    )
    inflation = Inflation.read(_values(opened.head, "content-encoding"))
    whole: Iterator[bytes] = filter(None, opened.pieces)
    if framing.length is not None and not framing.bodiless:
        whole = _counted(whole, framing.length)
    return whole if inflation is None else _inflated(whole, inflation)


def _values(head: HttpHead, name: str) -> Iterable[str]:
    return [value for field, value in head.headers if field.lower() == name]


def _counted(pieces: Iterator[bytes], length: int) -> Iterator[bytes]:
    """Yield *pieces*, which have to come to *length*: some libraries take any end for the end."""
    missing = length
    for piece in pieces:
        missing -= len(piece)
        yield piece
    if missing > 0:
        raise Fault(Reason.TRUNCATED, f"the body ended {missing} bytes early")


def _inflated(pieces: Iterator[bytes], inflation: Inflation) -> Iterator[bytes]:
    for piece in pieces:
        yield from inflation.feed(piece)
    inflation.end()
