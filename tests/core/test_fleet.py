from __future__ import annotations

import itertools
import tracemalloc
from math import nan
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import moments
from muybridge_protocol.errors import (
    CreateAmbiguous,
    InvalidAddress,
    Refused,
    TaskFailed,
    WaitTimeout,
)
from muybridge_protocol.events import Submitted, Throttled
from muybridge_protocol.families import ImgaRequest, ImgbRequest, MediaRequest, VidmRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet, FleetOutcome
from muybridge_protocol.fleet.fairness import LONGEST_LIFE, SHARE
from muybridge_protocol.fleet.throttle import FIRST_GAP, LONGEST_GAP, Throttle
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Wait
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.records.tasks import Result, Status, Task
from muybridge_protocol.service import Service

from .driving import LINK, SERVICE, WALL, After, lost, raw, reply, result, unsent
from .fleets import FleetDrive, MadeUpService, Seen, known_task

IMGA = ImgaRequest(model="imga", prompt="a horse")
IMGB = ImgbRequest(model="imgb-2", prompt="a horse")
VIDM = VidmRequest(model="vidm-2", prompt="a horse")
HOUR = 3600.0

# What becomes of a single operation.


def test_requests_are_created_and_waited_for() -> None:
    """Each request is sent once, its task is asked for until it ends, and gives one outcome."""
    service = MadeUpService(queries=2, latency=0.5)
    drive = FleetDrive(service)
    for number in range(20):
        drive.add(number, IMGA)
    drive.run()
    assert sorted(outcome.key for outcome in drive.outcomes) == list(range(20))
    assert all(outcome.unwrap().url == LINK for outcome in drive.outcomes)
    assert set(service.created.values()) == {1}
    assert len(drive.seen) == 20 * (1 + 3)


def test_a_task_that_is_added_is_waited_for_and_never_created() -> None:
    """A task of an earlier run costs nothing again."""
    drive = FleetDrive(MadeUpService())
    drive.add("old", known_task("t1", age=HOUR))
    drive.run()
    assert drive.outcome("old").unwrap().id == "t1"
    assert drive.outcome("old").request is None
    assert not any(seen.request.paid for seen in drive.seen)


def test_every_id_is_told_with_the_reply_that_brought_it() -> None:
    """`receive` itself returns the event of a new task, so that nothing can come between."""
    drive = FleetDrive(MadeUpService(latency=3))
    drive.add("a", IMGA)
    drive.step()
    assert drive.hear()
    ((key, event),) = drive.events
    assert key == "a"
    assert isinstance(event, Submitted)


def test_a_failure_stops_nobody_else() -> None:
    """Refused, ambiguous, failed and unreadable tasks end alone, and the others continue."""
    service = MadeUpService()

    def react(seen: Seen) -> Any:
        match seen.key:
            case "refused":
                return reply(400, {"error": "no"})
            case "ambiguous":
                return lost()
            case "failed" if not seen.paid:
                return result("failed", seen.request.url.rpartition("/")[2])
            case _:
                return service(seen)

    drive = FleetDrive(react)
    for key in ("refused", "ambiguous", "failed", "fine", "fine too"):
        drive.add(key, IMGA)
    drive.run()
    assert isinstance(drive.outcome("refused").error, Refused)
    assert isinstance(drive.outcome("ambiguous").error, CreateAmbiguous)
    assert isinstance(drive.outcome("failed").error, TaskFailed)
    assert drive.outcome("fine").result is not None
    assert drive.outcome("fine too").result is not None
    assert len(drive.outcomes) == 5


def test_a_task_that_fails_at_its_creation_is_never_asked_for() -> None:
    """A record that says `failed` is the end, and carries the task."""
    drive = FleetDrive(lambda _: reply(200, {"id": "t1", "status": "failed", "error": "no"}))
    drive.add("a", IMGA)
    drive.run()
    error = drive.outcome("a").error
    assert isinstance(error, TaskFailed)
    assert error.task is not None
    assert len(drive.seen) == 1


def test_waiting_ends_at_its_deadline_without_a_query() -> None:
    """Waiting for a task ends at the deadline, however seldom the task is polled."""
    drive = FleetDrive(MadeUpService(queries=10**9), wait=100.0)
    drive.add("slow", known_task("t1", "vidm"))
    drive.run()
    assert isinstance(drive.outcome("slow").error, WaitTimeout)
    assert drive.settled_at["slow"] == 100.0


def test_a_key_is_free_again_after_its_outcome_and_not_before() -> None:
    """Two operations under one key would be mistaken for each other."""
    drive = FleetDrive(MadeUpService())
    drive.add("a", IMGA)
    with pytest.raises(ValueError, match="in use"):
        drive.fleet.add("a", IMGA, 0.0)
    drive.run()
    drive.fleet.add("a", IMGA, drive.now)


