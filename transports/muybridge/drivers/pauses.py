"""Whether a process was paused between arming a request and sending it.

It may be stopped, or its machine may sleep. Where many machines share a record, others believe it
dead after a while, so it must not send then.
"""

from __future__ import annotations

import time

from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.http import Phase, Reason, TransportFailure


def seconds_awake_or_asleep() -> float:
    """Return seconds that pass while the machine sleeps, too, where the system counts those."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def paused(seconds: float) -> TransportFailure:
    """Return the failure of a request that was not sent, so long after it was armed."""
    return TransportFailure(
        phase=Phase.CONNECT,
        sent=False,
        reason=Reason.INTERRUPTED,
        detail=f"this process was paused for {shown_seconds(seconds)} before it could send",
    )
