"""Agents and typed outputs of other libraries run against the local service, unchanged."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from muybridge.local import LocalService

from .emulated import MODEL


class Stable(BaseModel):
    """A stable, without the limits that anthropic leaves out of the schemas that it sends."""

    name: str
    boxes: list[bool]


class Horse(BaseModel):
    """A horse."""

    name: str
    gait: Literal["walk", "trot", "gallop"]
    age: int = Field(ge=1, le=40)
    friends: list[str] = Field(min_length=2)


HORSE = Horse(name="name", gait="walk", age=1, friends=["friends", "friends2"])


class Coat(Enum):
    """A colour."""

    BAY = "bay"
    GREY = "grey"


class Rider(BaseModel):
    """A load, by its field `kind`."""

    kind: Literal["rider"]
    name: str = Field(max_length=3)


class Cart(BaseModel):
    """Another load."""

    kind: Literal["cart"]
    wheels: int = Field(gt=1, multiple_of=2)


class Foal(BaseModel):
    """A type within itself."""

    name: str
    foals: list[Foal] = []


class Entry(BaseModel):
    """One field for each kind of schema that pydantic generates."""

    number: UUID
    name: str = Field(pattern="^[A-Z]{6}$")
    born: date
    seen: datetime | None
    owner: str | None = None
    coats: set[Coat] = Field(min_length=2)
    weight: float = Field(gt=0, lt=1)
    price: Decimal
    load: Annotated[Cart | Rider, Field(discriminator="kind")]
    rider: Rider = Field(description="A reference beside a description")
    box: int | str
    odds: tuple[int, bool]
    prizes: dict[str, int]
    times: dict[Literal["walk", "trot"], float]
    foal: Foal


ENTRY = Entry(
    number=UUID("00000000-0000-4000-8000-000000000000"),
    name="AAAAAA",
    born=date(2024, 1, 2),
    seen=datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    owner="owner",
    coats={Coat.BAY, Coat.GREY},
    weight=0.5,
    price=Decimal(0),
    load=Cart(kind="cart", wheels=2),
    rider=Rider(kind="rider", name="nam"),
    box=0,
    odds=(0, False),
    prizes={},
    times={},
    foal=Foal(name="name"),
)


def _google(service: LocalService) -> genai.Client:
    return genai.Client(
        api_key=service.api_key,
        http_options=types.HttpOptions(
            base_url=service.base_url,
            api_version="v1",
            headers={"Authorization": f"Bearer {service.api_key}"},
        ),
    )


@pytest.fixture
def google(service: LocalService) -> Iterator[genai.Client]:
    with _google(service) as client:
        yield client


@pytest.fixture
def chat(service: LocalService) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.base_url}/v1", api_key=service.api_key) as client:
        yield client


def test_google_genai_parses_json(google: genai.Client) -> None:
    """`response_schema` gives `.parsed`, of a class and of a list."""
    for schema, parsed in ((Horse, HORSE), (list[Horse], [HORSE])):
        config = types.GenerateContentConfig(
            response_mime_type="application/json", response_schema=schema
        )
        response = google.models.generate_content(model=MODEL, contents="A horse", config=config)
        assert response.parsed == parsed


def test_google_genai_calls_functions(google: genai.Client) -> None:
    """Its automatic function calling runs a Python function, and returns the result."""
    asked: list[tuple[str, int]] = []

    def weather(city: str, days: int) -> str:
        """Return the weather."""
        asked.append((city, days))
        return "rain"

    config = types.GenerateContentConfig(tools=[weather])
    response = google.models.generate_content(model=MODEL, contents="Coat?", config=config)
    assert asked == [("city", 0)]
    assert 'Function results: weather {"result": "rain"}.' in (response.text or "")


def test_google_genai_reads_several_candidates(google: genai.Client) -> None:
    """`candidate_count` gives as many candidates."""
    config = types.GenerateContentConfig(candidate_count=2)
    response = google.models.generate_content(model=MODEL, contents="hi", config=config)
    assert [candidate.index for candidate in response.candidates or []] == [0, 1]


def test_openai_parses_json(chat: openai.OpenAI) -> None:
    """`response_format` gives `.parsed`, whole and streamed."""
    request: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "A horse"}],
        "response_format": Horse,
    }
    completion = chat.chat.completions.parse(**request)
    assert completion.choices[0].message.parsed == HORSE
    with chat.chat.completions.stream(**request) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == HORSE


def test_openai_parses_calls(chat: openai.OpenAI) -> None:
    """Declared functions give parsed arguments, whole and streamed, and `n` several choices."""
    request: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "A horse"}],
        "tools": [openai.pydantic_function_tool(Horse)],
        "n": 2,
    }
    completion = chat.chat.completions.parse(**request)
    with chat.chat.completions.stream(**request) as stream:
        streamed = stream.get_final_completion()
    for one in (completion, streamed):
        assert [choice.finish_reason for choice in one.choices] == ["tool_calls"] * 2
        for choice in one.choices:
            (call,) = choice.message.tool_calls or []
            assert call.function.parsed_arguments == HORSE


def test_every_kind_of_schema(chat: openai.OpenAI, google: genai.Client) -> None:
    """Whatever pydantic generates from types has a value, as JSON and as arguments."""
    messages: Any = [{"role": "user", "content": "A horse"}]
    tools = [openai.pydantic_function_tool(Entry)]
    completion = chat.chat.completions.parse(model=MODEL, messages=messages, response_format=Entry)
    assert completion.choices[0].message.parsed == ENTRY
    completion = chat.chat.completions.parse(model=MODEL, messages=messages, tools=tools)
    (call,) = completion.choices[0].message.tool_calls or []
    assert call.function.parsed_arguments == ENTRY
    config = types.GenerateContentConfig(
        response_mime_type="application/json", response_json_schema=Entry.model_json_schema()
    )
    response = google.models.generate_content(model=MODEL, contents="A horse", config=config)
    assert Entry.model_validate_json(response.text or "") == ENTRY


def test_anthropic_reads_calls_and_json(service: LocalService) -> None:
    """Declared functions give tool use, whole and streamed, and a format gives JSON."""
    request: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "A horse"}],
    }
    tools = [{"name": "horse", "input_schema": Horse.model_json_schema()}]
    with anthropic.Anthropic(base_url=service.base_url, auth_token=service.api_key) as client:
        message: Any = client.messages.create(**request, tools=tools)
        with client.messages.stream(**request, tools=tools) as stream:
            streamed: Any = stream.get_final_message()
        parsed = client.messages.parse(**request, output_format=Stable)
    for one in (message, streamed):
        assert one.stop_reason == "tool_use"
        assert Horse(**one.content[0].input) == HORSE
    assert parsed.parsed_output == Stable(name="name", boxes=[True])


@contextlib.asynccontextmanager
async def _model(service: LocalService, protocol: str) -> AsyncIterator[Any]:
    """Yield pydantic-ai's model for a protocol."""
    key, url = service.api_key, service.base_url
    match protocol:
        case "native":
            client = _google(service)
            async with client.aio:
                yield GoogleModel(MODEL, provider=GoogleProvider(client=client))
        case "chat":
            async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as chat:
                yield OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=chat))
        case _:
            async with anthropic.AsyncAnthropic(base_url=url, auth_token=key) as messages:
                provider = AnthropicProvider(anthropic_client=messages)
                yield AnthropicModel(MODEL, provider=provider)