def test_nothing_is_left_of_what_has_ended() -> None:
    """A fleet that is done holds no operation, key or place in a line."""
    drive = FleetDrive(MadeUpService(latency=1))
    for number in range(50):
        drive.add(number, IMGB if number % 2 else IMGA)
    drive.run()
    fleet = drive.fleet
    assert len(fleet) == fleet.under_way == fleet.paid == 0
    assert list(fleet.outstanding()) == []
    # What has been forgotten shows nowhere else.
    assert moments.left_in(fleet) == []


def test_a_wait_that_ends_knows_the_last_status() -> None:
    """A poll that rests until its wait ends remembers the status that it saw last."""
    fleet: Fleet[str] = Fleet(SERVICE, wall_offset=WALL, seed=0, wait=100.0)
    for name in ("a", "b"):
        fleet.add(name, known_task(name), 0.0)
    for _ in range(2):
        step = fleet.next_action(60.0)
        assert isinstance(step, Dispatch)
        fleet.receive(step.ticket, result("processing", step.key), 60.0)
    for _ in range(2):
        outcome = fleet.next_action(150.0)
        assert isinstance(outcome, FleetOutcome)
        assert isinstance(outcome.error, WaitTimeout)
        assert outcome.error.status == "processing"


def test_no_records_are_kept() -> None:
    """Neither polls that wait nor outcomes hold a record, which may be long."""
    fleet: Fleet[int] = Fleet(SERVICE, wall_offset=WALL, seed=0, wait=100.0)
    tracemalloc.start()
    for number in range(20):
        note = str(number) * 50_000
        fleet.add(number, known_task(f"t{number}", raw={"note": note}), 50.0)
    for _ in range(20):
        step = fleet.next_action(60.0)
        assert isinstance(step, Dispatch)
        told = result("processing", f"t{step.key}", note="n" * 50_000, error="e" * 50_000)
        fleet.receive(step.ticket, told, 60.0)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert memory < 400_000
    outcome = fleet.next_action(150.0)
    assert isinstance(outcome, FleetOutcome)
    assert isinstance(outcome.error, WaitTimeout)
    assert outcome.error.status == "processing"
    assert outcome.task is not None
    assert outcome.task.raw == {}


def test_a_reply_is_taken_once() -> None:
    """A ticket that is not under way is refused, so that no response is taken for another's."""
    drive = FleetDrive(MadeUpService())
    drive.add("a", IMGA)
    drive.run()
    with pytest.raises(RuntimeError, match="ticket 1 is under way"):
        drive.fleet.receive(1, reply(200), 0.0)
    with pytest.raises(RuntimeError, match="ticket 1 is under way"):
        drive.fleet.fail(1, unsent(), 0.0)


def test_a_response_of_the_wrong_type_loses_no_task() -> None:
    """A fleet that is given something else than a response still holds the paid request."""
    fleet: Fleet[str] = Fleet(SERVICE, wall_offset=WALL, seed=0)
    fleet.add("a", IMGA, 0.0)
    sent = fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    with pytest.raises(TypeError, match=r"Create\.receive must be HttpResponse, not dict"):
        fleet.receive(sent.ticket, cast("Any", {"id": "t1"}), 1.0)
    assert (fleet.under_way, fleet.paid, len(fleet)) == (1, 1, 1)
    fleet.receive(sent.ticket, result("queued"), 1.0)
    assert [waiting.task and waiting.task.id for waiting in fleet.outstanding()] == ["t1"]


@pytest.mark.parametrize(
    "bad", [{"timeout": nan}, {"timeout": -1.0}, {"wait": nan}, {"poll_interval": -1.0}], ids=str
)
def test_times_that_are_none_are_refused_at_once(bad: dict[str, float]) -> None:
    """A fleet refuses a timeout that is not a number when it is made, not at its first request."""
    (name,) = bad
    with pytest.raises(ValueError, match=f"{name} must be "):
        FleetDrive(MadeUpService(), **bad)


def test_limits_below_one_are_refused() -> None:
    """A fleet that may send nothing would wait forever."""
    with pytest.raises(ValueError, match="at least 1"):
        FleetDrive(MadeUpService(), connections=0)
    with pytest.raises(ValueError, match="at least 1"):
        FleetDrive(MadeUpService(), per_family={"imga": 0})


@pytest.mark.parametrize("seed", range(3))
def test_without_limits_every_request_goes_out_when_it_is_due(seed: int) -> None:
    """A fleet with room sends each query at the very time at which it would be sent alone."""
    drive = FleetDrive(MadeUpService(queries=5, latency=0.25), seed=seed, connections=1000)
    for number in range(100):
        drive.add(number, known_task(f"t{number}", "imga" if number % 2 else "vidm"))
    alone = FleetDrive(MadeUpService(queries=5, latency=0.25), seed=seed)
    alone.add(0, known_task("t0", "vidm"))
    drive.run()
    alone.run()
    assert drive.times(0) == alone.times(0)
    assert drive.times(2) == alone.times(0)


