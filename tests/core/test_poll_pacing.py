"""How often a result is asked for: the specification's polling table, transcribed by hand."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from muybridge_protocol.delivery import backoff, fraction
from muybridge_protocol.errors import (
    ProtocolViolation,
    ResultExpired,
    ServiceUnreachable,
    TaskNotFound,
    WaitTimeout,
)
from muybridge_protocol.events import ServiceSilent, Throttled, WillRetry
from muybridge_protocol.fleet.fleet import seed_of
from muybridge_protocol.http import Reason
from muybridge_protocol.operations import Poll, Settled, Wait
from muybridge_protocol.operations.poll import UNANSWERED_PACING, UNKNOWN_PACING, too_often
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service
from tables import table

from .driving import (
    DONE,
    LINK,
    SERVICE,
    WALL,
    After,
    Run,
    drive,
    lost,
    next_action,
    poll,
    query,
    repeat,
    reply,
    result,
    task,
    unsent,
)

# Family, model, shortest and longest interval, stated minimum.
GUIDANCE: list[tuple[str, str, float, float, float | None]] = [
    *(("imga", model, 2, 5, None) for model in ("imga", "imga-2", "imga-pro", "imga-2-stable",
                                                "imga-pro-stable")),
    ("imgb", "imgb-2", 2, 5, None),
    ("imgb", "imgb-2-r", 2, 5, None),
    ("vidsb", "vidsb_2_0", 20, 40, 10),
    ("vidsb", "vidsb_2_0_pro", 20, 40, 10),
    ("vidsb", "vidsb_2_0_fast", 10, 20, 10),
    ("vidsb", "vidsb_2_0_fast_pro", 10, 20, 10),
    ("vidsa", "vidsa_1_5_pro_480p", 10, 20, 10),
    ("vidsa", "vidsa_1_5_pro_720p", 30, 60, 10),
    ("vidsa", "vidsa_1_5_pro_1080p", 30, 60, 10),
    *(("vidv", model, 30, 60, 30) for model in ("vidv_3_1_fast", "vidv_3_1_pro",
                                                "vidv_3_1_pro_stable", "vidv_3_1_fast_stable")),
    ("vidd", "viddq3-pro", 30, 60, None),
    ("vidd", "viddq3-turbo", 30, 60, None),
    *(("vidg", model, 30, 60, None) for model in ("vidg_video3", "vidg_video3_pro",
                                                  "vidg_video3_max", "vidg_video3_stable")),
    ("videos", "videos", 30, 60, None),
    ("videos", "videos_fast", 30, 60, None),
    ("vidc", "vidc_o3", 30, 60, None),
    ("vidr", "vidrPlus", 30, 60, None),
    ("vidr", "vidrPro", 30, 60, None),
    # Assumed: the specification shows nothing of vidm.
    ("vidm", "anything", 30, 60, None),
]  # fmt: skip

by_model = table(("family", "model", "shortest", "longest", "minimum"), GUIDANCE)


DONE_FAST = result("completed", video_url=LINK, model="vidsb_2_0_fast", created=int(WALL))


def newborn(family: str, model: str, **fields: Any) -> Task:
    return task(
        family=family, requested_model=model, model="a-backend", submitted_at=WALL, **fields
    )


def wait_for(about: Task, count: int = 20, **options: Any) -> Run:
    run = drive(poll(about, wait=None, **options), *repeat(count, result("processing")), DONE)
    assert isinstance(run.outcome, Result)
    return run


@by_model
def test_pace(
    family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """The first query comes after one interval; intervals grow from the range's low to its high."""
    run = wait_for(newborn(family, model))
    assert run.times[0] == shortest
    assert run.gaps[0] == shortest
    assert run.gaps == sorted(run.gaps)
    assert min(run.gaps) == shortest
    assert run.gaps[-1] == longest
    assert run.gaps[1] > shortest
    assert minimum is None or min(run.gaps) >= minimum


