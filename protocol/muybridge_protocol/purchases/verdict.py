"""The one verdict: how the end of a paid exchange is recorded, for every way to pay."""

from __future__ import annotations

from muybridge_protocol.delivery import CREATE, Verdict, concerns_every_request
from muybridge_protocol.errors import CreateAmbiguous, NotSent, Refused
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.purchases.purchase import Outcome
from muybridge_protocol.purchases.states import Stage, State
from muybridge_protocol.records.json import RAW_LIMIT, readable
from muybridge_protocol.records.lenient import ERROR_LIMIT
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import in_records


def judged(outcome: object) -> Outcome:
    """Return how the *outcome* of a paid operation is recorded.

    Args:
        outcome: The value or error with which the operation has settled, or None if it is retried:
            then this POST did nothing.
    """
    match outcome:
        case None:
            return Outcome(state=State.RELEASED)
        case Task() as task:
            return Outcome(state=State.ACCEPTED, task=task)
        case CreateAmbiguous() as error:
            return Outcome(
                state=State.AMBIGUOUS,
                candidate=error.candidate_id,
                reason=_line(error.reason),
                response_status=error.status,
                response=error.raw[:RAW_LIMIT] or None,
            )
        case NotSent() | Refused() as error:
            later = Stage.QUEUED if concerns_every_request(error) else Stage.REFUSED
            return Outcome(
                state=State.RELEASED, reason=_line(error.describe(in_records)), leads_to=later
            )
        case HttpResponse(status=status):  # of a call to any endpoint
            match CREATE.judge_status(status):
                case Verdict.ANSWER:
                    return Outcome(state=State.ACCEPTED)
                case Verdict.REFUSED | Verdict.THROTTLED:
                    return Outcome(state=State.RELEASED, reason=f"status {status}")
                case _:
                    return Outcome(state=State.AMBIGUOUS, reason=f"status {status}")
        case _:  # an answer to a text request
            return Outcome(state=State.ACCEPTED)


def _line(text: str) -> str:
    return readable(text, ERROR_LIMIT)
