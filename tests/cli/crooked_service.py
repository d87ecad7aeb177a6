"""A service on a real socket that answers as a test says, and counts what it was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

RESET = b""
"""An answer that is none: the connection is reset once the request has been read."""

Answer = Callable[[str, str], bytes | Iterable[bytes]]
"""Gives a reply's bytes for a method and a path: all at once, or piece by piece."""


def reply(status: int, body: object, *headers: str, kind: str = "application/json") -> bytes:
    """Return a whole response; a body that is no text is written as JSON."""
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    head = [
        f"HTTP/1.1 {status} Whatever",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*head, "", ""]).encode() + content


def event_stream(*texts: str, finish: str | None = "STOP", **more: Any) -> bytes:
    """Return a whole streamed response to a text request, with a chunk for each text.

    It has a length, unless it has no finish reason and may go on.
    """
    head = b"HTTP/1.1 200 Whatever\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    body = b"".join(
        chunk(text, finish if number == len(texts) else None, **more)
        for number, text in enumerate(texts, start=1)
    )
    length = b"" if finish is None else b"Content-Length: %d\r\n" % len(body)
    return b"%s%s\r\n%s" % (head, length, body)


def chunk(text: str, finish: str | None = None, **more: Any) -> bytes:
    """Return a chunk of a streamed response to a text request."""
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}}
    if finish is not None:
        candidate["finishReason"] = finish
    return f"data: {json.dumps({'candidates': [candidate], **more})}\n\n".encode()


def record(**values: Any) -> dict[str, Any]:
    """Return a record of an imgb task."""
    known = {"id": "task-1", "object": "image", "created": 1_750_000_000, "model": "imgb-2"}
    return {**known, "status": "queued", **values}


def always(answer: bytes) -> Answer:
    """Return what gives *answer* whatever is asked."""

    def same(_method: str, _path: str) -> bytes:
        return answer

    return same


class CrookedService:
    """Serves *answer* on loopback, as long as the context lasts."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[str] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        key = {"MUYBRIDGE_API_KEY": "a-key"}
        self.settings = {**key, "MUYBRIDGE_BASE_URL": self.base_url}
        self.text_settings = {**key, "MUYBRIDGE_TEXT_BASE_URL": self.base_url}
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # On Linux a blocked accept ends only when the socket is shut down.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    @property
    def posts(self) -> int:
        """How many requests that cost money came in."""
        return sum(line.startswith("POST ") for line in self.requests)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._exchange(connection)

    def _exchange(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection.makefile("rb") as incoming:
            line = incoming.readline().decode().strip()
            length = 0
            while (header := incoming.readline().strip()) != b"":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            incoming.read(length)
        if not line:
            return
        self.requests.append(line)
        method, path, _ = line.split(" ")
        answer = self._answer(method, path)
        if answer == RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        try:
            for piece in [answer] if isinstance(answer, bytes) else answer:
                connection.sendall(piece)
        except OSError:  # whoever asked has gone away
            return
