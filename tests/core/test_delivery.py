"""The delivery table of the design, transcribed by hand and run through the real operations."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_json import values, written
from muybridge_protocol import errors
from muybridge_protocol.delivery import backoff, retry_after
from muybridge_protocol.errors import (
    AssetDeleteFailed,
    AssetDeleteUnknown,
    CreateAmbiguous,
    DownloadFailed,
    Forbidden,
    LinkExpired,
    NotSent,
    OverBudget,
    ProtocolViolation,
    RateLimited,
    Refused,
    ResultExpired,
    ResultIncomplete,
    ServiceError,
    ServiceUnreachable,
    TaskFailed,
    TaskNotFound,
    Unauthorized,
    WaitTimeout,
)
from muybridge_protocol.events import Ambiguous, Polled, Submitted, Throttled, WillRetry
from muybridge_protocol.families import ImgbRequest
from muybridge_protocol.http import HttpHead, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import (
    Create,
    Download,
    Fetch,
    Operation,
    Poll,
    Send,
    Settled,
    Wait,
)
from muybridge_protocol.operations.download import Part, Saved
from muybridge_protocol.records.tasks import Result, Status, Task

from .driving import (
    DONE,
    LINK,
    REQUEST,
    SERVICE,
    WALL,
    After,
    Reaction,
    Run,
    call,
    create,
    delete,
    download,
    drive,
    lost,
    media,
    newborn_poll,
    next_action,
    poll,
    query,
    raw,
    record,
    repeat,
    reply,
    result,
    task,
    text_call,
    unsent,
)

HOUR = 3600.0
DAY = 86400

# One row of the table: what each operation makes of one point. `AGAIN` is a further try.


class Again:
    """Stands for another try of the same request, after a wait."""


class Query:
    """Stands for a result query, which gives a fresh link."""


AGAIN = Again
QUERY = Query
Meaning = type[Any]


@dataclass(frozen=True)
class Row:
    """What one point means for each kind of operation."""

    create: Meaning
    text_post: Meaning
    poll: Meaning
    delete: Meaning
    download: Meaning


OPERATIONS: dict[str, Callable[[], Operation[Any]]] = {
    "create": create,
    "text_post": call,
    "poll": newborn_poll,
    "delete": delete,
    "download": lambda: download(about=task()),
}


def meaning(operation: Operation[Any], reaction: Reaction) -> Meaning:
    """Return what *operation* does after *reaction* to its first request."""
    first = operation.next_action(0)
    assert isinstance(first, Send | Fetch)
    if isinstance(reaction, TransportFailure):
        then = operation.fail(reaction, 0)
    elif isinstance(operation, Download):
        assert isinstance(reaction, HttpResponse)
        then = operation.accept(HttpHead(reaction.status, reaction.headers), 0)
    else:
        assert isinstance(reaction, HttpResponse)
        then = operation.receive(reaction, 0)
    now = 0.0
    action = next_action(then, now)
    if isinstance(action, Wait):
        now = action.until
        action = next_action(then, now)
    if isinstance(action, Settled):
        return cast("Meaning", type(action.outcome))
    assert isinstance(action, Send | Fetch)
    if type(action) is not type(first):
        assert action.request.url == "https://api.example.com/v1/result/t1"
        return QUERY
    assert action.request == first.request
    assert now > 0, "a try follows without a wait"
    return AGAIN


def check(reaction: Reaction, row: Row) -> None:
    found = {name: meaning(start(), reaction) for name, start in OPERATIONS.items()}
    assert found == {field.name: getattr(row, field.name) for field in attrs_of(row)}


def attrs_of(row: Row) -> Any:
    return row.__dataclass_fields__.values()


# "DNS, refused, connect timeout, TLS reset or hang, CONNECT refused".
UNSENT = [
    (Phase.RESOLVE, Reason.NAME_RESOLUTION),
    (Phase.CONNECT, Reason.REFUSED),
    (Phase.CONNECT, Reason.UNREACHABLE),
    (Phase.CONNECT, Reason.TIMED_OUT),
    (Phase.CONNECT, Reason.RESET),
    (Phase.CONNECT, Reason.LOCAL_LIMIT),
    (Phase.TLS, Reason.RESET),
    (Phase.TLS, Reason.CLOSED),
    (Phase.TLS, Reason.TIMED_OUT),
    (Phase.TLS, Reason.TLS),
    (Phase.PROXY, Reason.PROXY_REFUSED),
    (Phase.PROXY, Reason.TIMED_OUT),
    (Phase.SEND, Reason.RESET),
    (Phase.HEAD, Reason.TIMED_OUT),
    (Phase.CONNECT, Reason.OTHER),
]


@pytest.mark.parametrize(("phase", "reason"), UNSENT)
def test_unsent_is_tried_again(phase: Phase, reason: Reason) -> None:
    """What failed before a byte had left is retried, whatever the phase and reason."""
    check(unsent(reason, phase), Row(AGAIN, AGAIN, AGAIN, AGAIN, AGAIN))


@pytest.mark.parametrize(
    "reason", [Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS, Reason.REFUSED_HERE]
)
def test_certificate_stops(reason: Reason) -> None:
    """What a second try would meet again ends every operation at once, and nothing was sent."""
    row = Row(NotSent, NotSent, ServiceUnreachable, NotSent, DownloadFailed)
    check(unsent(reason, Phase.TLS), row)


def test_over_budget() -> None:
    """A paid request that would exceed a limit of the user's ends at once, and was not sent."""
    row = Row(OverBudget, OverBudget, ServiceUnreachable, NotSent, DownloadFailed)
    check(unsent(Reason.OVER_BUDGET), row)


# "during send, before head, mid-body, truncated".
SENT = [
    (phase, reason)
    for phase in (Phase.SEND, Phase.HEAD, Phase.BODY)
    for reason in (
        Reason.RESET,
        Reason.CLOSED,
        Reason.TIMED_OUT,
        Reason.TRUNCATED,
        Reason.TOO_LARGE,
        Reason.MALFORMED,
        Reason.INTERRUPTED,
        Reason.OTHER,
        Reason.REFUSED,
        Reason.NAME_RESOLUTION,
        Reason.CERTIFICATE,
    )
]


@pytest.mark.parametrize(("phase", "reason"), SENT)
def test_sent_is_ambiguous(phase: Phase, reason: Reason) -> None:
    """Once a byte has left, a paid request without a whole response is ambiguous for any reason."""
    check(lost(phase, reason), Row(CreateAmbiguous, CreateAmbiguous, AGAIN, AGAIN, AGAIN))


def test_redirects() -> None:
    """A redirect makes a create ambiguous, is an error elsewhere, and only a download follows."""
    for start, expected in (
        (create, CreateAmbiguous),
        (newborn_poll, ProtocolViolation),
        (delete, ProtocolViolation),
    ):
        check_statuses(
            start,
            dict.fromkeys(REDIRECTS, expected),
            Location="https://api.example.com/v1/elsewhere",
        )
    followed: dict[int, object] = {}
    for status in REDIRECTS:
        head = HttpHead(status, (("Location", "/there"),))
        action = download().accept(head, 0).next_action(0)
        followed[status] = isinstance(action, Fetch) and action.request.url
    assert followed == dict.fromkeys(REDIRECTS, "https://cdn.example.net/there")


REFUSED = {400, 401, 402, 403, 404, 405, 413, 415, 422, 425}
POLL_STOPS = {400, 401, 402, 403, 422}
LINK_DEAD = {403, 404, 410}
ERRORS = {401: Unauthorized, 403: Forbidden}
REDIRECTS = range(300, 400)
OTHER_STATUSES = [*range(100, 200), *range(400, 600)]