def test_one_that_ends_without_sending_takes_up_no_place() -> None:
    """Tasks that are given up while they rest leave their family's limit to others."""
    drive = FleetDrive(MadeUpService(queries=10**9), wait=100.0, per_family=1)
    for number in range(5):
        drive.add(number, known_task(f"t{number}", "vidm"))
    drive.run()
    assert len(drive.outcomes) == 5
    drive.react = MadeUpService()
    drive.add("later", known_task("t9", "vidm", age=HOUR))
    drive.run(limit=1000)
    assert drive.outcome("later").result is not None


# Limits and turns.


def test_limits_hold_overall_and_by_family() -> None:
    """No more is under way than allowed, and what is allowed is used."""
    drive = FleetDrive(MadeUpService(latency=2), connections=7, per_family={"imga": 3, "vidm": 2})
    for number in range(30):
        drive.add(("a", number), IMGA)
        drive.add(("b", number), IMGB)
        drive.add(("m", number), VIDM)
    drive.run()
    assert drive.most["all"] == 7
    assert drive.most["imga"] == 3
    assert drive.most["vidm"] == 2
    assert len(drive.outcomes) == 90


def test_one_limit_for_all_families_holds_for_each() -> None:
    """`per_family=2` lets two requests of every family be under way."""
    drive = FleetDrive(MadeUpService(latency=2), per_family=2)
    for number in range(10):
        drive.add(("a", number), IMGA)
        drive.add(("b", number), IMGB)
        drive.add(("?", number), Task(id=f"bare-{number}"))
    drive.run()
    assert drive.most == {"all": 6, "imga": 2, "imgb": 2, "": 2}


def test_a_family_that_a_poll_reveals_has_its_limit() -> None:
    """A task of which only the id is known counts for its family once a response names it."""
    fleet = Fleet[int](SERVICE, wall_offset=WALL, seed=0, per_family={"imga": 1})
    fleet.add(0, Task(id="t0"), 0.0)
    fleet.add(1, Task(id="t1"), 0.0)
    now = 0.0
    for most in (2, 1):
        sent: list[Dispatch[int]] = []
        while not isinstance(action := fleet.next_action(now), Busy):
            if isinstance(action, Wait):
                now = action.until
            else:
                assert isinstance(action, Dispatch)
                sent.append(action)
        assert len(sent) == most
        for one in sent:
            fleet.receive(one.ticket, result("processing", f"t{one.key}", model="imga"), now)


# Tasks in progress.


def in_progress(drive: FleetDrive) -> list[Any]:
    """Return whose tasks are in progress."""
    left = drive.fleet.outstanding()
    return sorted(one.key for one in left if one.task is not None or one.under_way)


@pytest.mark.parametrize("limits", [{"concurrency": 3}, {"per_family": 3}], ids=["all", "family"])
def test_the_next_request_is_created_when_a_task_has_ended(limits: dict[str, int]) -> None:
    """A limit of three creates three tasks, and the fourth when one of them has ended."""
    service = MadeUpService(queries=10**9)
    drive = FleetDrive(service, **limits)
    for number in range(5):
        drive.add(number, IMGA)
    drive.run(until=100.0)
    assert in_progress(drive) == [0, 1, 2]
    assert drive.fleet.under_way == 0
    ended = result("failed")

    def end_one(seen: Seen) -> Any:
        return about(ended, seen) if seen.key == 1 else service(seen)

    drive.react = end_one
    drive.run(until=200.0)
    assert in_progress(drive) == [0, 2, 3]
    assert [outcome.key for outcome in drive.outcomes] == [1]


@pytest.mark.parametrize("end", ["refused", "lost", "dropped", "settled"])
def test_a_request_that_ends_leaves_its_place_to_the_next(end: str) -> None:
    """However a create ends, the next one begins, and not before."""
    drive = FleetDrive(MadeUpService(), concurrency=1)
    for key in ("a", "b"):
        drive.add(key, IMGA)
    sent = drive.fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    assert drive.fleet.next_action(0.0) == Busy()
    match end:
        case "dropped":
            drive.fleet.drop("a")
        case "settled":
            drive.fleet.settle(sent.ticket, CreateAmbiguous(reason="unknown"), 0.0)
        case "refused":
            drive.fleet.receive(sent.ticket, reply(400), 0.0)
        case _:
            drive.fleet.fail(sent.ticket, lost(), 0.0)
    if end != "dropped":
        assert isinstance(drive.fleet.next_action(0.0), FleetOutcome)
    sent = drive.fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    assert sent.key == "b"


def test_a_create_that_retries_keeps_its_place() -> None:
    """While a refused create waits for its retry, no other takes its place."""
    replies = iter([reply(429, Retry_After="5")])
    service = MadeUpService(queries=0)
    drive = FleetDrive(lambda seen: next(replies, None) or service(seen), concurrency=1)
    for number in range(2):
        drive.add(number, IMGA)
    drive.run()
    assert drive.order()[:2] == [0, 0]
    assert len(drive.outcomes) == 2


def test_a_create_that_was_dropped_at_rest_leaves_its_place() -> None:
    """A create that is dropped before its retry counts no more."""
    drive = FleetDrive(lambda _: reply(429, Retry_After="5"), concurrency=1)
    for key in ("a", "b"):
        drive.add(key, IMGA)
    drive.run(until=1.0)
    drive.fleet.drop("a")
    drive.run(until=10.0)
    assert drive.order()[:2] == ["a", "b"]


