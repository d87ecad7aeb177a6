"""The pace of polling over many calls, and through outages, with every driver."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from muybridge import (
    DownloadFailed,
    Result,
    ServiceUnreachable,
    Task,
    TaskNotFound,
    TrioClient,
    WaitTimeout,
)
from muybridge_protocol.emulator import Timing
from muybridge_protocol.events import Polled, ServiceSilent, Throttled, WillRetry
from muybridge_protocol.http import (
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.records.tasks import Status

from .drivers import AnyClient, MakeClient
from .event_loops import BlockingAsyncClient
from .fleets import run_all
from .heard import Heard, call_of
from .in_process import VirtualClock, World
from .requests_made import FAMILIES, PACE, small

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
NO_CERTIFICATE = TransportFailure(phase=Phase.TLS, sent=False, reason=Reason.CERTIFICATE)
HALF_AN_HOUR = 1800.0


def slow_world(seconds: float = 200) -> World:
    return World(timing=Timing(image_processing=seconds, video_processing=seconds))


def gaps(world: World) -> list[float]:
    """Return the seconds between queries, as exactly as sums of them are."""
    times = [seen.at for seen in world.queries]
    return [round(later - sooner, 9) for sooner, later in pairwise(times)]


def token_of(error: WaitTimeout) -> str:
    assert error.task is not None
    return error.task.to_token()


class SetClock(VirtualClock):
    """A clock whose wall time somebody sets while a program runs."""

    skew: float = 0.0

    def wall(self) -> float:
        return super().wall() + self.skew


class OnTime(World):
    """A service that has the right time, whatever the program's clock says."""

    def __init__(self, clock: SetClock) -> None:
        timing = Timing(image_processing=200, video_processing=200)
        super().__init__(timing=timing, clock=clock)
        self._set = clock

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        skew, self._set.skew = self._set.skew, 0.0
        try:
            return super().answer(request, authorization)
        finally:
            self._set.skew = skew


def wait_in_a_loop(client: AnyClient, world: World, task: Task | str) -> Result:
    """Wait for *task* 10 s at a time, as one does who has other things to do in between."""
    for _ in range(1000):
        try:
            return client.wait(task, timeout=10)
        except WaitTimeout:
            world.clock.sleep(0.1)
    raise AssertionError("the task never ends")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("bare", [False, True], ids=["task", "bare id"])
def test_short_waits_in_a_loop_keep_the_pace(
    make_client: MakeClient, family: str, *, bare: bool
) -> None:
    """A loop of short waits polls as seldom as the family asks for, and sees the task end."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()[family])
    done = wait_in_a_loop(client, world, task.id if bare else task)
    assert done.status is Status.COMPLETED
    assert min(gaps(world)) >= PACE[family][0]
    assert world.clock.elapsed <= 200 + 2 * PACE[family][1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("days", [-3, 3])
def test_a_wall_clock_that_is_set_changes_no_pace(
    make_client: MakeClient, family: str, days: int
) -> None:
    """Between two waits somebody sets the clock: polls come neither too soon nor much later."""
    clock = SetClock()
    world = OnTime(clock)
    client = make_client(world)
    task = client.create(small()[family])
    with pytest.raises(WaitTimeout):
        client.wait(task, timeout=PACE[family][0] + 0.5)
    assert world.queries
    clock.skew = days * 86_400.0
    done = wait_in_a_loop(client, world, task)
    assert done.status is Status.COMPLETED
    assert min(gaps(world)) >= PACE[family][0]
    assert clock.elapsed <= 200 + 2 * PACE[family][1]


def test_a_wait_without_a_permitted_poll_sends_nothing(make_client: MakeClient) -> None:
    """Until a task may be polled, waits end at their deadline without a request."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidv"])
    for _ in range(3):
        with pytest.raises(WaitTimeout):
            client.wait(task, timeout=9.9)
    assert not world.queries
    with pytest.raises(WaitTimeout):
        client.wait(task, timeout=9.9)
    assert [seen.at for seen in world.queries] == [30]


def test_a_token_carries_the_pace_to_another_process(make_client: MakeClient) -> None:
    """Each wait of a process of its own, that has nothing but the last one's token, keeps it."""
    world = slow_world()
    token = make_client(world).create(small()["vidv"]).id
    for _ in range(100):
        try:
            make_client(world).wait(token, timeout=10)
            break
        except WaitTimeout as error:
            token = token_of(error)
            world.clock.sleep(0.1)
    assert len(world.queries) > 5
    assert min(gaps(world)) >= 30


