"""An agent of Pydantic AI, with a scripted model and its own MCP client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agent_hosts.checks import check_run
from agent_hosts.script import FILM, ONE_MORE, Step, Transcript, next_step
from agents.commands import served
from agents.relay import Relay

pytestmark = pytest.mark.anyio


def result_of(part: ToolReturnPart | RetryPromptPart) -> dict[str, Any]:
    """Return the facts in a tool's result, as the model reads them."""
    content: Any = part.content
    if isinstance(content, list):
        content = content[0]
    if isinstance(content, str):
        content = json.loads(content)
    found: dict[str, Any] = content
    return found


def parts_of(messages: Iterable[ModelMessage]) -> list[Any]:
    """Return the calls, the results and the words, in order."""
    kinds = (ToolCallPart, ToolReturnPart, RetryPromptPart, TextPart)
    return [part for one in messages for part in one.parts if isinstance(part, kinds)]


async def converse(relay: Relay, folder: Path, script: Sequence[Step]) -> Transcript:
    """Run an agent with a new server, and return what was said."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        results = [
            result_of(part)
            for part in parts_of(messages)
            if isinstance(part, ToolReturnPart | RetryPromptPart)
        ]
        step = next_step(script, results)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(*step)])

    parameters = served(relay, folder, "--max-creates", "2")
    transport = StdioTransport(parameters.command, parameters.args, parameters.env)
    server: Any = MCPToolset(transport, tool_error_behavior="failed", init_timeout=60)
    agent = Agent(FunctionModel(model), toolsets=[server])
    async with agent:
        said = await agent.run("Make a still of a horse, and animate it.")
    transcript = Transcript()
    for part in parts_of(said.all_messages()):
        if isinstance(part, ToolCallPart):
            transcript.asked(part.tool_name, part.args_as_dict())
        elif isinstance(part, TextPart):
            transcript.said(part.content)
        else:
            transcript.told(result_of(part))
    return transcript


async def test_a_film_within_a_budget(relay: Relay, tmp_path: Path) -> None:
    """Two creates, then it is stopped, also by a server that was started again."""
    first = await converse(relay, tmp_path, FILM)
    second = await converse(relay, tmp_path, ONE_MORE)
    check_run(relay, tmp_path, first, second)