def check_statuses(
    start: Callable[[], Operation[Any]], expected: dict[int, Meaning], **headers: str
) -> None:
    """Compare what *start* makes of each status with the table; every wrong row is reported."""
    assert {status: meaning(start(), reply(status, **headers)) for status in expected} == expected


def refused(statuses: set[int]) -> dict[int, Meaning]:
    """Return what each of *statuses* means where it is a refusal."""
    return {status: ERRORS.get(status, Refused) for status in statuses}


def test_create_statuses() -> None:
    """The listed statuses refuse a create, 429 is retried, every other one is ambiguous."""
    others = dict.fromkeys(OTHER_STATUSES, CreateAmbiguous)
    check_statuses(create, others | refused(REFUSED) | {429: AGAIN})


def test_poll_statuses() -> None:
    """The listed statuses stop a poll, which keeps the id; after every other it asks again."""
    check_statuses(newborn_poll, dict.fromkeys(OTHER_STATUSES, AGAIN) | refused(POLL_STOPS))


def test_delete_statuses() -> None:
    """The listed statuses are errors of a deletion; after every other it is retried."""
    check_statuses(delete, dict.fromkeys(OTHER_STATUSES, AGAIN) | refused(REFUSED))


def test_download_statuses() -> None:
    """A dead link asks once for a fresh one, other refusals end it, the rest is retried."""
    ended = dict.fromkeys(OTHER_STATUSES, AGAIN) | dict.fromkeys(REFUSED, DownloadFailed)
    check_statuses(lambda: download(about=task()), ended | dict.fromkeys(LINK_DEAD, QUERY))
    check_statuses(download, ended | dict.fromkeys(LINK_DEAD, LinkExpired))


def test_call_hands_any_reply_over() -> None:
    """A call to an endpoint that nobody knows is answered by any whole response, never repeated."""
    for status in range(100, 600):
        run = drive(call(), reply(status, {"said": 1}))
        assert (run.outcome, len(run.requests)) == (reply(status, {"said": 1}), 1)


def test_any_success_counts() -> None:
    """Any 2xx with a valid record counts, for a create, a poll and a deletion."""
    for status in range(200, 300):
        created = drive(create(), reply(status, record("queued"))).outcome
        assert (type(created), created.id) == (Task, "t1"), status
        done = drive(poll(), reply(status, record("completed", video_url=LINK))).outcome
        assert isinstance(done, Result), status
        deleted = reply(status, {"code": "0", "msg": "", "data": None})
        assert drive(delete(), deleted).outcome is None, status


def test_statuses_beyond_http() -> None:
    """A status that HTTP does not have leaves a create ambiguous and is asked again by a poll."""
    check_statuses(create, dict.fromkeys(range(600, 1000), CreateAmbiguous))
    check_statuses(newborn_poll, dict.fromkeys(range(600, 1000), AGAIN))


# Tries.


def test_unsent_create_has_three_tries() -> None:
    """A create that never reaches the service is tried three times in all and then not sent."""
    run = drive(create(), *repeat(3, unsent()))
    assert isinstance(run.outcome, NotSent)
    assert run.outcome.attempts == 3
    assert len(run.requests) == 3
    assert [type(event) for event in run.events] == [WillRetry, WillRetry]


def test_certificate_has_one_try() -> None:
    """A create towards an invalid certificate is tried once."""
    run = drive(create(), unsent(Reason.CERTIFICATE, Phase.TLS))
    assert isinstance(run.outcome, NotSent)
    assert run.outcome.attempts == 1


def test_unsent_then_accepted() -> None:
    """A create that did not reach the service at first ends with its task."""
    run = drive(create(), unsent(), unsent(), reply(200, record("queued")))
    assert isinstance(run.outcome, Task)
    assert len(run.requests) == 3


@pytest.mark.parametrize("start", [create, call])
def test_a_sent_request_is_sent_once(start: Callable[[], Operation[Any]]) -> None:
    """A paid request whose response is lost is sent exactly once."""
    run = drive(start(), lost())
    assert isinstance(run.outcome, CreateAmbiguous)
    assert len(run.requests) == 1
    assert [type(event) for event in run.events] == [Ambiguous]


def test_unsent_then_lost_is_ambiguous() -> None:
    """A second try that may have arrived is the last, however the first ended."""
    run = drive(create(), unsent(), lost())
    assert isinstance(run.outcome, CreateAmbiguous)
    assert len(run.requests) == 2


def test_throttled_create_has_four_tries() -> None:
    """A create that is answered with 429 is tried four times in all, then it is rate-limited."""
    run = drive(create(), *repeat(4, reply(429, Retry_After="1")))
    assert isinstance(run.outcome, RateLimited)
    assert run.outcome.retry_after == 1
    assert len(run.requests) == 4
    assert run.gaps == [1, 1, 1]
    assert [type(event) for event in run.events] == [Throttled] * 3


def test_throttled_without_retry_after() -> None:
    """Without Retry-After a 429 waits with full jitter over 1, 2 and 4 seconds."""
    run = drive(create(seed=3), *repeat(4, reply(429)))
    assert isinstance(run.outcome, RateLimited)
    assert run.outcome.retry_after is None
    assert all(0 <= gap <= most for gap, most in zip(run.gaps, (1, 2, 4), strict=True))
    assert run.gaps == pytest.approx([backoff(3, 1), backoff(3, 2), backoff(3, 3)])


def test_throttled_then_accepted() -> None:
    """A create that was asked to slow down ends with its task."""
    run = drive(create(), reply(429), unsent(), reply(429), reply(201, record("queued")))
    assert isinstance(run.outcome, Task)


def test_create_ends_within_its_deadline() -> None:
    """All attempts of a create together take no longer than its deadline allows."""
    run = drive(create(), *repeat(4, After(50, reply(429, Retry_After="101"))))
    assert isinstance(run.outcome, RateLimited)
    assert len(run.requests) == 2
    slow = drive(create(), *repeat(3, After(300, unsent(Reason.TIMED_OUT))))
    assert isinstance(slow.outcome, NotSent)
    assert slow.outcome.attempts == 1


def test_create_waits_a_minute_for_its_reply() -> None:
    """One exchange of a create may take 60 seconds, because short timeouts make ambiguity."""
    assert drive(create(), reply(200, record("queued"))).deadlines == [60]
    assert drive(create(timeout=5), reply(200, record("queued"))).deadlines == [5]


def test_poll_goes_on_through_throttling() -> None:
    """A poll that is answered with 429 slows down and continues to its deadline, even an hour."""
    run = drive(poll(), forever=reply(429))
    assert isinstance(run.outcome, WaitTimeout)
    assert run.now == HOUR
    assert min(run.gaps[:-1]) >= 5
    done = drive(poll(), *repeat(50, reply(429, Retry_After="20")), DONE)
    assert isinstance(done.outcome, Result)


def test_safe_call_is_repeated() -> None:
    """A GET to an endpoint that nobody knows may be repeated, four times in all."""
    run = drive(call("GET"), *repeat(4, lost()))
    assert isinstance(run.outcome, ServiceUnreachable)
    assert isinstance(drive(call("GET"), lost(), reply(500)).outcome, HttpResponse)
    never = drive(call("GET"), *repeat(3, unsent()))
    assert isinstance(never.outcome, NotSent)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_calls_are_paid(method: str) -> None:
    """Any method that is not known to be safe is treated as one that costs money."""
    run = drive(call(method), lost())
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.requests[0].paid