@pytest.mark.parametrize("protocol", ["native", "chat", "messages"])
def test_pydantic_ai_gives_typed_outputs(service: LocalService, protocol: str) -> None:
    """An agent with `output_type` runs its tools, and returns a value of that type."""
    asked: list[str] = []

    def weather(city: str) -> str:
        """Return the weather."""
        asked.append(city)
        return "rain"

    async def run() -> list[Horse]:
        async with _model(service, protocol) as model:
            agent = Agent(model, output_type=Horse, tools=[weather])
            outputs = [(await agent.run("A horse")).output]
            async with agent.run_stream("A horse") as stream:
                outputs.append(await stream.get_output())
            if protocol != "messages":  # it refuses to ask for JSON there
                native = Agent(model, output_type=NativeOutput(Horse))
                outputs.append((await native.run("A horse")).output)
            return outputs

    outputs = asyncio.run(run())
    assert outputs == [HORSE] * len(outputs)
    assert asked == ["city", "city"]


def test_langchain_binds_tools(service: LocalService) -> None:
    """A bound tool is called, streamed and not, its result is understood, and output is typed."""

    @tool
    def weather(city: str) -> str:
        """Return the weather."""
        return f"rain in {city}"

    url = f"{service.base_url}/v1"
    with httpx.Client() as connections:
        model = ChatOpenAI(
            model=MODEL, api_key=SecretStr(service.api_key), base_url=url, http_client=connections
        )
        bound = model.bind_tools([weather])
        answer = bound.invoke("Coat?")
        (call,) = answer.tool_calls
        assert (call["name"], call["args"]) == ("weather", {"city": "city"})
        streamed: Any = None
        for chunk in bound.stream("Coat?"):
            streamed = chunk if streamed is None else streamed + chunk
        assert [one["args"] for one in streamed.tool_calls] == [{"city": "city"}]
        last = bound.invoke([("user", "Coat?"), answer, weather.invoke(call)])
        assert 'Function results: weather "rain in city".' in last.text
        assert model.with_structured_output(Horse).invoke("A horse") == HORSE