def test_retry_after_binds_the_next_wait(make_client: MakeClient) -> None:
    """A pause that the service asked for outlives the wait in which it did."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["imga"])
    world.instead.append(HttpResponse(429, (("Retry-After", "60"),)))
    for timeout in (10, 49):
        with pytest.raises(WaitTimeout):
            client.wait(task, timeout=timeout)
    assert [seen.at for seen in world.queries] == [2]
    client.wait(task)
    assert gaps(world)[0] == 60


def test_a_single_query_is_sent_at_once_and_counts(make_client: MakeClient) -> None:
    """A query that is asked for by hand waits for nothing, but later polls wait for it."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidg"])
    world.clock.sleep(40)
    client.get(task)
    client.get(task.id)
    assert [seen.at for seen in world.queries] == [40, 40]
    client.wait(task.id)
    assert [seen.at for seen in world.queries][2] == 70


def test_a_watch_that_was_left_counts(make_client: MakeClient) -> None:
    """Watching a task briefly, again and again, polls it no more often."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidg"])
    for _ in range(4):
        for _ in client.watch(task):
            break
    assert [seen.at for seen in world.queries] == [30, 60, 90, 120]


def test_a_wait_that_breaks_off_counts(make_client: MakeClient) -> None:
    """A poll counts even if the wait is interrupted before its response was read."""
    world = slow_world()

    class Broken(Exception):
        pass

    def break_off(event: object) -> None:
        if isinstance(event, Polled):
            raise Broken

    client = make_client(world, on_event=break_off)
    task = client.create(small()["vidg"])
    for _ in range(4):
        with pytest.raises(Broken):
            client.wait(task)
    assert [seen.at for seen in world.queries] == [30, 60, 90, 120]


def test_runs_of_many_keep_the_pace(make_client: MakeClient) -> None:
    """`run_all` and the other calls of a client know of each other's polls."""
    world = slow_world()
    client = make_client(world)
    tasks = [client.create(small()[family]) for family in ("vidg", "vidv", "vidd")]
    world.clock.sleep(100)
    client.get(tasks[0])
    for _ in range(4):
        outcomes = run_all(client, tasks, timeout=10)
        assert all(isinstance(outcome.error, WaitTimeout) for outcome in outcomes)
        for outcome in outcomes:
            assert outcome.task is not None
            assert outcome.task.next_poll_at is not None
    for task in tasks:
        client.wait(task.id)
        times = [seen.at for seen in world.queries if seen.path.endswith(task.id)]
        assert len(times) > 2
        assert all(later - sooner >= 30 for sooner, later in pairwise(times))