def test_tasks_that_are_added_count_and_are_polled_at_once() -> None:
    """Tasks beyond the limit are all polled; a request waits until there are fewer than that."""
    drive = FleetDrive(MadeUpService(queries=10**9), concurrency=2)
    drive.add("new", IMGA)
    for number in range(4):
        drive.add(str(number), known_task(f"t{number}", age=HOUR))
    drive.run(until=100.0)
    assert set(drive.order()) == {"0", "1", "2", "3"}
    for number in range(3):
        drive.fleet.drop(str(number))
    drive.run(until=200.0)
    assert in_progress(drive) == ["3", "new"]


def test_a_task_counts_for_the_family_that_a_poll_reveals() -> None:
    """A bare id takes a place in its family once a poll names the model, until it ends."""
    drive = FleetDrive(lambda _: result("processing", "t0", model="imga"), per_family=1)
    drive.add("old", Task(id="t0"))
    drive.run(until=100.0)
    drive.add("new", IMGA)
    drive.run(until=200.0)
    assert "new" not in drive.order()
    drive.fleet.drop("old")
    drive.step()
    assert drive.order()[-1] == "new"


def test_families_take_turns_for_places() -> None:
    """When tasks end, their places go to each family in turn, however many wait in one."""
    drive = FleetDrive(MadeUpService(queries=0), concurrency=1)
    for number in range(20):
        drive.add(("a", number), IMGA)
    for number in range(3):
        drive.add(("b", number), IMGB)
    drive.run()
    created = [seen.key[0] for seen in drive.seen if seen.request.paid]
    assert created[:6] == ["a", "b", "a", "b", "a", "b"]


def test_families_take_turns() -> None:
    """A thousand requests of one family do not keep another's waiting."""
    drive = FleetDrive(MadeUpService(latency=1), connections=1)
    for number in range(100):
        drive.add(("a", number), IMGA)
    for number in range(3):
        drive.add(("b", number), IMGB)
    drive.run(until=6.5)
    assert [key[0] for key in drive.order()[:6]] == ["a", "b", "a", "b", "a", "b"]


def test_polls_do_not_starve_creates() -> None:
    """However many polls are due, every second request is a create, while there are any."""
    drive = FleetDrive(MadeUpService(latency=1, queries=10**9), connections=1)
    for number in range(100):
        drive.add(("poll", number), known_task(f"t{number}", age=HOUR))
    for number in range(10):
        drive.add(("create", number), IMGA)
    drive.run(until=19.5)
    kinds = [key[0] for key in drive.order()]
    assert kinds.count("create") == kinds.count("poll") == 10


def test_creates_do_not_starve_polls() -> None:
    """However many creates wait, every second request is a poll, while any is due."""
    drive = FleetDrive(MadeUpService(latency=1), connections=1)
    for number in range(100):
        drive.add(("create", number), IMGA)
    for number in range(10):
        drive.add(("poll", number), known_task(f"t{number}", age=HOUR))
    drive.run(until=19.5)
    kinds = [key[0] for key in drive.order()]
    assert kinds.count("create") == kinds.count("poll") == 10


def test_results_that_expire_sooner_are_fetched_first() -> None:
    """Of tasks that are due at the same time, those whose result dies first go first."""
    drive = FleetDrive(MadeUpService(queries=0, latency=1), connections=1)
    ages = [3, 23, 1, 20, 8]
    for age in ages:
        drive.add(age, known_task(f"t{age}", "imgb", age=age * HOUR))
    drive.run()
    assert drive.order() == sorted(ages, reverse=True)


def test_a_result_that_is_known_to_be_there_is_fetched_before_others() -> None:
    """A completed task goes before one that may still be at work, whatever their ages."""
    drive = FleetDrive(MadeUpService(queries=0, latency=1), connections=1)
    drive.add("old", known_task("t1", "imgb", age=20 * HOUR))
    drive.add("there", known_task("t2", "imgb", age=HOUR, status=Status.COMPLETED))
    drive.run()
    assert drive.order() == ["there", "old"]


def test_no_poll_waits_for_ever_behind_more_urgent_ones() -> None:
    """A fresh task is asked for within its share of patience, though urgent ones never cease."""
    drive = FleetDrive(
        MadeUpService(queries=10**9, latency=1), connections=1, poll_interval=0, wait=None
    )
    for number in range(5):
        drive.add(("urgent", number), known_task(f"u{number}", "imgb", age=23.9 * HOUR))
    drive.add("fresh", known_task("t1", "imgb"))
    drive.run(until=2 * SHARE * LONGEST_LIFE)
    assert drive.times("fresh")
    assert drive.times("fresh")[0] <= SHARE * LONGEST_LIFE + 10


