"""Requests that the service charges for: resent only if the previous attempt certainly did nothing.

A paid request has no idempotency key, so a second POST is a second charge. Two outcomes alone are
certain to have done nothing: no byte was handed to the network, or the service answered 429. Only
then is it retried. A response that refuses the request settles it as `Refused`. Everything else,
from a lost response to an unknown status, settles it as `CreateAmbiguous`, because the request may
have been accepted; so does a refusal that contains a task, because it contradicts itself.

The error then keeps what arrived, and any id found in it, so that a person can look for the task.
"""

from __future__ import annotations

from typing import ClassVar, Final, Self, TypeVar, assert_never

import attrs

from muybridge_protocol.delivery import (
    CREATE,
    LONGEST_WAIT,
    THROTTLED_TRIES,
    UNSENT_TRIES,
    Verdict,
    asks_unclearly,
    backoff,
    refusal,
    retry_after,
)
from muybridge_protocol.errors import CreateAmbiguous, NotSent, OverBudget
from muybridge_protocol.events import Ambiguous, Throttled, WillRetry
from muybridge_protocol.http import HttpRequest, HttpResponse, Reason, TransportFailure
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.records.candidates import find_any_id, find_id, holds_task
from muybridge_protocol.records.json import RAW_LIMIT, error_message, readable

T_co = TypeVar("T_co", covariant=True)

_PROXY_WANTS_A_PASSWORD: Final = 407


@attrs.frozen(kw_only=True, eq=False, repr=False)  # generated for each subclass
class PaidOperation(Operation[T_co]):
    """An operation whose request may be charged.

    It ends with a value, `NotSent`, `Refused` or `CreateAmbiguous`.

    Args:
        deadline: When to stop retrying, on the driver's clock.
        wall_offset: What to add to the driver's clock to get Unix seconds, or None if unknown.
        unsent: Attempts that never reached the service.
        throttled: Attempts that were answered with 429.
        http_request: The request as it is sent.
    """

    _name: ClassVar[str] = "create"

    deadline: float
    wall_offset: float | None
    unsent: int = 0
    throttled: int = 0
    http_request: HttpRequest

    def _receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a whole response."""
        verdict = CREATE.judge_status(response.status)
        if verdict is Verdict.ANSWER:
            return self._read(response, now)
        if self._holds_task(response):
            # The task may exist, and may be charged.
            return self._ambiguous(
                f"status {response.status}, but the response contains a task", response=response
            )
        match verdict:
            case Verdict.THROTTLED:
                return self._throttle(response, now)
            case Verdict.REFUSED:
                return self._settle(refusal(response))
            case Verdict.AMBIGUOUS:
                message = error_message(response.body)
                if response.status == _PROXY_WANTS_A_PASSWORD:
                    message = "a proxy requires a user name and a password"
                status = f"status {response.status}"
                reason = f"{status}: {message}" if message else status
                return self._ambiguous(reason, response=response)
            case _:
                assert_never(verdict)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange."""
        verdict = CREATE.judge_failure(failure)
        if verdict is Verdict.AMBIGUOUS:
            return self._ambiguous(str(failure), failure=failure)
        tries = self.unsent + 1
        delay = backoff(self.seed, tries)
        if verdict is Verdict.NOT_SENT or tries >= UNSENT_TRIES or now + delay > self.deadline:
            kind = OverBudget if failure.reason is Reason.OVER_BUDGET else NotSent
            return self._settle(kind(failure=failure, attempts=tries))
        return attrs.evolve(
            self,
            unsent=tries,
            due=now + delay,
            events=(WillRetry(self._name, str(failure), delay, tries),),
        )

    def _request(self) -> HttpRequest:
        return self.http_request

    def _holds_task(self, response: HttpResponse) -> bool:
        """Whether a response that refuses the request contains a task nevertheless."""
        return holds_task(response.body)

    def _read(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a response with a success status."""
        raise NotImplementedError

    def _throttle(self, response: HttpResponse, now: float) -> Self:
        tries = self.throttled + 1
        wall = None if self.wall_offset is None else now + self.wall_offset
        pause = retry_after(response, wall)
        delay = backoff(self.seed, tries) if pause is None else pause
        if (
            tries >= THROTTLED_TRIES
            or delay > LONGEST_WAIT
            or now + delay > self.deadline
            or asks_unclearly(response, wall)
        ):
            return self._settle(refusal(response, wall=wall))
        return attrs.evolve(
            self, throttled=tries, due=now + delay, events=(Throttled(self._name, delay),)
        )

    def _ambiguous(
        self,
        reason: str,
        *,
        response: HttpResponse | None = None,
        failure: TransportFailure | None = None,
    ) -> Self:
        raw = b""
        status = None
        if response is not None:
            raw, status = response.body, response.status
        elif failure is not None:
            raw, status = failure.partial, failure.status
            failure = attrs.evolve(failure, partial=raw[:RAW_LIMIT])
        return self._settle(self._lost(reason, failure, status, raw), Ambiguous(reason))

    def _lost(
        self, reason: str, failure: TransportFailure | None, status: int | None, raw: bytes
    ) -> CreateAmbiguous:
        """Return the error for a request that may have been accepted."""
        candidate = find_id(raw)
        if candidate is None and (unusable := find_any_id(raw)) is not None:
            reason = f"{reason}; the id in it, {readable(unusable, 80)!r}, cannot be used"
        return CreateAmbiguous(
            reason=reason,
            failure=failure,
            status=status,
            raw=raw[:RAW_LIMIT],
            candidate_id=candidate,
        )
