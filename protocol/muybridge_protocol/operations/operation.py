"""What a driver and an operation say to each other.

An operation is a frozen value. A driver asks for the next action, does it, and tells the operation
what came of it, which gives the next value:

    operation.next_action(now)        -> Send | Fetch | Wait | Settled
    operation.receive(response, now)  -> the next operation, after a whole reply
    operation.fail(failure, now)      -> the next operation, after none
    operation.events                  -> what the last transition made known

`now` is seconds on a clock that only goes forward; the operation never reads one itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event
from muybridge_protocol.http import Headers, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service
from muybridge_protocol.values import evolve, frozen

if TYPE_CHECKING:
    from muybridge_protocol.observations import CallKind

T_co = TypeVar("T_co", covariant=True)

USER_AGENT: Final = "muybridge"
API_TIMEOUT: Final = 60.0
"""Seconds that one exchange with the service may take. A create's is generous on purpose: giving
up early would leave open whether it was accepted."""


@frozen
class Send:
    """Send *request* and read its whole reply by *deadline*, on the driver's clock."""

    request: HttpRequest
    deadline: float


@frozen
class Fetch:
    """Send *request* and hand its reply over in pieces, all by *deadline*."""

    request: HttpRequest
    deadline: float


@frozen
class Wait:
    """Do nothing until *until*, on the driver's clock."""

    until: float


@frozen
class Settled(Generic[T_co]):
    """The operation has come to its end, with a value or with an error."""

    outcome: T_co | ServiceError

    def unwrap(self) -> T_co:
        """Return the value.

        Raises:
            ServiceError: The operation ended with it.
        """
        if isinstance(self.outcome, ServiceError):
            raise self.outcome
        return self.outcome


@frozen(kw_only=True)
class Operation(Generic[T_co]):
    """One call on the service.

    Args:
        service: Where the service is.
        seed: Any number; the waits between tries are drawn from it.
        timeout: Seconds that one exchange may take.
        due: When to act next, on the driver's clock.
        settled: How it ended, or None while it goes on.
        events: What the last transition made known.
    """

    service: Service
    seed: int = 0
    timeout: float = API_TIMEOUT
    due: float
    settled: Settled[T_co] | None = None
    events: tuple[Event, ...] = ()

    @property
    def kind(self) -> CallKind:
        """What it does, for those who are told of it."""
        return "call"

    def next_action(self, now: float) -> Send | Wait | Settled[T_co]:
        """Return what to do next, at *now*."""
        if self.settled is not None:
            return self.settled
        if now < self.due:
            return Wait(self.due)
        return Send(self._request(), now + self.timeout)

    def receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a whole reply."""
        raise NotImplementedError

    def fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after an exchange without a whole reply."""
        raise NotImplementedError

    def _request(self) -> HttpRequest:
        raise NotImplementedError

    def _settle(self, outcome: T_co | ServiceError, *events: Event) -> Self:
        return evolve(self, settled=Settled(outcome), events=events)


def api_headers(body: bytes | None) -> Headers:
    """Return the headers of a request to the service, but for the key."""
    headers = (
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", USER_AGENT),
    )
    return headers if body is None else (*headers, ("Content-Type", "application/json"))
