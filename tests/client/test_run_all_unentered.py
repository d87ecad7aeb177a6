"""A run that is iterated over without its context says so, instead of waiting forever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio

from muybridge import Client, TrioClient

from .in_process import AsyncFace, InProcessTransport, World
from .requests_made import image


def blocking(world: World, *, loop: bool) -> None:
    with Client(world.key, world.url, transport=InProcessTransport(world)) as client:
        outcomes = client.run_all([image()])
        if loop:
            list(outcomes)
        else:
            next(outcomes)


def on_trio(world: World, *, loop: bool) -> None:
    async def main() -> None:
        transport = AsyncFace(InProcessTransport(world))
        async with TrioClient(world.key, world.url, transport=transport) as client:
            outcomes = client.run_all([image()])
            if loop:
                async for _ in outcomes:
                    pass
            else:
                await anext(outcomes)

    trio.run(main)


@pytest.mark.parametrize("loop", [True, False], ids=["loop", "next"])
@pytest.mark.parametrize(("use", "word"), [(blocking, "with"), (on_trio, "async with")])
def test_it_says_how_to_enter_it(use: Callable[..., None], word: str, *, loop: bool) -> None:
    """Nothing is sent, no thread is left, and the error says what to write."""
    world, before = World(), {*threading.enumerate()}
    with pytest.raises(RuntimeError, match=rf"`{word} client\.run_all\(\.\.\.\) as outcomes:`"):
        use(world, loop=loop)
    assert world.seen == []
    assert {*threading.enumerate()} <= before  # those of earlier tests may end meanwhile
