"""An argument that a client or a call does not take: the error says where it belongs."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import muybridge
from muybridge import ImgaRequest

from .drivers import AnyClient, MakeClient
from .event_loops import BlockingAsyncClient
from .fleets import run_all
from .in_process import World

REQUEST = ImgaRequest(model="imga", prompt="a horse")
OF_CLIENT = r"write (Async|Trio)?Client\({}=\.\.\.\)\. Nothing was sent\."
OF_CALL = r"write client\.{}\(\.\.\., {}=\.\.\.\)\. Nothing was sent\."
OF_REQUEST = (
    r'a field of requests: write client\.run\("imga", \{{"{}": \.\.\.\}}\)\. Nothing was sent\.'
)
OF_BODY = r'the body, the first argument: {}\(\{{"model": \.\.\., \.\.\.\}}\)\. Nothing was sent\.'
BODIES = ("chat_completions", "stream_chat_completions", "messages", "stream_messages")
CALLS: list[tuple[str, list[Any], str, str]] = [
    ("run", [REQUEST], "poll_interval", OF_CLIENT.format("poll_interval")),
    ("run", [REQUEST], "budget", OF_CLIENT.format("budget")),
    ("run", [REQUEST], "concurrency", OF_CALL.format("run_all", "concurrency")),
    ("run", [REQUEST], "time_out", r"did you mean timeout\? Nothing was sent\."),
    ("run", ["imga"], "prompt", OF_REQUEST.format("prompt")),
    (
        "run",
        [REQUEST],
        "webhook",
        r"use request, fields, timeout, on_update, tags\. Nothing was sent\.",
    ),
    ("create", [REQUEST], "timeout", OF_CLIENT.format("timeout")),
    ("create", [REQUEST], "on_update", OF_CALL.format("run", "on_update")),
    ("create", ["imga"], "model", OF_REQUEST.format("model")),
    ("create_once", ["order", REQUEST], "store", OF_CLIENT.format("store")),
    ("get", ["task-1"], "timeout", OF_CLIENT.format("timeout")),
    ("wait", ["task-1"], "poll_interval", OF_CLIENT.format("poll_interval")),
    ("wait", ["task-1"], "size_limit", OF_CALL.format("save", "size_limit")),
    ("watch", ["task-1"], "poll_interval", OF_CLIENT.format("poll_interval")),
    ("save", ["task-1", "horse"], "time_out", r"did you mean timeout\? Nothing was sent\."),
    ("download", ["task-1", "horse"], "on_event", OF_CLIENT.format("on_event")),
    ("read", ["task-1"], "path", OF_CALL.format("save", "path")),
    ("check", [REQUEST], "prices", OF_CLIENT.format("prices")),
    ("delete_asset", ["asset-1"], "timeout", OF_CLIENT.format("timeout")),
    ("call", ["GET", "/v1/x"], "body", r"use method, path, json, tags\. Nothing was sent\."),
    ("chat_completions", [{}], "budget", OF_CLIENT.format("budget")),
    *((call, [], "model", OF_BODY.format(call)) for call in BODIES),
]
NAMES = {
    "generate": 'write client.run("imga", {"model": ..., "prompt": ...})',
    "images": 'write client.run("imga", {"model": ..., "prompt": ...})',
    "videos": 'write client.run("vidg", {"model": ..., "prompt": ...})',
    "subscribe": 'write client.run("imga", {"model": ..., "prompt": ...})',
    "submit": "write client.create(request)",
    "predictions": "write client.create(request)",
    "poll": "write client.wait(task)",
    "wait_for": "write client.wait(task)",
    "operations": "write client.get(task)",
    "models": "write client.generate_content(model, contents)",
    "chat": 'write client.chat_completions({"model": ..., "messages": [...]})',
    "aio": "write muybridge.AsyncClient()",
}
"""Attributes of the clients of openai, google-genai, replicate and fal."""


def own(made: AnyClient) -> Any:
    """Return the client itself: the wrapper of an async one has signatures of its own."""
    return made.client if isinstance(made, BlockingAsyncClient) else made


def begin(result: Any) -> None:
    """Begin what an async client returned, if it is a coroutine."""
    if hasattr(result, "send"):
        result.send(None)


@pytest.mark.parametrize(("call", "arguments", "name", "told"), CALLS)
def test_calls(
    make_client: MakeClient, world: World, call: str, arguments: list[Any], name: str, told: str
) -> None:
    """It says so before anything is sent."""
    options: dict[str, Any] = {name: 4}
    with pytest.raises(TypeError, match=rf"^{call} has no argument '{name}'; .*{told}$"):
        begin(getattr(own(make_client(world)), call)(*arguments, **options))
    assert world.seen == []


def test_every_mistake_is_told(make_client: MakeClient, world: World) -> None:
    """One error says all of it."""
    options: dict[str, Any] = {"time_out": 4, "budget": 4}
    with pytest.raises(TypeError) as caught:
        begin(own(make_client(world)).wait("task-1", **options))
    said = str(caught.value)
    assert "wait has no argument 'time_out'; did you mean timeout? It has no argument 'bud" in said
    assert said.endswith("Client(budget=...). Nothing was sent.")


@pytest.mark.parametrize("call", ["chat_completions", "messages"])
def test_no_body(make_client: MakeClient, world: World, call: str) -> None:
    """A call without a body is refused like one with an empty body."""
    made = make_client(world)
    run: Any = made.in_loop if isinstance(made, BlockingAsyncClient) else operator.call
    with pytest.raises(muybridge.InvalidRequest, match="the body is not a mapping of fields"):
        run(getattr(own(made), call))
    assert world.seen == []


@pytest.mark.parametrize(
    ("call", "arguments", "missing"),
    [
        ("save", [], "'source' and 'path'"),
        ("download", [REQUEST], "'path'"),
        ("run", [], "'request'"),
        ("generate_content", ["textg-2.5-pro"], "'contents'"),
    ],
)
def test_a_missing_argument(
    make_client: MakeClient, world: World, call: str, arguments: list[Any], missing: str
) -> None:
    """Python's own error names the method and the argument."""
    told = rf"Client\.{call}\(\) missing \d required positional arguments?: {missing}$"
    with pytest.raises(TypeError, match=told):
        getattr(own(make_client(world)), call)(*arguments)
    assert world.seen == []


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_libraries(make_client: MakeClient, world: World, name: str) -> None:
    """An attribute that other clients have: the error says what to write here."""
    client = own(make_client(world))
    with pytest.raises(AttributeError) as caught:
        getattr(client, name)
    kind = type(client).__name__
    assert str(caught.value) == f"{kind!r} object has no attribute {name!r}; {NAMES[name]}"
    assert not hasattr(client, name)


def test_other_names(make_client: MakeClient, world: World) -> None:
    """Python suggests the nearest name for any other attribute, as it always does."""
    client = own(make_client(world))
    with pytest.raises(AttributeError, match=r"object has no attribute 'crate'$") as caught:
        _ = client.crate
    assert (caught.value.name, caught.value.obj) == ("crate", client)


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
