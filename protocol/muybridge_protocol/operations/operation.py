"""What a driver and an operation say to each other.

An operation is a frozen value. A driver asks for the next action, does it, and tells the operation
what came of it, which gives the next value:

    operation.next_action(now)        -> Send | Fetch | Wait | Settled
    operation.receive(response, now)  -> the next operation, after a whole reply
    operation.fail(failure, now)      -> the next operation, after none
    operation.events                  -> what the last transition made known

`now` is seconds on a clock that only goes forward; the operation never reads one itself. A step
that an operation does not expect, such as a second response after it has settled, is a mistake of
the driver's author and raises `OperationMisuse`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic, Literal, Self, TypeVar

import attrs

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event
from muybridge_protocol.http import Headers, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.observations import CallKind

T_co = TypeVar("T_co", covariant=True)

USER_AGENT: Final = "muybridge"
API_TIMEOUT: Final = 60.0
"""Seconds that one exchange with the service may take. A create's is generous on purpose: giving
up early would leave open whether it was accepted."""


Step = Literal["receive", "fail", "accept", "take", "end"]
"""What a driver tells an operation."""


class OperationMisuse(RuntimeError):
    """A driver told an operation something that the operation does not expect at this point.

    This is a mistake in the driver, not an error of the service. The operation has not changed.
    """


@attrs.frozen
class Send:
    """Send *request* and read its whole reply by *deadline*, on the driver's clock."""

    request: HttpRequest
    deadline: float


@attrs.frozen
class Fetch:
    """Send *request* and hand its reply over in pieces, all by *deadline*."""

    request: HttpRequest
    deadline: float


@attrs.frozen
class Wait:
    """Do nothing until *until*, on the driver's clock."""

    until: float


@attrs.frozen
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


@attrs.frozen(kw_only=True)
class Operation(Generic[T_co]):
    """One call on the service.

    Args:
        service: Where the service is.
        seed: A number drawn at random for this operation; the waits between tries follow from it.
        timeout: Seconds that one exchange may take.
        due: When to act next, on the driver's clock.
        settled: How it ended, or None while it goes on.
        events: What the last transition made known.

    Raises:
        TypeError: The seed is not an integer.
        ValueError: The timeout is not above 0, or the clock does not show a number.
    """

    service: Service
    seed: int
    timeout: float = API_TIMEOUT
    due: float
    settled: Settled[T_co] | None = None
    events: tuple[Event, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]  drivers are not all typed
            raise TypeError(f"seed must be int, not {type(self.seed).__name__}")
        check_seconds("timeout", self.timeout)
        check_seconds("now", self.due, least=-math.inf)

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
        """Return the operation after a whole response.

        Raises:
            OperationMisuse: No response is expected.
        """
        self._check_step("receive", response, HttpResponse, now=now)
        return self._receive(response, now)

    def fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after an exchange without a whole response.

        Raises:
            OperationMisuse: No failure is expected.
        """
        self._check_step("fail", failure, TransportFailure, now=now)
        return self._fail(failure, now)

    def _receive(self, response: HttpResponse, now: float) -> Self:
        raise NotImplementedError

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        raise NotImplementedError

    def _request(self) -> HttpRequest:
        raise NotImplementedError

    def _steps(self) -> tuple[Step, ...]:
        """Return the steps that may come next while it has not settled."""
        return ("receive", "fail")

    def _check_step(
        self, step: Step, told: object = None, kind: type | None = None, *, now: float = 0.0
    ) -> None:
        """Check that *step* may come next, and that its arguments are what it takes.

        Args:
            step: The method that the driver called.
            told: Its argument, if it has one.
            kind: What that must be.
            now: Seconds on the driver's clock.
        """
        name = type(self).__name__
        if self.settled is not None:
            raise OperationMisuse(
                f"{name}.{step} was called, but this operation has settled. Each step returns the "
                "next operation: go on with that one, and stop when next_action returns Settled."
            )
        expected = self._steps()
        if step not in expected:
            raise OperationMisuse(
                f"{name}.{step} was called, but this operation expects {' or '.join(expected)}. "
                "Do what next_action asks for: receive a response to Send; for Fetch, accept its "
                "head, take its pieces, and end."
            )
        if kind is not None and not isinstance(told, kind):
            wanted, got = kind.__name__, type(told).__name__
            raise TypeError(f"the argument of {name}.{step} must be {wanted}, not {got}")
        check_seconds("now", now, least=-math.inf)

    def _settle(self, outcome: T_co | ServiceError, *events: Event) -> Self:
        return attrs.evolve(self, settled=Settled(outcome), events=events)


def check_seconds(name: str, seconds: float | None, *, least: float | None = None) -> None:
    """Check that *seconds* is a number, or None.

    Args:
        name: What the argument is called.
        seconds: Its value.
        least: The smallest number that it may be, or None for every number above 0.

    Raises:
        ValueError: It is NaN, or too small.
    """
    if seconds is None or (seconds > 0 if least is None else seconds >= least):
        return
    wanted = "positive" if least is None else "a number" if least < 0 else f"at least {least:g}"
    raise ValueError(f"{name} must be {wanted} (got {seconds!r})")


def api_headers(body: bytes | None) -> Headers:
    """Return the headers of a request to the service, but for the key."""
    headers = (
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", USER_AGENT),
    )
    return headers if body is None else (*headers, ("Content-Type", "application/json"))
