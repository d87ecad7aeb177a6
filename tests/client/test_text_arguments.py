"""Arguments that a text call does not have, and prompts that say nothing."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import muybridge
from muybridge_protocol.families import FAMILIES

from .answers import ASKED, MODEL, PLAIN, PROMPT, STREAMS, ask
from .drivers import AnyClient, MakeClient
from .in_process import PNG, World

NATIVE = [name for name in (*PLAIN, *STREAMS) if name.endswith("generate_content")]
OTHERS = [name for name in (*PLAIN, *STREAMS) if name not in NATIVE]


def pay(client: AnyClient, method: str, *asked: Any) -> None:
    """Call a method, and open its stream if it is one."""
    answer = getattr(client, method)(*asked)
    if method in STREAMS:
        with answer:
            pass


PLACES: dict[str, str] = {
    "temperature": 'write generation_config={"temperature": ...}',
    "max_tokens": 'write generation_config={"maxOutputTokens": ...}',
    "max_output_tokens": 'write generation_config={"maxOutputTokens": ...}',
    "top_k": 'write generation_config={"topK": ...}',
    "response_schema": 'write generation_config={"responseSchema": ...}',
    "thinking_config": 'write generation_config={"thinkingConfig": ...}',
    "config": "write generation_config=..., and extra={...} for tools and safety settings",
    "tools": 'write extra={"tools": ...}',
    "tool_config": 'write extra={"toolConfig": ...}',
    "safety_settings": 'write extra={"safetySettings": ...}',
    "system": "write system_instruction=...",
    "messages": "write it as contents",
    "prompt": "write it as contents",
    "image": "muybridge.load_media(path)",
    "stream": "use stream_generate_content",
    "api_key": "Client(api_key=...)",
    "time_out": "did you mean timeout?",
    "horse": 'write extra={"horse": ...}',
}


@pytest.fixture
def client(make_client: MakeClient, world: World) -> AnyClient:
    return make_client(world)


@pytest.mark.parametrize("method", NATIVE)
@pytest.mark.parametrize("name", PLACES)
def test_an_unknown_argument_says_where_it_goes(client: AnyClient, method: str, name: str) -> None:
    """What other software takes has a place here, and the error names it."""
    with pytest.raises(TypeError) as caught:
        ask(client, method, **{name: 0.5})
    said = str(caught.value)
    assert said.startswith(f"{method} has no argument {name!r}; ")
    assert PLACES[name] in said
    assert said.endswith((". Nothing was sent.", "? Nothing was sent."))


@pytest.mark.parametrize("method", OTHERS)
def test_fields_go_into_the_body(client: AnyClient, method: str) -> None:
    """A request written as for the protocol's own software says how to write it here."""
    with pytest.raises(TypeError) as caught:
        getattr(client, method)({}, **ASKED, temperature=0.5)
    for name in (*ASKED, "temperature"):
        assert f'put it into the body, the first argument: {method}({{"{name}"' in str(caught.value)


@pytest.mark.parametrize("method", OTHERS)
def test_fields_alone(method: str) -> None:
    """That holds if there is no body at all, which Python would report first."""
    url = "https://service.test"
    with (
        muybridge.Client("key", url, url) as client,
        pytest.raises(TypeError, match="put it into the body"),
    ):
        getattr(client, method)(**ASKED)


@pytest.mark.parametrize("kind", ["Client", "AsyncClient", "TrioClient"])
@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
def test_the_signatures_stay(kind: str, method: str) -> None:
    """Editors and frameworks see the arguments, and what is a coroutine function."""
    function = getattr(getattr(muybridge, kind), method)
    names = {*inspect.signature(function).parameters}
    assert {"timeout", "size_limit"} < names
    assert "unknown" not in names
    is_coroutine = kind != "Client" and method in PLAIN
    assert inspect.iscoroutinefunction(function) == is_coroutine


BLANK: dict[str, Any] = {
    "empty": "",
    "spaces": " \t\n\u00a0",
    "a list": [""],
    "several": ["", "\n"],
    "a part": muybridge.Part(text=" "),
    "a turn": muybridge.Content(" "),
    "a mapping": {"role": "user", "parts": [{"text": ""}]},
    "after an answer": [muybridge.Content("Yes?", "model"), muybridge.Content("")],
    "beside a picture": [muybridge.Part.from_bytes(PNG, "image/png"), " "],
    "a conversation": muybridge.Conversation()
    .say("Hi.")
    .hear(muybridge.Content("Yes?", "model"))
    .say(" "),
}


@pytest.mark.parametrize("method", NATIVE)
@pytest.mark.parametrize("name", BLANK)
def test_a_blank_prompt_is_refused(client: AnyClient, world: World, method: str, name: str) -> None:
    """A prompt that says nothing would be paid for like any other."""
    with pytest.raises(muybridge.InvalidRequest, match="is blank; ask something"):
        pay(client, method, MODEL, BLANK[name])
    assert world.posts == []


@pytest.mark.parametrize("method", OTHERS)
def test_a_blank_message_is_refused(client: AnyClient, world: World, method: str) -> None:
    """In the other protocols, too."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": " "}]}
    with pytest.raises(muybridge.InvalidRequest, match=r"messages\[0\]\.content: is blank"):
        pay(client, method, body)
    assert world.posts == []


@pytest.mark.parametrize(
    "contents",
    [
        [PROMPT, "\n", "Be brief."],
        muybridge.Part.from_bytes(PNG, "image/png"),
        muybridge.Conversation()
        .say("Hi.")
        .hear(muybridge.Content([" ", "Yes?"], "model"))
        .say("So?"),
    ],
    ids=["a separator", "a picture alone", "a blank part of an answer"],
)
def test_blanks_beside_a_prompt_are_sent(client: AnyClient, contents: Any) -> None:
    """Only a turn of the user that says nothing at all is refused."""
    assert client.generate_content(MODEL, contents).text


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_create_has_the_same_rule(client: AnyClient, world: World, family: str) -> None:
    """A required prompt must not be blank, either."""
    for prompt in ("", " \t\n\u00a0"):
        with pytest.raises(muybridge.InvalidRequest, match="prompt: the text is blank"):
            client.run(family, {"prompt": prompt})
        assert world.posts == []
    assert FAMILIES[family].field("prompt") is not None