def test_only_creates_and_calls_are_paid() -> None:
    """Creates and POSTs ask for a fresh connection, polls, deletions and downloads do not."""
    actions = [start().next_action(0) for start in OPERATIONS.values()]
    requests = [action.request for action in actions if isinstance(action, Send | Fetch)]
    assert [request.paid for request in requests] == [True, True, False, False, False]
    assert [request.authorized for request in requests] == [True, True, True, True, False]


# Retry-After.

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "0"}, 0),
        ({"Retry_After": "7"}, 7),
        ({"Retry_After": " 120 "}, 120),
        ({"Retry_After": "007"}, 7),
        ({"retry_after": "9"}, 9),
        ({"Retry_After": "9999999999"}, 9999999999),
        ({"Retry_After": "9" * 11}, 9999999999),
        ({"Retry_After": "9" * 5000}, 9999999999),
        ({"Retry_After": "0" * 5000 + "7"}, 7),
        ({"Retry_After": "9999999999.5"}, 9999999999),
        ({"Retry_After": "1000000000"}, 1_000_000_000),
        ({"Retry_After": "1.5"}, 2),
        ({"Retry_After": "1.000"}, 1),
        ({"Retry_After": "Sunday, 06-Nov-94 08:50:07 GMT", "Date": DATE}, 30),
        ({"Retry_After": "Sun Nov  6 08:50:07 1994", "Date": DATE}, 30),
        ({"Retry_After": "Sun, 06 Nov 1994 08:49:60 GMT", "Date": DATE}, 23),
        ({"Retry_After": "Friday, 06-Nov-43 08:49:37 GMT", "Date": DATE}, 1_546_300_800),
        ({"Retry_After": "Sunday, 06-Nov-44 08:49:37 GMT", "Date": DATE}, 1_577_923_200),
        ({"Retry_After": "Monday, 06-Nov-95 08:49:37 GMT", "Date": DATE}, 365 * DAY),
        ({"Retry_After": "Sun, 06 Nov 1994 08:50:07 GMT", "Date": DATE}, 30),
        ({"Retry_After": "Mon, 07 Nov 1994 08:49:37 GMT", "Date": DATE}, DAY),
        ({"Retry_After": DATE, "Date": DATE}, 0),
        ({"Retry_After": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": DATE}, 252_618_189_022),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float) -> None:
    """Retry-After is seconds, or any HTTP date against the response's own Date."""
    assert retry_after(reply(429, **headers)) == seconds


JUNK = [
    "",
    "-5",
    "+5",
    "inf",
    "nan",
    "1e9",
    ".5",
    "5.",
    "1_000",
    "0x10",
    "5 s",
    "5, 5",
    "٣",
    "\uff15",
    "²",
    "soon",
    "\x00",
    DATE.replace("1994", "99999"),
    DATE.replace("1994", "0000"),
    DATE.replace("Nov", "Foo"),
    DATE.replace("06", "31"),
    DATE.replace("06", "00"),
    DATE.replace("08:49", "25:61"),
    DATE.replace("GMT", "UTC"),
    DATE.replace(" GMT", ""),
    "Sunday, 31-Nov-94 08:49:37 GMT",
    "Sun Nov 31 08:49:37 1994",
    "1994-11-06T08:49:37Z",
    "Sun, ٠٦ Nov 1994 08:49:37 GMT",
]


@pytest.mark.parametrize("text", JUNK, ids=lambda text: ascii(text)[:20])
def test_retry_after_junk(text: str) -> None:
    """A create that is asked to wait, and cannot read for how long, is not sent again."""
    answer = reply(429, Retry_After=text, Date=DATE)
    assert retry_after(answer) is None
    run = drive(create(), *repeat(4, answer))
    assert isinstance(run.outcome, RateLimited)
    assert len(run.requests) == (4 if text == "" else 1)


OVER = [
    *(
        "Sun, 06 Nov 1994 08:49:36 GMT",
        "Sun, 06 Nov 1994 00:49:37 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
    ),
    *("Sunday, 06-Nov-45 08:49:37 GMT", "Sun Nov  6 08:49:07 1994"),
]


@pytest.mark.parametrize("text", OVER)
def test_retry_after_that_is_over(text: str) -> None:
    """A date before the response's own was set by another clock: when to retry is not known."""
    answer = reply(429, Retry_After=text, Date=DATE)
    assert retry_after(answer) is None
    assert isinstance(drive(create(), *repeat(4, answer)).outcome, RateLimited)
    assert len(drive(create(), *repeat(4, answer)).requests) == 1
    waits = drive(poll(), answer, DONE).gaps, drive(poll(), reply(429), DONE).gaps
    assert waits[0] == waits[1]


def test_retry_after_that_is_over_by_this_clock() -> None:
    """Without a `Date`, this machine's clock may be the one that is wrong."""
    assert retry_after(reply(429, Retry_After=DATE), 784_111_778.0) is None  # a second later


def test_a_date_of_two_digits() -> None:
    """The year of a `Date` of two digits is one near this machine's, or near 1970 without it."""
    for wall, year in ((None, "20"), (784_111_777.0, "44")):
        date = f"Friday, 06-Nov-{year} 08:49:37 GMT"
        asked = f"Fri, 06 Nov 20{year} 08:50:07 GMT"
        assert retry_after(reply(429, Retry_After=asked, Date=date), wall) == 30


@pytest.mark.parametrize(
    ("start", "status"),
    [(create, 429), (poll, 429), (poll, 503)],
)
def test_a_date_is_compared_with_the_time_of_its_response(
    start: Callable[..., Operation[Any]], status: int
) -> None:
    """Where a response has no `Date`, this machine's clock tells how long it is until then."""
    asked = reply(status, Retry_After=formatdate(WALL + 5070, usegmt=True))
    run = drive(start(now=5000.0), After(10, asked), reply(401), now=5000.0)
    assert run.gaps == [70]


def test_several_retry_afters() -> None:
    """The longest counts, and a create is not sent again if one of them cannot be read."""
    for texts, longest, posts in ((("1", "7"), 7, 2), (("1", "PT1H"), 1, 1)):
        fields = (*(("Retry-After", text) for text in texts), ("Date", DATE))
        answer = HttpResponse(429, fields, b"{}")
        assert retry_after(answer) == longest
        assert len(drive(create(), answer, reply(200, record("queued"))).requests) == posts


def test_two_dates() -> None:
    """Of two `Date` headers nobody knows which is right: a date needs Unix seconds then."""
    later = DATE.replace("08:49", "08:50")
    answer = HttpResponse(429, (("Retry-After", later), ("Date", later), ("Date", DATE)), b"{}")
    assert retry_after(answer) is None
    assert retry_after(answer, 784_111_777.0) == 60


def test_retry_after_date_needs_a_clock() -> None:
    """An HTTP date counts only with the response's own Date, or with Unix seconds."""
    assert retry_after(reply(429, Retry_After=DATE)) is None
    assert retry_after(reply(429, Retry_After=DATE, Date="today")) is None
    wall = 784_111_777.0  # DATE
    for date in ({}, {"Date": "today"}, {"Date": ""}):
        assert retry_after(reply(429, Retry_After=DATE, **date), wall - 29.5) == 30
        assert retry_after(reply(429, Retry_After=DATE, **date), wall + 0.9) == 0
    assert retry_after(reply(429, Retry_After=DATE, Date=DATE), wall - 30) == 0


@pytest.mark.parametrize(
    "asked",
    ["121", "3600", "9999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 07 Nov 1994 08:49:37 GMT"],
)
def test_long_retry_after_stops_a_create(asked: str) -> None:
    """A create that is asked to wait over 120 seconds stops at once and says how long."""
    run = drive(create(), reply(429, Retry_After=asked, Date=DATE))
    assert isinstance(run.outcome, RateLimited)
    assert run.outcome.retry_after is not None
    assert run.outcome.retry_after > 120
    assert run.now == 0
    assert f"{run.outcome.retry_after:.0f} s" in str(run.outcome)


def test_retry_after_of_two_minutes_is_obeyed() -> None:
    """A create waits the 120 seconds that it is asked to wait."""
    run = drive(create(), reply(429, Retry_After="120"), reply(200, record("queued")))
    assert isinstance(run.outcome, Task)
    assert run.gaps == [120]


def test_retry_after_over_the_deadline_stops() -> None:
    """A create that would be retried only after its deadline stops with RateLimited."""
    answers = repeat(4, reply(429, Retry_After="110"))
    run = drive(create(), *answers)
    assert isinstance(run.outcome, RateLimited)
    assert run.times == [0, 110, 220]


@pytest.mark.parametrize("asked", [*JUNK, "0", "86400", "9999999999"], ids=ascii)
def test_retry_after_never_puts_a_poll_or_deletion_to_sleep(asked: str) -> None:
    """No Retry-After makes a poll wait over 120 seconds, or a deletion over one exchange's time."""
    for status in (429, 503):
        answer = reply(status, Retry_After=asked, Date=DATE)
        assert drive(poll(), answer, DONE).gaps[0] <= 120
        gone = reply(200, {"code": "0"})
        assert drive(delete(), answer, gone).gaps[0] <= 60
        assert drive(download(), answer, media(200, b"\x00" * 9)).gaps[0] <= 120


def test_retry_after_slows_a_server_error() -> None:
    """A poll that meets 503 with Retry-After comes back no sooner than it is asked to."""
    run = drive(poll(), reply(503, Retry_After="77"), DONE)
    assert run.gaps == [77]


def test_retry_after_on_other_statuses_resends_no_create() -> None:
    """A Retry-After does not make an ambiguous status one that may be sent again."""
    for status in (408, 500, 502, 503, 504):
        run = drive(create(), reply(status, Retry_After="1"))
        assert isinstance(run.outcome, CreateAmbiguous)


# Backoff.


@pytest.mark.parametrize("attempt", range(1, 13))
def test_backoff_is_full_jitter(attempt: int) -> None:
    """A wait lies between nothing and 1, 2, 4, 8, 16, 20, 20 ... seconds, spread over all of it."""
    most = (1, 2, 4, 8, 16, 20, 20, 20, 20, 20, 20, 20)[attempt - 1]
    waits = [backoff(seed, attempt) for seed in range(2000)]
    assert all(0 <= wait < most for wait in waits)
    assert min(waits) < most * 0.01
    assert max(waits) > most * 0.99
    assert sum(waits) / len(waits) == pytest.approx(most / 2, rel=0.05)


@pytest.mark.parametrize("attempt", [64, 10**3, 10**6])
def test_backoff_stays_bounded(attempt: int) -> None:
    """However many attempts have failed, a wait is no longer than 20 seconds."""
    assert 0 <= backoff(7, attempt) < 20


def test_backoff_repeats_with_its_seed() -> None:
    """The same seed gives the same waits, and another seed gives others."""
    one = [backoff(1, attempt) for attempt in range(1, 9)]
    assert one == [backoff(1, attempt) for attempt in range(1, 9)]
    assert one != [backoff(2, attempt) for attempt in range(1, 9)]
    assert len({backoff(seed, 3) for seed in range(1000)}) == 1000


# A create's reply.


def test_a_create_gives_its_task() -> None:
    """A create that is accepted ends with a task that remembers what it was made for."""
    run = drive(create(now=100), reply(200, record("queued", model="imga-x", created=5)), now=100)
    made = run.outcome
    assert made == Task(
        id="t1",
        family="imga",
        model="imga-x",
        requested_model="imga",
        status="queued",
        created=5,
        submitted_at=WALL + 100,
    )
    assert run.events == [Submitted(made)]


UNREADABLE = [
    b"",
    b"<html>OK</html>",
    b"{",
    b"null",
    b"[]",
    b'"t1"',
    b'{"status":"queued"}',
    b'{"id":null,"status":"queued"}',
    b'{"id":5,"status":"queued"}',
    b'{"id":"","status":"queued"}',
    b'{"id":"..","status":"queued"}',
    b'{"id":"..","status":"queued"}',
    b'{"id":"a\\r\\nX: y"}',
    b'{"id":"\\u0000"}',
    b'{"id":"\\ud800"}',
    b'{"id":"' + b"x" * 5000 + b'"}',
    b'{"id":"t1","id":"t2"}',
    b'{"id":"t1","n":NaN}',
    b'{"id":"t1"} {"id":"t2"}',
    '{"id":"t1"}'.encode("utf-16"),
    b'{"id":"t1","x":"\xff"}',
    b'{"id":"t1","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"id":"t1","n":' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: ascii(body)[:30])
def test_success_without_a_usable_id_is_ambiguous(body: bytes) -> None:
    """A 2xx without valid JSON or a usable id is ambiguous, and the raw response is kept."""
    run = drive(create(), raw(200, body))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.raw == body[: 64 * 1024]
    assert run.outcome.status == 200
    assert run.outcome.failure is None


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "image/png", ""])
def test_content_type_does_not_decide(content_type: str) -> None:
    """A valid record counts under any content type: a paid id is not lost over a header."""
    body = b'\xef\xbb\xbf {"id":"t1","status":"queued"}\n'
    run = drive(create(), raw(200, body, Content_Type=content_type))
    assert isinstance(run.outcome, Task)


