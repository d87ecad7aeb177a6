"""What an operation makes known after a transition, for hooks, progress bars and journals."""

from __future__ import annotations

import attrs

from muybridge_protocol.tasks import Result, Task


@attrs.frozen
class Submitted:
    """The service has accepted a task: its id is known, and it may be charged."""

    task: Task


@attrs.frozen
class Polled:
    """A valid reply to a result query.

    Args:
        result: What the service says.
        changed: Whether the status differs from the one before.
    """

    result: Result
    changed: bool


@attrs.frozen
class WillRetry:
    """An exchange failed and will be repeated.

    Args:
        what: What was tried, such as `create` or `poll`.
        reason: What happened, in words.
        delay: Seconds until the next try.
        attempt: How many tries have failed in a row.
    """

    what: str
    reason: str
    delay: float
    attempt: int


@attrs.frozen
class Throttled:
    """The service asked to slow down (status 429).

    Args:
        what: What was tried.
        delay: Seconds until the next try.
    """

    what: str
    delay: float


@attrs.frozen
class Ambiguous:
    """A request that costs money may or may not have been accepted.

    Args:
        reason: What happened, in words.
    """

    reason: str


@attrs.frozen
class DownloadProgress:
    """Bytes of a download that have been saved.

    Args:
        received: Bytes so far.
        total: Bytes in all, or None where the server does not say.
    """

    received: int
    total: int | None


Event = Submitted | Polled | WillRetry | Throttled | Ambiguous | DownloadProgress