def test_what_becomes_due_while_many_wait_is_not_forgotten() -> None:
    """Thousands that become due at once are all sent, each of them once."""
    drive = FleetDrive(MadeUpService(queries=0), connections=3)
    for number in range(3000):
        drive.add(number, known_task(f"t{number}", "vidm" if number % 3 else "imgb"))
    drive.now = 1000.0
    drive.run()
    assert sorted(drive.order()) == list(range(3000))


def test_a_create_that_tries_again_goes_before_those_that_have_not_begun() -> None:
    """What has been refused with 429 keeps its place, so that its time does not run out."""
    seen_keys: list[Any] = []

    def react(seen: Seen) -> Any:
        seen_keys.append(seen.key)
        first = seen.key == 0 and seen_keys.count(0) == 1
        return After(1.0, reply(429, Retry_After="1") if first else service.answer(seen))

    service = MadeUpService(queries=10**9)
    drive = FleetDrive(react, connections=1)
    for number in range(10):
        drive.add(number, IMGA)
    drive.run(until=2.5)
    assert drive.order()[:2] == [0, 0]


# Slowing down together.


def test_a_retry_after_makes_everybody_wait() -> None:
    """While the service asks for a pause, nothing is sent, of no family."""
    answers = iter([reply(429, Retry_After="30")])
    service = MadeUpService()
    drive = FleetDrive(lambda seen: next(answers, None) or service(seen))
    drive.add("a", known_task("t1", "imga", age=HOUR))
    drive.run(until=1.0)
    drive.add("b", IMGB)
    drive.add("m", VIDM)
    drive.run()
    assert drive.times()[0] == 0.0
    assert drive.times()[1] >= 30.0
    assert len(drive.outcomes) == 3
    assert isinstance(drive.events[0][1], Throttled)


def test_a_retry_after_with_another_status_slows_down_too() -> None:
    """A 503 that names a time is obeyed by all, as a 429 is."""
    answers = iter([reply(503, Retry_After="20")])
    service = MadeUpService()
    drive = FleetDrive(lambda seen: next(answers, None) or service(seen), connections=1)
    drive.add("a", known_task("t1", age=HOUR))
    drive.add("b", known_task("t2", age=HOUR))
    drive.run()
    assert drive.times()[1] >= 20.0


def test_requests_are_spaced_after_a_refusal_and_less_so_after_successes() -> None:
    """The gap after a 429 shrinks with each success, until there is none."""
    answers = iter([reply(429)])
    service = MadeUpService(queries=0)
    drive = FleetDrive(lambda seen: next(answers, None) or service(seen), connections=4)
    for number in range(300):
        drive.add(number, known_task(f"t{number}", age=HOUR))
    drive.run()
    times = drive.times()[1:]
    gaps = [later - sooner for sooner, later in itertools.pairwise(times[5:])]
    assert gaps[0] > 0.05
    assert gaps[0] < FIRST_GAP
    assert all(later <= sooner for sooner, later in itertools.pairwise(gaps))
    assert gaps[-1] == 0.0


def test_each_refusal_doubles_the_gap_up_to_a_bound() -> None:
    """Refused again and again, the fleet asks more and more seldom, but never stops asking."""
    throttle, gaps, now = Throttle(seed=1), list[float](), 0.0
    for _ in range(10):
        throttle.record_response(reply(429), sent=now, now=now + 1)
        gaps.append(throttle.gap)
        assert throttle.until >= now + 1 + throttle.gap
        now = throttle.until
    assert gaps[:3] == [FIRST_GAP, 2 * FIRST_GAP, 4 * FIRST_GAP]
    assert gaps[-1] == LONGEST_GAP


def test_refusals_of_one_burst_count_once() -> None:
    """Eight requests that were under way together and are all refused tell one thing."""
    throttle = Throttle(seed=1)
    for late in range(8):
        throttle.record_response(reply(429), sent=0.0, now=1.0 + late / 10)
    assert throttle.gap == FIRST_GAP


def test_a_success_of_a_request_from_before_does_not_ease() -> None:
    """A response to what was sent before the slow-down tells nothing about the new pace."""
    throttle = Throttle(seed=1)
    throttle.record_response(reply(429), sent=0.0, now=1.0)
    throttle.record_response(reply(200), sent=0.5, now=1.5)
    assert throttle.gap == FIRST_GAP
    throttle.record_response(reply(200), sent=5.0, now=6.0)
    assert throttle.gap < FIRST_GAP


def test_the_same_seed_gives_the_same_run() -> None:
    """Two runs with one seed send the same at the same times, and another seed does not."""

    def times(seed: int) -> list[float]:
        script: list[Any] = [lost(), reply(429), reply(500), reply(429), lost()]
        replies = iter(script * 3)
        service = MadeUpService()
        drive = FleetDrive(lambda seen: next(replies, None) or service(seen), seed=seed)
        for number in range(5):
            drive.add(number, known_task(f"t{number}", age=HOUR))
        drive.run()
        return drive.times()

    assert times(1) == times(1)
    assert times(1) != times(2)


# Stopping.