def test_a_failed_record_at_creation_is_a_failed_task() -> None:
    """A record that failed at creation is a failed task, and is never polled."""
    request = ImgbRequest(model="imgb-2", prompt="x")
    made = drive(
        Create.start(request, SERVICE, now=0, wall=WALL, seed=0),
        reply(200, record("failed", object="image", error="unsupported pair")),
    ).outcome
    assert isinstance(made, Task)
    assert made.status == "failed"
    run = drive(poll(made))
    assert run.requests == []
    assert isinstance(run.outcome, TaskFailed)
    assert run.outcome.result.error == "unsupported pair"
    assert run.outcome.task == made
    assert "unsupported pair" in str(run.outcome)


@pytest.mark.parametrize("fields", [{}, {"id": None}, {"id": ""}])
def test_a_failed_record_without_an_id_is_a_refusal(fields: dict[str, Any]) -> None:
    """A record that failed and has no id is a refusal with the service's reason."""
    said = {"status": "failed", "error": "no such ratio", **fields}
    run = drive(create(), reply(200, said))
    assert type(run.outcome) is Refused
    assert run.outcome.message == "no such ratio"
    assert len(run.requests) == 1


def test_a_failed_record_with_an_odd_id_is_ambiguous() -> None:
    """A record that failed but has an id that cannot be used leaves open what happened."""
    run = drive(create(), reply(200, {"status": "failed", "id": 5}))
    assert isinstance(run.outcome, CreateAmbiguous)


