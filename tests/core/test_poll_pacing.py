"""How often a result is asked for: the specification's polling table, transcribed by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import ServiceUnreachable, WaitTimeout
from muybridge_protocol.operations import Poll, Wait
from muybridge_protocol.operations.poll import too_often
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
    repeat,
    reply,
    result,
    task,
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
