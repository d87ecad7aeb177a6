"""The scripted server, under the name that the tests know it by."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Generator

from muybridge.testing.scripted_server import (
    PATIENCE,
    Peer,
    Script,
    ScriptedServer,
    Step,
    closed_port,
    hang,
    in_turn,
    read_request,
    reply,
    reset,
    response_bytes,
    send,
    serve,
)

__all__ = [
    "Peer",
    "Script",
    "ScriptedServer",
    "Step",
    "closed_port",
    "connect_proxy",
    "created",
    "deaf_port",
    "hang",
    "in_turn",
    "read_request",
    "reply",
    "reset",
    "response_bytes",
    "send",
    "serve",
]


def created(number: int) -> bytes:
    """Return the response to a create that is accepted as `task-NUMBER`."""
    fields = {"id": f"task-{number}", "status": "queued", "created": 1}
    return response_bytes(200, json.dumps(fields).encode())


@contextlib.contextmanager
def deaf_port() -> Generator[int]:
    """Give a port of loopback that takes no more connections, and refuses none."""
    with contextlib.ExitStack() as closing:
        listener = closing.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        for _ in range(4):
            caller = closing.enter_context(socket.socket())
            caller.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                caller.connect(("127.0.0.1", port))
        yield port


def connect_proxy(peer: Peer) -> None:
    """Be a proxy that makes the tunnel it is asked for by CONNECT."""
    line = peer.read_head().split(b" ")
    host, _, port = line[1].decode().rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as onward:
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=_copy, args=(onward, peer.sock), daemon=True)
        back.start()
        _copy(peer.sock, onward)
        back.join(PATIENCE)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