def test_a_refusal_keeps_little_of_a_long_reply() -> None:
    """A refusal keeps at most 64 KiB of the response and 500 characters of its message."""
    long = "x" * 100_000
    for answer in (
        reply(400, {"error": long}),
        reply(200, {"status": "failed", "error": long}),
        reply(429, {"error": long}, Retry_After="999"),
    ):
        refused = drive(create(), answer).outcome
        assert isinstance(refused, Refused)
        assert len(refused.body) == 64 * 1024
        assert len(refused.message) <= 503


WITHOUT_SUCCESS = sorted(REFUSED | {429, 500, 302, 100})


def candidates_in(body: bytes) -> dict[int, tuple[str, int] | ServiceError]:
    """Return the candidate that a create finds in *body*, and its POSTs, for each status."""
    found: dict[int, tuple[str, int] | ServiceError] = {}
    for status in WITHOUT_SUCCESS:
        run = drive(create(), raw(status, body), forever=raw(status, b""))
        ended = run.outcome
        found[status] = ended
        if isinstance(ended, CreateAmbiguous) and ended.candidate_id:
            found[status] = ended.candidate_id, len(run.requests)
    return found


@pytest.mark.parametrize(
    "body",
    [
        b'{"id":"t9","status":"queued"}',
        b'{"id":"t9","object":"video"}',
        b'{"id":"t9","status":"queued"',
        b'{"\\u0069d":"t\\u0039","status":null}',
        b'{"data":{"id":"t9","status":"queued"}}',
        b'{"code":0,"data":[[],[{"list":[{"object":"video","id":"t9"}]}]]}',
        b'{"task_id":"t9"}',
        b'{"error":{"code":429,"message":"slow","taskId":"t9"}}',
        b'{"data":{"id":"t9","status":"queued"',
    ],
)
def test_a_refusal_that_holds_a_task_is_ambiguous(body: bytes) -> None:
    """A refusal that holds a task, at whatever depth, may stand for a paid one: one POST."""
    assert candidates_in(body) == dict.fromkeys(WITHOUT_SUCCESS, ("t9", 1))
    run = drive(create(), raw(400, body))
    assert (run.outcome.status, run.outcome.raw) == (400, body)
    assert "t9" in str(run.outcome)


@pytest.mark.parametrize("body", [b'{"id":9,"status":"queued"}', b'{"a":{"task_id":9}}'])
def test_a_refusal_that_holds_a_number_for_an_id_is_ambiguous(body: bytes) -> None:
    """A task's id may be an integer in a refusal: the candidate is its digits."""
    assert candidates_in(body) == dict.fromkeys(WITHOUT_SUCCESS, ("9", 1))


NO_TASKS = [
    b'{"id":"r9","error":"no"}',
    b'{"error":{"id":"r9"}}',
    b'{"id":"r9',
    b'{"status":"failed"}',
    b'{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","id":"r9"}}',
    b'{"error":{"code":400,"status":"INVALID_ARGUMENT","id":"r9"}',
    b'{"id":"r9","status":429}',
    b'{"id":"r9","status":"429 Too Many Requests"}',
    b'{"id":"r9","status":"error","message":"no"}',
    b'{"id":"r9","object":"error"}',
    b'{"request_id":"r9","status":"failed"}',
    b'{"task_id":0}',
    b'{"task_id":null,"task_id ":"x"}',
    b'{"id":true,"status":"queued"}',
    b'{"id":{},"status":"queued"}',
    b'{"id":"","status":"queued"}',
]


@pytest.mark.parametrize("body", NO_TASKS)
def test_a_refusal_with_an_id_of_its_own_is_a_refusal(body: bytes) -> None:
    """An id alone, or in an error, may be that of the request: such a refusal is one."""
    runs = {status: drive(create(), raw(status, body)) for status in REFUSED}
    assert {status: type(run.outcome) for status, run in runs.items()} == refused(REFUSED)
    assert {len(run.requests) for run in runs.values()} == {1}


@pytest.mark.parametrize("body", NO_TASKS)
def test_a_throttled_create_with_an_id_of_its_own_is_tried_again(body: bytes) -> None:
    """A 429 that names the request's id is retried like any other."""
    run = drive(create(), raw(429, body), reply(400))
    assert len(run.requests) == 2


PLACES: list[Callable[[Any, Any], Any]] = [
    lambda inside, beside: [beside, inside],
    lambda inside, beside: {"data": inside, "more": beside},
    lambda inside, beside: {"error": {"code": 429, "details": [beside, inside]}},
    lambda inside, beside: {"id": "r1", "result": inside, "error": beside},
]


@given(
    status=st.sampled_from(sorted(REFUSED | {429})),
    record=st.fixed_dictionaries(
        {"id": st.text("abc /%\n\u65e5", min_size=1) | st.integers()},
        optional={"created": values, "error": values},
    ),
    state=st.sampled_from([("status", "queued"), ("status", "weird"), ("object", "video")]),
    beside=values,
    places=st.lists(st.sampled_from(PLACES), max_size=8),
)
def test_a_task_anywhere_in_a_refusal(
    status: int,
    record: dict[str, Any],
    state: tuple[str, str],
    beside: Any,
    places: list[Callable[[Any, Any], Any]],
) -> None:
    """A task anywhere in any JSON makes a refusal ambiguous: exactly one POST."""
    body: Any = {**record, state[0]: state[1]}
    for place in places:
        body = place(body, beside)
    run = drive(create(), raw(status, written(body)), forever=raw(status, b"{}"))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert len(run.requests) == 1
    assert run.outcome.raw


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":{"id":"t9","status":"queued"}}',
        b'{"id":9,"status":"queued","task_id":"t9"}'.replace(b"9,", b"null,"),
        b'{"code":"0","data":[{"task_id":"t9"}]}',
        b'[{"id":"t9","status":"queued"}]',
        b'{"status":"failed","data":{"id":"t9","status":"failed"}}',
        b'{"request":{"id":"r1"},"data":{"id":"t9","status":"queued"}}',
    ],
)
def test_a_success_without_an_id_of_its_own(body: bytes) -> None:
    """A success whose record is not where it belongs is ambiguous, and names the task in it."""
    run = drive(create(), raw(200, body))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id == "t9"
    assert run.outcome.raw == body


def test_the_records_own_id_is_the_candidate() -> None:
    """Where a whole response names several ids, the record's own is the candidate."""
    run = drive(create(), raw(500, b'{"request":{"id":"r1"},"id":"t9"}'))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id == "t9"


def test_a_candidate_beyond_what_is_kept_of_a_response() -> None:
    """A whole response is searched to its end, though only its first 64 KiB are kept."""
    body = json.dumps({"error": "x" * 7_000_000, "data": {"id": "t9", "status": "queued"}})
    run = drive(create(), raw(400, body.encode()))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id == "t9"
    assert len(run.outcome.raw) == 64 * 1024


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("a\x1b[2Jb\nc", "'a [2Jb c'"),
        ("\ud800", "'\ufffd'"),
        ("..", "'..'"),
        ("\x7f", "''"),
        ("\x00" + "x" * 3000, "'" + "x" * 79 + "...'"),
    ],
)
def test_an_id_that_cannot_be_used(told: str, shown: str) -> None:
    """An unusable id is not a candidate: the error shows it and keeps the response."""
    body = json.dumps({"id": told, "status": "queued"}).encode()
    run = drive(create(), raw(200, body))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id is None
    assert run.outcome.raw == body
    assert f"the id in it, {shown}, cannot be used" in str(run.outcome)
    assert str(run.outcome).isprintable()


