"""How often a result is asked for: the specification's polling table, transcribed by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from muybridge_protocol.delivery import backoff
from muybridge_protocol.errors import (
    ProtocolViolation,
    ServiceUnreachable,
    TaskNotFound,
    WaitTimeout,
)
from muybridge_protocol.events import Throttled, WillRetry
from muybridge_protocol.http import Reason
from muybridge_protocol.operations import Poll, Settled, Wait
from muybridge_protocol.operations.poll import UNKNOWN_PACING, too_often
from muybridge_protocol.service import Service
from muybridge_protocol.tasks import Result, Task

from .driving import (
    DONE,
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

by_model = pytest.mark.parametrize(("family", "model", "shortest", "longest", "minimum"), GUIDANCE)


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
def test_pace_after_faults(
    family: str, model: str, shortest: float, longest: float, minimum: float | None
) -> None:
    """No fault makes a poll faster than the minimum that the service states."""
    assert shortest <= longest
    for fault in (reply(500), lost(), reply(429), reply(200), reply(404)):
        run = drive(poll(newborn(family, model)), fault, fault, DONE)
        if isinstance(run.outcome, Result):
            assert min(run.gaps) >= (minimum or 0)
    slowed = drive(poll(newborn(family, model)), *repeat(3, reply(429)), DONE)
    assert min(slowed.gaps) >= shortest


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
    """Those who are told of a poll are told whether it asks once or waits."""
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


@pytest.mark.parametrize("wait", [4.0, 10.0, 20.0, 29.0, 30.0])
def test_a_short_wait_asks_once(wait: float) -> None:
    """A wait that ends before the first query would come still asks once, near its end."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=wait), result("processing"))
    assert isinstance(run.outcome, WaitTimeout)
    assert run.times == [wait - min(5, wait / 2)]
    assert run.now == wait
    assert run.deadlines == [wait]
    done = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=wait), DONE)
    assert isinstance(done.outcome, Result)


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


def test_an_ordinary_pace_follows_a_fault() -> None:
    """After a fault has passed the poll goes on at its own pace."""
    run = drive(
        poll(newborn("imga", "imga")),
        result("queued"),
        reply(500),
        *repeat(3, result("queued")),
        DONE,
    )
    assert run.gaps[0] == 2
    assert run.gaps[2:] == pytest.approx([2.5, 3.125, 3.90625])


def test_waits_repeat_with_a_seed() -> None:
    """The same seed gives the same waits after faults, and another seed gives others."""

    def gaps(seed: int) -> list[float]:
        return drive(poll(seed=seed), *repeat(6, lost()), DONE).gaps

    assert gaps(1) == gaps(1)
    assert gaps(1) != gaps(2)


def test_faults_back_off() -> None:
    """Failures in a row are asked again within 1, 2, 4, 8, 16 and then 20 seconds."""
    run = drive(poll(), forever=lost())
    assert isinstance(run.outcome, ServiceUnreachable)
    for gap, most in zip(run.gaps, [1, 2, 4, 8, 16, *([20] * 1000)], strict=False):
        assert 0 <= gap <= most


def test_a_wait_ends_no_later_than_the_deadline() -> None:
    """A driver is never told to sleep beyond the deadline."""
    operation = poll(newborn("vidv", "vidv_3_1_pro"), wait=50)
    assert isinstance(operation, Poll)
    operation = operation.receive(result("queued"), 45)
    assert next_action(operation, 45) == Wait(50)


def settled(operation: Poll) -> Any:
    """Return the outcome of *operation*, or None while there is none."""
    return operation.settled.outcome if isinstance(operation.settled, Settled) else None


def test_silence_is_counted_to_the_second() -> None:
    """Waiting is given up after ten minutes without a valid reply, and three failed tries."""
    silent = poll(now=1000).fail(lost(), 1001).fail(lost(), 1002).fail(lost(), 1599.5)
    assert settled(silent) is None
    error = settled(silent.fail(lost(), 1600))
    assert isinstance(error, ServiceUnreachable)
    assert error.silent == 600
    seldom = poll(now=1000).fail(lost(), 1300).fail(lost(), 1900)
    assert settled(seldom) is None
    assert isinstance(settled(seldom.fail(lost(), 1901)), ServiceUnreachable)
    heard = seldom.receive(result("processing"), 1901).fail(lost(), 2500).fail(lost(), 2501)
    assert settled(heard) is None


def test_a_certificate_ends_the_silence_at_once() -> None:
    """What cannot be reached at all is told with how long it has been silent."""
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


@pytest.mark.parametrize("seed", [None, 0, 1, 77])
def test_the_waits_after_faults_are_told(seed: int | None) -> None:
    """Each failed try is followed by the wait that its seed and number give, and told as such."""
    failing = poll(now=1000) if seed is None else poll(now=1000, seed=seed)
    for attempt in range(1, 7):
        now = 1000.0 + attempt
        failing = failing.fail(lost(), now)
        delay = backoff(seed or 0, attempt)
        assert failing.due == now + delay
        (event,) = failing.events
        assert isinstance(event, WillRetry)
        assert (event.attempt, event.delay) == (attempt, delay)
    failing = failing.receive(result("processing"), 1010)
    (event,) = failing.fail(lost(), 1020).events
    assert isinstance(event, WillRetry)
    assert (event.attempt, event.delay) == (1, backoff(seed or 0, 1))


def test_a_server_error_without_retry_after_waits_as_any_fault() -> None:
    """A server error that does not say when to come back is a fault like any other."""
    short = [seed for seed in range(20) if backoff(seed, 1) < 0.5]
    assert short
    for seed in short:
        assert poll(seed=seed).receive(reply(503), 0).due == backoff(seed, 1)


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_the_waits_after_throttling_are_told(seed: int) -> None:
    """A 429 that does not say when to come back is followed by growing waits, drawn by the seed."""
    failing = poll(seed=seed, poll_interval=0.01, now=1000)
    for attempt in range(1, 7):
        failing = failing.receive(reply(429), 1000)
        delay = max(0.01, backoff(seed, attempt))
        assert failing.due == 1000 + delay
        assert failing.events == (Throttled("poll", delay),)
        assert failing.heard == 1000


def test_unreadable_replies_are_counted_in_a_row() -> None:
    """Three unreadable replies in a row are asked for again, and a valid one begins anew."""
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


def test_the_last_call_is_made_once() -> None:
    """A last call that is answered with a fault is not made again at the same moment."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro"), wait=10), reply(503, Retry_After="90"))
    assert isinstance(run.outcome, WaitTimeout)
    assert run.times == [5]


def test_the_pace_of_a_bare_id_is_told_as_ours() -> None:
    """The pace for a task of which only the id is known is marked as our choice."""
    assert (UNKNOWN_PACING.assumed, UNKNOWN_PACING.minimum) == (True, None)


@pytest.mark.parametrize("seed", [None, 0, 77])
def test_a_single_query_waits_by_its_seed(seed: int | None) -> None:
    """The tries of a single query are as far apart as those of a poll with the same seed."""
    asked = query() if seed is None else query(seed=seed)
    assert asked.fail(lost(), 3).due == 3 + backoff(seed or 0, 1)


def test_a_result_without_its_link_is_asked_for_at_the_ordinary_pace() -> None:
    """A completed result that lacks its URL is asked for again after one interval each time."""
    run = drive(poll(newborn("vidv", "vidv_3_1_pro")), *repeat(3, result("completed")), DONE)
    assert run.gaps == [30, 30, 30]
