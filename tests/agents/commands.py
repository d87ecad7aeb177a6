"""How a host starts the command. No SDK is imported here: hosts with others read this as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import attrs

from agents.relay import Relay
from processes import environment

SERVER_PYTHON = "SERVER_PYTHON"
"""The variable that says which Python runs the server, if the host's cannot."""


@attrs.frozen
class Started:
    """How a host starts the server.

    Args:
        command: The program.
        args: Its arguments.
        env: Its environment.
    """

    command: str
    args: list[str]
    env: dict[str, str]


def served(
    relay: Relay, folder: Path, *words: str, place: str | None = None, **more: str
) -> Started:
    """Return how a server on *relay* is started. Its store, in *folder* by default, outlives it."""
    variables = relay.environment(MUYBRIDGE_STORE=place or str(folder / "store.sqlite3"), **more)
    return Started(
        os.environ.get(SERVER_PYTHON, sys.executable),
        [
            "-m", "muybridge", "mcp", "--poll-interval", "0.1", "--folder",
            str(folder / "results"), *words,
        ],
        environment(**variables),
    )  # fmt: skip
