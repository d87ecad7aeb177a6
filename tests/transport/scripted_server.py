"""The scripted server, under the name that the tests know it by."""

from __future__ import annotations

from muybridge.testing.scripted_server import (
    Peer,
    Script,
    ScriptedServer,
    Step,
    closed_port,
    connect_proxy,
    hang,
    in_turn,
    read_request,
    reply,
    reply_bytes,
    reset,
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
    "hang",
    "in_turn",
    "read_request",
    "reply",
    "reply_bytes",
    "reset",
    "send",
    "serve",
]