def test_an_id_that_is_too_long() -> None:
    """An id that is too long to be asked for is kept whole, and shown in part."""
    told = "x" * 1025
    run = drive(create(), raw(200, json.dumps({"id": told, "status": "queued"}).encode()))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id == told
    assert run.outcome.next_step() == (
        f"The response contains '{'x' * 76}... as the id, which is not a valid id. "
        "Before you send the request again, check your account for a new task."
    )


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("x" * 1024, "x" * 1024),
        ("task 42", "'task 42'"),
        ("a. Send it again!", "'a. Send it again!'"),
        ("\u65e5\u672c", "'\u65e5\u672c'"),
        ("\u200b", r"'\u200b'"),
    ],
)
def test_a_candidate_is_told_whole(told: str, shown: str) -> None:
    """An id that can be asked for is never cut; one that is not plain is quoted."""
    run = drive(create(), raw(500, json.dumps({"id": told}).encode()))
    assert isinstance(run.outcome, CreateAmbiguous)
    assert run.outcome.candidate_id == told
    assert f"contains the id {shown}. Query it" in str(run.outcome)


def test_a_made_candidate_is_told_on_one_line() -> None:
    """An error that somebody makes by hand tells whatever its candidate is on one line."""
    error = CreateAmbiguous(reason="lost", candidate_id="a\nb\u202e\x1b[2J")
    assert str(error).isprintable()


WHOLE = b'{"object":"imga","id":"task-42","status":"queued"}'


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_truncated_at_every_byte(length: int) -> None:
    """A truncated response names a candidate only if the id's string is closed, never a cut one."""
    failure = lost(Phase.BODY, Reason.TRUNCATED, partial=WHOLE[:length], status=200)
    for reaction in (failure, raw(200, WHOLE[:length])):
        run = drive(create(), reaction)
        error = run.outcome
        assert isinstance(error, CreateAmbiguous)
        assert error.raw == WHOLE[:length]
        assert error.status == 200
        assert error.candidate_id == ("task-42" if b'task-42"' in WHOLE[:length] else None)


def test_ambiguity_is_no_timeout() -> None:
    """No generic retry decorator catches an ambiguous create: it is of no transient class."""
    bases = {base.__name__ for base in CreateAmbiguous.__mro__}
    assert bases == {"CreateAmbiguous", "ServiceError", "MuybridgeError", "Exception",
                     "BaseException", "object"}  # fmt: skip
    assert not issubclass(CreateAmbiguous, OSError | TimeoutError | ConnectionError | Refused)
    assert not issubclass(CreateAmbiguous, NotSent | ServiceUnreachable | RateLimited | ValueError)


# Polls.


def test_not_found_within_a_minute_of_creation() -> None:
    """A task that is not found within 60 seconds of its creation is asked for again."""
    run = drive(poll(task(submitted_at=WALL, family="imga")), *repeat(2, reply(404)), DONE)
    assert isinstance(run.outcome, Result)


@pytest.mark.parametrize("age", [61, 3600, 10 * DAY])
def test_not_found_later(age: float) -> None:
    """A task that is not found later than 60 seconds after its creation is not known."""
    old = task(submitted_at=WALL - age, family="vidv")
    run = drive(poll(old), reply(404, {"error": "who?"}))
    assert type(run.outcome) is TaskNotFound
    assert run.outcome.task == old
    assert run.outcome.message == "who?"


def test_not_found_for_too_long() -> None:
    """A task that stays unknown is asked for until 60 seconds after its creation, no longer."""
    run = drive(poll(task(submitted_at=WALL, family="imga")), forever=reply(404))
    assert type(run.outcome) is TaskNotFound
    assert run.times[-2] <= 60 < run.times[-1] <= 80


def test_a_bare_id_that_is_not_found() -> None:
    """An id of unknown age that is not found is not known."""
    run = drive(poll(), reply(404))
    assert type(run.outcome) is TaskNotFound


@pytest.mark.parametrize(
    ("family", "age", "kind"),
    [
        ("vidsa", DAY + 1, ResultExpired),
        ("vidsa", DAY, ResultExpired),
        ("vidsa", DAY - 1, TaskNotFound),
        ("vidsb", DAY + 1, TaskNotFound),
        ("vidv", DAY + 1, TaskNotFound),
        ("imgb", DAY + 1, TaskNotFound),
        (None, DAY + 1, TaskNotFound),
    ],
)
def test_only_vidsa_loses_its_record(family: str | None, age: float, kind: type[Refused]) -> None:
    """A 404 after a day is ResultExpired for vidsa alone, which deletes the record as well."""
    ages: list[dict[str, Any]] = [{"submitted_at": WALL - age}, {"created": int(WALL - age)}]
    for times in ages:
        old = task(family=family, **times)
        assert type(drive(poll(old), reply(404)).outcome) is kind


def test_silence_ends_no_wait() -> None:
    """However long the service does not answer, a wait continues to its deadline, and recovers."""
    for reaction in (reply(500), lost(), unsent()):
        run = drive(poll(), DONE_LATER, forever=reaction)
        assert type(run.outcome) is WaitTimeout
        assert run.now == run.outcome.waited == HOUR
        healed = drive(poll(wait=3 * HOUR), DONE_LATER, *repeat(100, reaction), DONE)
        assert isinstance(healed.outcome, Result)
        assert healed.now > HOUR


DONE_LATER = result("processing")


def test_silence_ends_with_a_valid_reply() -> None:
    """A valid response begins the ten minutes anew."""
    script: list[Reaction | After] = []
    for _ in range(5):
        script += [After(290, reply(500)), After(290, reply(502)), result("processing")]
    run = drive(poll(), *script, DONE)
    assert isinstance(run.outcome, Result)


def test_a_slow_pace_is_not_silence() -> None:
    """A caller who asks once in an hour does not lose the task over a single failure."""
    slow = poll(wait=None, poll_interval=3600)
    run = drive(slow, result("processing"), lost(), result("processing"), reply(503), DONE)
    assert isinstance(run.outcome, Result)


def test_wait_ends_after_an_hour() -> None:
    """A wait ends after one hour unless told otherwise."""
    run = drive(poll(), forever=result("processing"))
    assert isinstance(run.outcome, WaitTimeout)
    assert run.now == HOUR
    assert run.outcome.waited == HOUR
    assert run.outcome.status == "processing"
    assert max(run.deadlines) == HOUR


def test_wait_without_a_limit() -> None:
    """A wait of None continues for as long as the service answers."""
    run = drive(poll(wait=None), *repeat(5000, result("processing")), DONE)
    assert isinstance(run.outcome, Result)
    assert run.now > 20 * HOUR


def test_completed_without_url() -> None:
    """A completed task without a URL is asked for three times more, then it is incomplete."""
    nothing: list[dict[str, Any]] = [
        {},
        {"video_url": None},
        {"video_url": ""},
        {"image_url": "", "video_url": ""},
        {"video_url": 5},
        {"image_url": ["x"]},
    ]
    for empty in nothing:
        run = drive(poll(), forever=result("completed", **empty))
        assert type(run.outcome) is ResultIncomplete
        assert len(run.requests) == 4
        assert run.outcome.result.id == "t1"


