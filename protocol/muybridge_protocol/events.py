"""Events that an operation reports after a transition, for listeners, logs and progress bars.

An operation knows nothing about other operations, so the driver adds the call that an event belongs
to. What drivers report themselves, request by request, is in `observations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.records.tasks import Result, Task

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallInfo


@attrs.frozen(kw_only=True, eq=False, repr=False)  # generated for each event
class CallEvent:
    """What every event has.

    Args:
        call: The call that it belongs to, or None if no driver has added it.
    """

    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(kw_only=True, eq=False, repr=False)  # generated for each event
class FailureEvent(CallEvent):
    """What every event about a failure has in addition.

    Args:
        cause: The reason without any text from outside, safe for every log. The driver adds it.
    """

    cause: str = attrs.field(default="", eq=False, repr=False)


@attrs.frozen
class Submitted(CallEvent):
    """The service has accepted a task: its id is known, and it may be charged.

    Args:
        task: The task.
    """

    task: Task


@attrs.frozen
class Polled(CallEvent):
    """A poll got a valid response.

    Args:
        result: The result record.
        changed: Whether the status differs from the previous one.
        age: Seconds since the task was created, or None if that is not known.
        took: Seconds from its creation to its end, if it has just ended. None if it has not, or if
            it may have ended long before anybody looked.
    """

    result: Result
    changed: bool
    age: float | None = attrs.field(default=None, eq=False, kw_only=True)
    took: float | None = attrs.field(default=None, eq=False, kw_only=True)


@attrs.frozen
class WillRetry(FailureEvent):
    """An exchange failed and will be retried.

    Args:
        what: What failed, such as `create` or `poll`.
        reason: What happened, in words.
        delay: Seconds until the retry.
        attempt: How many attempts have failed in a row.
    """

    what: str
    reason: str
    delay: float
    attempt: int

    def sentence(self) -> str:
        """Return what happens, for people."""
        return f"retrying {self.what} in {shown_seconds(self.delay)}: {self.reason}"


@attrs.frozen
class ServiceSilent(FailureEvent):
    """Polls have got no valid response for a long time. Polling continues.

    It replaces `WillRetry` then.

    Args:
        silent: Seconds without a valid response.
        reason: The last failure, in words.
        delay: Seconds until the next poll.
    """

    silent: float
    reason: str
    delay: float

    def sentence(self) -> str:
        """Return what happens, for people."""
        silence = f"no valid response for {self.silent / 60:.0f} minutes"
        next_poll = f"Next poll in {shown_seconds(self.delay)}: {self.reason}"
        return f"{silence}; the task is not affected. {next_poll}"


@attrs.frozen
class Throttled(CallEvent):
    """The service asks to slow down (status 429).

    Args:
        what: What was throttled, such as `create` or `poll`.
        delay: Seconds until the retry.
    """

    what: str
    delay: float

    def sentence(self) -> str:
        """Return what happens, for people."""
        return f"the service asks to slow down: {self.what} resumes in {shown_seconds(self.delay)}"


@attrs.frozen
class Ambiguous(FailureEvent):
    """A paid request may or may not have been accepted.

    Args:
        reason: What happened, in words.
    """

    reason: str


@attrs.frozen
class DownloadProgress(CallEvent):
    """More bytes of a download have been saved.

    Args:
        received: Bytes so far.
        total: Bytes in all, or None if the server does not say.
    """

    received: int
    total: int | None


Event = Submitted | Polled | WillRetry | ServiceSilent | Throttled | Ambiguous | DownloadProgress
