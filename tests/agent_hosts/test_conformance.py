"""The protocol's own conformance runner, against the server over HTTP.

The command serves stdin and stdout alone. The SDK serves the same server over HTTP here, because
the runner speaks nothing else. Most of its scenarios call fixtures that a server for tests has: a
tool `test_image_content`, a resource `test://static-text`. They cannot pass, and are listed with
what they need, so that a new scenario is noticed.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from agent_hosts import node
from agents.hosts import serving
from agents.relay import Relay

RUNNER = "@modelcontextprotocol/conformance/dist/index.js"
PASSED = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",  # it only wants a text, and reads that there is no such tool
    "tools-call-error",
    "server-sse-multiple-streams",
    "resources-list",
    "dns-rebinding-protection",
}
FIXTURE = "calls a tool that only servers for tests have"
RESOURCE = "reads a resource that only servers for tests have"
NOT_OFFERED = "needs a capability that the server does not offer, and need not"
OTHERS = {
    "logging-set-level": NOT_OFFERED,
    "completion-complete": NOT_OFFERED,
    "resources-subscribe": NOT_OFFERED,
    "resources-unsubscribe": NOT_OFFERED,
    "resources-templates-read": NOT_OFFERED,
    "prompts-list": NOT_OFFERED,
    "prompts-get-simple": NOT_OFFERED,
    "prompts-get-with-args": NOT_OFFERED,
    "prompts-get-embedded-resource": NOT_OFFERED,
    "prompts-get-with-image": NOT_OFFERED,
    "tools-call-image": FIXTURE,
    "tools-call-audio": FIXTURE,
    "tools-call-embedded-resource": FIXTURE,
    "tools-call-mixed-content": FIXTURE,
    "tools-call-with-logging": FIXTURE,
    "tools-call-with-progress": FIXTURE,
    "tools-call-sampling": FIXTURE,
    "tools-call-elicitation": FIXTURE,
    "json-schema-2020-12": FIXTURE,
    "elicitation-sep1034-defaults": FIXTURE,
    "elicitation-sep1330-enums": FIXTURE,
    "server-sse-polling": FIXTURE,
    "resources-read-text": RESOURCE,
    "resources-read-binary": RESOURCE,
}


@pytest.fixture
def url(relay: Relay, tmp_path: Path) -> Iterator[str]:
    """Where the server is, over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener, serving(relay, tmp_path) as server:
        settings = uvicorn.Config(server.streamable_http_app(), log_level="error", ws="none")
        http = uvicorn.Server(settings)
        thread = threading.Thread(target=http.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        http.should_exit = True
        thread.join(30)


def test_the_scenarios(url: str, relay: Relay) -> None:
    """What needs no fixture passes, and everything else is listed above."""
    done = node.run(RUNNER, "server", "--url", url, "--suite", "all")
    summary = re.findall(r"^([✓✗]) ([a-z0-9-]+):", done.stdout, re.MULTILINE)
    assert {name for mark, name in summary if mark == "✓"} == PASSED, done.stdout
    assert {name for mark, name in summary if mark == "✗"} == set(OTHERS)
    assert relay.creates == 0
