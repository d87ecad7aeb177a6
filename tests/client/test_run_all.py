"""`run_all` over real sockets, and straight into the emulator."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn, Self

import pytest

import moments
from muybridge import (
    Client,
    CreateAmbiguous,
    ImgaRequest,
    ImgbRequest,
    LocalError,
    MuybridgeWarning,
    Task,
    TaskFailed,
    VidmRequest,
    VidvRequest,
)
from muybridge.client import Outcomes
from muybridge.local import LocalService
from muybridge_protocol.fleet import FleetOutcome
from muybridge_protocol.http import Phase, Reason, TransportFailure

from .drivers import MakeClient
from .fleets import run_all
from .in_process import KEY, InProcessTransport, World

HORSE = ImgaRequest(model="imga", prompt="a horse")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=100) as running:
        yield running


@pytest.fixture
def client(service: LocalService) -> Iterator[Client]:
    with Client(service.api_key, service.base_url, poll_interval=0.1) as made:
        yield made


def requests(count: int) -> list[ImgaRequest | ImgbRequest]:
    return [
        ImgaRequest(model="imga", prompt=f"horse {number}")
        if number % 2
        else ImgbRequest(model="imgb-2", prompt=f"horse {number}")
        for number in range(count)
    ]


def run_and_check(client: Client, count: int, *, concurrency: int) -> None:
    work = requests(count)
    with client.run_all(work, concurrency=concurrency) as outcomes:
        seen = list(outcomes)
    assert sorted(outcome.key for outcome in seen) == list(range(count))
    assert all(outcome.request is work[outcome.key] for outcome in seen)
    assert len({outcome.unwrap().id for outcome in seen}) == count
    assert not [*outcomes.outstanding, *outcomes.unsent, *outcomes.unread]


def test_many_tasks_run_at_once(client: Client) -> None:
    """Three hundred tasks all come to their results, each once."""
    run_and_check(client, 300, concurrency=100)


def test_a_sample_of_thousands_at_once(client: Client) -> None:
    """Five hundred tasks that are all in progress at once are no different."""
    run_and_check(client, 500, concurrency=500)


@pytest.mark.nightly
def test_thousands_of_tasks(client: Client) -> None:
    """Five thousand tasks run in one process without an error."""
    run_and_check(client, 5000, concurrency=1000)


def test_every_id_is_told_before_its_outcome(service: LocalService) -> None:
    """The listener has each task before the loop has its result."""
    told: set[str] = set()
    with (
        Client(
            service.api_key,
            service.base_url,
            poll_interval=0.05,
            on_submitted=lambda task: told.add(task.id),
        ) as client,
        client.run_all(requests(40)) as outcomes,
    ):
        for outcome in outcomes:
            assert outcome.unwrap().id in told
    assert len(told) == 40


def test_tasks_are_resumed_in_any_form(client: Client) -> None:
    """A task, its token, its id and a result are waited for, and nothing is created."""
    task = client.create(HORSE)
    result = client.wait(task)
    with client.run_all([task, task.to_token(), task.id, result]) as outcomes:
        seen = list(outcomes)
    assert {outcome.unwrap().id for outcome in seen} == {task.id}
    assert {outcome.request for outcome in seen} == {None}


def test_a_wrong_id_is_told_before_anything_is_sent(client: Client) -> None:
    """A piece of work that cannot be sent is refused with the call itself."""
    with pytest.raises(LocalError, match="is not a valid task id"):
        client.run_all([HORSE, "no\nid"])


def test_a_limit_below_one_is_refused(client: Client) -> None:
    """Nothing could ever be sent."""
    with pytest.raises(ValueError, match="at least 1"):
        client.run_all([HORSE], concurrency=0)


@pytest.mark.parametrize("timeout", [math.nan, "60"])
def test_a_wait_that_is_no_number_is_refused(client: Client, timeout: Any) -> None:
    """A wait that no task can keep is refused before anything is sent."""
    with pytest.raises(ValueError, match="timeout must be a number of seconds"):
        client.run_all([HORSE], timeout=timeout)


def test_a_negative_wait_is_refused(client: Client) -> None:
    """Nothing is created that nobody would wait for."""
    with pytest.raises(ValueError, match=r"timeout must not be negative \(got -1\)"):
        client.run_all([HORSE], timeout=-1)


def test_a_pace_below_the_minimum_is_warned_of_once() -> None:
    """The warning comes once for a family, not for each of its tasks, and points at the caller."""
    world = World()
    inside = InProcessTransport(world)
    with Client(KEY, world.url, poll_interval=1, transport=inside, clock=world.clock) as client:
        work = [VidvRequest(model="vidv_3_1_fast", prompt="a horse")] * 3
        with pytest.warns(MuybridgeWarning, match="family vidv") as caught:
            client.run_all(work)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_hours_of_polling_take_no_time_on_a_clock_that_is_made_up() -> None:
    """With a clock of its own the run skips the waits, and keeps the specification's pace."""
    world = World()
    inside = InProcessTransport(world)
    with (
        Client(KEY, world.url, transport=inside, clock=world.clock) as client,
        client.run_all([VidmRequest(prompt="a horse")] * 20, concurrency=1) as outcomes,
    ):
        assert len([outcome.unwrap() for outcome in outcomes]) == 20
    assert len(world.posts) == 20
    assert world.clock.elapsed >= 30


