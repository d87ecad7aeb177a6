"""A listener that raises what ends loops does not end them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muybridge_protocol.events import Polled, Submitted
from muybridge_protocol.observations import AnyEvent, ResponseReceived

from .answers import spend
from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World
from .requests_made import image

CALLS: dict[str, tuple[type[AnyEvent], Callable[[AnyClient], object]]] = {
    "create": (Submitted, lambda client: client.create(image())),
    "run_all": (Polled, lambda client: run_all(client, [image()])),
    "watch": (Polled, lambda client: list(client.watch(client.create(image())))),
    "stream": (ResponseReceived, lambda client: spend(client, "stream_generate_content")),
}
"""What is called, and the event at which a listener raises."""


@pytest.mark.parametrize("stops", [StopIteration, StopAsyncIteration])
@pytest.mark.parametrize("call", CALLS)
def test_a_listener_that_raises_stop_iteration(
    make_client: MakeClient, world: World, call: str, stops: type[Exception]
) -> None:
    """It comes out as a RuntimeError: a loop must not end as if there were nothing more."""
    at, spends = CALLS[call]

    def listen(event: AnyEvent) -> None:
        if isinstance(event, at):
            raise stops

    client = make_client(world, on_event=listen)
    with pytest.raises(RuntimeError, match=f"a listener raised {stops.__name__}") as caught:
        spends(client)
    assert isinstance(caught.value.__cause__, stops)


@pytest.mark.parametrize("stops", [StopIteration, StopAsyncIteration])
def test_a_hook_for_ids_that_raises_stop_iteration(
    make_client: MakeClient, world: World, stops: type[Exception]
) -> None:
    """The id of the task that was accepted is in the notes of the RuntimeError."""

    def listen(_: object) -> None:
        raise stops

    client = make_client(world, on_submitted=listen)
    for spends in (CALLS["create"][1], CALLS["run_all"][1]):
        with pytest.raises(RuntimeError, match=f"a listener raised {stops.__name__}") as caught:
            spends(client)
        assert any("was accepted" in note for note in caught.value.__notes__)
