"""A fleet of pending polls: memory, how fast due ones are handed out, and the cost of a step.

The reference is a bare heap of `Poll` values, driven by hand: without limits, turns, expiry or
throttle.
"""

from __future__ import annotations

import gc
import heapq
import multiprocessing
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.measuring import Benchmark, Report, Target
from muybridge_protocol.fleet import Dispatch, Fleet
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Poll, Send
from muybridge_protocol.records.tasks import Status, Task
from muybridge_protocol.service import Service

SIZES = (10_000, 100_000, 1_000_000)
STEPS = 10_000
_PACE = 30.0
_BURST = 64
_WALL = 1_800_000_000.0
_SERVICE = Service(base_url="https://api.example.com")
_BODY = (
    b'{"id":"task-%032x","object":"video.generation","created":1,"model":"vidg","status":'
    b'"processing","video_url":null}'
)


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of one step: a query handed out, and its response read."""
    return _benchmark()


@contextmanager
def _benchmark() -> Generator[Benchmark, None, None]:
    contestants: dict[str, Callable[[], object]] = {}
    for size in SIZES:
        contestants[f"a heap of {size:,} polls"] = _bare_steps(size)
        contestants[f"a fleet of {size:,} polls"] = _fleet_steps(_fleet(size), size)
    gc.collect()
    gc.freeze()  # what is built above is no concern of the steps
    try:
        targets = [
            Target(f"a fleet of {size:,} polls", at_most=2.2, of=f"a heap of {size:,} polls")
            for size in SIZES
        ]
        yield Benchmark("step", STEPS, contestants, targets, turns=2)
    finally:
        gc.unfreeze()


def _task(number: int) -> Task:
    return Task(
        id=f"task-{number:032x}",
        family="vidg",
        model="vidg_video3",
        requested_model="vidg_video3",
        status=Status.QUEUED,
        created=int(_WALL) - number % 3600,
        submitted_at=_WALL - number % 3600,
    )


def _start(number: int, size: int) -> float:
    """Return when the task with *number* is added: spread over one interval."""
    return _PACE * number / size


def _fleet(size: int) -> Fleet[int]:
    fleet: Fleet[int] = Fleet(
        _SERVICE, wall_offset=_WALL, seed=0, connections=_BURST, wait=None, poll_interval=_PACE
    )
    for number in range(size):
        fleet.add(number, _task(number), _start(number, size))
    return fleet


def _fleet_steps(fleet: Fleet[int], size: int) -> Callable[[], object]:
    now = 2 * _PACE

    def steps() -> None:
        nonlocal now
        for _ in range(STEPS):
            now += 1.001 * _PACE / size  # so that each is due again when its turn comes
            sent = fleet.next_action(now)
            assert isinstance(sent, Dispatch)
            fleet.receive(sent.ticket, HttpResponse(200, (), _BODY % sent.key), now)

    return steps


def _bare_steps(size: int) -> Callable[[], object]:
    heap: list[tuple[float, int, Poll]] = []
    for number in range(size):
        began = _start(number, size)
        poll = Poll.start(
            _task(number),
            _SERVICE,
            now=began,
            wall=_WALL + began,
            seed=0,
            wait=None,
            poll_interval=_PACE,
        )
        heap.append((poll.due, number, poll))
    heapq.heapify(heap)
    now = 2 * _PACE

    def steps() -> None:
        nonlocal now
        for _ in range(STEPS):
            now += 1.001 * _PACE / size  # so that each is due again when its turn comes
            _, number, poll = heapq.heappop(heap)
            assert isinstance(poll.next_action(now), Send)
            poll = poll.receive(HttpResponse(200, (), _BODY % number), now)
            heapq.heappush(heap, (poll.due, number, poll))

    return steps


def _resident() -> int:
    """Return the bytes of memory that this process occupies (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def _survey(size: int) -> dict[str, float]:
    """Return what a fleet of *size* costs, measured in a process that does nothing else."""
    before = _resident()
    fleet = _fleet(size)
    gc.collect()
    occupied = _resident()
    gc.freeze()
    # By then all are due. What is handed out goes back in between, and that is not counted.
    now, handed_out, rates = 4 * _PACE, 0, list[float]()
    while handed_out < min(size, 200_000) - _BURST:
        began = time.process_time()
        sent = [fleet.next_action(now) for _ in range(_BURST)]
        rates.append(_BURST / (time.process_time() - began))
        for one in sent:
            assert isinstance(one, Dispatch)
            fleet.receive(one.ticket, HttpResponse(200, (), _BODY % one.key), now)
        handed_out += _BURST
    return {
        "resident_mib": occupied / 2**20,
        "bytes_each": (occupied - before) / size,
        "due_per_second": statistics.harmonic_mean(rates),
    }


def survey(_: int) -> Report:
    """Tell what fleets of each size cost, each measured once in a process of its own."""
    found: dict[str, dict[str, float]] = {}
    context = multiprocessing.get_context("spawn")
    for size in SIZES:
        with context.Pool(1) as pool:
            found[f"{size:,} pending polls"] = pool.apply(_survey, (size,))
    largest = f"{SIZES[-1]:,} pending polls"
    targets = [
        Target(largest, at_most=1024, figure="resident_mib"),
        Target(largest, at_least=100_000, figure="due_per_second"),
    ]
    return Report(
        "memory of a whole process, and how fast due polls are handed out", found, targets
    )
