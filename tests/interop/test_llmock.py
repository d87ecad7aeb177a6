"""Our clients talk to a server that others wrote: llmock, which notes and judges what they do.

It has each protocol below a base of its own, and says what a test tells it to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import muybridge
from client.drivers import DRIVERS, AnyClient, MakeClient
from muybridge.clock import SystemClock
from muybridge_protocol.records.json import JsonObject

from .emulated import MODEL, PICTURE
from .llmock_service import LlmockService

SAID = "Twelve plates, all four hooves off the ground."
PIECES = ["Twelve ", "plates, ", "all ", "four ", "hooves ", "off ", "the ", "ground."]
REPLY = {"type": "reply", "text": SAID}

BASES = {"native": "/gemini", "chat": "", "messages": "/anthropic"}
BODY: JsonObject = {"model": MODEL, "messages": [{"role": "user", "content": "Horses?"}]}


@pytest.fixture(scope="session")
def running() -> Iterator[LlmockService]:
    with LlmockService() as service:
        yield service


@pytest.fixture
def llmock(running: LlmockService) -> LlmockService:
    running.reset()
    return running


@pytest.fixture(params=DRIVERS)
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    with ExitStack() as closing:
        yield DRIVERS[request.param](closing)


class Talk:
    """A client and one protocol.

    Args:
        client: Under test.
        protocol: A key of `BASES`.
    """

    def __init__(self, client: AnyClient, protocol: str) -> None:
        self.client = client
        self.protocol = protocol

    def ask(self) -> str:
        """Return the text of a whole reply."""
        text: str
        if self.protocol == "native":
            return self.client.generate_content(MODEL, "Horses?").text
        if self.protocol == "chat":
            text = self.client.chat_completions(BODY)["choices"][0]["message"]["content"]
            return text
        (block,) = self.client.messages({**BODY, "max_tokens": 99})["content"]
        text = block["text"]
        return text

    def stream(self, texts: list[str]) -> None:
        """Put the texts of a streamed reply into *texts* as they come."""
        if self.protocol == "native":
            with self.client.stream_generate_content(MODEL, "Horses?") as chunks:
                for chunk in chunks:
                    texts.append(chunk.text)  # noqa: PERF401  what came before an error is to be seen
        elif self.protocol == "chat":
            with self.client.stream_chat_completions(BODY) as records:
                for record in records:
                    texts += _delta(record["choices"][0], "content")
        else:
            with self.client.stream_messages({**BODY, "max_tokens": 99}) as records:
                for record in records:
                    texts += _delta(record, "text")


def _delta(record: JsonObject, name: str) -> list[str]:
    text: str | None = record.get("delta", {}).get(name)
    return [text] if text else []


@pytest.fixture(params=BASES)
def talk(request: pytest.FixtureRequest, make_client: MakeClient, llmock: LlmockService) -> Talk:
    return _talk(make_client, llmock, request.param)


def _talk(make_client: MakeClient, llmock: LlmockService, protocol: str, **options: Any) -> Talk:
    address = f"{llmock.url}{BASES[protocol]}"
    return Talk(make_client(llmock.url, text_base_url=address, **options), protocol)


@pytest.fixture
def native(make_client: MakeClient, llmock: LlmockService) -> AnyClient:
    return _talk(make_client, llmock, "native").client


def test_a_plain_request(talk: Talk, llmock: LlmockService) -> None:
    """A whole reply is read, in each protocol, for one request."""
    llmock.script(REPLY)
    assert talk.ask() == SAID
    (noted,) = llmock.requests()
    assert (noted["status"], noted["model"], noted["stream"]) == (200, MODEL, False)


def test_a_stream(talk: Talk, llmock: LlmockService) -> None:
    """A stream is read chunk by chunk to its end, in each protocol, for one request."""
    llmock.script(REPLY)
    texts: list[str] = []
    talk.stream(texts)
    assert texts == PIECES
    (noted,) = llmock.requests()
    assert (noted["status"], noted["stream"], noted["completed"]) == (200, True, True)
    assert llmock.findings() == []


def test_everything_about_a_native_reply(native: AnyClient, llmock: LlmockService) -> None:
    """Finish reason and tokens of a native reply are read."""
    llmock.script({**REPLY, "finish_reason": "length"})
    response = native.generate_content(MODEL, "Horses?")
    assert response.finish_reason is muybridge.FinishReason.MAX_TOKENS
    usage = response.usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count) == (1, 11)
    assert usage.total_token_count == 12


def test_a_native_stream_becomes_one_response(native: AnyClient, llmock: LlmockService) -> None:
    """The chunks of a native stream make one response: text, finish reason and tokens."""
    llmock.script(REPLY)
    with native.stream_generate_content(MODEL, "Horses?") as chunks:
        response = chunks.collect()
    assert response.text == SAID
    assert response.finish_reason is muybridge.FinishReason.STOP
    usage = response.usage_metadata
    assert usage is not None
    assert usage.total_token_count == 12
    assert response.raw["modelVersion"] == MODEL


def test_what_a_native_request_says(native: AnyClient, llmock: LlmockService) -> None:
    """Turns, picture, system instruction and settings reach the server as they were given."""
    conversation = muybridge.Conversation("be terse").say("one")
    llmock.script(REPLY)
    conversation = conversation.hear(native.generate_content(MODEL, conversation).content)
    picture = muybridge.Part.from_bytes(PICTURE, "image/png")
    conversation = conversation.say(["look", picture])
    settings = muybridge.GenerationConfig(temperature=0.2, max_output_tokens=99)
    native.generate_content(MODEL, conversation, generation_config=settings)
    body = llmock.requests()[-1]["body"]
    assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
    assert body["contents"][1]["parts"] == [{"text": SAID}]
    text, inline = body["contents"][2]["parts"]
    assert text == {"text": "look"}
    assert inline["inlineData"]["mimeType"] == "image/png"
    assert body["systemInstruction"]["parts"] == [{"text": "be terse"}]
    assert body["generationConfig"] == {"temperature": 0.2, "maxOutputTokens": 99}


def test_a_function_call_is_kept(native: AnyClient, llmock: LlmockService) -> None:
    """A part of a kind that the library does not know stays as it came, and goes back so."""
    called = {"name": "gallop", "arguments": {"plates": 12}}
    llmock.script({"type": "reply", "tool_calls": [called]})
    response = native.generate_content(MODEL, "Horses?")
    (part,) = response.parts
    call = {"functionCall": {"name": "gallop", "args": {"plates": 12}}}
    assert part.extra == call
    with pytest.raises(muybridge.NoText, match="functionCall"):
        _ = response.text
    conversation = muybridge.Conversation().say("Horses?").hear(response.content).say("Go on.")
    native.generate_content(MODEL, conversation)
    assert llmock.requests()[-1]["body"]["contents"][1] == {"role": "model", "parts": [call]}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, muybridge.Refused), (401, muybridge.Unauthorized), (403, muybridge.Forbidden)],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_refusals(
    talk: Talk, llmock: LlmockService, status: int, kind: type[Exception], streaming: object
) -> None:
    """A refusal is told in the server's words, and the request was sent once."""
    llmock.script({"type": "fail", "status": status, "message": "no horses here"})
    with pytest.raises(kind, match="no horses here"):
        talk.stream([]) if streaming else talk.ask()
    assert [noted["status"] for noted in llmock.requests()] == [status]
    assert llmock.findings() == []


