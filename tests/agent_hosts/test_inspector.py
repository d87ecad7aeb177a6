"""The protocol's inspector, by its command line: one server process for each call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_hosts import node
from agents.commands import served
from agents.relay import Relay

INSPECTOR = "@modelcontextprotocol/inspector/cli/build/cli.js"


def call(relay: Relay, folder: Path, *words: str) -> dict[str, Any]:
    """Return what the inspector prints for one call."""
    started = served(relay, folder, "--max-creates", "1")
    variables = [f"{name}={started.env[name]}" for name in started.env if "MUYBRIDGE" in name]
    variables.append(f"PYTHONPATH={started.env['PYTHONPATH']}")
    options = [word for one in variables for word in ("-e", one)]
    done = node.run(INSPECTOR, "--cli", *options, started.command, *started.args, *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def use(relay: Relay, folder: Path, tool: str, **given: object) -> dict[str, Any]:
    """Return the result of a tool."""
    words: list[str] = []
    for name, value in given.items():
        words += ["--tool-arg", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return call(relay, folder, "--method", "tools/call", "--tool-name", tool, *words)


def test_the_tools(relay: Relay, tmp_path: Path) -> None:
    """It lists the tools, makes and saves a picture within the budget, and is stopped then."""
    names = [tool["name"] for tool in call(relay, tmp_path, "--method", "tools/list")["tools"]]
    assert len(names) == 10
    fields = {"model": "imgb-2", "prompt": "a horse"}
    made = use(relay, tmp_path, "generate", family="imgb", fields=fields)
    token = made["structuredContent"]["token"]
    assert use(relay, tmp_path, "wait", token=token)["structuredContent"]["done"]
    saved = use(relay, tmp_path, "save", token=token, name="horse")
    assert [block["type"] for block in saved["content"]] == ["text", "image", "resource_link"]
    listed = call(relay, tmp_path, "--method", "resources/list")["resources"]
    assert [one["name"] for one in listed] == ["horse.png"]
    refused = use(relay, tmp_path, "generate", family="imgb", fields=fields, again=2)
    assert refused["isError"]
    assert relay.creates == 1
