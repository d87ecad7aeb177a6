"""What a failure or a status means: what may be resent, and what must not be.

Two facts decide:

- If no byte of a request was handed to the network, it was not sent. From the first byte on, until
  a whole valid response has been read, it may have been accepted.
- A create costs money, so it is never resent if it may have been accepted. Polls, deletes and
  downloads are harmless to repeat.

The class of an exception tells nothing about the first fact, because libraries raise the same
`ConnectionError` before and after the first byte; `TransportFailure.sent` does. `CREATE`, `POLL`,
`DELETE` and `DOWNLOAD` hold the verdicts for each kind of request, as data. The type of each table
names the verdicts that its operation handles, so that type checkers refuse any other: a paid
request that a table told to retry would end as ambiguous.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Generic, Literal, TypeVar

import attrs

from muybridge_protocol.errors import (
    Forbidden,
    NotSent,
    RateLimited,
    Refused,
    ServiceError,
    TaskNotFound,
    Unauthorized,
)
from muybridge_protocol.http import HttpHead, HttpResponse, Reason, TransportFailure
from muybridge_protocol.records.json import RAW_LIMIT, error_message
from muybridge_protocol.records.tasks import Task


class Verdict(Enum):
    """How an operation continues after a failure or a response."""

    ANSWER = auto()
    """The response answers the request: read it."""
    RETRY = auto()
    """Retry after a delay: the request did nothing, or repeating it is harmless."""
    NOT_SENT = auto()
    """It was not sent, and a retry would fail in the same way."""
    AMBIGUOUS = auto()
    """It may have been accepted and must not be resent."""
    REFUSED = auto()
    """The service refused the request."""
    THROTTLED = auto()
    """The service asks to slow down; the request did nothing."""
    MISSING = auto()
    """The service does not know what was asked for."""
    REDIRECT = auto()
    """The response points elsewhere, and may be followed."""
    VIOLATION = auto()
    """The response violates the protocol."""


Answered = Literal[Verdict.ANSWER]
PaidVerdict = Literal[Verdict.REFUSED, Verdict.THROTTLED, Verdict.AMBIGUOUS]
"""What a status may mean for a request that the service charges for."""
QueryVerdict = Literal[
    Verdict.REFUSED, Verdict.MISSING, Verdict.THROTTLED, Verdict.VIOLATION, Verdict.RETRY
]
"""What a status may mean for a request that is harmless to repeat."""
DownloadVerdict = Literal[
    Verdict.REFUSED, Verdict.MISSING, Verdict.THROTTLED, Verdict.REDIRECT, Verdict.RETRY
]
"""What a status may mean for a download."""
V_co = TypeVar("V_co", covariant=True)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Delivery(Generic[V_co]):
    """What failures and statuses mean for one kind of request.

    Args:
        unsent: It failed before its first byte was handed to the network.
        sent: It failed after that.
        redirect: Any status from 300 to 399.
        statuses: Single statuses.
        other: Every status that is not listed.
    """

    unsent: Verdict = Verdict.RETRY
    sent: Verdict
    redirect: V_co
    statuses: Mapping[int, V_co]
    other: V_co

    def judge_failure(self, failure: TransportFailure) -> Verdict:
        """Return what the failure of an exchange means."""
        if failure.sent:
            return self.sent
        return Verdict.NOT_SENT if failure.reason in _LASTING else self.unsent

    def judge_status(self, status: int) -> V_co | Answered:
        """Return what a response with *status* means."""
        if 200 <= status <= 299:  # noqa: PLR2004  the class of success
            return Verdict.ANSWER
        if 300 <= status <= 399:  # noqa: PLR2004  the class of redirects
            return self.redirect
        return self.statuses.get(status, self.other)


_LASTING = frozenset(
    {Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS, Reason.REFUSED_HERE, Reason.OVER_BUDGET}
)
"""Reasons for which a retry would fail in the same way."""

_REFUSALS: Mapping[int, Literal[Verdict.REFUSED]] = dict.fromkeys(
    (400, 401, 402, 403, 404, 405, 413, 415, 422, 425), Verdict.REFUSED
)

# A gateway may answer 408, 409, 499 or 5xx to a request that has reached the service, and nobody
# knows what an unlisted status means. So only what is listed counts as a refusal.
CREATE = Delivery[PaidVerdict](
    sent=Verdict.AMBIGUOUS,
    redirect=Verdict.AMBIGUOUS,
    statuses={**_REFUSALS, 429: Verdict.THROTTLED},
    other=Verdict.AMBIGUOUS,
)

POLL = Delivery[QueryVerdict](
    sent=Verdict.RETRY,
    redirect=Verdict.VIOLATION,
    statuses={
        **dict.fromkeys((400, 401, 402, 403, 422), Verdict.REFUSED),
        404: Verdict.MISSING,
        429: Verdict.THROTTLED,
    },
    other=Verdict.RETRY,
)

DELETE = Delivery[QueryVerdict](
    sent=Verdict.RETRY,
    redirect=Verdict.VIOLATION,
    statuses={**_REFUSALS, 404: Verdict.MISSING, 429: Verdict.THROTTLED},
    other=Verdict.RETRY,
)

DOWNLOAD = Delivery[DownloadVerdict](
    sent=Verdict.RETRY,
    redirect=Verdict.REDIRECT,
    statuses={
        **_REFUSALS,
        **dict.fromkeys((403, 404, 410), Verdict.MISSING),
        429: Verdict.THROTTLED,
    },
    other=Verdict.RETRY,
)

UNSENT_TRIES = 3
"""Attempts in all for a request that never reaches the service."""
THROTTLED_TRIES = 4
"""Attempts in all for a create that is answered with 429."""
RETRIES = 4
"""Attempts in all for a request that is harmless to repeat."""
LONGEST_WAIT = 120.0
"""Longest Retry-After, in seconds: a create does not wait longer, and a poll waits no more than
this."""
LONGEST_BACKOFF = 20.0
"""Longest delay between attempts, in seconds."""


def backoff(seed: int, attempt: int) -> float:
    """Return the seconds to wait before the next attempt: full jitter over 1, 2, 4, ... 20 s.

    Args:
        seed: Any number; the same seed gives the same delays.
        attempt: How many attempts have failed, from 1.
    """
    ceiling = min(LONGEST_BACKOFF, 2.0 ** min(attempt - 1, 10))
    return ceiling * fraction(seed + attempt)


def fraction(seed: int) -> float:
    """Return a number from 0 up to 1 that looks random (splitmix64)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)