def test_completed_with_a_late_url() -> None:
    """A URL that comes with a later response is the result's."""
    run = drive(poll(), *repeat(3, result("completed")), DONE)
    assert isinstance(run.outcome, Result)
    assert run.outcome.url == LINK


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b"[]",
        b'{"id":"t1"}',
        b'{"status":"queued"}',
        b'{"id":"t1","status":5}',
        b'{"id":7,"status":"queued"}',
    ],
)
def test_unreadable_replies_of_a_poll(body: bytes) -> None:
    """A 2xx that cannot be read is asked for three times more, then it breaks the protocol."""
    run = drive(poll(), forever=raw(200, body))
    assert type(run.outcome) is ProtocolViolation
    assert len(run.requests) == 4
    assert run.outcome.raw == body
    assert run.outcome.status == 200
    again = drive(poll(), *repeat(3, raw(200, body)), DONE)
    assert isinstance(again.outcome, Result)


@pytest.mark.parametrize("status", ["queued", "processing", "completed", "failed", "weird"])
def test_another_tasks_reply(status: str) -> None:
    """Another task's record breaks the protocol; its media is never the result."""
    run = drive(poll(), result(status, "t2", video_url=LINK, error="no"))
    assert type(run.outcome) is ProtocolViolation
    assert run.outcome.task == task()
    assert len(run.requests) == 1


@pytest.mark.parametrize("other", ["T1", "t1 ", "t", "t11"])
def test_an_id_is_compared_exactly(other: str) -> None:
    """An id that is almost the task's is another task's."""
    assert type(drive(poll(), result("completed", other, video_url=LINK)).outcome) is (
        ProtocolViolation
    )


@pytest.mark.parametrize("after", ["queued", "processing", "failed", "cancelled", "weird"])
def test_a_terminal_state_is_final(after: str) -> None:
    """A task that was completed and is now said to be something else breaks the protocol."""
    run = drive(poll(), result("completed"), result(after, video_url=LINK))
    assert type(run.outcome) is ProtocolViolation
    known = drive(poll(task(status="completed")), result(after, video_url=LINK))
    assert type(known.outcome) is ProtocolViolation


@pytest.mark.parametrize(
    "states",
    [
        ["queued", "processing", "completed"],
        ["queued", "completed"],
        ["processing", "queued", "completed"],
        ["completed"],
        ["queued", "queued", "processing", "processing", "completed"],
        ["preparing", "queued", "", "RENDERING", "Completed", "processing", "completed"],
    ],
)
def test_states_on_the_way(states: list[str]) -> None:
    """Skipped states are legal, and statuses that nobody knows are kept and polled on."""
    script = [result(state, video_url=LINK) for state in states]
    run = drive(poll(), *script)
    assert isinstance(run.outcome, Result)
    assert run.outcome.status == "completed"
    seen = [event.result.status for event in run.events if isinstance(event, Polled)]
    assert seen == states
    changed = [event.changed for event in run.events if isinstance(event, Polled)]
    befores: list[str | None] = [None, *states]
    assert changed == [now != before for now, before in zip(states, befores, strict=False)]


def test_failed_and_cancelled() -> None:
    """A failed or cancelled task ends the wait with its result and its task, after one query."""
    first = drive(poll(), result("failed", error="content policy violation"))
    assert type(first.outcome) is TaskFailed
    assert first.outcome.result.error == "content policy violation"
    assert len(first.requests) == 1
    second = drive(poll(), result("cancelled"))
    assert type(second.outcome) is TaskFailed
    assert second.outcome.result.status == "cancelled"
    assert str(second.outcome).startswith("Task t1 was cancelled.")


def test_a_single_query() -> None:
    """A single query ends with the first valid response, whatever the status."""
    for status in ("queued", "processing", "completed", "failed", "cancelled", "weird"):
        run = drive(query(), result(status))
        assert isinstance(run.outcome, Result)
        assert run.outcome.status == status
        assert run.times == [0]


def test_a_single_query_has_three_tries() -> None:
    """A single query is tried three times and then says what it met last."""
    for reaction, kind in (
        (lost(), ServiceUnreachable),
        (reply(500), ServiceUnreachable),
        (reply(429), ServiceUnreachable),
        (raw(200, b"{"), ProtocolViolation),
    ):
        run = drive(query(), forever=reaction)
        assert type(run.outcome) is kind
        assert len(run.requests) == 3


def test_a_single_query_of_a_newborn() -> None:
    """A single query for a task created seconds ago does not give up at the first 404."""
    young = task(submitted_at=WALL - 1, family="imga")
    run = drive(query(young), reply(404), result("queued"))
    assert isinstance(run.outcome, Result)
    gone = drive(query(young), forever=reply(404))
    assert type(gone.outcome) is TaskNotFound
    assert len(gone.requests) == 3


def test_a_failed_task_can_be_queried() -> None:
    """A single query asks the service even for a task that is known to have failed."""
    run = drive(query(task(status="failed")), result("failed"))
    assert isinstance(run.outcome, Result)
    assert len(run.requests) == 1


# Deletions.


@pytest.mark.parametrize(
    "code", ["1", "00", " 0", "0 ", "", "ok", 0, 0.0, None, False, True, [], {}]
)
def test_only_the_string_zero_deletes(code: object) -> None:
    """A deletion has succeeded only when `code` is the string 0."""
    run = drive(delete(), reply(200, {"code": code, "msg": "asset not found", "data": None}))
    assert type(run.outcome) is AssetDeleteFailed
    assert "asset not found" in str(run.outcome)
    assert len(run.requests) == 1


def test_deleted() -> None:
    """A deletion whose `code` is the string 0 has succeeded."""
    run = drive(delete(), reply(200, {"code": "0", "msg": "deleted", "data": None}))
    assert run.outcome is None
    assert (run.requests[0].method, run.requests[0].body) == ("DELETE", None)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"<html>", b'{"msg":"ok"}', b'{"code":"0","code":"0"}']
)
def test_unknown_deletion(body: bytes) -> None:
    """A 2xx without a readable `code` leaves open whether the asset was deleted."""
    run = drive(delete(), raw(200, body))
    assert type(run.outcome) is AssetDeleteUnknown
    assert len(run.requests) == 1


@pytest.mark.parametrize(
    "last",
    [
        reply(404),
        reply(400, {"error": "no such asset"}),
        reply(200, {"code": "1", "msg": "no such asset"}),
    ],
)
def test_a_lost_deletion_is_remembered(last: HttpResponse) -> None:
    """A refusal after a lost response says that the earlier try may have deleted the asset."""
    for earlier in (lost(), reply(502), reply(408)):
        run = drive(delete(), earlier, last)
        assert isinstance(run.outcome, AssetDeleteUnknown)
        assert run.outcome.likely
        assert "an earlier attempt was lost, and the last one was" in str(run.outcome)
    for harmless in (unsent(), reply(429)):
        assert not isinstance(drive(delete(), harmless, last).outcome, AssetDeleteUnknown)


def test_deletions_end() -> None:
    """A deletion is tried four times, and says what is known then."""
    for reaction, kind in (
        (lost(), AssetDeleteUnknown),
        (reply(500), AssetDeleteUnknown),
        (unsent(), NotSent),
        (reply(429, Retry_After="3"), RateLimited),
    ):
        run = drive(delete(), forever=reaction)
        assert type(run.outcome) is kind
        assert len(run.requests) == 4
        if isinstance(run.outcome, RateLimited):
            assert run.outcome.retry_after == 3


def test_a_certificate_after_a_lost_deletion() -> None:
    """An invalid certificate stops a deletion too, whose earlier try is not forgotten."""
    run = drive(delete(), lost(), unsent(Reason.CERTIFICATE, Phase.TLS))
    assert type(run.outcome) is AssetDeleteUnknown
    mixed = drive(delete(), lost(), *repeat(3, unsent()))
    assert type(mixed.outcome) is AssetDeleteUnknown


