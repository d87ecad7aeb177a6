"""A service on real sockets that keeps the books: the ground truth of what was paid for.

It accepts creates, and commits faults of which its client cannot know what they mean: responses
that are reset, cut off or replaced by a gateway's 502, after the create was accepted or before.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Self

PNG = b"\x89PNG\r\n\x1a\n"


class Fault(StrEnum):
    """How a create is answered."""

    NONE = "accepted, and answered"
    ACCEPTED_RESET = "accepted, then reset"
    ACCEPTED_CUT = "accepted, and its reply cut off"
    ACCEPTED_GATEWAY = "accepted, then 502"
    LOST_RESET = "not accepted, reset"
    LOST_GATEWAY = "not accepted, 502"
    THROTTLED = "not accepted, 429"
    REFUSED = "not accepted, 400"
    UNAUTHORIZED = "not accepted, 401"


AMBIGUOUS = frozenset(
    {
        Fault.ACCEPTED_RESET,
        Fault.ACCEPTED_CUT,
        Fault.ACCEPTED_GATEWAY,
        Fault.LOST_RESET,
        Fault.LOST_GATEWAY,
    }
)
"""The faults after which nobody on the client's side can know."""
_ACCEPTING = frozenset(
    {Fault.NONE, Fault.ACCEPTED_RESET, Fault.ACCEPTED_CUT, Fault.ACCEPTED_GATEWAY}
)

Choose = Callable[[str], Fault]
"""Gives the fault for a create with this prompt."""


def at_random(seed: int, weights: Mapping[Fault, int]) -> Choose:
    """Return what chooses faults at random, the same ones for the same seed."""
    source = random.Random(seed)  # noqa: S311  faults, not secrets
    faults, shares = list(weights), list(weights.values())
    return lambda _: source.choices(faults, shares)[0]


class BillingServer:
    """Serves creates, results and pictures, as long as the context lasts.

    Attributes:
        accepted: The ids of the tasks that were accepted, by prompt.
        asked: The faults that were committed on the creates, by prompt.
        cut: Where a response that is cut off ends, or 0 for any place.
        posts: How many creates have come in whole.
        media_works: Whether pictures are to be had.
        picture: What every picture is, or empty for a few bytes of its own for each task.
        status: What becomes of tasks.
        requests: How many requests have come in, of any kind.
        shaky: Whether result queries and downloads meet faults as well.
        on_create: Called with the prompt when a create has been booked, before it is answered.
        on_query: Called with the path of any other request, before it is answered.
        deliver: Sends a whole response, given what it answers: `create`, `result` or `media`.
        write: Gives the body for a prompt, `create` or `result`, and the record that is due.
    """

    def __init__(self, choose: Choose = lambda _: Fault.NONE, *, shaky: bool = False) -> None:
        self._choose = choose
        self._lock = threading.Lock()
        self._source = random.Random(7)  # noqa: S311  faults, not secrets
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.shaky = shaky
        self.accepted: dict[str, list[str]] = defaultdict(list)
        self._prompts: dict[str, str] = {}
        self.asked: dict[str, list[Fault]] = defaultdict(list)
        self.cut = 0
        self.posts = 0
        self.on_create: Callable[[str], None] = lambda _: None
        self.write: Callable[[str, str, dict[str, Any]], bytes] = _plainly
        self.on_query: Callable[[str], None] = lambda _: None
        self.deliver: Callable[[socket.socket, str, bytes], None] = _at_once
        self.status = "completed"
        self.media_works = True
        self.picture = b""
        self.requests = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    @property
    def doubles(self) -> list[str]:
        """The prompts that were paid for more than once."""
        return [prompt for prompt, ids in self.accepted.items() if len(ids) > 1]

    def accept(self, prompt: str, task: str) -> None:
        """Book a task as accepted."""
        self.accepted[prompt].append(task)
        self._prompts[task] = prompt

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads = [known for known in self._threads if known.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as incoming:
                while self._answer_one(connection, incoming):
                    pass
        except OSError:
            pass  # the client was killed
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _answer_one(self, connection: socket.socket, incoming: Any) -> bool:
        line: str = incoming.readline().decode()
        length = 0
        while (header := incoming.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.partition(b":")[2])
        body: bytes = incoming.read(length)
        if not line or len(body) < length:
            return False
        method, path, _ = line.split(" ")
        self.requests += 1
        if method == "POST":
            return self._create(connection, json.loads(body)["prompt"])
        self.on_query(path)
        if self.shaky and self._source.random() < 0.02:
            return _reset(connection)
        if path.startswith("/media/"):
            name = path.removeprefix("/media/").partition(".png")[0]
            status = 200 if self.media_works else 404
            picture = _reply(status, self.picture or PNG + name.encode(), kind="image/png")
            self.deliver(connection, "media", picture)
        else:
            self.deliver(connection, "result", self._result(path.rpartition("/")[2]))
        return True

    def _create(self, connection: socket.socket, prompt: str) -> bool:
        with self._lock:
            fault = self._choose(prompt)
            self.posts += 1
            self.asked[prompt].append(fault)
            task = f"task-{self.posts}-{re.sub('[^A-Za-z0-9]', '-', prompt)[:20]}"
            if fault in _ACCEPTING:
                self.accept(prompt, task)
        self.on_create(prompt)
        record = {"id": task, "object": "image", "created": 1_750_000_000, "status": "queued"}
        whole = _reply(200, self.write(prompt, "create", record))
        match fault:
            case Fault.NONE:
                self.deliver(connection, "create", whole)
            case Fault.ACCEPTED_RESET | Fault.LOST_RESET:
                return _reset(connection)
            case Fault.ACCEPTED_CUT:
                # Before the id's end, or after it: then it is told as a candidate.
                cut = self.cut or self._source.randrange(1, len(whole))
                connection.sendall(whole[:cut])
                return False
            case Fault.ACCEPTED_GATEWAY | Fault.LOST_GATEWAY:
                connection.sendall(_reply(502, b"<html>Bad gateway</html>", kind="text/html"))
            case Fault.THROTTLED:
                connection.sendall(_reply(429, b"{}", "Retry-After: 0"))
            case Fault.REFUSED:
                connection.sendall(_reply(400, b'{"error": "no horses today"}'))
            case Fault.UNAUTHORIZED:
                connection.sendall(_reply(401, b"{}"))
        return True

    def _result(self, task: str) -> bytes:
        with self._lock:
            prompt = self._prompts.get(task)
        if prompt is None:
            return _reply(404, b"{}")
        record: dict[str, Any] = {
            "id": task,
            "object": "image",
            "created": 1_750_000_000,
            "status": self.status,
        }
        if self.status == "completed":
            record["image_url"] = f"{self.url}/media/{task}.png?signature=secret-of-the-link"
        return _reply(200, self.write(prompt, "result", record))


def _at_once(connection: socket.socket, _kind: str, response: bytes) -> None:
    connection.sendall(response)


def _plainly(_prompt: str, _kind: str, record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


def _reset(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _reply(status: int, body: bytes, *headers: str, kind: str = "application/json") -> bytes:
    fields = [f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([f"HTTP/1.1 {status} Booked", *fields, "", ""]).encode() + body
