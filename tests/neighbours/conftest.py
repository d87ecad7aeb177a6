"""A server that makes a picture and counts what it is paid for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec

import attrs
import pytest

from muybridge import Client
from transport.scripted_server import Peer, ScriptedServer, response_bytes

KEY = "sk-canary-0123456789"
PICTURE = b"a picture"
# niquests takes urllib3's name, so that it has an environment of its own.
collect_ignore = (
    ["test_mocks.py", "test_instrumentation.py", "test_replaced_parts.py", "test_sentry.py"]
    if find_spec("niquests")
    else ["test_niquests.py"]
)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MUYBRIDGE_") or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


@attrs.frozen
class Studio:
    """The server and a client of it.

    Args:
        server: The server.
        client: The client.
    """

    server: ScriptedServer
    client: Client

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.server.url

    @property
    def posts(self) -> int:
        """How many creates have arrived."""
        return self.server.posts


def record(identifier: str, **fields: object) -> dict[str, object]:
    """Return a task's record."""
    return {"id": identifier, "object": "image", "created": 1, "status": "queued", **fields}


def serve(peer: Peer) -> None:
    """Answer each request: a create, a poll or a download."""
    while True:
        method, path, _ = peer.read_request().split(b" ", 2)
        url = f"http://127.0.0.1:{peer.sock.getsockname()[1]}/picture.png?signature=1"
        answer = json.dumps(record("task-1")).encode()
        if path.startswith(b"/picture"):
            answer = PICTURE
        elif method == b"GET":
            answer = json.dumps(record("task-1", status="completed", image_url=url)).encode()
        peer.send(response_bytes(200, answer))


@pytest.fixture
def studio() -> Iterator[Studio]:
    """The server and a client of it."""
    with ScriptedServer(serve) as server:
        client = Client(KEY, server.url, poll_interval=0, allow_insecure_downloads=True)
        with client:
            yield Studio(server, client)