_MASK = (1 << 64) - 1  # as splitmix64 calculates


def retry_after(response: HttpResponse | HttpHead, wall: float | None = None) -> float | None:
    """Return the seconds that the response asks to wait, or None if it does not ask or is unclear.

    `Retry-After` is whole or decimal seconds, rounded up, or an HTTP date in any of its three
    forms. A date that is over when the response is sent is unclear. Of several, the longest counts.

    Args:
        response: The response.
        wall: Unix seconds, if they are known. A date is compared with the response's own `Date`,
            so that this machine's clock does not matter, or else with these.
    """
    return max((seconds for seconds in _waits(response, wall) if seconds is not None), default=None)


def asks_unclearly(response: HttpResponse | HttpHead, wall: float | None = None) -> bool:
    """Whether the response asks to wait, but not in a way that can be read.

    A paid request is not repeated then, because any moment may be too early.
    """
    return None in _waits(response, wall)


def _waits(response: HttpResponse | HttpHead, wall: float | None) -> list[float | None]:
    """Return the seconds that each `Retry-After` asks for, or None where that is unclear."""
    sent = wall
    match [http_date(text, wall or 0.0) for text in _fields(response, "date")]:
        case [float() as date]:
            sent = date
        case _:  # of several, nobody knows which is right
            pass
    return [_seconds(text, sent) for text in _fields(response, "retry-after") if text]


