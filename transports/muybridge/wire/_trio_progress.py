"""What is known of an exchange under trio while it is under way, and what its end means."""

from __future__ import annotations

from typing import Final

import attrs
import trio

from muybridge.wire.exchange import Fault, reason_of
from muybridge_protocol.http import Phase, Reason, TransportFailure

ENDED_EARLY: Final = "the connection was closed before the end of the reply"
_DETAIL_LIMIT: Final = 200


@attrs.define(eq=False)
class Progress:
    """How far an exchange has come.

    Args:
        phase: What it is doing.
        sent: Whether any byte of the request may have been handed to the socket.
        bytes_sent: How many certainly have been.
        send_error: Why not all of the request went out, or None.
        status: The reply's status, once its head has arrived.
        arrived: The beginning of what has arrived: of the head, then of the decoded body.
        ended: Whether the other side has closed its end.
    """

    phase: Phase = Phase.RESOLVE
    sent: bool = False
    bytes_sent: int = 0
    send_error: OSError | trio.BrokenResourceError | None = None
    status: int | None = None
    arrived: bytes = attrs.field(default=b"", repr=False)
    ended: bool = False

    def failure(self, error: Exception) -> TransportFailure:
        """Describe the exchange's end by *error*, without keeping anything of *error*."""
        phase = self.phase
        if self.send_error is not None and phase is Phase.HEAD:
            error, phase = self.send_error, Phase.SEND
        error = _met_at_the_socket(error)
        reason, detail = reason_of(error), type(error).__name__
        if isinstance(error, Fault):
            detail = error.detail
        elif isinstance(error, OSError | UnicodeError):
            detail = str(error)[:_DETAIL_LIMIT]
        elif self.ended and phase in (Phase.HEAD, Phase.BODY):
            early = phase is Phase.HEAD and not self.arrived
            reason = Reason.CLOSED if early else Reason.TRUNCATED
            detail = ENDED_EARLY
        elif phase in (Phase.HEAD, Phase.BODY):
            reason = Reason.MALFORMED
        return TransportFailure(
            phase=phase,
            sent=self.sent,
            reason=reason,
            bytes_sent=self.bytes_sent,
            partial=self.arrived,
            status=self.status,
            detail=detail,
        )


def _met_at_the_socket(error: Exception) -> Exception:
    """Return what trio's streams have wrapped."""
    while isinstance(error, trio.BrokenResourceError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error
