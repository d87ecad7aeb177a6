"""The record of one exchange: how far it got, how long it may take, and how it failed.

Whether a paid request may be sent again depends on one fact: was any byte of it handed to the
network? The exception that an HTTP library raises does not say. A handshake that hangs and a
response that never comes are both read timeouts; a refused connection and a lost one are often
the same class. So every transport keeps an `Exchange`, and records each step before it takes it:

    RESOLVE -> CONNECT -> (PROXY) -> (TLS) -> begin -> SEND -> HEAD -> BODY
    ------------- not sent -----------------> first byte ---- ambiguous ----> whole response

The order of recording decides about money:

- `begin` draws the line, and not the first write. A tunnel, a handshake and the preface of HTTP/2
  are written before it, and are not part of the request.
- `sent` becomes True *before* the bytes are handed over. A signal handler may raise between the
  system call and the next line, and the record must never claim less than what happened. It is
  undone only if the operating system reports that it took nothing (`took_nothing`). TLS never
  reports that: it may have written a part.
- Whatever arrives before the first byte of a request cannot be its response (`refuse_early_bytes`).
- If sending fails, there may still be a response: a server that refuses a request early explains
  why, and then closes the connection. The error is kept, and counts only if no response arrives.
- A refusal of a paid request counts only if nothing follows it (`refuse_second_response`).

Two more rules hold at every step. All steps share one deadline, so a server that sends a byte at a
time cannot extend it. And a failure is described without keeping the exception, whose text or
frames may show the key.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
import time
from collections.abc import Callable

import attrs

from muybridge.signals import raised_by_handler
from muybridge.wire._network_errors import network_error
from muybridge.wire.transport import PARTIAL_LIMIT
from muybridge_protocol.http import MEBIBYTE, HttpRequest, Phase, Reason, TransportFailure
from muybridge_protocol.remedies import Remedy

PIECE = 64 * 1024
"""The most bytes sent or decoded at a time."""
TIME_IS_UP = "the time for the whole exchange is up"
_LONGEST_WAIT = 86_400.0  # a socket takes no infinite timeout
_DETAIL_LIMIT = 200
# Only malformed responses are searched; `re` compiles these for the first one, and caches them.
_INFORMATIONAL = rb"(?s)HTTP/1\.[01] 1[0-9]{2}[ \r].*?\r\n\r\n"
_STATUS_LINE = rb"HTTP/1\.[01] ([2-9][0-9]{2})(?=[ \r\n])[^\n]*\n"
_UNKNOWN_ISSUER = (2, 18, 19, 20, 21)  # of OpenSSL: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, ...
_LOCAL_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
_BEGUN = (Phase.SEND, Phase.HEAD, Phase.BODY)
_UNREACHABLE = (
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
)


class Fault(Exception):
    """A fault that no library has an exception for.

    Args:
        reason: Its kind.
        detail: What happened, in words.
        remedies: What the user can do.
        by_proxy: Whether *detail* is what the proxy did, without a subject.
    """

    def __init__(
        self,
        reason: Reason,
        detail: str = "",
        remedies: tuple[Remedy, ...] = (),
        *,
        by_proxy: bool = False,
    ) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.remedies = remedies
        self.by_proxy = by_proxy


@attrs.define(eq=False, repr=False)
class Exchange:
    """The record of one exchange. It never holds the API key.

    Args:
        request: The request.
        timeout: Seconds for the whole exchange.
        wrappers: Exceptions in which a library wraps those of the operating system.
        clock: Returns the time in seconds. The default is the monotonic clock; event loops may
            have their own.
        any_library: Whether exceptions of unknown libraries count as network errors.

    Attributes:
        deadline: When the exchange must end, by the clock.
        phase: What the exchange is doing. Each step is recorded before it is taken, by `begin`,
            by `awaiting`, or by the code that takes it.
        proxy: Host and port of the proxy that is connected to, or None.
        sent: Whether any byte of the request may have been handed to the network.
        bytes_sent: How many bytes were, for people to read.
        send_error: Why the request was not sent completely, or None.
        status: The status of the response, once its head has arrived.
        arrived: The first bytes that arrived: of the head, then of the decoded body.
        ended: Whether the peer has closed its end.
        raw: The response that refuses a paid request as it arrived, at most 1 MiB.
        size: How many bytes of the decoded body have been passed on.
        sock: The socket that the request was sent on, if a library told it.
        on_begin: Called when the request itself begins, so that a shield can be raised.
    """

    request: HttpRequest
    timeout: float
    wrappers: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = attrs.field(factory=lambda: time.monotonic)
    any_library: bool = True
    deadline: float = attrs.field(init=False)
    phase: Phase = attrs.field(default=Phase.RESOLVE, init=False)
    proxy: str | None = attrs.field(default=None, init=False)
    sent: bool = attrs.field(default=False, init=False)
    bytes_sent: int = attrs.field(default=0, init=False)
    send_error: Exception | None = attrs.field(default=None, init=False)
    status: int | None = attrs.field(default=None, init=False)
    arrived: bytes = attrs.field(default=b"", init=False)
    ended: bool = attrs.field(default=False, init=False)
    raw: bytearray = attrs.field(factory=bytearray, init=False)
    size: int = attrs.field(default=0, init=False)
    sock: socket.socket | None = attrs.field(default=None, init=False)
    on_begin: Callable[[], object] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.deadline = self.clock() + self.timeout

    def remaining(self, most: float | None = None) -> float:
        """Return how many seconds the next step may take, at most *most*.

        Raises:
            TimeoutError: The deadline has passed.
        """
        left = self.deadline - self.clock()
        if left <= 0:
            raise TimeoutError(TIME_IS_UP)
        return min(left, _LONGEST_WAIT if most is None else most)

    def begin(self, *, tunnel: bool = False) -> None:
        """Record that the request, or one to a proxy for a tunnel, is about to be sent.

        Raises:
            Fault: It was sent already, and a library is about to resend it on its own.
        """
        if self.sent:
            raise Fault(Reason.CLOSED, "the HTTP library was about to send the request again")
        self.phase = Phase.PROXY if tunnel else Phase.SEND
        if self.on_begin is not None and not tunnel:
            self.on_begin()

    @property
    def begun(self) -> bool:
        """Whether the request itself has begun, so that whatever is written is a part of it."""
        return self.phase in _BEGUN

    def send(
        self,
        data: bytes,
        write: Callable[[bytes, float], object],
        sock: socket.socket | None = None,
    ) -> None:
        """Write *data* in pieces, and record how much of the request the network took.

        Args:
            data: What to write.
            write: Writes all the bytes it is given, within the given number of seconds.
            sock: The socket that it writes to. If given, `refuse_early_bytes` is called before
                the first byte of a paid request.

        Raises:
            TimeoutError: No time is left.
            Fault: Something arrived on *sock* before the paid request was sent.
        """
        sending = self.phase is Phase.SEND
        if sending and not self.sent and self.request.paid and sock is not None:
            refuse_early_bytes(sock)
        self.sent, self.sock = self.sent or sending, sock
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            try:
                write(piece, self.remaining())
            except self.wrappers as error:
                # A library may ignore its own exception and read the response.
                inner = self._unwrapped(error)
                if raised_by_handler(inner):
                    raise inner from None
                raise
            if sending:
                self.bytes_sent += len(piece)

    def send_failed(self, error: Exception, carrier: object) -> None:
        """Record that sending the request failed; its response may arrive all the same.

        Args:
            error: What was raised.
            carrier: The socket or stream that the request was written to.

        Raises:
            Exception: *error*, if no response can follow: nothing was sent, the time is up, or
                a signal handler raised it.
        """
        cause = self._unwrapped(error)
        if not self.bytes_sent and took_nothing(carrier, cause):
            self.sent = False
        by_system = isinstance(cause, OSError) and cause.errno is not None
        if not self.sent or not by_system or raised_by_handler(cause):
            raise error
        self.send_error = cause.with_traceback(None)  # whose frames know the key

    def awaiting(self) -> float:
        """Record that the network is about to be read, and return how many seconds that may take.

        Raises:
            TimeoutError: The deadline has passed.
        """
        if self.phase is Phase.SEND:
            self.phase = Phase.HEAD
        return self.remaining(self.request.idle_timeout)

    def receive(self, data: bytes) -> bytes:
        """Record and return *data*, which arrived from the network; empty data means its end."""
        self.ended = not data
        if self.phase is Phase.HEAD:
            self.keep(data)
        # Only a refusal is read again (`refuse_second_response`). As long as the head arrives, it
        # may still become one.
        is_success = self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004  the class
        if self.request.paid and not is_success and self.phase in (Phase.HEAD, Phase.BODY):
            self.raw += data[: MEBIBYTE - len(self.raw)]
        return data

    def keep(self, data: bytes) -> None:
        """Keep *data* for the report of a failure, up to 64 KiB in all."""
        if len(self.arrived) < PARTIAL_LIMIT:
            self.arrived += data[: PARTIAL_LIMIT - len(self.arrived)]

    def take_head(self, status: int) -> None:
        """Record that the head of the response has arrived, and is whole."""
        self.status, self.arrived, self.phase = status, b"", Phase.BODY

    def pass_on(self, piece: bytes) -> bytes:
        """Record and return *piece*, the next one of the decoded body.

        Raises:
            Fault: The body is larger than the request allows.
        """
        limit = self.request.body_limit
        self.keep(piece)
        self.size += len(piece)
        if limit is not None and self.size > limit:
            raise Fault(Reason.TOO_LARGE, f"the body is larger than {limit} bytes")
        return piece

    def failure(
        self, error: BaseException, handled: BaseException | None = None
    ) -> TransportFailure:
        """Describe how *error* ended the exchange, without keeping anything of *error*.

        The text of an HTTP library's exception is left out. It may quote the response, which may
        repeat the key, or the URL, which may be signed.

        Args:
            error: What was raised.
            handled: The exception that the caller was handling when the exchange began, which has
                nothing to do with it.

        Raises:
            BaseException: *error*, if it is no network error: a cancellation, the exception of a
                signal handler, or a defect, such as a `TypeError`.
        """
        return self._described(network_error(error, handled, any_library=self.any_library))

    def _described(self, error: Exception) -> TransportFailure:
        phase = self.phase
        # Sending broke off, and no response explained why: that error is the cause.
        if self.send_error is not None and phase is Phase.HEAD:
            error, phase = self.send_error, Phase.SEND
        error = self._unwrapped(error)
        reason, detail = reason_of(error), type(error).__name__
        receiving = phase in (Phase.HEAD, Phase.BODY)
        closed = reason is Reason.CLOSED or (self.ended and not isinstance(error, TimeoutError))
        if isinstance(error, Fault):
            detail = error.detail
            if reason is Reason.REFUSED_HERE:
                phase = Phase.PROXY
        elif receiving and closed:
            # Libraries disagree about what to raise here, so the record decides, not the class.
            reason = Reason.TRUNCATED if self.arrived or phase is Phase.BODY else Reason.CLOSED
            place = "before the end of the body" if phase is Phase.BODY else "before the response"
            if phase is Phase.HEAD and self.arrived:
                place = "within the head of the response"
            detail = f"the connection was closed {place}"
        elif isinstance(error, OSError | UnicodeError) and not isinstance(error, self.wrappers):
            detail = str(error)[:_DETAIL_LIMIT]  # the system's words quote nothing of a response
            if getattr(error, "verify_code", None) in _UNKNOWN_ISSUER:
                from muybridge.wire._environment import ca_advice

                detail = f"{detail}; {ca_advice()}"
        elif receiving:
            # Neither the system nor our code: it is the complaint of a library's parser.
            reason, detail = Reason.MALFORMED, f"the response violates HTTP ({detail})"
        elif phase is Phase.PROXY:
            reason = Reason.PROXY_REFUSED
        if self.proxy is not None and phase in (Phase.RESOLVE, Phase.CONNECT, Phase.PROXY):
            by_proxy = isinstance(error, Fault) and error.by_proxy
            detail = f"the proxy {self.proxy}{' ' if by_proxy else ': '}{detail}"
        if reason is Reason.MALFORMED and self.status is None:
            self.status = _status_in(self.arrived)
        return TransportFailure(
            phase=phase,
            sent=self.sent,
            reason=reason,
            bytes_sent=self.bytes_sent,
            partial=self.arrived,
            status=self.status,
            detail=detail,
            remedies=error.remedies if isinstance(error, Fault) else (),
        )

    def _unwrapped(self, error: Exception) -> Exception:
        """Return the operating system's exception if a library has wrapped it, else *error*."""
        if not isinstance(error, self.wrappers):
            return error
        # Some libraries raise the wrapper `from None`, and keep the original in its arguments.
        wrapped = (error.__cause__, error.__context__, *error.args)
        inner = next((one for one in wrapped if isinstance(one, Exception)), None)
        return error if inner is None else self._unwrapped(inner)


