"""What follows a turn under a job queue, and what the log says about it."""

from __future__ import annotations

import logging

import pytest

from muybridge.batch import BatchEvent, SharedBatch, SharedReport, Stage, What
from muybridge.workers.turns import PAUSE, TurnLog, delay_after

LATER, NOW, NEVER = PAUSE, 0, None


def report(*states: Stage, stopped: str = "", over_budget: bool = False) -> SharedReport:
    return SharedReport(
        batch=SharedBatch("postgresql://db/studio", "horses"),
        counts=dict.fromkeys(states, 1),
        entries=(),
        stopped=stopped,
        over_budget=over_budget,
    )


AWAY = "The request could not be sent."
SPENT = "The request is over budget."
FIX = "fix this and call take_turn.delay('horses')"
DECIDE = "need your decision. Check your account, then run: muybridge decide --batch BATCH ITEM"
DELAYS = [
    (report(Stage.QUEUED, Stage.DOWNLOADED), NOW, LATER),
    (report(Stage.SUBMITTED), NOW, LATER),
    (report(Stage.QUEUED, stopped=AWAY), LATER, LATER),
    (report(Stage.COMPLETED, stopped=AWAY), LATER, LATER),
    (report(Stage.QUEUED, stopped=SPENT, over_budget=True), NEVER, NEVER),
    (report(Stage.QUEUED, Stage.SUBMITTED, stopped=SPENT, over_budget=True), NOW, LATER),
    (report(Stage.QUEUED, Stage.ARMED, stopped=SPENT, over_budget=True), NOW, LATER),
    (report(Stage.DOWNLOADED, Stage.FAILED), NEVER, NEVER),
    (report(Stage.DOWNLOADED, Stage.AMBIGUOUS), NEVER, NEVER),
]


@pytest.mark.parametrize(("turn", "timed_out", "early"), DELAYS)
def test_the_next_turn(turn: SharedReport, timed_out: int | None, early: int | None) -> None:
    """The next turn follows at once or later, unless only a person can continue the batch."""
    assert delay_after(turn, timed_out=True) == timed_out
    assert delay_after(turn, timed_out=False) == early


def event(what: What, detail: str, name: str = "") -> BatchEvent:
    return BatchEvent(what=what, item=3, name=name, detail=detail, finished=1, total=3)


def test_the_log_of_a_turn(caplog: pytest.LogCaptureFixture) -> None:
    """The log says why items failed, why the batch pauses or stops, and how to continue it."""
    caplog.set_level(logging.INFO, "muybridge.batch")
    log = TurnLog("horses")
    log.event(event(What.SUBMITTED, ""))
    log.event(event(What.FAILED, "no reason was given.", "walk\n2"))
    log.event(event(What.REFUSED, "The prompt is too long."))
    log.end(report(Stage.QUEUED), NOW)
    log.end(report(Stage.COMPLETED), LATER)
    log.event(event(What.POSTPONED, "The download failed."))
    log.end(report(Stage.COMPLETED), LATER)
    log.end(report(Stage.QUEUED, stopped=AWAY), LATER)
    log.end(report(Stage.QUEUED, stopped=SPENT, over_budget=True), NEVER)
    log.end(report(Stage.AMBIGUOUS), NEVER)
    log.end(report(Stage.DOWNLOADED), NEVER)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    ended = "Batch 'horses', at the end of a turn: 1"
    assert said == [
        ("WARNING", "Batch 'horses', item 3 (walk 2): failed: no reason was given."),
        ("WARNING", "Batch 'horses', item 3: refused: The prompt is too long."),
        ("INFO", f"{ended} queued"),
        ("INFO", f"{ended} completed"),
        ("WARNING", "Batch 'horses' continues in 60 s: No unfinished item made progress."),
        ("INFO", f"{ended} completed"),
        ("WARNING", "Batch 'horses' continues in 60 s: The download failed."),
        ("INFO", f"{ended} queued"),
        ("WARNING", f"Batch 'horses' continues in 60 s: {AWAY}"),
        ("INFO", f"{ended} queued"),
        ("ERROR", f"Batch 'horses' stops until you {FIX}: {SPENT}"),
        ("INFO", f"{ended} ambiguous"),
        ("WARNING", f"Batch 'horses': 1 items {DECIDE}"),
        ("INFO", f"{ended} downloaded"),
    ]
