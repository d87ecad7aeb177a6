"""Text, whole and streamed, from the emulator in process and over real sockets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muybridge import (
    Content,
    Conversation,
    FinishReason,
    GenerationConfig,
    InvalidAddress,
    InvalidRequest,
    NoText,
    Part,
    StreamInterrupted,
    Unauthorized,
    Unlisted,
    load_media,
)
from muybridge.clock import SystemClock
from muybridge.local import LocalService
from transport.scripted_server import ScriptedServer, serve

from .answers import (
    ASKED,
    MODEL,
    PLAIN,
    PROMPT,
    STREAMS,
    answering,
    ask,
    event,
    spend,
    streaming,
)
from .drivers import AnyClient, MakeClient
from .in_process import PNG, World

HONEST = "This is Muybridge's local emulator of the service: no model has answered."
MESSAGES: dict[str, Any] = {"max_tokens": 500, **ASKED}


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=500) as running:
        yield running


@pytest.fixture(params=["in process", "sockets"])
def client(
    request: pytest.FixtureRequest, make_client: MakeClient, world: World, service: LocalService
) -> AnyClient:
    """A client of the emulator, once in process and once on a real port."""
    if request.param == "in process":
        return make_client(world)
    return make_client(service.base_url, api_key=service.api_key, clock=SystemClock())


def test_plain(client: AnyClient) -> None:
    """A prompt is answered with text, and with the tokens that it took."""
    response = client.generate_content(MODEL, PROMPT)
    assert response.text.startswith(HONEST)
    assert f'Last user text: "{PROMPT}".' in response.text
    assert response.finish_reason is FinishReason.STOP
    assert response.usage_metadata is not None
    assert response.usage_metadata.total_token_count


def test_streamed(client: AnyClient) -> None:
    """The chunks of a stream make up what a plain call answers, and so does what is collected."""
    plain = client.generate_content(MODEL, PROMPT)
    with client.stream_generate_content(MODEL, PROMPT) as stream:
        first = next(stream)
        assert first.text
        assert stream.received()[0] == first
        chunks = [first, *stream]
        assert stream.received() == tuple(chunks)
        whole = stream.collect()
    assert len(chunks) > 3
    assert "".join(chunk.text for chunk in chunks) == whole.text == plain.text
    assert whole.finish_reason is FinishReason.STOP
    assert whole.usage_metadata == plain.usage_metadata
    assert stream.collect().text == plain.text


def test_everything_that_is_said_arrives(client: AnyClient, tmp_path: Path) -> None:
    """System instruction, settings, pictures, other fields and all turns arrive, in both ways."""
    picture = tmp_path / "horse.png"
    picture.write_bytes(PNG)
    asked: dict[str, Any] = {
        "contents": [
            Content("Look here."),
            Content("I see.", "model"),
            "What is it?",
            load_media(picture),
            Part.from_bytes(b"GIF89a\x05\x00\x02\x00", "image/gif"),
        ],
        "system_instruction": "be brief",
        "generation_config": GenerationConfig(temperature=0.25, top_p=1, max_output_tokens=1000),
        "extra": {"safetySettings": []},
    }
    text = client.generate_content(MODEL, **asked).text
    assert "Turns: 3 (user, model, user)." in text
    assert 'System instruction: "be brief".' in text
    assert 'Last user text: "What is it?".' in text
    assert "Settings: temperature 0.25, topP 1, maxOutputTokens 1000." in text
    assert "- image/png:" in text
    assert "- image/gif: a GIF picture of 5x2 pixels" in text
    with client.stream_generate_content(MODEL, **asked) as stream:
        assert stream.collect().text == text


def test_conversation(client: AnyClient) -> None:
    """A conversation continues with what was said and answered, with its system instruction."""
    talk = Conversation("be terse").say("What is a zoopraxiscope?")
    talk = talk.hear(client.generate_content(MODEL, talk).content)
    talk = talk.say("Who built it?")
    with client.stream_generate_content(MODEL, talk) as stream:
        answer = stream.collect()
    assert "Turns: 3 (user, model, user)." in answer.text
    assert 'System instruction: "be terse".' in answer.text
    assert 'Last user text: "Who built it?".' in answer.text


def test_limit_of_tokens(client: AnyClient) -> None:
    """An answer that reached the limit of tokens says so, whole and streamed."""
    few = GenerationConfig(max_output_tokens=5)
    plain = client.generate_content(MODEL, PROMPT, generation_config=few)
    with client.stream_generate_content(MODEL, PROMPT, generation_config=few) as stream:
        assert stream.collect().text == plain.text
    assert plain.finish_reason is FinishReason.MAX_TOKENS


def test_no_text(client: AnyClient) -> None:
    """A blocked prompt has no text and says why, whole and streamed."""
    with pytest.raises(NoText, match="blocked"):
        _ = client.generate_content(MODEL, "[text:blocked]").text
    with client.stream_generate_content(MODEL, "[text:blocked]") as stream:
        (chunk,) = stream
    with pytest.raises(NoText, match="blocked"):
        _ = chunk.text


@pytest.mark.parametrize(
    ("marker", "said"), [("[text:cut]", "without saying"), ("[text:stream-error]", "error")]
)
def test_cut_off(client: AnyClient, marker: str, said: str) -> None:
    """A stream that ends too early raises with the chunks that it had given."""
    given: list[Any] = []
    with client.stream_generate_content(MODEL, marker) as stream:
        with pytest.raises(StreamInterrupted, match=said) as caught:
            given.extend(stream)
        with pytest.raises(StreamInterrupted):
            stream.collect()
        given = list(stream.received())
    assert given
    assert caught.value.chunks == tuple(given)
    assert caught.value.arrived == len(given)


def test_chat_completions(client: AnyClient) -> None:
    """A chat's chunks make up what a plain call answers."""
    record = client.chat_completions(ASKED)
    text = record["choices"][0]["message"]["content"]
    assert text.startswith(HONEST)
    with client.stream_chat_completions(ASKED) as stream:
        pieces = [chunk["choices"][0]["delta"].get("content") or "" for chunk in stream]
    assert "".join(pieces) == text