# Errors.


def after_a_create() -> list[ServiceError]:
    """Return every kind of error that a poll or a download of a known task can end with."""
    known = task(family="vidsa", submitted_at=WALL - 2 * DAY, model="m")
    young = task(family="vidsa", submitted_at=WALL - 100)
    outcomes = [
        drive(poll(known), *script, forever=forever).outcome
        for script, forever in [
            ([result("failed", error="x")], None),
            ([result("cancelled")], None),
            ([], result("queued")),
            ([], lost()),
            ([unsent(Reason.CERTIFICATE)], None),
            ([reply(404)], None),
            ([], result("completed")),
            ([], raw(200, b"")),
            ([result("completed", "t2")], None),
            ([reply(302)], None),
            *(([reply(status)], None) for status in sorted(POLL_STOPS)),
        ]
    ]
    outcomes.append(drive(poll(young), reply(404)).outcome)
    outcomes.append(drive(poll(attrs.evolve(young, status="failed"))).outcome)
    scripts: list[list[Reaction]] = [
        [reply(403), reply(404)],
        [reply(403), reply(401)],
        [reply(403), reply(302)],
        [reply(403), result("completed", "t2")],
        [reply(400)],
        [media(200, b"<html>")],
        [reply(302)],
        [unsent(Reason.CERTIFICATE)],
        [*repeat(5, lost())],
    ]
    outcomes += [drive(download(about=known), *script).outcome for script in scripts]
    return outcomes


def every_error() -> list[ServiceError]:
    """Return at least one error of each class, most as the operations make them."""
    found = after_a_create()
    found += [
        drive(start(), *script).outcome
        for start, script in [
            (create, [lost(partial=b'{"id":"t1"')]),
            (create, [reply(500)]),
            (create, [*repeat(3, unsent())]),
            (create, [unsent(Reason.OVER_BUDGET)]),
            (create, [reply(429, Retry_After="500")]),
            (create, [reply(429)] * 4),
            *((create, [reply(status)]) for status in sorted(REFUSED)),
            (delete, [reply(404)]),
            (delete, [reply(302)]),
            (delete, [reply(200)]),
            (delete, [reply(200, {"code": "1"})]),
            (delete, [lost(), reply(404)]),
            (download, [reply(410)]),
            (download, [reply(400)]),
            (call, [lost()]),
            (lambda: call("GET"), [lost()] * 4),
            (text_call, [lost()]),
        ]
    ]
    return [*found, errors.NotCompleted(reason="the task is queued")]


def test_every_error_after_a_create_carries_the_task() -> None:
    """Every error of a poll or a download of a known task carries the task, so no id is lost."""
    found = after_a_create()
    assert all(isinstance(error, ServiceError) for error in found)
    for error in found:
        assert error.task is not None
        assert error.task.id == "t1"
        assert "t1" in str(error)
        assert error.task.to_token()


def classes_of(base: type[ServiceError]) -> set[type[ServiceError]]:
    return {base}.union(*(classes_of(kind) for kind in base.__subclasses__()))


def test_every_class_of_error_is_met() -> None:
    """The errors that these tests look at are of every class that there is."""
    abstract = {ServiceError}
    met = {type(error) for error in every_error()}
    # Other tests may have loaded classes of the drivers or the command.
    ours = {kind for kind in classes_of(ServiceError) if kind.__module__ == errors.__name__}
    assert ours - abstract == met


def test_errors_travel() -> None:
    """Every error can be pickled and copied whole."""
    for error in every_error():
        for twin in (
            pickle.loads(pickle.dumps(error)),  # noqa: S301  our own bytes
            copy.copy(error),
            copy.deepcopy(error),
        ):
            assert type(twin) is type(error)
            for name in inspect.signature(type(error)).parameters:
                assert getattr(twin, name) == getattr(error, name)
            assert str(twin) == str(error)
            assert repr(twin) == repr(error)


def test_errors_show_their_fields() -> None:
    """The repr of an error has all of its fields but the response, and so have its arguments."""
    error = errors.RateLimited(status=429, message="slow down", body=b"secret", retry_after=7.0)
    assert repr(error) == "RateLimited(task=None, status=429, message='slow down', retry_after=7.0)"
    assert error.args == (None, 429, "slow down", 7.0)
    ended = errors.TaskFailed(result=Result(id="t1", status=Status.FAILED))
    assert repr(ended) == f"TaskFailed(task=None, result={ended.result!r})"


def test_errors_tell_what_to_do() -> None:
    """Every error says what happened, and in the end what to do next."""
    for error in every_error():
        assert error.next_step()
        assert str(error).endswith(error.next_step())
        assert str(error).startswith(error.what())
        assert error.what().endswith(".")
        with pytest.raises(type(error)):
            raise error


def test_messages_are_fit_to_print() -> None:
    """What the service wrote never brings line ends, control marks or half characters to a log."""
    nasty = "a\r\nb\x1b[2J\x00\ud800\u202e"
    known = task(model=nasty, status=nasty)
    outcomes = [
        drive(poll(known), result("failed", error=nasty)).outcome,
        drive(poll(known), forever=result(nasty)).outcome,
        drive(poll(known), result("completed"), result(nasty)).outcome,
        drive(create(), reply(400, {"error": nasty})).outcome,
        drive(create(), raw(400, nasty.encode("utf-8", "surrogatepass"))).outcome,
        drive(delete(), reply(200, {"code": nasty, "msg": nasty})).outcome,
        drive(create(), raw(400, b'{"id":"a\\r\\nb"}')).outcome,
        ProtocolViolation(reason=nasty, task=known),
    ]
    for outcome in outcomes:
        assert str(outcome).isprintable()
        assert str(outcome).encode()


def test_a_settled_value_is_unwrapped() -> None:
    """Unwrapping an outcome gives the value or raises the error."""
    assert drive(delete(), reply(200, {"code": "0"})).operation.next_action(0) == Settled(None)
    settled: Any = drive(create(), reply(401)).operation.next_action(0)
    with pytest.raises(Unauthorized, match="MUYBRIDGE_API_KEY"):
        settled.unwrap()
    assert Settled(3).unwrap() == 3


def test_downloads_resume_after_a_lost_reply() -> None:
    """A download that was cut off resumes where it stopped."""
    run = drive(
        download(part=Part(offset=4, validator='"v"', total=8)),
        lost(),
        media(206, b"5678", Content_Range="bytes 4-7/8", ETag='"v"'),
        disk=b"1234",
    )
    assert run.outcome == Saved(size=8, content_type="", length_verified=True)
    assert all(("Range", "bytes=4-") in request.headers for request in run.requests)


def run_of(operation: Poll, *script: Reaction) -> Run:
    return drive(operation, *script)


def test_statuses_are_named() -> None:
    """A status that the specification names is its member, and equals the plain string."""
    first = run_of(poll(), result("failed")).outcome.result
    assert first.status is Status.FAILED
    assert first.status == "failed"


def test_the_request_is_not_changed_by_tries() -> None:
    """Every try of a create sends the same bytes."""
    run = drive(create(), unsent(), reply(429), reply(200, record("queued")))
    assert len(set(run.requests)) == 1
    assert run.requests[0].body == b'{"model":"imga","prompt":"a horse"}'
    assert REQUEST.to_body() == {"model": "imga", "prompt": "a horse"}
