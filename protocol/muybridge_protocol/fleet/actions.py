"""What a fleet tells its driver: what to do next, how operations ended, and what is left."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations.operation import Settled
from muybridge_protocol.records.tasks import Result, Task

K = TypeVar("K", bound=Hashable)


@attrs.frozen
class Dispatch(Generic[K]):
    """Send *request* and read its whole response by *deadline*; others may be under way meanwhile.

    Args:
        ticket: Identifies the exchange in the call of `receive` or `fail` that reports its end.
        key: Whose request it is.
        request: What to send; `request.paid` says whether it may be charged.
        deadline: By when to read its response, on the driver's clock.
    """

    ticket: int
    key: K
    request: HttpRequest
    deadline: float


@attrs.frozen
class Busy:
    """Nothing can be done until an exchange ends."""


@attrs.frozen
class Done:
    """Nothing is left to do."""


@attrs.frozen(kw_only=True)
class FleetOutcome(Generic[K]):
    """How one operation ended.

    Args:
        key: The key that it was added with.
        outcome: The result, or the error.
        request: The request that was added, or None if a task was added.
        task: The task, or None if it is not certain that one was created. Its `raw` is empty.
    """

    key: K
    outcome: Result | ServiceError
    request: MediaRequest | None = None
    task: Task | None = None

    @property
    def result(self) -> Result | None:
        """The result, or None after an error."""
        return self.outcome if isinstance(self.outcome, Result) else None

    @property
    def error(self) -> ServiceError | None:
        """The error, or None after a result."""
        return self.outcome if isinstance(self.outcome, ServiceError) else None

    def unwrap(self) -> Result:
        """Return the result.

        Raises:
            ServiceError: The operation ended with it.
        """
        return Settled(self.outcome).unwrap()


@attrs.frozen(kw_only=True)
class Outstanding(Generic[K]):
    """An operation that has not ended.

    Args:
        key: The key that it was added with.
        request: The request that was added, or None if a task was added.
        task: The task, or None if none has been created yet.
        under_way: Whether a request of it is under way.
    """

    key: K
    request: MediaRequest | None
    task: Task | None
    under_way: bool