def test_after_a_stop_only_what_may_be_charged_is_heard_out() -> None:
    """A stopped fleet sends nothing, is busy until the last create is answered, and then done."""
    drive = FleetDrive(MadeUpService(latency=5), connections=4)
    drive.add("old", known_task("t1", age=HOUR))
    for number in range(10):
        drive.add(number, IMGA)
    for _ in range(4):
        drive.step()
    drive.fleet.stop()
    sent = len(drive.seen)
    assert drive.fleet.next_action(drive.now) == Busy()
    while drive.fleet.paid:
        drive.hear()
    assert drive.fleet.next_action(drive.now) == Done()
    assert len(drive.seen) == sent
    left = list(drive.fleet.outstanding())
    assert len(left) == 11
    created = [one for one in left if one.request is not None and one.task is not None]
    assert len(created) == sum(seen.paid for seen in drive.seen)


def test_what_is_outstanding_is_told_at_every_stage() -> None:
    """Not begun, sent, throttled or waiting: each operation is reported until it ends."""
    drive = FleetDrive(MadeUpService(latency=1), connections=2)
    for number in range(4):
        drive.add(number, IMGA)
    drive.add("old", known_task("t1"))
    for _ in range(200):
        left = {one.key for one in drive.fleet.outstanding()}
        assert len(left) == len(drive.fleet)
        assert left.isdisjoint(outcome.key for outcome in drive.outcomes)
        drive.step()
    assert len(drive.outcomes) == 5


# Leaving operations out.


def test_what_is_dropped_sends_nothing_more() -> None:
    """An operation that is dropped is skipped, in whatever state; the others continue."""
    drive = FleetDrive(MadeUpService(latency=1), connections=2, per_family=1)
    for key in ("under way", "not begun"):
        drive.add(key, IMGA)
    for key, family in (("waiting", "imgb"), ("kept", "imgb")):
        drive.add(key, known_task(key, family))
    drive.step()
    assert (drive.order(), drive.fleet.paid, drive.fleet.under_way) == (["under way"], 1, 1)
    for key in ("under way", "not begun", "waiting", "never added"):
        drive.fleet.drop(key)
    assert (drive.fleet.paid, drive.fleet.under_way, len(drive.fleet)) == (0, 0, 1)
    assert [left.key for left in drive.fleet.outstanding()] == ["kept"]
    with pytest.raises(RuntimeError, match="is under way: report the end"):
        drive.hear()
    drive.under_way.clear()
    drive.run()
    assert [outcome.key for outcome in drive.outcomes] == ["kept"]
    assert set(drive.order()) == {"under way", "kept"}


def test_what_is_dropped_leaves_its_place_to_others() -> None:
    """The key of a dropped operation is free again, and so is its place among its family."""
    drive = FleetDrive(MadeUpService(queries=0), per_family=1)
    drive.add("a", IMGA)
    drive.fleet.next_action(drive.now)  # it is sent, and never answered
    drive.fleet.drop("a")
    drive.add("a", IMGA)
    drive.run()
    assert drive.outcome("a").unwrap().url == LINK
    drive.fleet.drop("a")  # it has ended
    assert drive.fleet.next_action(drive.now) == Done()


def test_nobody_waits_for_what_is_dropped() -> None:
    """A fleet whose every operation was dropped is done at once, not when one was due."""
    drive = FleetDrive(MadeUpService())
    drive.add("waiting", known_task("t1"))
    assert isinstance(drive.fleet.next_action(drive.now), Wait)
    drive.fleet.drop("waiting")
    assert drive.fleet.next_action(drive.now) == Done()


def test_an_outcome_can_be_taken_before_the_next_action() -> None:
    """How an exchange ended its operation is there at once, for those who write it down first."""
    drive = FleetDrive(lambda _: reply(400))
    drive.add("a", IMGA)
    assert drive.fleet.take_outcome() is None
    drive.step()
    drive.hear()
    ended = drive.fleet.take_outcome()
    assert ended is not None
    assert ended.key == "a"
    assert isinstance(ended.error, Refused)
    assert drive.fleet.take_outcome() is None
    assert drive.fleet.next_action(drive.now) == Done()


# Any order of things.

REACTIONS = (
    reply(200, {"id": "made", "status": "queued"}),
    reply(200, {"id": "made", "status": "failed"}),
    result("processing"),
    result("completed"),
    result("completed", image_url=LINK),
    result("failed"),
    raw(200, b"<html>"),
    reply(400),
    reply(404),
    reply(429),
    reply(429, Retry_After="3"),
    reply(429, Retry_After="300"),
    reply(500),
    reply(503, Retry_After="5"),
    unsent(),
    lost(),
)


def about(reaction: Any, seen: Seen) -> Any:
    """Return *reaction* with the id of the task that was asked for, if it is a result."""
    if not seen.paid and isinstance(reaction, HttpResponse):
        name = seen.request.url.rpartition("/")[2].encode()
        return HttpResponse(
            reaction.status, reaction.headers, reaction.body.replace(b'"t1"', b'"%s"' % name)
        )
    return reaction


