"""A conversation hears the answer in whatever form a program has it, or says what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

import muybridge
from muybridge import (
    Content,
    Conversation,
    GenerateContentResponse,
    InvalidRequest,
    NoText,
    collect,
)

from .answers import ASKED, MODEL, PROMPT
from .drivers import AnyClient, MakeClient
from .in_process import World

TALK = Conversation("be terse").say(PROMPT)
HEARD: dict[str, Callable[[GenerateContentResponse], Any]] = {
    "the response": lambda answer: answer,
    "its content": lambda answer: answer.content,
    "a candidate": lambda answer: answer.candidates[0],
    "its text": lambda answer: answer.text,
    "the record of its content": lambda answer: answer.raw["candidates"][0]["content"],
}


@pytest.fixture
def client(make_client: MakeClient, world: World) -> AnyClient:
    return make_client(world)


@pytest.mark.parametrize("form", HEARD)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_answer_is_heard(client: AnyClient, form: str, *, streamed: bool) -> None:
    """The next request has the model's turn, whatever the program kept of the answer."""
    if streamed:
        with client.stream_generate_content(MODEL, TALK) as stream:
            answer = stream.collect()
    else:
        answer = client.generate_content(MODEL, TALK)
    talk = TALK.hear(HEARD[form](answer))
    assert talk.turns[-1] == Content(answer.text, "model")
    text = client.generate_content(MODEL, talk.say("And of cats?")).text
    assert "Turns: 3 (user, model, user)." in text


def test_what_is_not_a_whole_answer_is_refused(client: AnyClient) -> None:
    """The answer has been paid for by then, so the error says how to hear it."""
    with client.stream_generate_content(MODEL, TALK) as stream:
        chunks = list(stream)
        refused: dict[str, tuple[Any, str]] = {
            "chunk": (chunks[0], r"talk\.hear\(muybridge\.collect\(chunks\)\)"),
            "chunks": (chunks, r"talk\.hear\(muybridge\.collect\(chunks\)\)"),
            "received": (stream.received(), r"talk\.hear\(muybridge\.collect\(chunks\)\)"),
            "chat": (client.chat_completions(ASKED), r"muybridge\.next_messages"),
            "messages": (client.messages({"max_tokens": 9, **ASKED}), r"muybridge\.next_messages"),
            "a record": (
                client.generate_content(MODEL, TALK).raw,
                r"talk\.hear\(muybridge\.GenerateContentResponse\(record\)\)",
            ),
            "nothing": (None, "use the response of generate_content"),
            "a number": (5, "use the response of generate_content"),
        }
        for answer, said in refused.values():
            with pytest.raises(InvalidRequest, match=said):
                TALK.hear(answer)
        assert TALK.hear(collect(chunks)).turns[-1].role == "model"


@pytest.mark.parametrize("answer", ["", " \n", Content((), "model"), {"parts": []}])
def test_an_empty_answer_is_refused(answer: Any) -> None:
    """No request could contain it."""
    with pytest.raises(InvalidRequest, match="the answer is empty"):
        TALK.hear(answer)


def test_a_blocked_prompt_has_no_answer(client: AnyClient) -> None:
    """The error says why, as that of `text` does."""
    response = client.generate_content(MODEL, "[text:blocked]")
    with pytest.raises(NoText, match="The prompt was blocked"):
        TALK.hear(response)


def test_a_stream_is_collected_first() -> None:
    """The line to write is that of the face which the stream has."""
    url = "https://service.test"
    with muybridge.Client("key", text_base_url=url) as client:
        stream = client.stream_generate_content(MODEL, TALK)
        with pytest.raises(InvalidRequest, match=r"use talk\.hear\(stream\.collect\(\)\)"):
            TALK.hear(cast("Any", stream))

    async def main() -> None:
        async with muybridge.AsyncClient("key", text_base_url=url) as client:
            stream = client.stream_generate_content(MODEL, TALK)
            with pytest.raises(InvalidRequest, match=r"hear\(await stream\.collect\(\)\)"):
                TALK.hear(cast("Any", stream))

    asyncio.run(main())
