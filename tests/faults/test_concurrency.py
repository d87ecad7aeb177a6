"""Ctrl-C at every step, and many at once: nothing is lost, mixed up or paid twice."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import pytest
import trio

import muybridge
from client.event_loops import ClockEventLoop, TrioClock
from client.in_process import Answer, AsyncFace, InProcessTransport, World
from client.requests_made import image
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure

from .interruptions import BookingWorld, Interruption, said

posix = pytest.mark.skipif(os.name != "posix", reason="a matter of posix")

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
ANSWERS: dict[str, tuple[Answer, *tuple[str, ...]]] = {
    "accepted": (None, "task-1"),
    "lost": (LOST, "may have been accepted"),
    "junk": (HttpResponse(200, (), b"no horse"), "no horse", "may have been accepted"),
    "502": (HttpResponse(502), "502"),
    "unsent, then accepted": (UNSENT, "task-2"),
}
"""How the first create is answered, and what must be told of it, in one of these words."""

BODY = {"model": "imga", "prompt": "a horse"}


CALLS: dict[str, Callable[[Any], Any]] = {
    "create": lambda client: client.create(image()),
    "run": lambda client: client.run(image()),
    "call": lambda client: client.call("POST", "/v1/imga/images", BODY),
}


@attrs.frozen
class Interrupted:
    """A call that was interrupted: what it told, in words, and what the service had of it."""

    told: str
    world: BookingWorld
    place: str | None


def on_requests(world: World, call: Callable[[Any], Any], interruption: Interruption) -> str:
    transport = InProcessTransport(world)
    with muybridge.Client(world.key, world.url, transport=transport, clock=world.clock) as client:
        try:
            with interruption:
                outcome = call(client)
        except BaseException as error:  # noqa: BLE001  whatever comes out is looked at
            return said(error)
    return f"{outcome} {getattr(outcome, 'body', '')}"


async def called(
    world: World,
    call: Callable[[Any], Awaitable[Any]],
    interruption: Interruption,
    make_client: Callable[..., muybridge.AsyncClient],
    told: list[str],
) -> None:
    """Make *call* under an event loop, and put what comes out of it into *told*."""
    transport = AsyncFace(InProcessTransport(world))
    client = make_client(world.key, world.url, transport=transport, wall=world.clock.wall)
    try:
        with interruption:
            outcome = await call(client)
    except BaseException as error:  # noqa: BLE001  whatever comes out is looked at
        told.append(said(error))
    else:
        told.append(f"{outcome} {getattr(outcome, 'body', '')}")


def on_trio(world: World, call: Callable[[Any], Awaitable[Any]], interruption: Interruption) -> str:
    told: list[str] = []
    main = partial(called, world, call, interruption, muybridge.TrioClient, told)
    # Where it came too late for a checkpoint, trio raises it at its end.
    with suppress(KeyboardInterrupt):
        trio.run(main, clock=TrioClock(world.clock))
    return told[0]


def on_asyncio(
    world: World, call: Callable[[Any], Awaitable[Any]], interruption: Interruption
) -> str:
    told: list[str] = []
    # The runner raises it at its end, having cancelled the call.
    with (
        suppress(KeyboardInterrupt),
        asyncio.Runner(loop_factory=lambda: ClockEventLoop(world.clock)) as runner,
    ):
        runner.run(called(world, call, interruption, muybridge.AsyncClient, told))
    return told[0]


LOOPS: dict[str, Callable[[World, Callable[[Any], Any], Interruption], str]] = {
    "requests": on_requests,
    "trio": on_trio,
    "asyncio": on_asyncio,
}


ENDLESS = 1_000_000


def interrupted(
    driver: str,
    call: Callable[[Any], Any],
    answer: Answer,
    *,
    before: int = ENDLESS,
    every: int = 1,
    opcodes: bool = False,
    pressed: bool = False,
) -> Iterator[Interrupted]:
    """Yield what came of *call* interrupted at one step, at a later one, and so on to its end.

    Args:
        driver: Under which driver.
        call: What is interrupted.
        answer: How the service answers at first.
        before: How many steps before the first request to begin.
        every: How many steps to go on after each.
        opcodes: Whether each opcode is a step.
        pressed: Whether Ctrl-C was already pressed when the service had the request.
    """

    def at(step: int) -> Interrupted:
        interruption = Interruption(step, opcodes=opcodes)
        world = BookingWorld(interruption, pressed=pressed)
        world.instead.append(answer)
        told = LOOPS[driver](world, call, interruption)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return Interrupted(told, world, interruption.place)

    first = max(1, at(ENDLESS).world.began - before)
    for step in range(first, ENDLESS, every):
        seen = at(step)
        yield seen
        if seen.place is None:
            assert step > first + 50
            return


def told(seen: Interrupted, *known: str) -> bool:
    """Whether one of the words that matter was in the output."""
    return any(word in seen.told for word in known)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C is handled as in a fresh interpreter, and says to nobody that it is held back."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


nightly = pytest.mark.nightly


def each(*sample: tuple[str, str]) -> list[Any]:
    """Return every answer with every call at every step; each run has *sample* at some steps."""
    whole = [pytest.param(*each, 1, marks=nightly) for each in itertools.product(ANSWERS, CALLS)]
    return whole + [pytest.param(*each, 3) for each in sample]


OPCODES = [(answer, call) for answer in ("accepted", "lost") for call in ("create", "call")]
EVERY = [
    *((answer, call, False) for answer in ANSWERS for call in CALLS),
    *((answer, call, True) for answer, call in OPCODES),
]


@posix
@pytest.mark.usefixtures("keyboard")
# Interrupted between making a coroutine and awaiting it, Python warns of the one it never awaited.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(
    ("answer", "call", "every"), each(("accepted", "create"), ("lost", "create"), ("junk", "call"))
)
def test_ctrl_c_at_every_line(driver: str, answer: str, call: str, every: int) -> None:
    """Ctrl-C at any line of a paid call: nothing was sent, or the outcome is reported."""
    reply, *known = ANSWERS[answer]
    for seen in interrupted(driver, CALLS[call], reply, before=50, every=every):
        assert seen.world.arrived <= 1, seen.place
        assert told(seen, *known) or not seen.world.arrived, (seen.place, seen.told)


@nightly
@posix
@pytest.mark.usefixtures("keyboard")
# Interrupted between making a coroutine and awaiting it, Python warns of the one it never awaited.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("answer", "call", "opcodes"), EVERY)
def test_ctrl_c_from_the_beginning(driver: str, answer: str, call: str, opcodes: bool) -> None:  # noqa: FBT001  a case
    """The same holds from the first line of the call, and between any two opcodes."""
    reply, *known = ANSWERS[answer]
    for seen in interrupted(driver, CALLS[call], reply, opcodes=opcodes):
        assert seen.world.arrived <= 1, seen.place
        assert told(seen, *known) or not seen.world.arrived, (seen.place, seen.told)


@posix
@pytest.mark.usefixtures("keyboard")
# It may strike trio's own loop, which then leaves its tasks unfinished. They cannot end outside of
# the loop, and Python warns of that whenever the garbage collector finds them.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <coroutine object:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize(
    ("answer", "call", "every"), each(("accepted", "create"), ("junk", "call"))
)
def test_a_second_ctrl_c_at_every_line(driver: str, answer: str, call: str, every: int) -> None:
    """A second Ctrl-C at any line interrupts at once, and says at least what may have happened."""
    reply, *known = ANSWERS[answer]
    for seen in interrupted(driver, CALLS[call], reply, before=0, every=every, pressed=True):
        assert seen.world.arrived <= 1, seen.place
        assert told(seen, *known, "may have been accepted") or not seen.world.arrived, (
            seen.place,
            seen.told,
        )


async def _run_all_async(client: muybridge.AsyncClient, seen: list[str]) -> None:
    async with client.run_all(TWO, concurrency=2) as outcomes:
        async for outcome in outcomes:
            assert outcome.task is not None
            seen.append(outcome.task.id)


def _run_all(client: muybridge.Client, seen: list[str]) -> None:
    with client.run_all(TWO, concurrency=2) as outcomes:
        for outcome in outcomes:
            assert outcome.task is not None
            seen.append(outcome.task.id)


TWO = [image("one horse"), image("another horse")]


@posix
@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("every", [pytest.param(1, marks=nightly), 7])
def test_ctrl_c_in_run_all(driver: str, every: int) -> None:
    """Ctrl-C at any step of `run_all`: each id was seen or is reported; nothing is paid twice."""
    every = every if driver == "requests" or every == 1 else 9 * every
    for step in range(1, ENDLESS, every):
        interruption = Interruption(step, calls=driver == "requests")
        world, seen = BookingWorld(interruption), list[str]()
        call = partial(_run_all if driver == "requests" else _run_all_async, seen=seen)
        words = LOOPS[driver](world, call, interruption)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert world.arrived <= len(TWO), interruption.place
        ids = [f"task-{number}" for number, post in enumerate(world.seen, 1) if post in world.posts]
        lost = [name for name in ids if name not in seen and name not in words]
        assert not lost or "may be accepted" in words, (interruption.place, words)
        if interruption.place is None:
            assert len(seen) == len(TWO)
            return
