"""What is known of an exchange while it is under way, and what its failure means.

Which exception a library raises does not tell whether a request was sent: a handshake that hangs
and a reply that never comes are both a read time-out. So whoever does a step notes it here: the
phase, every byte of the request handed to the socket, and the first fault met.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import attrs

from muybridge.wire.exchange import Fault, reason_of
from muybridge_protocol.http import Phase, Reason, TransportFailure

if TYPE_CHECKING:
    from urllib3.connectionpool import HTTPConnectionPool

    from muybridge.wire._watched_connections import WatchedConnection, WatchedReply

_LONGEST_WAIT = 86_400.0  # a socket takes no infinite time-out
_DETAIL_LIMIT = 200


@attrs.define(eq=False, repr=False)
class Exchange:
    """One request on its way, and what is known of it so far. It never holds the API key.

    While it is entered, the connections of this thread work for it.

    Args:
        pool: Where its connection comes from.
        authority: Host and port, for the `Host` header.
        target: The request target, put on the wire exactly so.
        deadline: When it must have ended, in seconds of the monotonic clock.
        connect_timeout: Seconds for each try to connect to one address.
        idle_timeout: Seconds that may pass without a byte of the reply, or None.
        paid: Whether it needs a connection that is opened for it.
        public_host_only: Whether it may connect to public addresses only.
    """

    pool: HTTPConnectionPool
    authority: str
    target: str
    deadline: float
    connect_timeout: float
    idle_timeout: float | None
    paid: bool
    public_host_only: bool
    phase: Phase = Phase.RESOLVE
    sent: bool = False
    bytes_sent: int = 0
    arrived: bytes = b""
    """The beginning of what arrived before the head was complete."""
    ended: bool = False
    """Whether the other side has closed its end."""
    connection: WatchedConnection | None = None
    is_spare: bool = False
    """Whether the pool has an idle connection already, which this request could not use."""
    reply: WatchedReply | None = None
    fault: TransportFailure | None = None

    def __enter__(self) -> Self:
        _current.exchange = self
        return self

    def __exit__(self, *_: object) -> None:
        _current.exchange = None

    def remaining(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: None are left.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for the whole exchange is up")
        return min(left, _LONGEST_WAIT)

    def note(self, error: Exception) -> None:
        """Keep why the exchange fails, unless something earlier explains it."""
        if self.fault is None:
            detail = error.detail if isinstance(error, Fault) else str(error)[:_DETAIL_LIMIT]
            self.fault = self._failure(reason_of(error), detail)

    def failure(self, error: Exception, partial: bytes = b"") -> TransportFailure:
        """Describe the exchange's end by *error*, without keeping anything of *error*.

        What a library says about a reply is left out: it quotes the reply.
        """
        if self.fault is not None:
            return attrs.evolve(self.fault, partial=partial or self.arrived, status=self._status())
        if isinstance(error, Fault):
            reason, detail = error.reason, error.detail
        elif self.phase is Phase.HEAD and self.ended:
            reason = Reason.TRUNCATED if self.arrived else Reason.CLOSED
            detail = "the connection was closed before the end of the reply's head"
        elif self.phase in (Phase.HEAD, Phase.BODY):
            reason, detail = Reason.MALFORMED, type(error).__name__
        else:
            reason, detail = Reason.OTHER, type(error).__name__
        return attrs.evolve(self._failure(reason, detail), partial=partial or self.arrived)

    def _failure(self, reason: Reason, detail: str) -> TransportFailure:
        return TransportFailure(
            phase=self.phase,
            sent=self.sent,
            reason=reason,
            bytes_sent=self.bytes_sent,
            status=self._status(),
            detail=detail,
        )

    def _status(self) -> int | None:
        return None if self.reply is None else self.reply.status

    def settle(self) -> bool:
        """Let go of the connection, and return whether it may serve another request."""
        connection, reply = self.connection, self.reply
        self.connection = self.reply = None
        if connection is None or reply is None or self.fault is not None:
            return False
        clean = not reply.leftover()
        reply.close()
        return clean and not self.is_spare

    def abort(self) -> None:
        """Let whatever waits for the network fail at once. Another thread may call it."""
        self.deadline = -math.inf
        sock: socket.socket | None = getattr(self.connection, "sock", None)
        if sock is not None:
            # Called on the class: a TLS socket would forget its TLS under the other thread's hands.
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def abandon(self) -> None:
        """Close the connection of an exchange that came to no reply's head."""
        connection, self.connection = self.connection, None
        if self.reply is not None:
            self.reply.close()
        if connection is not None:
            connection.close()


class _Current(threading.local):
    exchange: Exchange | None = None


_current = _Current()


def current_exchange() -> Exchange:
    """Return the exchange that this thread is working for."""
    exchange = _current.exchange
    if exchange is None:
        raise RuntimeError("a watched connection works only for an exchange")
    return exchange
