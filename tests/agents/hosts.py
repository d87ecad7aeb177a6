"""Hosts of the server in tests: the official client, in this process or over stdin and stdout."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any

import attrs
from mcp.client.client import Client as Host
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from agents.commands import served
from agents.relay import Relay
from muybridge import Budget, Client
from muybridge.configuration import read_service
from muybridge.mcp.buyer import Setup
from muybridge.mcp.folder import Folder
from muybridge.mcp.server import make_server
from muybridge.purchases import open_store

MODES = ("legacy", "auto")
"""Hosts that are asked while a call waits, and hosts that get the question as its result."""
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "wild", "version": "0"},
    },
}  # fmt: skip
"""The first line of a host."""
HORSE: dict[str, Any] = {"family": "imgb", "fields": {"model": "imgb-2", "prompt": "a horse"}}


def horse(prompt: str = "a horse", **more: Any) -> dict[str, Any]:
    """Return the arguments that generate a picture."""
    return {"family": "imgb", "fields": {"model": "imgb-2", "prompt": prompt}, **more}


@attrs.define(eq=False)
class Person:
    """A person who is asked, and says the same each time.

    Args:
        consents: Whether they consent.
        questions: What they were asked.
    """

    consents: bool = True
    questions: list[str] = attrs.field(factory=list[str])

    async def answer(self, context: Any, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002  the SDK passes it
        """Answer a question."""
        self.questions.append(params.message)
        return ElicitResult(action="accept", content={"spend": self.consents})


@contextmanager
def serving(
    relay: Relay, folder: Path, *, key: str | None = None, place: str | None = None, **more: Any
) -> Generator[Server[Any]]:
    """Make a server in this process. Its store, in *folder* by default, outlives it."""
    given: dict[str, Any] = {
        "api_key": key or relay.service.api_key,
        "base_url": relay.url,
        "text_base_url": relay.url,
    }
    with (
        open_store(place or folder / "store.sqlite3") as store,
        Client(**given, poll_interval=0.1, store=store) as client,
    ):
        _, credentials = read_service(
            **given, allow_plain_http=False, allow_insecure_downloads=False
        )
        yield make_server(
            Setup(
                client=client,
                store=store,
                credentials=credentials,
                folder=Folder(folder / "results"),
                **more,
            )
        )


@asynccontextmanager
async def hosted(
    relay: Relay,
    folder: Path,
    mode: str = "auto",
    *,
    person: Person | None = None,
    budget: Budget | None = None,
    **more: Any,
) -> AsyncGenerator[Host]:
    """Connect a host with a new server in this process."""
    asking = None if person is None else person.answer
    with serving(relay, folder, budget=budget, **more) as server:
        async with Host(server, mode=mode, elicitation_callback=asking) as host:
            yield host


def command(
    relay: Relay, folder: Path, *words: str, place: str | None = None, **more: str
) -> StdioServerParameters:
    """Return how a host starts the command."""
    started = served(relay, folder, *words, place=place, **more)
    return StdioServerParameters(command=started.command, args=started.args, env=started.env)


@contextmanager
def piped(parameters: StdioServerParameters) -> Generator[tuple[Popen[str], IO[str], IO[str]]]:
    """Start the command; yield it with its stdin and stdout, which a test writes and reads."""
    with Popen(  # noqa: S603  our own command
        [parameters.command, *parameters.args], env=parameters.env, text=True,
        stdin=PIPE, stdout=PIPE, stderr=PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        yield process, process.stdin, process.stdout


def facts(result: CallToolResult) -> dict[str, Any]:
    """Return what a tool has answered."""
    content: dict[str, Any] = result.structured_content
    return content


def error(result: CallToolResult) -> str:
    """Return the message of a call that failed."""
    assert result.is_error
    message: str = facts(result)["error"]["message"]
    return message
