"""What a failure or a status means: what may be sent again, and what must not be.

Two facts decide. No byte of a request handed to the network means that it was not sent; any byte
means, until a whole valid reply has been read, that it may have been accepted. And a create costs
money, so that it is never sent twice when it may have been accepted. `CREATE`, `POLL`, `DELETE`
and `DOWNLOAD` say it for each kind of request, as data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto

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
    """What becomes of an operation after a failure or a reply."""

    ANSWER = auto()
    """The reply answers the request: read it."""
    RETRY = auto()
    """Send it again after a while: it did nothing, or doing it twice is harmless."""
    NOT_SENT = auto()
    """It was not sent, and trying again would not help."""
    AMBIGUOUS = auto()
    """It may have been accepted and must not be sent again."""
    REFUSED = auto()
    """The service answered, and refused."""
    THROTTLED = auto()
    """The service asked to slow down; the request did nothing."""
    MISSING = auto()
    """The service does not know what was asked for."""
    REDIRECT = auto()
    """The reply points elsewhere, and that may be followed."""
    VIOLATION = auto()
    """The reply is none that the protocol has."""


@attrs.frozen(kw_only=True)
class Delivery:
    """What failures and statuses mean for one kind of request.

    Args:
        unsent: It failed before a byte of it was handed to the network.
        sent: It failed later.
        redirect: Any status from 300 to 399.
        statuses: Single statuses.
        other: Every status that is not listed.
    """

    unsent: Verdict = Verdict.RETRY
    sent: Verdict
    redirect: Verdict
    statuses: Mapping[int, Verdict]
    other: Verdict

    def judge_failure(self, failure: TransportFailure) -> Verdict:
        """Return what an exchange without a whole reply means."""
        if failure.sent:
            return self.sent
        return Verdict.NOT_SENT if failure.reason in _LASTING else self.unsent

    def judge_status(self, status: int) -> Verdict:
        """Return what a reply with *status* means."""
        if 200 <= status <= 299:  # noqa: PLR2004  the class of success
            return Verdict.ANSWER
        if 300 <= status <= 399:  # noqa: PLR2004  the class of redirects
            return self.redirect
        return self.statuses.get(status, self.other)


_LASTING = frozenset({Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS, Reason.REFUSED_HERE})
"""Reasons that a second try would meet again."""

_REFUSALS: Mapping[int, Verdict] = dict.fromkeys(
    (400, 401, 402, 403, 404, 405, 413, 415, 422, 425), Verdict.REFUSED
)

CREATE = Delivery(
    sent=Verdict.AMBIGUOUS,
    redirect=Verdict.AMBIGUOUS,
    statuses={**_REFUSALS, 429: Verdict.THROTTLED},
    other=Verdict.AMBIGUOUS,
)

POLL = Delivery(
    sent=Verdict.RETRY,
    redirect=Verdict.VIOLATION,
    statuses={
        **dict.fromkeys((400, 401, 402, 403, 422), Verdict.REFUSED),
        404: Verdict.MISSING,
        429: Verdict.THROTTLED,
    },
    other=Verdict.RETRY,
)

DELETE = Delivery(
    sent=Verdict.RETRY,
    redirect=Verdict.VIOLATION,
    statuses={**_REFUSALS, 404: Verdict.MISSING, 429: Verdict.THROTTLED},
    other=Verdict.RETRY,
)

DOWNLOAD = Delivery(
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
"""How often a request is tried that never reaches the service."""
THROTTLED_TRIES = 4
"""How often a create is tried that is answered 429."""
RETRIES = 4
"""How often a harmless request is tried in all."""
LONGEST_WAIT = 120.0
"""Seconds that a Retry-After may ask for before a create stops waiting, and most that a poll
obeys."""
LONGEST_BACKOFF = 20.0
"""Seconds that the wait between tries grows to."""


def backoff(seed: int, attempt: int) -> float:
    """Return the seconds to wait before the next try: full jitter over 1 s, 2 s, 4 s, ... 20 s.

    Args:
        seed: Any number; the same one gives the same waits.
        attempt: How many tries have failed, from 1.
    """
    ceiling = min(LONGEST_BACKOFF, 2.0 ** min(attempt - 1, 10))
    return ceiling * fraction(seed + attempt)


def fraction(seed: int) -> float:
    """Return a number from 0 up to 1 that looks random (splitmix64)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)


_MASK = (1 << 64) - 1


def retry_after(reply: HttpResponse | HttpHead) -> float | None:
    """Return the seconds that the reply asks to wait, or None.

    `Retry-After` is whole seconds, or an HTTP date measured against the reply's own `Date`, so
    that no clock of this machine takes part.
    """
    asked = (reply.header("Retry-After") or "").strip()
    if re.fullmatch(r"[0-9]{1,10}", asked, re.ASCII):
        return float(asked)
    until, sent = _http_date(asked), _http_date(reply.header("Date") or "")
    return None if until is None or sent is None else max(0.0, until - sent)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HTTP_DATE = (
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) "
    r"([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)


def _http_date(text: str) -> float | None:
    match = re.fullmatch(_HTTP_DATE, text.strip(), re.ASCII)
    if match is None or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[part]) for part in (1, 3, 4, 5, 6))
    try:
        month = _MONTHS.index(match[2]) + 1
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


_REFUSAL_TYPES: Mapping[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: TaskNotFound,
    429: RateLimited,
}


def refusal(response: HttpResponse, task: Task | None = None) -> Refused:
    """Return the error that a refusing reply stands for."""
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
        error.retry_after = retry_after(response)
    return error


_PAYMENT_REQUIRED = 402


def concerns_every_request(error: ServiceError) -> bool:
    """Whether every other request would end with *error* too, and this one did nothing.

    The network, the key, the balance or the pace is to blame, and not the request: it may be sent
    again as it is once that has changed.
    """
    if isinstance(error, Refused) and error.status == _PAYMENT_REQUIRED:
        return True
    return isinstance(error, NotSent | RateLimited | Unauthorized)
