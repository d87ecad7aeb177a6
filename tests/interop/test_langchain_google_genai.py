"""langchain-google-genai talks to the local service by REST."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from pydantic import BaseModel

from muybridge.local import LocalService

from .emulated import MODEL, one_turn


class Horse(BaseModel):
    """A horse."""

    name: str
    legs: int


@pytest.fixture
def model(service: LocalService) -> ChatGoogleGenerativeAI:
    return ChatGoogleGenerativeAI(
        model=MODEL,
        google_api_key=service.api_key,
        base_url=service.base_url,
        api_version="v1",
        additional_headers={"Authorization": f"Bearer {service.api_key}"},
    )


def test_a_text_whole_and_streamed(model: ChatGoogleGenerativeAI) -> None:
    """It reads the text and the tokens of an answer, and of its pieces."""
    answer = model.invoke("Tell me of horses.", temperature=0.2)
    assert answer.text == one_turn("Tell me of horses.", "Settings: temperature 0.2.")
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] == 5
    pieces = [piece.text for piece in model.stream("Tell me of horses.", temperature=0.2)]
    assert len(pieces) > 1
    assert "".join(pieces) == answer.text


def test_it_binds_tools(model: ChatGoogleGenerativeAI) -> None:
    """A bound tool is called, streamed and not, its result is understood, and output is typed."""

    @tool
    def weather(city: str) -> str:
        """Return the weather."""
        return f"rain in {city}"

    bound = model.bind_tools([weather])
    answer = bound.invoke("Coat?")
    (call,) = answer.tool_calls
    assert (call["name"], call["args"]) == ("weather", {"city": "city"})
    streamed: Any = None
    for chunk in bound.stream("Coat?"):
        streamed = chunk if streamed is None else streamed + chunk
    assert [one["args"] for one in streamed.tool_calls] == [{"city": "city"}]
    last = bound.invoke([("user", "Coat?"), answer, weather.invoke(call)])
    assert 'Function results: weather {"output": "rain in city"}.' in last.text
    assert model.with_structured_output(Horse).invoke("A horse") == Horse(name="name", legs=0)
