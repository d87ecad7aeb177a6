"""What a client remembers of its polls: when each task may next be polled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

from muybridge_protocol.operations import Poll
from muybridge_protocol.operations.next_polls import LIMIT, NextPolls
from muybridge_protocol.records.tasks import Task

from .driving import DONE, WALL, create, lost, poll, query, reply, result, task

NEW = task(family="vidv", requested_model="vidv_3_1_pro", submitted_at=WALL)


def recalled(polls: NextPolls, known: Task) -> Task:
    return polls.recall(known, now=0, wall=WALL)


def test_nothing_is_known_of_a_task_that_was_not_polled() -> None:
    """Other operations are no polls, and other tasks are not this one."""
    polls = NextPolls()
    polls.note(create(), 0)
    polls.note(poll(task("t2")), 0)
    assert recalled(polls, NEW) is NEW
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
    assert recalled(polls, NEW).next_poll_at == WALL + 7 + seconds
    assert recalled(polls, NEW) == NEW


def test_a_poll_counts_from_when_it_is_sent() -> None:
    """A wait that is cancelled while its poll is under way has polled."""
    polls = NextPolls()
    first = poll(NEW)
    assert polls.claim(first, 31) is first
    assert recalled(polls, NEW).next_poll_at == WALL + 61
    bare = poll(task("t2"))
    assert bare.due == 0
    assert polls.claim(bare, 0) is bare
    assert recalled(polls, task("t2")).next_poll_at == WALL + 5


def test_only_polls_need_a_claim() -> None:
    """Other operations are sent when they want, and are not remembered."""
    polls, other = NextPolls(), create()
    assert polls.claim(other, 0) is other
    assert len(polls) == 0


def test_a_poll_is_put_off_while_another_one_is_under_way() -> None:
    """It looks again shortly, because the task may have ended, but does not wait for a lost one."""
    polls = NextPolls()
    one, other = poll(NEW), poll(NEW)
    polls.claim(one, 30)
    put_off = polls.claim(other, 30)
    assert put_off == attrs.evolve(other, due=31)
    assert polls.claim(put_off, 31).due == 32
    late = polls.claim(put_off, 59.5)
    assert late.due == 60
    assert polls.claim(late, 60) is late


def test_a_poll_is_put_off_after_another_one() -> None:
    """A response to one of them moves the next poll of all."""
    polls = NextPolls()
    one, other = poll(NEW), poll(NEW)
    after = polls.claim(one, 30).receive(result("queued"), 31)
    polls.note(after, 31)
    put_off = polls.claim(other, 31)
    assert put_off.due == after.due == 61
    assert polls.claim(put_off, 61) is put_off
    assert polls.claim(after, 61).due == 62


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wall_clock_that_is_set_moves_no_poll(days: int) -> None:
    """Of two waits, one may have begun before the wall clock was set."""
    polls = NextPolls()
    one, other = attrs.evolve(poll(NEW), wall_offset=WALL + days * 86_400), poll(NEW)
    polls.note(one.receive(result("queued"), 1), 1)
    assert recalled(polls, NEW).next_poll_at == WALL + 31
    assert polls.claim(other, 30).due == 31
    assert polls.claim(other, 31) is other


@pytest.mark.parametrize("response", [DONE, result("failed"), result("cancelled")])
@pytest.mark.parametrize("make", [poll, query])
def test_a_task_that_has_ended_may_be_polled_at_any_time(make: Any, response: Any) -> None:
    """Its record does not change any more, so every wait for it asks at once."""
    polls = NextPolls()
    asked: Poll = make(NEW)
    polls.claim(asked, 30)
    polls.note(asked.receive(response, 31), 31)
    assert recalled(polls, NEW) is NEW
    for _ in range(3):
        other = poll(NEW)
        assert polls.claim(other, 31) is other


def test_one_of_many_threads_polls() -> None:
    """However many threads claim a poll at the same moment, one of them gets it."""
    polls, first = NextPolls(), poll(NEW)
    with ThreadPoolExecutor(8) as threads:
        for turn in range(1, 200):
            now = 30.0 * turn
            due = [attrs.evolve(first, due=now, seed=number) for number in range(8)]
            claims = list(threads.map(polls.claim, due, [now] * 8))
            assert [one is other for one, other in zip(due, claims, strict=True)].count(True) == 1


def test_a_single_query_counts() -> None:
    """A wait right after a single query keeps the pace."""
    polls = NextPolls()
    polls.note(query(NEW).receive(result("queued"), 1), 1)
    assert poll(recalled(polls, NEW), now=2).due == 31


def test_a_bare_id_is_known_again() -> None:
    """What a record has said of a bare id holds for the next call with the same id."""
    polls = NextPolls()
    first = poll(task()).receive(result("processing", model="vidsb_2_0_fast"), 1)
    polls.note(first, 1)
    again = recalled(polls, task())
    assert (again.family, again.model) == ("vidsb", "vidsb_2_0_fast")
    failing = poll(again, now=11).fail(lost(), 12)
    assert failing.due >= 22
    polls.note(poll(NEW).receive(result("queued", model="a-backend"), 1), 1)
    known = recalled(polls, task())
    assert (known.family, known.requested_model) == ("vidv", "vidv_3_1_pro")
    told = recalled(polls, Task(id="t1", family="imga", model="imga", requested_model="imga-2"))
    assert (told.family, told.model, told.requested_model) == ("imga", "imga", "imga-2")


def test_the_later_of_two_next_polls_holds() -> None:
    """A token of another process may know of a later poll, or of an earlier one."""
    polls = NextPolls()
    polls.note(poll(NEW).receive(result("queued"), 1), 1)
    assert recalled(polls, attrs.evolve(NEW, next_poll_at=WALL + 99)).next_poll_at == WALL + 99
    assert recalled(polls, attrs.evolve(NEW, next_poll_at=WALL + 9)).next_poll_at == WALL + 31


def test_what_is_remembered_is_bounded() -> None:
    """The tasks that were polled last are remembered, without their records."""
    polls = NextPolls(3)
    for number in (1, 2, 3, 1, 4):
        polls.note(poll(task(f"t{number}", raw={"note": "long"})), 0)
    assert len(polls) == 3
    known = [recalled(polls, task(f"t{number}")).next_poll_at is not None for number in range(1, 5)]
    assert known == [True, False, True, True]
    assert LIMIT == 10_000
