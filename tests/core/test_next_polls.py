"""What a client remembers of its polls: when each task may next be polled."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from muybridge_protocol.operations import Poll
from muybridge_protocol.operations.next_polls import LIMIT, NextPolls
from muybridge_protocol.records.tasks import Task

from .driving import DONE, WALL, create, lost, poll, query, reply, result, task

NEW = task(family="vidv", requested_model="vidv_3_1_pro", submitted_at=WALL)


def test_nothing_is_known_of_a_task_that_was_not_polled() -> None:
    """Other operations are no polls, and other tasks are not this one."""
    polls = NextPolls()
    polls.note(create(), 0)
    polls.note(poll(task("t2")), 0)
    assert polls.recall(NEW) is NEW
    assert len(polls) == 1


@pytest.mark.parametrize(
    ("response", "seconds"),
    [
        (result("queued"), 30),
        (reply(429, Retry_After="90"), 90),
        (reply(401), 30),
        (reply(404), 30),
        (result("completed"), 30),
    ],
)
def test_what_a_response_leads_to_is_remembered(response: Any, seconds: float) -> None:
    """The next poll comes when this one's would, or after an interval where it has none."""
    polls = NextPolls()
    old = attrs.evolve(NEW, submitted_at=WALL - 500)
    polls.note(poll(old).receive(response, 7), 7)
    assert polls.recall(NEW).next_poll_at == WALL + 7 + seconds
    assert polls.recall(NEW) == NEW


def test_a_poll_counts_from_when_it_is_sent() -> None:
    """A wait that is cancelled while its poll is under way has polled."""
    polls = NextPolls()
    polls.note(poll(NEW), 31)
    assert polls.recall(NEW).next_poll_at == WALL + 61
    bare = poll(task("t2"))
    assert bare.due == 0
    polls.note(bare, 0)
    assert polls.recall(task("t2")).next_poll_at == WALL + 5


@pytest.mark.parametrize("response", [DONE, result("failed"), result("cancelled")])
@pytest.mark.parametrize("make", [poll, query])
def test_a_task_that_has_ended_is_forgotten(make: Any, response: Any) -> None:
    """It may be asked for at any time: its record does not change any more."""
    polls = NextPolls()
    asked: Poll = make(NEW)
    polls.note(asked, 0)
    polls.note(asked.receive(response, 1), 1)
    assert len(polls) == 0
    assert polls.recall(NEW) is NEW


def test_a_single_query_counts() -> None:
    """A wait right after a single query keeps the pace."""
    polls = NextPolls()
    polls.note(query(NEW).receive(result("queued"), 1), 1)
    assert poll(polls.recall(NEW), now=2).due == 31


def test_a_bare_id_is_known_again() -> None:
    """What a record has said of a bare id holds for the next call with the same id."""
    polls = NextPolls()
    first = poll(task()).receive(result("processing", model="vidsb_2_0_fast"), 1)
    polls.note(first, 1)
    again = polls.recall(task())
    assert (again.family, again.model) == ("vidsb", "vidsb_2_0_fast")
    failing = poll(again, now=11).fail(lost(), 12)
    assert failing.due >= 22
    polls.note(poll(NEW).receive(result("queued", model="a-backend"), 1), 1)
    known = polls.recall(task())
    assert (known.family, known.requested_model) == ("vidv", "vidv_3_1_pro")
    told = polls.recall(Task(id="t1", family="imga", model="imga", requested_model="imga-2"))
    assert (told.family, told.model, told.requested_model) == ("imga", "imga", "imga-2")


def test_the_later_of_two_next_polls_holds() -> None:
    """A token of another process may know of a later poll, or of an earlier one."""
    polls = NextPolls()
    polls.note(poll(NEW).receive(result("queued"), 1), 1)
    assert polls.recall(attrs.evolve(NEW, next_poll_at=WALL + 99)).next_poll_at == WALL + 99
    assert polls.recall(attrs.evolve(NEW, next_poll_at=WALL + 9)).next_poll_at == WALL + 31


def test_what_is_remembered_is_bounded() -> None:
    """The tasks that were polled last are remembered, without their records."""
    polls = NextPolls(3)
    for number in (1, 2, 3, 1, 4):
        polls.note(poll(task(f"t{number}", raw={"note": "long"})), 0)
    assert len(polls) == 3
    known = [polls.recall(task(f"t{number}")).next_poll_at is not None for number in range(1, 5)]
    assert known == [True, False, True, True]
    assert LIMIT == 10_000