@by_model
@table(
    "fault",
    [reply(500), reply(503, Retry_After="1"), lost(), unsent(), reply(429), reply(200), reply(404)],
)
def test_pace_after_faults(
    fault: Any, family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """No fault makes a poll faster than a valid response does, nor than the stated minimum."""
    healthy = wait_for(newborn(family, model), count=3)
    failing = drive(poll(newborn(family, model)), *repeat(3, fault), DONE)
    pairs = zip(failing.gaps, healthy.gaps, strict=False)
    assert all(gap >= at_least for gap, at_least in pairs)
    assert min(failing.gaps, default=longest) >= max(shortest, minimum or 0)


@by_model
def test_an_outage_does_not_raise_the_rate(
    family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """In half an hour of any fault a task is polled no more often than in a healthy one."""
    assert longest >= shortest >= (minimum or 0)
    healthy = drive(poll(newborn(family, model), wait=1800), forever=result("processing"))
    for fault in (reply(503), lost(), unsent(), After(60, lost(reason=Reason.TIMED_OUT))):
        failing = drive(poll(newborn(family, model), wait=1800), forever=fault)
        assert isinstance(failing.outcome, WaitTimeout)
        assert 12 < len(failing.times) <= len(healthy.times)


@by_model
def test_warnings_about_the_pace(
    family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """An interval below the stated minimum is warned of, except on this machine."""
    assert shortest <= longest
    about = newborn(family, model)
    if minimum is None:
        assert too_often(about, 0.1, SERVICE) is None
        return
    reason = too_often(about, minimum - 0.5, SERVICE)
    assert reason is not None
    assert f"{minimum:g} s" in reason
    assert family in reason
    assert too_often(about, minimum, SERVICE) is None
    assert too_often(about, None, SERVICE) is None
    for local in ("http://127.0.0.1:8000", "http://localhost", "http://[::1]:1"):
        assert too_often(about, 0.1, Service(base_url=local)) is None


def test_a_bare_id() -> None:
    """A task of which only the id is known is asked for at once, then after 5 s growing to 30 s."""
    run = wait_for(task())
    assert run.times[0] == 0
    assert run.gaps[0] == 5
    assert run.gaps == sorted(run.gaps)
    assert run.gaps[-1] == 30
    assert too_often(task(), 0.1, SERVICE) is None


def test_kind() -> None:
    """Poll events say whether the poll is a single query or part of a wait."""
    assert Poll.start(task(), SERVICE, now=0, wall=WALL, seed=0).kind == "wait"
    assert Poll.query(task(), SERVICE, now=0, wall=WALL, seed=0).kind == "get"


def test_the_requested_model_sets_the_pace() -> None:
    """The pace is that of the model asked for; the service's own choice counts without it."""
    fast = newborn("vidsb", "vidsb_2_0_fast")
    assert wait_for(fast).times[0] == 10
    told = attrs.evolve(fast, requested_model=None, model="vidsa_1_5_pro_480p", family="vidsa")
    assert wait_for(told).times[0] == 10
    unlisted = attrs.evolve(fast, requested_model="vidsb_9_fast")
    assert wait_for(unlisted).times[0] == 20


def test_an_old_task_is_asked_for_at_once() -> None:
    """A task that was created longer ago than one interval is asked for at once."""
    old = task(family="vidv", submitted_at=WALL - 500)
    assert wait_for(old).times[0] == 0
    young = task(family="vidv", submitted_at=WALL - 12)
    assert wait_for(young).times[0] == 18


def test_a_clock_that_is_behind() -> None:
    """A task from the future, by another clock, is asked for after one interval."""
    ahead = task(family="vidv", submitted_at=WALL + 86400)
    assert wait_for(ahead).times[0] == 30
    told = task(family="vidv", created=int(WALL) + 86400)
    assert wait_for(told).times[0] == 30


@pytest.mark.parametrize("interval", [0.25, 3, 1000])
def test_poll_interval(interval: float) -> None:
    """A poll interval that the caller sets holds for every query."""
    run = wait_for(newborn("vidv", "vidv_3_1_pro"), poll_interval=interval)
    assert run.times[0] == interval
    assert run.gaps == [interval] * len(run.gaps)


@pytest.mark.parametrize("wait", [4.0, 10.0, 29.0, 30.0])
def test_a_wait_that_ends_before_the_next_poll_sends_nothing(wait: float) -> None:
    """A short wait does not poll sooner than the family's pace."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=wait))
    assert isinstance(run.outcome, WaitTimeout)
    assert not run.times
    assert run.now == wait
    longer = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=30.5), DONE)
    assert longer.times == [30]
    assert longer.deadlines == [30.5]


@pytest.mark.parametrize(
    ("fault", "next_poll"), [(reply(429, Retry_After="120"), 120), (result("queued"), 30)]
)
def test_no_poll_is_made_sooner_because_the_wait_ends(fault: Any, next_poll: float) -> None:
    """Retry-After and the family's minimum bind the last poll before the deadline, too."""
    old = task(family="vidv", submitted_at=WALL - 500)
    run = drive(poll(old, wait=29), fault)
    assert isinstance(run.outcome, WaitTimeout)
    assert run.times == [0]
    assert run.now == 29
    assert run.outcome.task is not None
    assert run.outcome.task.next_poll_at == WALL + next_poll


@pytest.mark.parametrize("about", [newborn("vidv", "vidv_3_1_pro"), task()])
def test_short_waits_in_a_row_keep_the_pace_of_one(about: Task) -> None:
    """Waiting 10 s again and again polls as seldom as waiting for an hour."""
    answer = result("processing", model="vidv_3_1_pro")
    times, now, waits = list[float](), 0.0, 0
    while now < 300:
        run = drive(poll(about, wait=10, now=now), forever=answer, now=now)
        assert isinstance(run.outcome, WaitTimeout)
        assert run.outcome.task is not None
        about = Task.from_token(run.outcome.task.to_token())
        times += run.times
        now, waits = run.now + 0.25, waits + 1
    assert waits == 30
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert set(gaps) == {30}
    assert isinstance(drive(poll(about, wait=60, now=now), DONE, now=now).outcome, Result)


@pytest.mark.parametrize("options", [{}, {"poll_interval": 5.0}])
def test_a_wall_clock_that_jumped_holds_no_poll_back_for_long(options: dict[str, Any]) -> None:
    """A next poll in a far future is taken for the longest wait that a service may ask for."""
    ahead = task(family="vidv", submitted_at=WALL - 500, next_poll_at=WALL + 1e9)
    assert poll(ahead).task == attrs.evolve(ahead, next_poll_at=None), "it has passed by the end"
    assert wait_for(ahead, **options).times[0] == 120
    passed = task(family="vidv", submitted_at=WALL - 500, next_poll_at=WALL - 1e9)
    assert wait_for(passed, **options).times[0] == 0
    soon = task(family="vidv", submitted_at=WALL, next_poll_at=WALL + 10)
    assert wait_for(soon).times[0] == 30
    own_pace = task(next_poll_at=WALL + 1e9)
    assert wait_for(own_pace, poll_interval=1000).times[0] == 1000


def test_a_wait_of_nothing() -> None:
    """A wait of no time ends at once and keeps the task."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=0))
    assert isinstance(run.outcome, WaitTimeout)
    assert run.outcome.task is not None


def test_a_reply_after_the_deadline_counts() -> None:
    """A result that arrives just after the deadline is not thrown away."""
    run = drive(poll(wait=10), After(11, DONE))
    assert isinstance(run.outcome, Result)
    late = drive(poll(wait=10), After(11, result("processing")))
    assert isinstance(late.outcome, WaitTimeout)


def test_retry_after_slows_a_poll() -> None:
    """A poll comes back when Retry-After says, but never sooner than its own interval."""
    about = newborn("vidv", "vidv_3_1_pro")
    assert drive(poll(about), reply(429, Retry_After="90"), DONE).gaps == [90]
    assert drive(poll(about), reply(429, Retry_After="1"), DONE).gaps == [30]
    assert drive(poll(about), reply(429, Retry_After="9999999"), DONE).gaps == [120]
    assert drive(poll(about), reply(503, Retry_After="90"), DONE).gaps == [90]


def test_an_ordinary_pace_follows_a_fault() -> None:
    """After a fault polling resumes at its own pace, which grew meanwhile."""
    run = drive(
        poll(newborn("imga", "imga")),
        result("queued"),
        reply(500),
        *repeat(3, result("queued")),
        DONE,
    )
    assert run.gaps[0] == 2
    assert 2.5 <= run.gaps[1] <= 2.5 * 1.25
    assert run.gaps[2:] == pytest.approx([3.125, 3.90625, 4.8828125])


def test_waits_repeat_with_a_seed() -> None:
    """The same seed gives the same waits after faults, and another seed gives others."""

    def gaps(seed: int) -> list[float]:
        return drive(poll(seed=seed, poll_interval=0), *repeat(6, lost()), DONE).gaps

    assert gaps(1) == gaps(1)
    assert gaps(1) != gaps(2)


def test_faults_back_off() -> None:
    """Failures in a row are polled again within 1, 2, 4, 8, 16 and then 20 seconds, if allowed."""
    run = drive(poll(poll_interval=0), forever=lost())
    assert isinstance(run.outcome, WaitTimeout)
    for gap, most in zip(run.gaps, [1, 2, 4, 8, 16, *([20] * 1000)], strict=False):
        assert 0 <= gap <= most


def test_tasks_that_fail_together_do_not_come_back_together() -> None:
    """Polls of one moment lie further apart after each fault, each by its seed."""

    def polled_at(seed: int) -> list[float]:
        return drive(poll(newborn("vidg", "vidg_video3"), seed=seed), forever=lost()).times

    times = [polled_at(seed_of(1, number)) for number in range(50)]
    assert {first for first, *_ in times} == {30}
    width = [max(each) - min(each) for each in zip(*times, strict=False)]
    assert 5 < width[1] <= 30 * 0.25
    assert width[1] < width[2] < width[3]
    assert width[20] > 30


def test_a_wait_ends_no_later_than_the_deadline() -> None:
    """A driver is never told to sleep beyond the deadline."""
    operation = poll(newborn("vidv", "vidv_3_1_pro"), wait=50)
    assert isinstance(operation, Poll)
    operation = operation.receive(result("queued"), 45)
    assert next_action(operation, 45) == Wait(50)


def settled(operation: Poll) -> Any:
    """Return the outcome of *operation*, or None while there is none."""
    return operation.settled.outcome if isinstance(operation.settled, Settled) else None


def test_silence_is_told_and_ends_nothing() -> None:
    """After ten minutes and three failed polls each further one tells how long it has been."""
    silent = poll(now=1000).fail(lost(), 1001).fail(lost(), 1002)
    assert isinstance(silent.fail(lost(), 1599.5).events[0], WillRetry)
    told = silent.fail(lost(), 1600)
    assert settled(told) is None
    (event,) = told.events
    assert isinstance(event, ServiceSilent)
    assert (event.silent, event.reason) == (600, str(lost()))
    assert told.due == 1600 + event.delay
    (later,) = told.fail(unsent(), 4000).events
    assert isinstance(later, ServiceSilent)
    assert (later.silent, later.reason) == (3000, str(unsent()))
    seldom = poll(now=1000).fail(lost(), 1300).fail(lost(), 1900)
    assert isinstance(seldom.events[0], WillRetry)
    assert isinstance(seldom.fail(lost(), 1901).events[0], ServiceSilent)
    heard = told.receive(result("processing"), 1901).fail(lost(), 2500).fail(lost(), 2501)
    assert isinstance(heard.fail(lost(), 2500).events[0], WillRetry)
    asked = told.receive(reply(429), 1700).fail(lost(), 2299)
    assert isinstance(asked.events[0], WillRetry)


def test_an_outage_that_outlasts_the_wait() -> None:
    """The deadline alone ends a wait, and its error tells for how long there was no response."""
    run = drive(poll(wait=7200), result("queued"), forever=lost())
    assert isinstance(run.outcome, WaitTimeout)
    assert (run.now, run.outcome.waited, run.outcome.silent) == (7200, 7200, 7200)
    assert "no valid response for the last 7200 s" in str(run.outcome)
    started_late = drive(poll(wait=7200, now=1000), forever=lost(), now=1000)
    assert isinstance(started_late.outcome, WaitTimeout)
    assert (started_late.outcome.waited, started_late.outcome.silent) == (7200, 7200)
    again = drive(poll(wait=7200), *repeat(60, lost()), DONE)
    assert isinstance(again.outcome, Result)
    fine = drive(poll(wait=20), lost(), forever=result("queued"))
    assert isinstance(fine.outcome, WaitTimeout)
    assert fine.outcome.silent == 20
    slow = drive(poll(wait=100), lost(), forever=result("queued"))
    assert isinstance(slow.outcome, WaitTimeout)
    assert slow.outcome.silent is None
    assert "no valid response" not in str(slow.outcome)


def test_a_certificate_ends_the_silence_at_once() -> None:
    """What cannot be reached at all is reported with how long it has been silent."""
    error = settled(poll(now=1000).fail(unsent(Reason.CERTIFICATE), 1004))
    assert isinstance(error, ServiceUnreachable)
    assert error.silent == 4


@pytest.mark.parametrize(("age", "found"), [(59.5, True), (60, True), (60.5, False)])
def test_a_newborn_is_looked_for_for_a_minute(age: float, *, found: bool) -> None:
    """A task that is not found is asked for again until a minute after its creation."""
    about = task(submitted_at=WALL + 1000)
    asked = poll(about, now=1000).receive(reply(404), 1000 + age)
    assert (settled(asked) is None) is found
    assert found or isinstance(settled(asked), TaskNotFound)


@pytest.mark.parametrize("interval", [0.01, 2.0, 15.0])
@pytest.mark.parametrize("seed", [None, 0, 1, 77])
def test_the_waits_after_faults_are_told(seed: int | None, interval: float) -> None:
    """Each failed attempt is followed by the wait from its seed and number, and reports it."""
    options: dict[str, Any] = {} if seed is None else {"seed": seed}
    failing = poll(now=1000, poll_interval=interval, **options)
    for attempt in range(1, 7):
        now = 1000.0 + attempt
        failing = failing.fail(lost(), now)
        spread = interval * (1 + 0.25 * fraction((seed or 0) + attempt))
        delay = max(backoff(seed or 0, attempt), spread)
        assert failing.due == now + delay
        (event,) = failing.events
        assert isinstance(event, WillRetry)
        assert (event.attempt, event.delay) == (attempt, delay)
    failing = failing.receive(result("processing"), 1010)
    (event,) = failing.fail(lost(), 1020).events
    assert isinstance(event, WillRetry)
    assert event.attempt == 1


def test_a_server_error_is_a_fault_like_any_other() -> None:
    """A server error waits as any fault, or for as long as it says if that is longer."""
    for seed in range(20):
        hasty = poll(seed=seed, poll_interval=1)
        assert hasty.receive(reply(503), 0).due == hasty.fail(lost(), 0).due
        assert hasty.receive(reply(503, Retry_After="0"), 0).due == 1
        assert hasty.receive(reply(503, Retry_After="50"), 0).due == 50
        assert hasty.receive(reply(503, Retry_After="5000"), 0).due == 120


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_the_waits_after_throttling_are_told(seed: int) -> None:
    """A 429 that does not say when to come back is followed by growing waits, drawn by the seed."""
    failing = poll(seed=seed, poll_interval=0.01, now=1000)
    for attempt in range(1, 7):
        failing = failing.receive(reply(429), 1000)
        delay = max(backoff(seed, attempt), 0.01 * (1 + 0.25 * fraction(seed + attempt)))
        assert failing.due == 1000 + delay
        assert failing.events == (Throttled("poll", delay),)
        assert failing.heard == 1000


def test_unreadable_replies_are_counted_in_a_row() -> None:
    """Three unreadable responses in a row are asked for again, and a valid one begins anew."""
    odd = reply(200)
    waiting = poll()
    for _ in range(3):
        for _ in range(3):
            waiting = waiting.receive(odd, 1)
            assert settled(waiting) is None
        waiting = waiting.receive(result("processing"), 1)
    for _ in range(3):
        waiting = waiting.receive(odd, 1)
    assert isinstance(settled(waiting.receive(odd, 1)), ProtocolViolation)


@pytest.mark.parametrize("start", [1, 1000, 1e6])
@pytest.mark.parametrize("wait", [6.0, 50.0, 200.0])
def test_the_drivers_clock_may_begin_anywhere(start: float, wait: float) -> None:
    """All times are counted from when the poll began, whatever the driver's clock said then."""

    def run(now: float) -> Run:
        about = task(family="vidv", submitted_at=WALL + now - 5)
        script = (reply(404), lost(), reply(429), *repeat(30, result("processing")))
        return drive(poll(about, now=now, wait=wait, seed=3), *script, now=now)

    first, later = run(0), run(start)
    assert [now - start for now in later.times] == pytest.approx(first.times)
    assert [end - start for end in later.deadlines] == pytest.approx(first.deadlines)
    assert isinstance(later.outcome, WaitTimeout)
    assert later.outcome.waited == wait


def test_the_pace_of_a_bare_id_is_told_as_ours() -> None:
    """The pace for a task of which only the id is known is marked as our choice."""
    assert (UNKNOWN_PACING.assumed, UNKNOWN_PACING.minimum) == (True, None)


@pytest.mark.parametrize("seed", [None, 0, 77])
def test_a_single_query_keeps_the_pace_between_its_tries(seed: int | None) -> None:
    """A single query is sent at once, and its retries are as far apart as polls."""
    asked = query() if seed is None else query(seed=seed)
    assert asked.fail(lost(), 3).due == 3 + 5 * (1 + 0.25 * fraction((seed or 0) + 1))
    about = task(family="vidv", next_poll_at=WALL + 20)
    run = drive(query(about), lost(), lost(), DONE)
    assert run.times[0] == 0
    assert min(run.gaps) >= 30
    own = drive(query(about, poll_interval=0), lost(), lost(), DONE)
    assert max(own.gaps) <= 2


# What a record says of a bare id.


def test_a_bare_id_takes_the_pace_of_its_model() -> None:
    """Once a record names the model, the family's pace, retention and expiry are known."""
    told = result("processing", model="vidsb_2_0_fast", created=int(WALL) - 7)
    run = drive(poll(), told, told, reply(503), lost(), DONE_FAST)
    assert run.gaps[:2] == [10, 12.5]
    assert min(run.gaps) >= 10
    assert isinstance(run.outcome, Result)
    assert run.outcome.family == "vidsb"
    assert run.outcome.expires_at == WALL + 86_400


@by_model
def test_a_bare_id_never_outpaces_its_family(
    family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """From its first record on a bare id is polled as a task of its family is."""
    assert longest >= shortest >= (minimum or 0)
    name = "vidm-2" if family == "vidm" else model
    run = drive(poll(), *repeat(12, result("processing", model=name)), DONE)
    assert run.gaps[0] == shortest
    assert run.gaps[-1] == longest


def test_a_bare_id_without_an_answer_is_polled_as_seldom_as_any_family() -> None:
    """While nobody says what family it is, an outage must not make polls of it louder."""
    run = drive(poll(wait=1800, seed=5), forever=lost())
    parts = [1 + 0.25 * fraction(5 + failure) for failure in range(1, 12)]
    intervals = [30, 37.5, 46.875, 58.59375, *[60] * 7]
    expected = [part * interval for part, interval in zip(parts, intervals, strict=True)]
    assert run.gaps[:11] == pytest.approx(expected)
    assert UNANSWERED_PACING.assumed
    assert min(run.gaps) >= 30
    assert min(run.gaps[10:]) >= 60
    healed = drive(poll(), *repeat(9, lost()), *repeat(3, result("processing")), DONE)
    assert healed.gaps[9:] == [30, 30, 30]
    throttled = drive(poll(seed=5), *repeat(11, reply(429)), DONE)
    assert throttled.gaps == pytest.approx(expected)
    asked = drive(poll(), reply(429, Retry_After="6"), reply(429, Retry_After="90"), DONE)
    assert asked.gaps == [30, 90]
    told = result("processing", model="vidsb_2_0")
    learnt = drive(poll(), *repeat(6, lost()), told, told, DONE)
    assert learnt.gaps[6:] == [40, 40]
    early = drive(poll(seed=2), lost(), told, told, DONE)
    assert early.gaps[1:] == pytest.approx([37.5, 40])


@pytest.mark.parametrize("born", ["created", "submitted_at"])
def test_errors_of_a_bare_id_carry_what_was_learnt(born: str) -> None:
    """The task of an error has family, model and creation once a record has told them."""
    known: dict[str, Any] = {"submitted_at": WALL - 100} if born == "submitted_at" else {}
    told = result("processing", model="vidsa_1_5_pro_480p", created=int(WALL) - 90_000)
    run = drive(poll(task(**known)), told, reply(404))
    assert type(run.outcome) is (ResultExpired if born == "created" else TaskNotFound)
    learnt = run.outcome.task
    assert learnt is not None
    assert (learnt.family, learnt.model) == ("vidsa", "vidsa_1_5_pro_480p")
    assert learnt.created == WALL - 90_000
    late = drive(poll(task(**known), wait=5), told)
    assert late.outcome.task.family == "vidsa"
    assert late.outcome.task.next_poll_at == WALL + 10
    failed = drive(poll(task()), result("failed", model="vidsa_1_5_pro_480p"))
    assert failed.outcome.task.family == failed.outcome.result.family == "vidsa"


def test_what_is_known_of_a_task_is_not_replaced() -> None:
    """A backend's name changes neither family nor pace of a task whose family is known."""
    told = result("processing", model="imga", created=5)
    run = drive(poll(newborn("vidv", "vidv_3_1_pro")), told, told, DONE)
    assert run.gaps[0] == 30
    assert run.outcome.family == "vidv"
    stranger = drive(poll(), result("processing", model="a-backend"), DONE)
    assert stranger.gaps == [5]
    assert stranger.outcome.family is None
    model_alone = wait_for(task(requested_model="vidsb_2_0_fast", model="imga"))
    assert model_alone.gaps[0] == 10
    own_pace = drive(poll(poll_interval=7), told, DONE)
    assert own_pace.gaps == [7]


def test_a_result_without_its_link_is_asked_for_at_the_ordinary_pace() -> None:
    """A completed result that lacks its URL is asked for again after one interval each time."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro")), *repeat(3, result("completed")), DONE)
    assert run.gaps == [30, 30, 30]


def test_what_is_due_at_once_is_due_at_that_very_moment() -> None:
    """Times of day are rounded up to a microsecond, so that no poll comes too soon, but not now."""
    assert poll(now=1 / 3).due == 1 / 3
    due = poll(task(family="vidv", submitted_at=WALL), now=1 / 3).due
    assert due == pytest.approx(30, abs=2e-6)
    assert due >= 30
    assert due == round(due, 6)


def test_a_task_of_a_known_model_is_of_its_family() -> None:
    """A task without a family, but with a model that one family has, is polled as that family's."""
    bare = task(requested_model="vidv_3_1_pro", submitted_at=WALL)
    assert poll(bare).task == attrs.evolve(bare, family="vidv")
    known = task(family="vidv", submitted_at=WALL)
    assert poll(known).task is known