class ClockOfThreads(VirtualClock):
    """A clock of several threads, which goes forward once all of them wait."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = threads
        self._waiting: list[float] = []
        self._moved = threading.Condition()

    def sleep(self, seconds: float) -> None:
        with self._moved:
            until = self.elapsed + seconds
            self._waiting.append(until)
            self._go_on()
            self._moved.wait_for(lambda: self.elapsed >= until)

    def leave(self) -> None:
        """Wait for one thread less."""
        with self._moved:
            self._threads -= 1
            self._go_on()

    def _go_on(self) -> None:
        if self._waiting and len(self._waiting) == self._threads:
            self.elapsed = min(self._waiting)
            self._waiting = [until for until in self._waiting if until > self.elapsed]
            self._moved.notify_all()


def wait_at_once(client: AnyClient, task: Task, clock: VirtualClock) -> list[Result]:
    """Wait twice for *task* at the same time: in threads, or in tasks of an event loop."""
    results: list[Result] = []
    if not isinstance(client, BlockingAsyncClient):
        assert isinstance(clock, ClockOfThreads)

        def wait_in_thread(_: int) -> Result:
            try:
                return client.wait(task)
            finally:
                clock.leave()

        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(wait_in_thread, range(2)))

    async_client = client.client

    async def wait() -> None:
        results.append(await async_client.wait(task))

    async def wait_in_trio() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)

    async def wait_in_asyncio() -> None:
        await asyncio.gather(wait(), wait())

    in_trio = isinstance(async_client, TrioClient)
    client.in_loop(wait_in_trio if in_trio else wait_in_asyncio)
    return results


@pytest.mark.parametrize("family", FAMILIES)
def test_waits_at_the_same_time_share_the_pace(
    make_client: MakeClient, driver: str, family: str
) -> None:
    """Two waits for one task poll it no more often than one, and both see it end."""
    clock = ClockOfThreads(2) if driver == "requests" else VirtualClock()
    timing = Timing(image_processing=200, video_processing=200)
    world = World(timing=timing, clock=clock)
    client = make_client(world)
    task = client.create(small()[family])
    done = wait_at_once(client, task, clock)
    assert [result.status for result in done] == [Status.COMPLETED] * 2
    *while_it_ran, _ = gaps(world)  # a task that has ended is asked for at once
    assert min(while_it_ran) >= PACE[family][0]
    assert clock.elapsed <= 200 + 2 * PACE[family][1]


def test_watches_side_by_side_share_the_pace(make_client: MakeClient) -> None:
    """A watch knows of the polls that another one has sent since it began."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidg"])
    one, other = client.watch(task), client.watch(task)
    seen = [next(watch).status for watch in (one, other, one, other)]
    ends = [result.status for result in (*one, *other)]
    assert [*seen, *ends].count(Status.COMPLETED) == 2
    *while_it_ran, _ = gaps(world)
    assert min(while_it_ran) >= 30


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_with_one_task_twice_keeps_the_pace(make_client: MakeClient, family: str) -> None:
    """A run that waits for the same task several times polls it no more often than once."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()[family])
    outcomes = run_all(client, [task, task.id, task])
    assert [outcome.unwrap().status for outcome in outcomes] == [Status.COMPLETED] * 3
    assert min(gaps(world)[:-2]) >= PACE[family][0]
    assert world.clock.elapsed <= 200 + 2 * PACE[family][1]


def test_a_query_puts_off_a_wait_under_way(make_client: MakeClient) -> None:
    """A wait that has begun takes account of a query that is asked for by hand."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidg"])
    watch = client.watch(task)
    next(watch)
    world.clock.sleep(25)
    client.get(task)
    list(watch)
    assert [seen.at for seen in world.queries][:3] == [30, 55, 85]


def test_a_task_that_has_ended_is_asked_for_at_once(make_client: MakeClient) -> None:
    """A result that is already there is fetched at once."""
    world = slow_world(20)
    client = make_client(world)
    task = client.create(small()["vidg"])
    client.wait(task)
    before = world.clock.elapsed
    client.wait(task)
    client.wait(task.id)
    assert world.clock.elapsed == before


# Outages.


class DownWorld(World):
    """A service that is down for half an hour, from its first minute on."""

    def __init__(self, fault: HttpResponse | TransportFailure) -> None:
        super().__init__(timing=Timing(image_processing=100, video_processing=100))
        self._fault = fault

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        is_down = 60 <= self.clock.elapsed < 60 + HALF_AN_HOUR
        self.always = self._fault if is_down else None
        return super().answer(request, authorization)


FAULTS = {"503": HttpResponse(503), "lost": LOST, "unsent": UNSENT}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("family", ["imgb", "vidg"])
def test_an_outage_ends_no_wait(make_client: MakeClient, family: str, fault: str) -> None:
    """After half an hour without the service a task's result is there as if nothing had been."""
    world, heard = DownWorld(FAULTS[fault]), Heard()
    client = make_client(world, on_event=heard)
    result = client.run(small()[family])
    assert result.status is Status.COMPLETED
    assert 60 + HALF_AN_HOUR <= world.clock.elapsed <= 60 + HALF_AN_HOUR + 75
    assert len(world.queries) <= world.clock.elapsed / PACE[family][0]
    assert len(world.posts) == 1
    silent = heard.of(ServiceSilent)
    assert silent[0].silent >= 600 > heard.of(WillRetry)[-1].delay
    assert [told.silent for told in silent] == sorted(told.silent for told in silent)
    assert all(told.cause and call_of(told).task_id == result.id for told in silent)


def test_an_outage_in_a_run_of_many(make_client: MakeClient) -> None:
    """A run of many tasks also survives an outage."""
    world = DownWorld(LOST)
    outcomes = run_all(make_client(world), list(small().values()))
    assert all(outcome.unwrap().status is Status.COMPLETED for outcome in outcomes)
    assert len(world.posts) == len(FAMILIES)


