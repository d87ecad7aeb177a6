"""An argument that a client or a call does not take: the error says where it belongs."""

from __future__ import annotations

from typing import Any

import pytest

import muybridge
from muybridge import ImgaRequest

from .drivers import MakeClient
from .event_loops import BlockingAsyncClient
from .fleets import run_all
from .in_process import World

REQUEST = ImgaRequest(model="imga", prompt="a horse")
OF_CLIENT = r"write (Async|Trio)?Client\({}=\.\.\.\)\. Nothing was sent\."
OF_CALL = r"write client\.{}\(\.\.\., {}=\.\.\.\)\. Nothing was sent\."
OF_REQUEST = (
    r'a field of requests: write client\.run\("imga", \{{"{}": \.\.\.\}}\)\. Nothing was sent\.'
)
CALLS: list[tuple[str, list[Any], str, str]] = [
    ("run", [REQUEST], "poll_interval", OF_CLIENT.format("poll_interval")),
    ("run", [REQUEST], "budget", OF_CLIENT.format("budget")),
    ("run", [REQUEST], "concurrency", OF_CALL.format("run_all", "concurrency")),
    ("run", [REQUEST], "time_out", r"did you mean timeout\? Nothing was sent\."),
    ("run", ["imga"], "prompt", OF_REQUEST.format("prompt")),
    ("run", [REQUEST], "webhook", r"use request, fields, timeout, on_update\. Nothing was sent\."),
    ("create", [REQUEST], "timeout", OF_CLIENT.format("timeout")),
    ("create", [REQUEST], "on_update", OF_CALL.format("run", "on_update")),
    ("create", ["imga"], "model", OF_REQUEST.format("model")),
    ("create_once", ["order", REQUEST], "ledger", OF_CLIENT.format("ledger")),
    ("get", ["task-1"], "timeout", OF_CLIENT.format("timeout")),
    ("wait", ["task-1"], "poll_interval", OF_CLIENT.format("poll_interval")),
    ("wait", ["task-1"], "size_limit", OF_CALL.format("save", "size_limit")),
    ("watch", ["task-1"], "poll_interval", OF_CLIENT.format("poll_interval")),
]


def begin(result: Any) -> None:
    """Begin what an async client returned, if it is a coroutine."""
    if hasattr(result, "send"):
        result.send(None)


@pytest.mark.parametrize(("call", "arguments", "name", "told"), CALLS)
def test_calls(
    make_client: MakeClient, world: World, call: str, arguments: list[Any], name: str, told: str
) -> None:
    """It says so before anything is sent."""
    made = make_client(world)
    # The wrapper of an async client has signatures of its own.
    client: Any = made._client if isinstance(made, BlockingAsyncClient) else made  # pyright: ignore[reportPrivateUsage]
    options: dict[str, Any] = {name: 4}
    with pytest.raises(TypeError, match=rf"^{call} has no argument '{name}'; .*{told}$"):
        begin(getattr(client, call)(*arguments, **options))
    assert world.seen == []


def test_run_all(make_client: MakeClient, world: World) -> None:
    """The same holds for many requests."""
    told = OF_CLIENT.format("budget")
    with pytest.raises(TypeError, match=f"^run_all has no argument 'budget'; {told}"):
        run_all(make_client(world), [REQUEST], budget=4)
    assert world.seen == []


@pytest.mark.parametrize("make", [muybridge.Client, muybridge.AsyncClient, muybridge.TrioClient])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("concurrency", OF_CALL.format("run_all", "concurrency")),
        ("on_update", OF_CALL.format("run", "on_update")),
        ("model", OF_REQUEST.format("model")),
        ("key", r"did you mean api_key\?"),
        ("time_out", r"did you mean timeout\?"),
        ("max_retries", "use api_key, base_url, text_base_url, allow_plain_http,"),
    ],
)
def test_constructors(make: type[muybridge.Client], name: str, told: str) -> None:
    """A client says so, too, and does not show the key."""
    options: dict[str, Any] = {name: 4}
    with pytest.raises(TypeError, match=f"^{make.__name__} has no argument '{name}'; .*{told}"):
        make("sk-canary-1234567", "https://service.test", **options)
