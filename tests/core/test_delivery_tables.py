"""The delivery tables by themselves, as those read them who write operations of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from muybridge_protocol import delivery
from muybridge_protocol.delivery import (
    CREATE,
    DELETE,
    DOWNLOAD,
    POLL,
    Delivery,
    Verdict,
    backoff,
    concerns_every_request,
    refusal,
    retry_after,
)
from muybridge_protocol.errors import (
    CreateAmbiguous,
    Forbidden,
    NotSent,
    RateLimited,
    Refused,
    ServiceError,
    TaskNotFound,
    Unauthorized,
)
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Task

from .driving import reply

REFUSALS = dict.fromkeys((400, 401, 402, 403, 404, 405, 413, 415, 422, 425), Verdict.REFUSED)
THROTTLED = {429: Verdict.THROTTLED}


class Row(NamedTuple):
    """What one table says about a lost response, a redirect, single statuses and all others."""

    table: Delivery[Verdict]
    lost: Verdict
    redirect: Verdict
    statuses: Mapping[int, Verdict]
    other: Verdict


ROWS = {
    "create": Row(
        CREATE, Verdict.AMBIGUOUS, Verdict.AMBIGUOUS, REFUSALS | THROTTLED, Verdict.AMBIGUOUS
    ),
    "poll": Row(
        POLL,
        Verdict.RETRY,
        Verdict.VIOLATION,
        dict.fromkeys((400, 401, 402, 403, 422), Verdict.REFUSED)
        | {404: Verdict.MISSING}
        | THROTTLED,
        Verdict.RETRY,
    ),
    "delete": Row(
        DELETE,
        Verdict.RETRY,
        Verdict.VIOLATION,
        REFUSALS | {404: Verdict.MISSING} | THROTTLED,
        Verdict.RETRY,
    ),
    "download": Row(
        DOWNLOAD,
        Verdict.RETRY,
        Verdict.REDIRECT,
        REFUSALS | dict.fromkeys((403, 404, 410), Verdict.MISSING) | THROTTLED,
        Verdict.RETRY,
    ),
}

LASTING = (
    Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS, Reason.REFUSED_HERE, Reason.OVER_BUDGET,
)  # fmt: skip

by_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


@by_row
def test_every_status(row: Row) -> None:
    """Each status means what the design's table says of it."""
    for status in range(1000):
        expected = row.statuses.get(status, row.other)
        if 200 <= status < 300:
            expected = Verdict.ANSWER
        elif 300 <= status < 400:
            expected = row.redirect
        assert row.table.judge_status(status) is expected


@by_row
def test_every_failure(row: Row) -> None:
    """What was not sent may be sent again, unless that would not help; what was, by the table."""
    for reason in Reason:
        unsent = TransportFailure(phase=Phase.CONNECT, sent=False, reason=reason)
        lasting = reason in LASTING
        expected = Verdict.NOT_SENT if lasting else Verdict.RETRY
        assert row.table.judge_failure(unsent) is expected
        begun = TransportFailure(phase=Phase.SEND, sent=True, reason=reason)
        assert row.table.judge_failure(begun) is row.lost


def test_waits_are_splitmix64() -> None:
    """The waits are drawn from the published sequence of splitmix64, which others can repeat."""
    published = [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
        0xF88BB8A8724C81EC,
        0x1B39896A51A8749B,
    ]
    for seed, drawn in enumerate(published):
        assert backoff(seed - 1, 1) == (drawn >> 11) / 2**53
        assert backoff(seed - 4, 4) == 8 * (drawn >> 11) / 2**53
        assert backoff(seed - 9, 9) == 20 * (drawn >> 11) / 2**53


def test_how_often_and_how_long() -> None:
    """The counts and times that the design states."""
    assert delivery.UNSENT_TRIES == 3
    assert delivery.THROTTLED_TRIES == 4
    assert delivery.RETRIES == 4
    assert delivery.LONGEST_WAIT == 120
    assert delivery.LONGEST_BACKOFF == 20


KINDS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: TaskNotFound,
    429: RateLimited,
}


@pytest.mark.parametrize("status", range(400, 500))
def test_refusals_have_their_classes(status: int) -> None:
    """A refusal is of the class that its status has; only a task can be not found."""
    about = Task(id="t1")
    error = refusal(reply(status, Retry_After="7"), about)
    assert type(error) is KINDS.get(status, Refused)
    assert (error.status, error.task) == (status, about)
    assert getattr(error, "retry_after", None) == (7 if status == 429 else None)
    bare = refusal(reply(status))
    assert type(bare) is (Refused if status == 404 else KINDS.get(status, Refused))


@pytest.mark.parametrize(
    ("date", "until", "seconds"),
    [
        ("Wed, 31 Dec 2025 23:59:59 GMT", "Thu, 01 Jan 2026 00:00:09 GMT", 10),
        ("Sat, 31 Jan 2026 23:00:00 GMT", "Sun, 01 Feb 2026 00:00:00 GMT", 3600),
        ("Sat, 28 Feb 2026 23:59:59 GMT", "Sun, 01 Mar 2026 00:00:01 GMT", 2),
        ("Mon, 28 Feb 2028 23:59:59 GMT", "Wed, 01 Mar 2028 00:00:01 GMT", 86402),
        ("Sun, 30 Nov 2025 12:30:00 GMT", "Mon, 01 Dec 2025 12:29:00 GMT", 86340),
    ],
)
def test_dates_are_counted_across_months(date: str, until: str, seconds: float) -> None:
    """A date in the next month or year is as far away as the calendar says."""
    assert retry_after(reply(429, Retry_After=until, Date=date)) == seconds


UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)


@pytest.mark.parametrize(
    "error", [NotSent(failure=UNSENT), *(refusal(reply(status)) for status in (401, 402, 429))]
)
def test_what_every_other_request_would_meet(error: ServiceError) -> None:
    """The network, the key, the balance and the pace concern every request."""
    assert concerns_every_request(error)


@pytest.mark.parametrize(
    "error",
    [
        CreateAmbiguous(reason="reset"),
        *(refusal(reply(status)) for status in (400, 403, 404, 405, 413, 415, 422, 425)),
    ],
)
def test_what_is_about_one_request(error: ServiceError) -> None:
    """Every other refusal is about its own request, and what is ambiguous did something."""
    assert not concerns_every_request(error)
