"""Answers to text requests, whole and streamed, that the emulator would not send."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

from transport.scripted_server import Peer, Step, read_request, response_bytes, send

from .drivers import AnyClient, AnyStream

MODEL = "textg-2.5-pro"
PROMPT = "Tell me of horses."
ASKED: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}

PLAIN = ("generate_content", "chat_completions", "messages")
STREAMS = ("stream_generate_content", "stream_chat_completions", "stream_messages")
TEXTS = ("A horse ", "at a ", "gallop.")


def ask(client: AnyClient, method: str, **options: Any) -> Any:
    """Call the method of that name with a small request: a response, or a stream not yet opened."""
    native = method.endswith("generate_content")
    return getattr(client, method)(*((MODEL, PROMPT) if native else (ASKED,)), **options)


def spend(client: AnyClient, method: str, **options: Any) -> Any:
    """Call the method of that name, and read its stream, if it is one, to the end."""
    asked = ask(client, method, **options)
    if method in PLAIN:
        return asked
    stream: AnyStream[Any] = asked
    with stream:
        return list(stream)


def candidate(text: str, reason: str | None = None) -> dict[str, Any]:
    """Return a native response, or a chunk of one."""
    said: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    return {"candidates": [said if reason is None else {**said, "finishReason": reason}]}


STOPPED = {"choices": [{"index": 0, "finish_reason": "stop"}], "type": "message_stop"}
"""What says in the two other protocols that an answer is complete."""
CHUNKS = (*map(candidate, TEXTS[:2]), {**candidate(TEXTS[2], "STOP"), **STOPPED})
WHOLE = candidate("".join(TEXTS), "STOP")


def event(record: object) -> bytes:
    """Return *record* as a server-sent event."""
    return b"data: " + json.dumps(record).encode() + b"\n\n"


EVENTS = tuple(map(event, CHUNKS))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def part(data: bytes) -> bytes:
    """Return *data* as one part of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


STREAM = HEAD + b"".join(map(part, EVENTS)) + LAST
"""A whole streamed reply, as it is on the wire."""


def streaming(*bodies: bytes, end: bytes = LAST) -> list[Step]:
    """Return a script that answers with a streamed response of these parts."""
    return [read_request, send(HEAD + b"".join(map(part, bodies)) + end)]


def answering(peer: Peer) -> None:
    """Answer every request of a connection: a streamed one with a stream, others whole.

    A request for a task's result gets a record without news.
    """
    while True:
        asked = peer.read_request()
        if asked.startswith(b"GET"):
            record = {"id": "task-1", "status": "processing", "created": 1}
            peer.send(response_bytes(200, json.dumps(record).encode()))
        elif b'"stream":true' in asked or b":streamGenerateContent" in asked:
            peer.send(STREAM)
        else:
            peer.send(response_bytes(200, json.dumps(WHOLE).encode()))


def hang_until_closed(closed: threading.Event) -> Step:
    """Return a step that does nothing until the client closes its end, and then sets *closed*."""

    def step(peer: Peer) -> None:
        with suppress(OSError):  # a reset, where the client has not read all
            peer.hang()
        closed.set()

    return step