@pytest.mark.parametrize("options", [{}, {"path": "/v1/messages?beta=true"}])
def test_messages(client: AnyClient, options: dict[str, Any]) -> None:
    """The events of messages make up what a plain call answers, at the usual path and another."""
    record = client.messages(MESSAGES, **options)
    (part,) = record["content"]
    assert part["text"].startswith(HONEST)
    with client.stream_messages(MESSAGES, **options) as stream:
        pieces = [event.get("delta", {}).get("text", "") for event in stream]
    assert "".join(pieces) == part["text"]


@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
def test_wrong_key(make_client: MakeClient, world: World, method: str) -> None:
    """A wrong key is reported as such, with what to check."""
    client = make_client(world, api_key="another")
    with pytest.raises(Unauthorized, match="MUYBRIDGE_API_KEY"):
        spend(client, method)
    assert len(world.posts) == 1


@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
def test_no_text_base_url(make_client: MakeClient, world: World, method: str) -> None:
    """Without a text base URL every call says what to set, and nothing is sent."""
    client = make_client(world, text_base_url=None)
    with pytest.raises(InvalidAddress, match=r"MUYBRIDGE_TEXT_BASE_URL.*text_base_url"):
        ask(client, method)
    assert not world.seen


@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
def test_text_base_url_of_the_environment(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Where the text base URL is not given, it is that of the environment, path and all."""
    with ScriptedServer(answering) as server:
        monkeypatch.setenv("MUYBRIDGE_TEXT_BASE_URL", f"{server.url}/below/")
        spend(make_client("https://service.test", text_base_url=None), method)
        assert server.received.startswith(b"POST /below/v1/")


def test_invalid_requests(make_client: MakeClient, world: World) -> None:
    """What the service would not accept is refused with all its problems, and nothing is sent."""
    client = make_client(world)
    unwritable: Any = {"model": MODEL, "x": {1, 2}}
    for call in (client.generate_content, client.stream_generate_content):
        with pytest.raises(InvalidRequest) as caught:
            call("textg-2.5-flash-lite-low", [])
        assert [problem.field for problem in caught.value.problems] == ["model", "contents"]
    for method in (*PLAIN[1:], *STREAMS[1:]):
        for body in ({}, unwritable, {**ASKED, "stream": method in PLAIN}):
            with pytest.raises(InvalidRequest):
                getattr(client, method)(body)
    for method in ("messages", "stream_messages"):
        for path in ("//evil.test/v1", "https://evil.test", "/v1/../messages", "/v1 x"):
            with pytest.raises(InvalidAddress):
                getattr(client, method)(ASKED, path=path)
    assert not world.seen


@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
@pytest.mark.parametrize(
    "bounds",
    [
        {"timeout": 0},
        {"timeout": math.nan},
        {"timeout": math.inf},
        {"timeout": None},
        {"timeout": "9"},
        {"size_limit": 0},
    ],
)
def test_bounds_that_are_none(
    make_client: MakeClient, world: World, method: str, bounds: dict[str, Any]
) -> None:
    """An invalid time or size is rejected, and nothing is sent."""
    with pytest.raises(ValueError, match=next(iter(bounds))):
        ask(make_client(world), method, **bounds)
    assert not world.seen


def test_an_unlisted_model(make_client: MakeClient, world: World) -> None:
    """A model that the catalogue does not know is sent where that is asked for."""
    client = make_client(world)
    with pytest.raises(InvalidRequest, match="Unlisted"):
        client.generate_content("textg-9", PROMPT)
    world.always = None
    with ScriptedServer(serve(200, b'{"candidates": []}')) as server:
        make_client(server.url).generate_content(Unlisted("textg-9"), PROMPT)
        assert server.received.startswith(b"POST /v1/models/textg-9:generateContent HTTP/1.1\r\n")
    assert not world.seen


@pytest.mark.parametrize("method", [*PLAIN, *STREAMS])
def test_headers(make_client: MakeClient, method: str) -> None:
    """The key goes out as a bearer token, and no header that was not asked for with it."""
    with ScriptedServer(answering) as server:
        spend(make_client(server.url), method)
        lines = server.received.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    names = sorted(line.partition(":")[0].lower() for line in lines)
    assert names == [
        "accept", "accept-encoding", "authorization", "content-length", "content-type", "host",
        "user-agent",
    ]  # fmt: skip


def test_a_limit_by_its_python_name(client: AnyClient) -> None:
    """A limit of tokens in a mapping is kept, whichever of its names it has."""
    for name in ("max_output_tokens", "maxOutputTokens"):
        limit = {name: 5}
        plain = client.generate_content(MODEL, PROMPT, generation_config=limit)
        assert plain.finish_reason is FinishReason.MAX_TOKENS
        with client.stream_generate_content(MODEL, PROMPT, generation_config=limit) as stream:
            assert stream.collect().finish_reason is FinishReason.MAX_TOKENS
    with pytest.raises(InvalidRequest, match="use maxOutputTokens"):
        client.generate_content(MODEL, PROMPT, generation_config={"max_tokens": 5})


def test_a_system_instruction_on_the_wire(client: AnyClient) -> None:
    """A system instruction may be a turn in its form on the wire."""
    said = {"parts": [{"text": "Be terse."}]}
    plain = client.generate_content(MODEL, PROMPT, system_instruction=said)
    assert plain.text == client.generate_content(MODEL, PROMPT, system_instruction="Be terse.").text


EMPTY_PART = {"candidates": [{"content": {"parts": [{}, {"text": "A horse."}]}, "index": 0}]}


def test_an_empty_part_in_an_answer(make_client: MakeClient) -> None:
    """A conversation continues after an answer with an empty part, whole or streamed."""
    stopped = {"candidates": [{"finishReason": "STOP", "index": 0}]}
    talk = Conversation().say(PROMPT)
    with (
        ScriptedServer(streaming(event(EMPTY_PART), event(stopped))) as server,
        make_client(server.url).stream_generate_content(MODEL, talk) as stream,
    ):
        streamed = stream.collect().content
    with ScriptedServer(serve(200, json.dumps(EMPTY_PART).encode())) as server:
        client = make_client(server.url)
        for answer in (streamed, client.generate_content(MODEL, talk).content):
            assert [part.text for part in answer.parts] == [None, "A horse."]
            talk = talk.hear(answer).say("Whose?")
            assert client.generate_content(MODEL, talk).text == "A horse."
        assert server.posts == 3


def test_citations_of_a_stream(make_client: MakeClient) -> None:
    """`collect()` keeps what each chunk cites."""
    cited = [{"citationMetadata": {"citations": [{"uri": uri}]}} for uri in "abc"]
    chunks: list[Any] = [{"candidates": [{**EMPTY_PART["candidates"][0], **one}]} for one in cited]
    chunks.append({"candidates": [{"finishReason": "STOP"}]})
    with (
        ScriptedServer(streaming(*map(event, chunks))) as server,
        make_client(server.url).stream_generate_content(MODEL, PROMPT) as stream,
    ):
        (candidate,) = stream.collect().raw["candidates"]
    assert candidate["citationMetadata"] == {"citations": [{"uri": uri} for uri in "abc"]}
