"""The protocols' own software joins streamed calls as the library does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import pytest
from google.genai import types
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from muybridge.testing.scripted_server import ScriptedServer, serve
from text.call_forms import CHAT, MESSAGES, NATIVE, Form


def standard(forms: Mapping[str, Form]) -> list[str]:
    return [name for name, form in forms.items() if form.standard]


@pytest.mark.parametrize("form", standard(CHAT))
def test_openai_joins_the_same_calls(form: str) -> None:
    """openai finds the same calls in a stream of chat completions."""
    state = ChatCompletionStreamState()
    for event in CHAT[form].events:
        state.handle_chunk(ChatCompletionChunk.model_validate(event))
    message = state.get_final_completion().choices[0].message
    called = [(call.id, call.function) for call in message.tool_calls or []]
    called += [(None, message.function_call)] if message.function_call else []
    found = [(ident, one.name, json.loads(one.arguments or "{}")) for ident, one in called]
    assert found == [call[:3] for call in CHAT[form].calls]


@pytest.mark.parametrize("form", standard(MESSAGES))
def test_anthropic_joins_the_same_calls(form: str) -> None:
    """anthropic finds the same calls in a stream of messages."""
    lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in MESSAGES[form].events)
    body = "".join(lines)

    with (
        ScriptedServer(serve(body=body.encode(), content_type="text/event-stream")) as server,
        anthropic.Anthropic(api_key="key", base_url=server.url, max_retries=0) as client,
        client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "Walk."}]
        ) as stream,
    ):
        blocks: list[Any] = list(stream.get_final_message().content)
    found = [(block.id, block.name, block.input) for block in blocks]
    assert found == [call[:3] for call in MESSAGES[form].calls]


@pytest.mark.parametrize("form", standard(NATIVE))
def test_google_has_the_same_fields(form: str) -> None:
    """google-genai knows every field of the pieces; it leaves joining them to its users."""
    for event in NATIVE[form].events:
        response = types.GenerateContentResponse.model_validate(event)
        calls = [part["functionCall"] for part in event["candidates"][0]["content"]["parts"]]
        assert [
            call.model_dump(by_alias=True, exclude_none=True, mode="json")
            for call in response.function_calls or []
        ] == calls
