"""`run_all` under each event loop: over real sockets, and on a clock that jumps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest

from muybridge import (
    AsyncClient,
    AsyncOutcomes,
    CreateAmbiguous,
    ImgaRequest,
    ImgbRequest,
    Task,
    TaskFailed,
    VidmRequest,
)
from muybridge.local import LocalService
from muybridge_protocol.fleet import FleetOutcome
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure

from .in_process import AsyncFace, InProcessTransport, World
from .virtual_loops import CLIENTS, VirtualLoop

HORSE = ImgaRequest(model="imga", prompt="a horse")
LATENCY = 1.0


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=100) as running:
        yield running


def in_no_time(
    loop: VirtualLoop, script: Callable[[AsyncClient, World], Awaitable[None]], **options: Any
) -> World:
    """Run *script* on a clock that jumps, and return the service that it met."""
    world = loop.world()

    async def main() -> None:
        transport = AsyncFace(InProcessTransport(world), replying=LATENCY)
        async with loop.client(world, transport=transport, **options) as client:
            await script(client, world)

    loop.run(main)
    return world


async def everything(outcomes: AsyncOutcomes) -> dict[int, FleetOutcome[int]]:
    return {outcome.key: outcome async for outcome in outcomes}


def run_and_check(service: LocalService, event_loop: str, count: int, *, concurrency: int) -> None:
    work = [
        HORSE if number % 2 else ImgbRequest(model="imgb-2", prompt=f"horse {number}")
        for number in range(count)
    ]

    async def main() -> None:
        async with CLIENTS[event_loop](
            service.api_key, service.base_url, poll_interval=0.1
        ) as client:
            async with client.run_all(work, concurrency=concurrency) as outcomes:
                seen = await everything(outcomes)
            assert sorted(seen) == list(range(count))
            assert len({outcome.unwrap().id for outcome in seen.values()}) == count
            assert not [*outcomes.outstanding, *outcomes.unsent, *outcomes.unread]

    anyio.run(main, backend=event_loop)


@pytest.mark.parametrize("event_loop", [pytest.param("asyncio", marks=pytest.mark.nightly), "trio"])
def test_many_tasks_run_at_once(service: LocalService, event_loop: str) -> None:
    """Five hundred tasks all come to their results over sockets, each once."""
    run_and_check(service, event_loop, 500, concurrency=500)


@pytest.mark.nightly
@pytest.mark.parametrize("event_loop", CLIENTS)
def test_thousands_of_tasks(service: LocalService, event_loop: str) -> None:
    """Five thousand tasks run in one process without an error."""
    run_and_check(service, event_loop, 5000, concurrency=1000)


def test_hours_of_polling_take_no_time(loop: VirtualLoop) -> None:
    """On a clock that jumps a hundred slow tasks are done at once, at the service's pace."""

    async def script(client: AsyncClient, world: World) -> None:
        async with client.run_all([VidmRequest(prompt="a horse")] * 100) as outcomes:
            seen = await everything(outcomes)
        assert all(outcome.result is not None for outcome in seen.values())
        assert world.clock.elapsed >= 30

    assert len(in_no_time(loop, script).posts) == 100


def test_failures_are_outcomes_beside_results(loop: VirtualLoop) -> None:
    """A failed task and a lost response stop nobody, and nothing is paid for twice."""

    async def script(client: AsyncClient, world: World) -> None:
        world.instead.append(TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET))
        work = [HORSE, ImgaRequest(model="imga", prompt="a horse [fail:content-policy]"), HORSE]
        async with client.run_all(work, concurrency=1) as outcomes:
            seen = await everything(outcomes)
        assert isinstance(seen[0].error, CreateAmbiguous)
        assert isinstance(seen[1].error, TaskFailed)
        assert seen[2].result is not None

    assert len(in_no_time(loop, script).posts) == 3


def test_left_early_the_paid_ids_are_known(loop: VirtualLoop) -> None:
    """A break hears out what may be charged; the rest is not sent, and told."""
    told: list[Task] = []

    async def script(client: AsyncClient, world: World) -> None:
        async with client.run_all([HORSE] * 20, concurrency=3) as outcomes:
            await anyio.sleep(LATENCY / 2)
        assert world.clock.elapsed == LATENCY
        assert {task.id for task in outcomes.outstanding} == {task.id for task in told}
        assert len(told) == 3
        assert len(outcomes.unsent) == 17

    assert len(in_no_time(loop, script, on_submitted=told.append).posts) == 3


