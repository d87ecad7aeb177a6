"""What an operation makes known after a transition, for hooks, progress bars and journals.

An operation knows nothing of others. It is a driver that puts in which call an event belongs to;
what else drivers make known, request by request, is in `observations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from muybridge_protocol.records.tasks import Result, Task

if TYPE_CHECKING:
    from muybridge_protocol.observations import CallInfo


@attrs.frozen
class Submitted:
    """The service has accepted a task: its id is known, and it may be charged.

    Args:
        task: The task.
        call: Which call it belongs to, or None where no driver has said so.
    """

    task: Task
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)


@attrs.frozen
class Polled:
    """A valid reply to a result query.

    Args:
        result: What the service says.
        changed: Whether the status differs from the one before.
        call: Which call it belongs to, or None where no driver has said so.
    """

    result: Result
    changed: bool
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)


@attrs.frozen
class WillRetry:
    """An exchange failed and will be repeated.

    Args:
        what: What was tried, such as `create` or `poll`.
        reason: What happened, in words.
        delay: Seconds until the next try.
        attempt: How many tries have failed in a row.
        call: Which call it belongs to, or None where no driver has said so.
        cause: The reason in words of this library alone, fit for any log. A driver puts it in.
    """

    what: str
    reason: str
    delay: float
    attempt: int
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)
    cause: str = attrs.field(default="", eq=False, repr=False, kw_only=True)


@attrs.frozen
class ServiceSilent:
    """There has been no valid response to a poll for a long time. Polling goes on.

    It takes the place of `WillRetry` then.

    Args:
        silent: Seconds without a valid response.
        reason: What happened last, in words.
        delay: Seconds until the next poll.
        call: Which call it belongs to, or None where no driver has said so.
        cause: The reason in words of this library alone, fit for any log. A driver puts it in.
    """

    silent: float
    reason: str
    delay: float
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)
    cause: str = attrs.field(default="", eq=False, repr=False, kw_only=True)


@attrs.frozen
class Throttled:
    """The service asked to slow down (status 429).

    Args:
        what: What was tried.
        delay: Seconds until the next try.
        call: Which call it belongs to, or None where no driver has said so.
    """

    what: str
    delay: float
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)


@attrs.frozen
class Ambiguous:
    """A request that costs money may or may not have been accepted.

    Args:
        reason: What happened, in words.
        call: Which call it belongs to, or None where no driver has said so.
        cause: The reason in words of this library alone, fit for any log. A driver puts it in.
    """

    reason: str
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)
    cause: str = attrs.field(default="", eq=False, repr=False, kw_only=True)


@attrs.frozen
class DownloadProgress:
    """Bytes of a download that have been saved.

    Args:
        received: Bytes so far.
        total: Bytes in all, or None where the server does not say.
        call: Which call it belongs to, or None where no driver has said so.
    """

    received: int
    total: int | None
    call: CallInfo | None = attrs.field(default=None, eq=False, repr=False, kw_only=True)


Event = Submitted | Polled | WillRetry | ServiceSilent | Throttled | Ambiguous | DownloadProgress
