"""The progress of a batch: counts in its events, and the rate and the time left in its lines."""

from __future__ import annotations

from typing import Any

import pytest

from muybridge import Result, Status
from muybridge.batch import BatchEvent, What
from muybridge.cli.batch_progress import Lines, Pace, event_record

from .billing import BillingServer, Fault
from .conftest import Run

FAULTS = {"b": Fault.REFUSED, "c": Fault.ACCEPTED_RESET}


def horses(*prompts: str) -> list[dict[str, Any]]:
    return [{"family": "imgb", "model": "imgb-2", "prompt": prompt} for prompt in prompts]


def event(finished: int, *, failed: int = 0, ambiguous: int = 0, total: int = 5000) -> BatchEvent:
    return BatchEvent(
        what=What.DOWNLOADED,
        item=1,
        name="",
        detail="0001.png",
        finished=finished,
        total=total,
        failed=failed,
        ambiguous=ambiguous,
    )


def test_events_carry_the_running_counts(run: Run) -> None:
    """Each event says how many items failed and are ambiguous, those of earlier runs included."""
    first: list[BatchEvent] = []
    again: list[BatchEvent] = []
    with BillingServer(lambda prompt: FAULTS.get(prompt, Fault.NONE)) as server:
        run(server, horses("a", "b", "c"), concurrency=1, on_event=first.append)
        report = run(server, horses("a", "b", "c", "d"), on_event=again.append)
    assert (first[0].failed, first[0].ambiguous) == (0, 0)
    assert (first[-1].finished, first[-1].failed, first[-1].ambiguous) == (2, 1, 1)
    assert {(told.failed, told.ambiguous) for told in again} == {(1, 1)}
    assert event_record(again[-1]).items() >= {"failed": 1, "ambiguous": 1}.items()
    saved, refused, *_ = report.entries
    assert saved.task is not None
    expected = Result(id=saved.task.id, status=Status.COMPLETED, family="imgb")
    assert saved.task_result is not None
    assert (saved.task_result.id, saved.task_result.status) == (expected.id, expected.status)
    assert (refused.task, refused.task_result) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "last", "told"),
    [
        (0.0, event(300), ""),
        (100.0, event(101), ""),
        (100.0, event(300), "2/s, ETA 39:10"),
        (100.0, event(300, failed=3, ambiguous=1), "3 failed, 1 ambiguous, 2/s, ETA 39:10"),
        (600.0, event(110), "1/min, ETA 81:30:00"),
        (36_000.0, event(105), "0.5/h, ETA 9790:00:00"),
        (100.0, event(5000, failed=7), "7 failed, 49/s"),
        (100.0, event(4999, ambiguous=1), "1 ambiguous, 49/s"),
    ],
)
def test_the_rate_and_the_time_left(seconds: float, last: BatchEvent, told: str) -> None:
    """The rate is that of this run, and ambiguous items wait for a person, not for time."""
    now = 7.0
    pace = Pace(lambda: now)
    assert pace.counts(event(100)) == ""
    now += seconds
    assert pace.counts(last) == told


def test_plain_lines_sum_up_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, a line with the counts follows the events twice a minute at most."""
    now = 0.0
    lines = Lines(lambda: now)
    for finished, time in enumerate((0.0, 10.0, 29.0, 30.0, 40.0, 60.0), start=1):
        now = time
        lines.event(event(finished, failed=1, total=10))
    told = [line for line in capsys.readouterr().err.splitlines() if "finished" in line]
    assert told == [
        "4 of 10 finished, 1 failed, 6/min, ETA 1:00",
        "6 of 10 finished, 1 failed, 5/min, ETA 0:48",
    ]