def _fields(response: HttpResponse | HttpHead, name: str) -> list[str]:
    return [value.strip() for field, value in response.headers if field.lower() == name]


def _seconds(asked: str, sent: float | None) -> float | None:
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", asked, re.ASCII):
        whole, _, part = asked.partition(".")
        # A float, because Python refuses to make an integer of thousands of digits.
        return min(_LONGEST_ASKED, float(whole) + bool(part.strip("0")))
    until = None if sent is None else http_date(asked, sent)
    # A date before that of the response (RFC 9110, 10.2.3 says nothing of it) may be over, but then
    # nobody would ask for it. Rather, another clock or another time zone has set one of the two,
    # and how long to wait by that clock is unknown.
    if until is None or sent is None or until < math.floor(sent):
        return None
    return float(math.ceil(until - sent))


_LONGEST_ASKED = 9_999_999_999.0
"""What a longer `Retry-After` counts as, in seconds."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DAY, _MONTH, _YEAR = r"(?P<day>[ 0-9][0-9])", r"(?P<month>[A-Z][a-z]{2})", r"(?P<year>[0-9]{4})"
_HTTP_DATES = (
    rf"[A-Z][a-z]{{2}}, {_DAY} {_MONTH} {_YEAR} {_TIME} GMT",
    rf"[A-Z][a-z]+day, {_DAY}-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
    rf"[A-Z][a-z]{{2}} {_MONTH} {_DAY} {_TIME} {_YEAR}",
)
"""The three forms of an HTTP date (RFC 9110, 5.6.7): today's, that of RFC 850, that of asctime."""


def http_date(text: str, now: float) -> float | None:
    """Return the Unix seconds of an HTTP date, or None. A year of two digits is near *now*."""
    text = text.strip()
    match = next(filter(None, (re.fullmatch(form, text, re.ASCII) for form in _HTTP_DATES)), None)
    if match is None or match["month"] not in _MONTHS:
        return None
    year, month = int(match["year"]), _MONTHS.index(match["month"]) + 1
    day, hour, minute, second = (int(match[part]) for part in ("day", "hour", "minute", "second"))
    try:
        if len(match["year"]) == 2:  # noqa: PLR2004  as RFC 850 has it
            latest = datetime.fromtimestamp(now, UTC).year + 50
            year += (latest - year) // 100 * 100
        leap = second == 60  # noqa: PLR2004  a leap second
        date = datetime(year, month, day, hour, minute, second - leap, tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return date.timestamp() + leap


_REFUSAL_TYPES: Mapping[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: TaskNotFound,
    429: RateLimited,
}


def refusal(
    response: HttpResponse, task: Task | None = None, *, wall: float | None = None
) -> Refused:
    """Return the error for a response that refuses the request.

    Args:
        response: The response.
        task: What the request was about, if it is known.
        wall: Unix seconds, if they are known.
    """
    kind = _REFUSAL_TYPES.get(response.status, Refused)
    if kind is TaskNotFound and task is None:
        kind = Refused
    error = kind(
        status=response.status,
        message=error_message(response.body),
        body=response.body[:RAW_LIMIT],
        task=task,
    )
    if isinstance(error, RateLimited):
        error.retry_after = retry_after(response, wall)
    return error


_PAYMENT_REQUIRED = 402


def concerns_every_request(error: ServiceError) -> bool:
    """Whether *error* would end every other request too, and this request did nothing.

    The cause is the network, the key, the balance or the rate limit, not the request. Once that is
    fixed, the request can be sent again unchanged.
    """
    if isinstance(error, Refused) and error.status == _PAYMENT_REQUIRED:
        return True
    return isinstance(error, NotSent | RateLimited | Unauthorized)
