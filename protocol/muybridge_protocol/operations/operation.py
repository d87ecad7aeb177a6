"""Operations: calls on the service as state machines, and how a driver runs them.

An operation is a frozen value. A driver asks it for the next action, does that, and reports the
outcome, which returns the next value:

    operation.next_action(now)        -> Send | Fetch | Wait | Settled
    operation.receive(response, now)  -> the next operation, after a whole response
    operation.fail(failure, now)      -> the next operation, after a failed exchange
    operation.events                  -> what the last transition revealed

The operation decides everything: what to send, when to retry, what a failure means and when to
stop. The driver only does I/O. That is why `now`, seconds on a monotonic clock, and a random `seed`
are arguments: hours of retries run in a test within milliseconds, and always in the same way.

If a driver takes a step that the operation does not expect, such as a second response after it has
settled, its author has made a mistake, and `RuntimeError` is raised.
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
    from muybridge_protocol.call_info import CallKind

T_co = TypeVar("T_co", covariant=True)

USER_AGENT: Final = "muybridge"
API_TIMEOUT: Final = 60.0
"""Timeout of one exchange with the service, in seconds. It is generous because a create that times
out may have been accepted."""


Step = Literal["receive", "fail", "accept", "take", "end"]
"""What a driver reports to an operation."""


@attrs.frozen
class Send:
    """Send *request* and read its whole response by *deadline*, on the driver's clock."""

    request: HttpRequest
    deadline: float


@attrs.frozen
class Fetch:
    """Send *request* and read its response in pieces, all by *deadline*."""

    request: HttpRequest
    deadline: float


@attrs.frozen
class Wait:
    """Do nothing until *until*, on the driver's clock."""

    until: float


@attrs.frozen
class Settled(Generic[T_co]):
    """The operation has ended, with a value or an error."""

    outcome: T_co | ServiceError

    def unwrap(self) -> T_co:
        """Return the value.

        Raises:
            ServiceError: The operation ended with it.
        """
        if isinstance(self.outcome, ServiceError):
            raise self.outcome
        return self.outcome


@attrs.frozen(kw_only=True, eq=False, repr=False)  # generated for each subclass
class Operation(Generic[T_co]):
    """One call on the service.

    Args:
        service: Where the service is.
        seed: A random number for this operation; the delays between attempts derive from it.
        timeout: Timeout of one exchange, in seconds.
        due: When to act next, on the driver's clock.
        settled: How it ended, or None.
        events: What the last transition revealed.

    Raises:
        TypeError: The seed is not an integer.
        ValueError: The timeout is not positive, or `due` is not a number.
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
        """What the operation does, for listeners."""
        return "call"

    def next_action(self, now: float) -> Send | Wait | Settled[T_co]:
        """Return what to do next, at *now*. Once it is settled, that is its outcome for good."""
        if self.settled is not None:
            return self.settled
        if now < self.due:
            return Wait(self.due)
        return Send(self._request(), now + self.timeout)

    def receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a whole response.

        Raises:
            RuntimeError: No response is expected.
        """
        self._check_step("receive", response, HttpResponse, now=now)
        return self._receive(response, now)

    def fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange.

        Raises:
            RuntimeError: No failure is expected.
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
        """Return the steps that may come next, unless the operation has settled."""
        return ("receive", "fail")

    def _check_step(
        self, step: Step, argument: object = None, kind: type | None = None, *, now: float = 0.0
    ) -> None:
        """Check that *step* may come next, and the type of its argument.

        Args:
            step: The method that the driver called.
            argument: Its argument, if it has one.
            kind: The argument's type.
            now: Seconds on the driver's clock.
        """
        name = type(self).__name__
        if self.settled is not None:
            raise RuntimeError(
                f"{name}.{step} was called, but this operation has settled. Each step returns the "
                "next operation: continue with that one, and stop when next_action returns Settled."
            )
        expected = self._steps()
        if step not in expected:
            raise RuntimeError(
                f"{name}.{step} was called, but this operation expects {' or '.join(expected)}. "
                "Do what next_action asks for: receive a response to Send; for Fetch, accept its "
                "head, take its pieces, and end."
            )
        if kind is not None and not isinstance(argument, kind):
            wanted, got = kind.__name__, type(argument).__name__
            raise TypeError(f"the argument of {name}.{step} must be {wanted}, not {got}")
        check_seconds("now", now, least=-math.inf)

    def _settle(self, outcome: T_co | ServiceError, *events: Event) -> Self:
        return attrs.evolve(self, settled=Settled(outcome), events=events)


def check_seconds(name: str, seconds: float | None, *, least: float | None = None) -> None:
    """Check that *seconds* is a number, or None.

    Args:
        name: The argument's name.
        seconds: Its value.
        least: The smallest value allowed, or None for any positive number.

    Raises:
        ValueError: It is NaN, or too small.
    """
    if seconds is None or (seconds > 0 if least is None else seconds >= least):
        return
    wanted = "positive" if least is None else "a number" if least < 0 else f"at least {least:g}"
    raise ValueError(f"{name} must be {wanted} (got {seconds!r})")


def api_headers(body: bytes | None) -> Headers:
    """Return the headers of a request to the service, without the key."""
    headers = (
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", USER_AGENT),
    )
    return headers if body is None else (*headers, ("Content-Type", "application/json"))
