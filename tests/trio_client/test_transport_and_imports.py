"""trio's transport and threads among many tasks, and what the client imports."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import trio_test

import muybridge
from muybridge_protocol.http import HttpRequest
from transport.scripted_server import ScriptedServer, serve


@trio_test
async def test_pool_is_bounded() -> None:
    """More exchanges at once than connections kept wait for none, and the rest are closed."""
    transport = muybridge.TrioTransport(pool_size=3)
    with ScriptedServer(serve()) as server:

        async def fetch() -> None:
            async with transport.stream(
                HttpRequest(method="GET", url=server.url), timeout=5
            ) as reply:
                assert b"".join([piece async for piece in reply.pieces()]) == b"{}"

        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(fetch)
        assert len(server.peers) == 20 + 17
        await transport.close()


@trio_test
async def test_waiting_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a download waits for the disk, other tasks go on, and a cancellation waits for it."""
    synced = threading.Event()

    def slow(_: int) -> None:
        assert synced.wait(5)

    monkeypatch.setattr(os, "fsync", slow)
    body = b"\x89PNG" + bytes(300_000)
    with ScriptedServer(serve(200, body, content_type="image/png")) as server:
        async with (
            muybridge.TrioClient("key", server.url) as client,
            trio.open_nursery() as nursery,
        ):
            path = tmp_path / "a.png"
            nursery.start_soon(client.download, f"{server.url}/a.png", path)
            with trio.fail_after(5):
                while not trio.to_thread.current_default_thread_limiter().borrowed_tokens:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
            synced.set()
    assert path.read_bytes() == body


CHEAP = """
import sys, muybridge
assert not {"trio", "httptools", "requests"} & set(sys.modules)
muybridge.TrioClient
assert "trio" in sys.modules
muybridge.TrioTransport
assert not {"requests", "urllib3"} & set(sys.modules)
"""


def test_import() -> None:
    """The client for trio is imported when it is asked for, and without requests."""
    subprocess.run([sys.executable, "-c", CHEAP], check=True)  # noqa: S603  # this very interpreter


MISSING = """
import sys
sys.modules["{missing}"] = None
import muybridge
try:
    muybridge.{name}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("TrioClient", "trio", "trio"),
        ("TrioTransport", "httptools", "trio"),
        ("TrioTransport", "certifi", "trio"),
        ("RequestsTransport", "certifi", "requests"),
        ("RequestsTransport", "urllib3", "requests"),
    ],
)
def test_missing_extra(name: str, missing: str, extra: str) -> None:
    """Where an extra is missing, the error says which one, and how to install it."""
    program = MISSING.format(name=name, missing=missing)
    shown = subprocess.run(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert shown == f'{name} needs {missing}: pip install "muybridge[{extra}]"\n'