def _status_in(arrived: bytes) -> int | None:
    """Return the status of a malformed response, if its status line is complete."""
    while informational := re.match(_INFORMATIONAL, arrived):
        arrived = arrived[informational.end() :]
    line = re.match(_STATUS_LINE, arrived)
    return None if line is None else int(line[1])


def refuse_early_bytes(sock: socket.socket) -> None:
    """Refuse to send a request on a connection on which something has already arrived.

    Whatever arrives before the first byte of a request cannot be its response. Over TLS, session
    tickets and the like are read and skipped.

    Args:
        sock: The connected socket, or the TLS socket on it.

    Raises:
        Fault: Bytes have arrived, or the peer has closed the connection.
        OSError: The connection is broken.
    """
    sock.settimeout(0)
    try:
        early = sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return
    raise early_fault(early)


def unread_bytes(sock: socket.socket | None) -> bytes:
    """Return up to 64 KiB that have arrived on *sock*, if it is known, without waiting."""
    if sock is None:
        return b""
    try:
        sock.settimeout(0)
        return sock.recv(PIECE)
    except OSError:
        return b""


def early_fault(early: bytes) -> Fault:
    """Return the fault of a connection that delivered *early*, or its end, before the request."""
    if early:
        return Fault(Reason.MALFORMED, "bytes arrived before the request was sent")
    return Fault(Reason.CLOSED, "the connection was closed before the request was sent")