def test_an_outage_and_a_loop_of_short_waits(make_client: MakeClient) -> None:
    """Short waits in a row are as quiet during an outage, and see the task end after it."""
    world = DownWorld(HttpResponse(503))
    client = make_client(world)
    task = client.create(small()["vidv"])
    assert wait_in_a_loop(client, world, task).status is Status.COMPLETED
    assert min(gaps(world)) >= 30


def test_a_deadline_within_an_outage(make_client: MakeClient) -> None:
    """A wait that ends during an outage says so, and the task can be waited for after it."""
    world = DownWorld(LOST)
    client = make_client(world)
    task = client.create(small()["vidg"])
    with pytest.raises(WaitTimeout, match="no valid response for the last") as caught:
        client.wait(task, timeout=900)
    assert world.clock.elapsed == 900
    assert caught.value.silent == 870
    assert caught.value.task == task
    assert client.wait(token_of(caught.value)).status is Status.COMPLETED


WAIT_A_MINUTE = (("Retry-After", "60"),)
ANSWERS: dict[str, HttpResponse | TransportFailure] = {
    "refused": UNSENT,
    "reset": LOST,
    "503": HttpResponse(503),
    "503 for a minute": HttpResponse(503, headers=WAIT_A_MINUTE),
    "429": HttpResponse(429),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_no_poll_is_announced_after_the_end_of_a_wait(
    make_client: MakeClient, answer: HttpResponse | TransportFailure
) -> None:
    """What a wait will not do before it ends is not announced; its error says what happened."""
    world = World()
    world.always = answer
    heard: list[object] = []
    with pytest.raises(WaitTimeout) as caught:
        make_client(world, on_event=heard.append).wait("task-1", timeout=2)
    assert world.clock.elapsed == 2
    assert [one for one in heard if isinstance(one, WillRetry | ServiceSilent | Throttled)] == []
    said = f"status {answer.status}" if isinstance(answer, HttpResponse) else str(answer)
    assert f"no valid response for the last 2 s: {said}." in str(caught.value)


def test_no_download_is_announced_after_its_end(make_client: MakeClient, tmp_path: Path) -> None:
    """A download that ends before its next attempt does not announce it."""
    world = World()
    world.always = HttpResponse(503, headers=WAIT_A_MINUTE)
    heard: list[object] = []
    with pytest.raises(DownloadFailed):
        make_client(world, on_event=heard.append).download(
            "https://cdn.example.com/a.png", tmp_path, timeout=2
        )
    assert [one for one in heard if isinstance(one, WillRetry)] == []


@pytest.mark.parametrize(
    ("answer", "kind"), [(NO_CERTIFICATE, ServiceUnreachable), (HttpResponse(404), TaskNotFound)]
)
def test_what_will_not_change_ends_a_wait(
    make_client: MakeClient, answer: HttpResponse | TransportFailure, kind: type[Exception]
) -> None:
    """A wait ends if every further poll would meet the same error."""
    world = slow_world()
    client = make_client(world)
    task = client.create(small()["vidg"])
    world.clock.sleep(100)
    world.always = answer
    with pytest.raises(kind):
        client.wait(task)
    assert len(world.queries) == 1


def test_a_long_silence_is_logged(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says for how long there was no valid response, and when the next poll is."""
    caplog.set_level(logging.WARNING, logger="muybridge")
    make_client(DownWorld(LOST)).run(small()["vidg"])
    lines = [record.message.partition(": ")[2] for record in caplog.records]
    silent = [line for line in lines if line.startswith("no valid response for ")]
    assert len(silent) > 10
    assert all(", next poll in " in line for line in silent)
    assert all(
        line.endswith(" s: connection reset while waiting for the response") for line in silent
    )


# What a record says of a bare id.


def test_a_bare_id_learns_its_family(make_client: MakeClient) -> None:
    """Pace, expiry and family of a bare id are those of the model that its first record names."""
    world = slow_world()
    client = make_client(world)
    created = client.create(small()["imgb"])
    asked = client.get(created.id)
    watched = list(client.watch(created.id))
    done = client.wait(created.id)
    for result in (asked, *watched, done):
        assert result.family == "imgb"
        assert result.created is not None
        completed = result.status == "completed"
        assert result.expires_at == (result.created + 86_400 if completed else None)
    assert all(2 <= gap <= 5 for gap in gaps(world)[:-1])
    (outcome,) = run_all(make_client(world), [created.id])
    assert outcome.unwrap().expires_at == done.expires_at
