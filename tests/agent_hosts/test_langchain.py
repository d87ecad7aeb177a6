"""An agent of LangChain, with a scripted model and its own MCP client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from agent_hosts.checks import check_run
from agent_hosts.script import FILM, ONE_MORE, Step, Transcript, next_step
from agents.commands import served
from agents.relay import Relay

pytestmark = pytest.mark.anyio


def result_of(message: ToolMessage) -> dict[str, Any]:
    """Return the facts in a tool's result, as the model reads them."""
    content = message.content
    text = content if isinstance(content, str) else content[0]["text"]
    found: dict[str, Any] = json.loads(text)
    return found


class ScriptedModel(BaseChatModel):
    """A model that follows a script."""

    script: Sequence[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:  # noqa: ARG002  LangChain passes it
        """Return the model: it knows the tools already."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  LangChain passes it
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  the same
        **_: Any,
    ) -> ChatResult:
        results = [result_of(one) for one in messages if isinstance(one, ToolMessage)]
        step = next_step(self.script, results)
        if isinstance(step, str):
            message = AIMessage(step)
        else:
            name, given = step
            call = {"name": name, "args": given, "id": f"call-{len(results)}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def converse(relay: Relay, folder: Path, script: Sequence[Step]) -> Transcript:
    """Run an agent with a new server, and return what was said."""
    parameters = served(relay, folder, "--max-creates", "2")
    connection: Any = {
        "transport": "stdio", "command": parameters.command, "args": parameters.args,
        "env": parameters.env,
    }  # fmt: skip
    transcript = Transcript()
    client = MultiServerMCPClient({"muybridge": connection})
    async with client.session("muybridge") as session:
        agent = create_agent(ScriptedModel(script=script), await load_mcp_tools(session))
        said = await agent.ainvoke(
            {"messages": [("user", "Make a still of a horse, and animate it.")]},
            {"recursion_limit": 60},
        )
    for message in said["messages"][1:]:
        if isinstance(message, ToolMessage):
            transcript.told(result_of(message))
        elif message.tool_calls:
            transcript.asked(message.tool_calls[0]["name"], message.tool_calls[0]["args"])
        else:
            transcript.said(str(message.content))
    return transcript


async def test_a_film_within_a_budget(relay: Relay, tmp_path: Path) -> None:
    """Two creates, then it is stopped, also by a server that was started again."""
    first = await converse(relay, tmp_path, FILM)
    second = await converse(relay, tmp_path, ONE_MORE)
    check_run(relay, tmp_path, first, second)