def test_one_failing_does_not_stop_the_others(service: LocalService) -> None:
    """A task that the service fails is an outcome with an error, beside results."""
    work = [HORSE, ImgaRequest(model="imga", prompt="a horse [fail:content-policy]"), HORSE]
    with (
        Client(service.api_key, service.base_url, poll_interval=0.05) as client,
        client.run_all(work) as outcomes,
    ):
        seen = {outcome.key: outcome for outcome in outcomes}
    assert isinstance(seen[1].error, TaskFailed)
    assert seen[1].task is not None
    assert seen[0].result is not None
    assert seen[2].result is not None


def test_a_lost_reply_is_ambiguous_and_costs_one_post() -> None:
    """A create whose response is lost is never sent again, and the others continue."""
    world = World()
    lost = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)
    world.instead.append(lost)
    inside = InProcessTransport(world)
    with (
        Client(KEY, world.url, transport=inside, clock=world.clock) as client,
        client.run_all([HORSE] * 5, concurrency=1) as outcomes,
    ):
        seen = {outcome.key: outcome for outcome in outcomes}
    assert isinstance(seen[0].error, CreateAmbiguous)
    assert sum(outcome.result is not None for outcome in seen.values()) == 4
    assert len(world.posts) == 5


def test_a_defect_of_a_transport_ends_the_run() -> None:
    """A defect comes out as itself, with what may have been accepted and what was not sent."""
    world = World()
    inside = InProcessTransport(world)
    streams = inside.stream
    calls: list[object] = []

    def stream(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise ZeroDivisionError
        return streams(*args, **options)

    inside.stream = stream  # type: ignore[method-assign]  # the bug
    with (
        Client(KEY, world.url, transport=inside, clock=world.clock) as client,
        pytest.raises(ZeroDivisionError) as caught,
        client.run_all([HORSE] * 3, concurrency=1) as outcomes,
    ):
        list(outcomes)
    notes = "\n".join(caught.value.__notes__)
    assert "request 0: The request may have been accepted" in notes
    assert "2 not sent" in notes
    assert "network" not in notes
    assert len(outcomes.unsent) == 2
    assert not world.posts


def test_left_early_it_tells_what_is_out(client: Client) -> None:
    """After a break nothing is lost: each piece of work is seen, unread, out or unsent."""
    with client.run_all(requests(60), concurrency=4) as outcomes:
        seen: list[FleetOutcome[int]] = []
        for outcome in outcomes:
            seen.append(outcome)
            if len(seen) == 3:
                break
    rest = len(outcomes.outstanding) + len(outcomes.unread) + len(outcomes.unsent)
    assert len(seen) + rest == 60
    ids = {task.id for task in outcomes.outstanding}
    assert ids.isdisjoint(outcome.unwrap().id for outcome in seen)
    for task in outcomes.outstanding[:3]:
        assert client.wait(task).id == task.id


def test_an_exception_that_passes_through_carries_every_id_that_is_out(
    service: LocalService,
) -> None:
    """Whatever ends the loop has the ids in its notes: they are paid for."""
    told: list[Task] = []
    with Client(
        service.api_key, service.base_url, poll_interval=0.05, on_submitted=told.append
    ) as client:
        settled: list[str] = []
        with (
            pytest.raises(RuntimeError, match="mine") as caught,
            client.run_all(requests(30), concurrency=4) as outcomes,
        ):
            break_off_at_the_second(outcomes, settled)
        (note,) = caught.value.__notes__
        assert {task.id for task in told} - {settled[0]} <= set(_words(note))


def break_off_at_the_second(outcomes: Outcomes, settled: list[str]) -> None:
    for outcome in outcomes:
        settled.append(outcome.unwrap().id)
        if len(settled) == 2:
            raise RuntimeError("mine")


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def test_what_a_listener_raises_ends_the_run_and_loses_nothing(service: LocalService) -> None:
    """An exception out of `on_submitted` reaches the loop, with the ids that are out."""
    told: list[Task] = []

    def listen(task: Task) -> None:
        told.append(task)
        if len(told) == 3:
            raise RuntimeError("mine")

    with Client(
        service.api_key, service.base_url, poll_interval=0.05, on_submitted=listen
    ) as client:
        with (
            pytest.raises(RuntimeError, match="mine") as caught,
            client.run_all(requests(30), concurrency=2) as outcomes,
        ):
            list(outcomes)
        notes = _words("\n".join(caught.value.__notes__))
        assert {task.id for task in outcomes.outstanding} <= set(notes)
        assert told[2].id in notes
        assert len(outcomes.unsent) >= 26


def test_a_thread_that_cannot_start_ends_the_run_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exception says in its notes that nothing was sent."""
    world = World()
    inside = InProcessTransport(world)
    start, started = threading.Thread.start, list[threading.Thread]()

    def no_more(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_more)
    with Client(KEY, world.url, transport=inside, clock=world.clock) as client:
        run = client.run_all([HORSE] * 5, concurrency=3)
        with pytest.raises(RuntimeError, match="new thread") as caught, run:
            pass
    assert "5 not sent" in "\n".join(caught.value.__notes__)
    assert not world.posts
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


def test_what_strikes_while_a_paid_response_is_taken_tells_its_id(
    make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may raise within the core; the id of the response is in the notes."""

    def struck(*_: object) -> NoReturn:
        raise RuntimeError("time is up")

    monkeypatch.setattr(*moments.at("fleet told of a response").place, struck)
    with pytest.raises(RuntimeError, match="time is up") as caught:
        run_all(make_client(world), [HORSE])
    assert "task-1" in "\n".join(caught.value.__notes__)


class SlowServer:
    """Answers each create when it is told to, and each query that the task is at work.

    Args:
        refusals: How many requests are answered with 429 first.
    """

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.posts: Counter[str] = Counter()
        self.accepted: list[str] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.begun.release()
                assert outer.go_on.wait(20)
                prompt = json.loads(body)["prompt"]
                with outer._lock:
                    outer.posts[prompt] += 1
                    if outer.refusals:
                        outer.refusals -= 1
                        self._reply(429, {"error": "slow down"})
                        return
                    outer.accepted.append(f"task-{len(outer.accepted)}")
                    self._reply(200, {"id": outer.accepted[-1], "status": "queued"})

            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                done = {"status": "completed", "image_url": "https://a.example/horse.png"}
                self._reply(200, {"id": name, **done})

            def _reply(self, status: int, record: object) -> None:
                body = json.dumps(record).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def slow() -> Iterator[SlowServer]:
    with SlowServer() as server:
        yield server


def at_once_when_posts_are_under_way(
    server: SlowServer, count: int, action: Callable[[], None]
) -> threading.Thread:
    """Do *action* when *count* creates are under way, and let them go on after it."""

    def wait() -> None:
        for _ in range(count):
            assert server.begun.acquire(timeout=20)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_creates_under_way_are_heard_out_when_the_run_is_left(slow: SlowServer) -> None:
    """Left in the middle of paid requests, the run waits for their ids, and sends no more."""
    with Client(KEY, slow.url) as client:
        with client.run_all([HORSE] * 20, concurrency=3) as outcomes:
            for _ in range(3):
                assert slow.begun.acquire(timeout=20)
            slow.go_on.set()
        assert {task.id for task in outcomes.outstanding} == set(slow.accepted)
        assert len(slow.accepted) + len(outcomes.unsent) == 20
        assert slow.posts.total() == len(slow.accepted)


def wait_until_interrupted(outcomes: Outcomes, server: SlowServer) -> None:
    """Wait for outcomes; the responses come only once that was interrupted."""
    try:
        for _ in outcomes:
            pass
    finally:
        server.go_on.set()


@pytest.mark.skipif(os.name == "nt", reason="Windows sends itself no SIGINT")
def test_ctrl_c_waits_for_paid_replies_and_tells_their_ids(
    slow: SlowServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in the loop ends the run once the ids of what is under way are known."""
    with Client(KEY, slow.url) as client:
        pressing = at_once_when_posts_are_under_way(slow, 3, press)
        with (
            pytest.raises(KeyboardInterrupt) as caught,
            client.run_all([HORSE] * 20, concurrency=3) as outcomes,
        ):
            wait_until_interrupted(outcomes, slow)
        pressing.join()
    notes = _words("\n".join(caught.value.__notes__))
    assert slow.accepted
    assert set(slow.accepted) <= set(notes)
    assert slow.posts.total() == len(slow.accepted) == 3
    assert len(outcomes.unsent) == 17
    assert "ids" in capsys.readouterr().err


def press() -> None:
    """Press Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


class Screen(io.StringIO):
    """A screen whose reader acts once it says that Ctrl-C is held back.

    Args:
        act: What the reader does.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def write(self, text: str, /) -> int:
        """Show *text*."""
        if "Ctrl-C again" in text:
            self._act()
        return super().write(text)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends itself no SIGINT")
def test_a_second_ctrl_c_ends_the_run_at_once(
    slow: SlowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C waits for no paid response, and says how many may have been accepted."""
    monkeypatch.setattr(sys, "stderr", Screen(press))
    with Client(KEY, slow.url) as client:
        pressing = at_once_when_posts_are_under_way(slow, 3, press)
        with (
            pytest.raises(KeyboardInterrupt) as caught,
            client.run_all([HORSE] * 20, concurrency=3) as outcomes,
        ):
            list(outcomes)
        assert not slow.accepted
        slow.go_on.set()
        pressing.join()
    (note,) = caught.value.__notes__
    assert "3 under way, which may have been accepted" in note
    assert "17 not sent" in note
    assert slow.posts.total() <= 3


@pytest.mark.skipif(os.name == "nt", reason="Windows sends itself no SIGINT")
def test_ids_that_arrive_after_a_second_ctrl_c_are_told(
    slow: SlowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the program lives on, it learns each id that its threads still read, and they end."""
    monkeypatch.setattr(sys, "stderr", Screen(press))
    told: list[str] = []
    others = threading.enumerate()
    with Client(KEY, slow.url, on_submitted=lambda task: told.append(task.id)) as client:
        pressing = at_once_when_posts_are_under_way(slow, 3, press)
        with pytest.raises(KeyboardInterrupt), client.run_all([HORSE] * 3) as outcomes:
            list(outcomes)
        pressing.join()
        workers = [
            one
            for one in threading.enumerate()
            if one.name.startswith("muybridge-") and one not in others
        ]
        slow.go_on.set()
        for worker in workers:
            worker.join(timeout=5)
    assert len(slow.accepted) == 3
    assert sorted(told) == slow.accepted
    assert not [worker for worker in workers if worker.is_alive()]
    assert {task.id for task in outcomes.outstanding} == set(told)


@pytest.mark.parametrize(("concurrency", "threads"), [(1, 2), (3, 4), (500, 33)])
def test_threads(slow: SlowServer, concurrency: int, threads: int) -> None:
    """A run has one thread per concurrent exchange, at most 32, and one that schedules."""
    slow.go_on.set()
    before = set(threading.enumerate())
    work = [HORSE] * 40
    with Client(KEY, slow.url) as client, client.run_all(work, concurrency=concurrency):
        during = [one for one in threading.enumerate() if one.name.startswith("muybridge-")]
        assert len(set(during) - before) == threads


@pytest.mark.skipif(os.name == "nt", reason="Windows sends itself no SIGINT")
def test_ctrl_c_while_a_run_closes(slow: SlowServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is held back until the paid responses have arrived, then raised."""
    left = threading.Event()

    def press_once_held() -> None:
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler and not left.is_set():
            pass
        press()

    def begin_pressing() -> None:
        for _ in range(3):
            assert slow.begun.acquire(timeout=20)
        pressing.start()

    monkeypatch.setattr(sys, "stderr", Screen(slow.go_on.set))
    pressing = threading.Thread(target=press_once_held)
    with Client(KEY, slow.url) as client:
        with pytest.raises(KeyboardInterrupt), client.run_all([HORSE] * 20, concurrency=3) as run:
            begin_pressing()
        left.set()
        pressing.join()
    assert len(slow.accepted) == 3
    assert {task.id for task in run.outstanding} == set(slow.accepted)
    assert len(run.unsent) == 17


def test_a_server_that_says_429_slows_everything_and_loses_nothing() -> None:
    """Refused requests are retried, more slowly, and each is accepted once in the end."""
    with SlowServer(refusals=3) as server, Client(KEY, server.url, poll_interval=0.01) as client:
        server.go_on.set()
        work = [ImgaRequest(model="imga", prompt=f"horse {number}") for number in range(12)]
        with client.run_all(work, concurrency=2) as outcomes:
            seen = list(outcomes)
    assert len([outcome.unwrap() for outcome in seen]) == 12
    assert len(server.accepted) == 12
    assert server.posts.total() == 15