def refuse_other_protocol(tls: ssl.SSLSocket | ssl.SSLObject) -> None:
    """Refuse to send a request if the handshake has agreed on another protocol, such as HTTP/2.

    This is possible with a context of the user's own. The response could not be read.

    Args:
        tls: What made the handshake.

    Raises:
        Fault: The two sides agreed on a protocol other than HTTP/1.
    """
    protocol = tls.selected_alpn_protocol()
    if protocol is not None and not protocol.startswith("http/1."):
        detail = (
            f"the ssl_context offers {protocol} (ALPN), and the server chose it: offer http/1.1"
        )
        raise Fault(Reason.TLS, detail)


def took_nothing(carrier: object, error: Exception) -> bool:
    """Whether *error* proves that a call to send handed nothing to the network.

    A lost connection does, if the operating system reports it for a socket without TLS. TLS may
    have written a part, and a signal handler may raise after everything was sent.

    Args:
        carrier: The socket, TLS engine or stream that was written to.
        error: What the call raised.
    """
    by_system = (
        isinstance(error, ConnectionResetError | BrokenPipeError) and error.errno is not None
    )
    is_tls = isinstance(carrier, ssl.SSLSocket | ssl.SSLObject)
    return by_system and not is_tls and not raised_by_handler(error)


def reason_of(error: Exception) -> Reason:
    """Return the reason that *error*, raised by a socket, stands for."""
    # Nearly all of these are an `OSError`, so the narrower class comes first.
    match error:
        case Fault():
            return error.reason
        case ssl.SSLCertVerificationError():
            return Reason.CERTIFICATE
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return Reason.CLOSED
        case TimeoutError():
            return Reason.TIMED_OUT
        case ssl.SSLError():
            return Reason.TLS
        case socket.gaierror(errno=socket.EAI_MEMORY):
            return Reason.LOCAL_LIMIT
        case socket.gaierror() | UnicodeError():
            return Reason.NAME_RESOLUTION
        case ConnectionRefusedError():
            return Reason.REFUSED
        case ConnectionError():
            return Reason.RESET
        case OSError() if error.errno in _LOCAL_LIMITS:
            return Reason.LOCAL_LIMIT
        case OSError() if error.errno in _UNREACHABLE:
            return Reason.UNREACHABLE
        case _:
            return Reason.OTHER
