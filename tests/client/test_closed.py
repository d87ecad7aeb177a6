"""A closed client sends nothing, and a listener that cannot be called is rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .drivers import AnyClient, MakeClient
from .in_process import World
from .requests_made import image

CALLS: dict[str, Callable[[AnyClient, Path], object]] = {
    "create": lambda client, _: client.create(image()),
    "create_once": lambda client, _: client.create_once("order 1", image()),
    "get": lambda client, _: client.get("task-1"),
    "wait": lambda client, _: client.wait("task-1"),
    "watch": lambda client, _: next(iter(client.watch("task-1"))),
    "run": lambda client, _: client.run(image()),
    "download": lambda client, path: client.download("task-1", path / "a.png"),
    "delete_asset": lambda client, _: client.delete_asset("asset-1"),
    "call": lambda client, _: client.call("POST", "/v1/other"),
    "text": lambda client, _: client.generate_content("textg-2.5-pro", "a horse"),
    "text stream": lambda client, _: client.stream_generate_content("textg-2.5-pro", "a horse"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_client_sends_nothing(
    make_client: MakeClient, world: World, tmp_path: Path, call: str
) -> None:
    """Every call on a closed client says that it is closed, and nothing reaches the service."""
    client = make_client(world)
    client.close()
    with pytest.raises(RuntimeError, match="closed, and nothing was sent"):
        CALLS[call](client, tmp_path)
    assert world.seen == []


@pytest.mark.parametrize("name", ["on_submitted", "on_event"])
def test_a_listener_that_cannot_be_called(make_client: MakeClient, world: World, name: str) -> None:
    """It is rejected when the client is made, not after the first create has been paid."""
    listener: Any = "print"
    with pytest.raises(TypeError, match=name):
        make_client(world, **{name: listener})