@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("streaming", [False, True])
def test_failures(talk: Talk, llmock: LlmockService, status: int, streaming: object) -> None:
    """After a failure nobody knows what it cost: the request was sent once."""
    llmock.script({"type": "fail", "status": status, "message": "no horses here"}, REPLY)
    with pytest.raises(muybridge.TextAmbiguous) as caught:
        talk.stream([]) if streaming else talk.ask()
    assert caught.value.status == status
    assert b"no horses here" in caught.value.raw
    assert [noted["status"] for noted in llmock.requests()] == [status]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_throttled_request_waits_as_told(
    make_client: MakeClient, llmock: LlmockService, streaming: object
) -> None:
    """A request that is answered 429 is sent again when Retry-After says, and not before."""
    # The judge goes by its own clock, so that this waits for a real second.
    talk = _talk(make_client, llmock, "native", clock=SystemClock())
    llmock.script({"type": "fail", "status": 429, "retry_after": 1}, REPLY)
    texts: list[str] = []
    if streaming:
        talk.stream(texts)
    else:
        texts.append(talk.ask())
    assert "".join(texts) == SAID
    assert [noted["status"] for noted in llmock.requests()] == [429, 200]
    assert llmock.findings() == []


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
def test_a_stream_that_breaks(talk: Talk, llmock: LlmockService, kind: str) -> None:
    """A stream that breaks is an error after what had arrived, and is not asked for again."""
    llmock.script(REPLY, {"type": "stream_fault", "kind": kind, "after_chunks": 6})
    texts: list[str] = []
    with pytest.raises(muybridge.StreamInterrupted) as caught:
        talk.stream(texts)
    assert caught.value.arrived == len(caught.value.chunks) == 6
    # The other protocols have events without text before the first word.
    assert texts == PIECES[: {"native": 6, "chat": 5, "messages": 3}[talk.protocol]]
    assert len(llmock.requests()) == 1