class FleetMachine(RuleBasedStateMachine):
    """Adds, sends, answers, waits and fails in any order; the shadows check each operation."""

    drive: FleetDrive

    @initialize(
        concurrency=st.integers(1, 6),
        connections=st.integers(1, 5),
        per_family=st.none() | st.integers(1, 3),
        wait=st.none() | st.floats(1, 1000),
        seed=st.integers(0, 2**32),
    )
    def begin(self, **options: Any) -> None:
        self.options = options
        self.keys = 0
        self.stopped = False
        self.service = MadeUpService(queries=1)
        self.drive = FleetDrive(self.react, **options)

    def react(self, seen: Seen) -> Any:
        return self.service(seen)

    @rule(
        request=st.sampled_from([IMGA, IMGB, VIDM]),
        count=st.integers(1, 4),
    )
    def add_requests(self, request: MediaRequest, count: int) -> None:
        for _ in range(count):
            self.keys += 1
            self.drive.add(self.keys, request)

    @rule(
        family=st.sampled_from(["imga", "imgb", "vidsa", "other", None]),
        age=st.none() | st.floats(-10, 1e5),
        status=st.sampled_from([None, *Status]),
    )
    def add_task(self, family: str | None, age: float | None, status: Status | None) -> None:
        self.keys += 1
        born = None if age is None else WALL + self.drive.now - age
        task = Task(id=f"t{self.keys}", family=family, submitted_at=born, status=status)
        self.drive.add(self.keys, task)

    @rule(seconds=st.floats(0, 59), reaction=st.sampled_from(REACTIONS))
    def step_with(self, seconds: float, reaction: Any) -> None:
        def react(seen: Seen) -> After:
            return After(seconds, about(reaction, seen))

        self.drive.react = react
        self.drive.step()
        self.drive.react = self.react

    @rule(count=st.integers(1, 20))
    def steps(self, count: int) -> None:
        for _ in range(count):
            self.drive.step()

    @rule(seconds=st.floats(0, 500))
    def let_time_pass(self, seconds: float) -> None:
        """Act like a machine that was asleep: responses arrive and polls are sent late."""
        self.drive.now += seconds

    @rule()
    def hear(self) -> None:
        self.drive.hear()

    @precondition(lambda self: self.keys > 10)
    @rule()
    def stop(self) -> None:
        self.drive.fleet.stop()
        self.stopped = True

    @invariant()
    def limits_hold(self) -> None:
        drive = self.drive
        assert drive.most["all"] <= self.options["connections"]
        limit = self.options["per_family"] or float("inf")
        # All families that the fleet does not know share one limit.
        assert all(most <= limit for family, most in drive.most.items() if family != "all")
        assert drive.fleet.under_way == len(drive.under_way)
        assert drive.fleet.paid == sum(sent.request.paid for _, _, sent, _ in drive.under_way)
        told = [one.key for one in drive.fleet.outstanding()]
        assert len(told) == len(set(told)) == len(drive.fleet)

    def teardown(self) -> None:
        if not hasattr(self, "drive"):
            return
        drive = self.drive
        drive.run()
        while drive.hear():
            drive.run()
        ended = [outcome.key for outcome in drive.outcomes]
        assert len(ended) == len(set(ended))
        left = {one.key for one in drive.fleet.outstanding()}
        assert left.isdisjoint(ended)
        assert left | set(ended) == set(range(1, self.keys + 1))
        if not self.stopped:
            assert not left
            assert drive.fleet.next_action(drive.now) == Done()


TestFleet = FleetMachine.TestCase
TestFleet.settings = settings(stateful_step_count=40)


def test_a_fleet_with_nothing_to_do_is_done() -> None:
    """An empty fleet says so at once, and again after it has had work."""
    drive = FleetDrive(MadeUpService())
    assert drive.fleet.next_action(0.0) == Done()
    drive.add("a", known_task("t1"))
    assert isinstance(drive.fleet.next_action(0.0), Wait)
    drive.run()
    assert drive.fleet.next_action(drive.now) == Done()


def test_an_outcome_is_unwrapped() -> None:
    """`unwrap` returns the result, or raises what went wrong."""
    failed = FleetOutcome(key="a", outcome=Refused(status=400, message="no"))
    with pytest.raises(Refused, match="no"):
        failed.unwrap()
    assert (failed.error, failed.result) == (failed.outcome, None)
    done = FleetOutcome(key="a", outcome=Result(id="t1", status=Status.COMPLETED))
    assert done.unwrap() is done.result is done.outcome
    assert done.error is None


def test_a_fleet_needs_a_base_url() -> None:
    """A fleet on a service without a base URL is refused at once, and not one by one."""
    with pytest.raises(InvalidAddress):
        Fleet[str](Service(text_base_url="https://text.example.com"), wall_offset=0.0, seed=0)


def test_what_is_no_work_is_refused() -> None:
    """Anything but a request or a task is refused at once, and its key stays free."""
    fleet = Fleet[str](SERVICE, wall_offset=WALL, seed=0)
    wrong: Any = {"model": "imga", "prompt": "a horse"}
    with pytest.raises(TypeError, match="request"):
        fleet.add("a", wrong, 0.0)
    assert len(fleet) == 0
    fleet.add("a", ImgaRequest(model="imga", prompt="a horse"), 0.0)