def test_a_cancelled_run_loses_no_paid_id(loop: VirtualLoop) -> None:
    """A scope that is cancelled waits for paid responses, and the run tells what is out."""
    told: list[Task] = []

    async def script(client: AsyncClient, world: World) -> None:
        run = client.run_all([HORSE] * 20, concurrency=3)
        with anyio.move_on_after(LATENCY / 2) as scope:
            async with run as outcomes:
                await everything(outcomes)
        assert scope.cancelled_caught
        assert {task.id for task in run.outstanding} == {task.id for task in told}
        assert len(told) == len(world.posts) == 3
        assert len(run.unsent) == 17

    in_no_time(loop, script, on_submitted=told.append)


def test_a_run_that_is_cancelled_while_it_is_left_hears_out_what_is_paid(loop: VirtualLoop) -> None:
    """A cancellation while paid responses are awaited is an ordinary one, not a group."""
    told: list[Task] = []
    notes: list[str] = []

    async def script(client: AsyncClient, _: World) -> None:
        run = client.run_all([HORSE] * 20, concurrency=3)
        with anyio.move_on_after(LATENCY * 3 / 4) as scope:
            try:
                async with run:
                    await anyio.sleep(LATENCY / 2)
            except anyio.get_cancelled_exc_class() as cancelled:
                notes.extend(cancelled.__notes__)
                raise
        assert scope.cancelled_caught
        assert all(task.id in notes[0] for task in told)
        assert len(told) == len(run.outstanding) == 3

    in_no_time(loop, script, on_submitted=told.append)


def test_exchanges_at_once(loop: VirtualLoop) -> None:
    """A run has at most 32 exchanges at once, even if more tasks may run."""

    async def script(client: AsyncClient, _: World) -> None:
        async with client.run_all([HORSE] * 100, concurrency=100) as outcomes:
            await everything(outcomes)

    world = in_no_time(loop, script)
    at_once = Counter(seen.at for seen in world.posts)
    assert max(at_once.values()) == 32
    assert at_once.total() == 100


def test_a_run_that_is_cancelled_at_once_sends_nothing(loop: VirtualLoop) -> None:
    """If the run is cancelled before the first byte, all requests are reported as unsent."""

    async def script(client: AsyncClient, world: World) -> None:
        run = client.run_all([HORSE] * 5)
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with run as outcomes:
                await everything(outcomes)
        assert world.posts == []
        assert len(run.unsent) == 5

    in_no_time(loop, script)


def test_an_exception_comes_out_alone_with_every_id_that_is_out(loop: VirtualLoop) -> None:
    """What the loop's body raises is in no group, and has the ids in its notes."""
    told: list[Task] = []

    async def script(client: AsyncClient, _: World) -> None:
        run = client.run_all([HORSE] * 10, concurrency=2)
        with pytest.raises(RuntimeError, match="mine") as caught:
            await break_off_at_the_first(run)
        notes = "\n".join(caught.value.__notes__)
        assert told
        assert all(task.id in notes for task in told)
        assert {task.id for task in run.outstanding} <= {task.id for task in told}

    in_no_time(loop, script, on_submitted=told.append)


async def break_off_at_the_first(run: AsyncOutcomes) -> None:
    async with run as outcomes:
        async for _ in outcomes:
            raise RuntimeError("mine")


def test_what_a_listener_raises_comes_out_of_the_loop(loop: VirtualLoop) -> None:
    """An exception out of `on_submitted` ends the run, alone, with the ids that are out."""

    def listen(_: Task) -> None:
        raise RuntimeError("mine")

    async def script(client: AsyncClient, _: World) -> None:
        run = client.run_all([HORSE] * 10, concurrency=2)
        with pytest.raises(RuntimeError, match="mine") as caught:
            await read_all(run)
        notes = "\n".join(caught.value.__notes__)
        assert run.outstanding
        assert all(task.id in notes for task in run.outstanding)

    in_no_time(loop, script, on_submitted=listen)


async def read_all(run: AsyncOutcomes) -> None:
    async with run as outcomes:
        await everything(outcomes)


def test_an_interruption_of_an_exchange_comes_out_alone_and_tells_what_is_out(
    loop: VirtualLoop,
) -> None:
    """Ctrl-C may hit any of the run's tasks, and ends it as it would in the loop itself."""
    told: list[Task] = []

    async def script(client: AsyncClient, world: World) -> None:
        answer = world.answer

        def interrupted(request: HttpRequest, authorization: str | None) -> Any:
            if not request.paid:
                raise KeyboardInterrupt
            return answer(request, authorization)

        world.answer = interrupted  # type: ignore[method-assign]  # where Ctrl-C hits
        run = client.run_all([HORSE] * 3)
        with pytest.raises(KeyboardInterrupt) as caught:
            await read_all(run)
        notes = "\n".join(caught.value.__notes__)
        assert len(told) == 3
        assert all(task.id in notes for task in told)

    in_no_time(loop, script, on_submitted=told.append)