def test_a_failure_is_part_of_an_outage() -> None:
    """After an outage of lost connections, too, polls that are late do not come all at once."""
    fleet = Fleet[int](SERVICE, wall_offset=WALL, seed=0, per_family=1, poll_interval=10.0)
    for number in range(3):
        fleet.add(number, known_task(f"t{number}"), 0.0)
    waiting = fleet.next_action(0.0)
    due = waiting.until if isinstance(waiting, Wait) else 0.0
    first = fleet.next_action(due)
    assert isinstance(first, Dispatch)
    fleet.fail(first.ticket, lost(), due + 30)
    second = fleet.next_action(due + 30)
    assert isinstance(second, Dispatch)
    fleet.receive(second.ticket, result("processing", name=f"t{second.key}"), due + 31)
    assert isinstance(fleet.next_action(due + 31), Wait)
    # Those that are put off take up no place of their family: each is sent in its turn.
    sent: set[int] = set()
    now = due + 31
    while len(sent) < 3:
        match fleet.next_action(now):
            case Wait(until):
                now = until
            case Dispatch(ticket, key):
                sent.add(key)
                fleet.receive(ticket, result("processing", name=f"t{key}"), now)
            case other:
                pytest.fail(f"{other} before all were sent")


@pytest.mark.parametrize("per_family", [None, 2])
def test_a_clock_that_goes_back_sends_nothing_early(per_family: int | None) -> None:
    """A poll that was due at a later time than now waits again, and takes no place meanwhile."""
    fleet = Fleet[str](SERVICE, wall_offset=WALL, seed=0, per_family=per_family)
    for name in ("a", "b"):
        fleet.add(name, known_task(name), 0.0)
    due = fleet.next_action(0.0)
    assert isinstance(due, Wait)
    while not isinstance(first := fleet.next_action(due.until), Dispatch):
        assert isinstance(first, Wait)
        due = first
    before = fleet.next_action(due.until - 0.5)
    assert isinstance(before, Wait)
    assert before.until >= due.until
    assert isinstance(fleet.next_action(before.until), Dispatch)


def test_what_is_under_way_is_told_as_such() -> None:
    """An operation whose request has been handed out is under way, and no other."""
    fleet = Fleet[str](SERVICE, wall_offset=WALL, seed=0, connections=1)
    fleet.add("a", IMGA, 0.0)
    fleet.add("b", IMGA, 0.0)
    assert isinstance(fleet.next_action(0.0), Dispatch)
    assert [(one.key, one.under_way) for one in fleet.outstanding()] == [("a", True), ("b", False)]


def test_what_rests_is_told_in_the_order_in_which_it_was_added() -> None:
    """Whatever is due first, and whichever family it waits with."""
    fleet = Fleet[int](SERVICE, wall_offset=WALL, seed=0)
    for number, family in enumerate(["vidm", "imga", "vidm", "imga"]):
        fleet.add(number, known_task(f"t{number}", family, age=60.0 - number), 0.0)
    assert [one.key for one in fleet.outstanding()] == [0, 1, 2, 3]


def test_polls_are_noted_as_they_are_handed_out_and_as_they_end() -> None:
    """Another wait for the same task keeps the pace, also while a poll is under way."""
    polls = NextPolls()
    fleet = Fleet[str](SERVICE, wall_offset=WALL, seed=0, next_polls=polls)
    task = known_task("t1", age=HOUR)
    fleet.add("a", task, 0.0)
    now, action = 0.0, fleet.next_action(0.0)
    while isinstance(action, Wait):
        now, action = action.until, fleet.next_action(action.until)
    assert isinstance(action, Dispatch)
    permitted = polls.recall(task, now=now, wall=WALL + now).next_poll_at
    assert permitted is not None
    assert permitted > WALL + now
    fleet.receive(action.ticket, reply(429, Retry_After="90"), now)
    permitted = polls.recall(task, now=now, wall=WALL + now).next_poll_at
    assert permitted is not None
    assert permitted >= WALL + now + 90


def test_successes_after_a_429_close_the_gap_between_requests() -> None:
    """Once requests that were sent after a 429 succeed, the waits between them end."""
    fleet = Fleet[int](SERVICE, wall_offset=WALL, seed=0, connections=1)
    for number in range(200):
        fleet.add(number, IMGA, 1000.0)
    now, waits, answers = 1000.0, [0.0], iter([reply(429)])
    while not isinstance(action := fleet.next_action(now), Done):
        match action:
            case Wait(until):
                waits[-1] = until - now
                now = until
            case Dispatch(ticket):
                ended = reply(200, {"id": f"t{len(waits)}", "status": "failed"})
                fleet.receive(ticket, next(answers, ended), now)
                waits.append(0.0)
            case _:
                pass
    assert any(waits[:50])
    assert not any(waits[-50:])
