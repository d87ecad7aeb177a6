"""A service on loopback, in a process of its own, that answers as cheaply as possible.

A create makes a task, which is completed at every fourth query. Below the paths of a peer it
answers in the shapes of that peer's own service. With the files of a certificate and its key it
speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

QUERIES = 4
"""Queries that a task takes: all but the last one come too early."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)")

ONCE = "once"
"""The id of a task after whose record the server closes the connection."""
Record = dict[str, Any]


@contextmanager
def serving(module: str = "benchmarks.loopback", *arguments: str) -> Iterator[str]:
    """Serve while the context lasts, and give the base URL.

    Args:
        module: What to run. It prints its base URL first.
        arguments: What to run it with.
    """
    with subprocess.Popen(  # noqa: S603  it runs this package's own modules
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def _ours(url: str, number: int, count: int) -> Record:
    if "/result/" not in url:
        return {"id": f"task-{number}", "status": "queued", "created": 1}
    done = count % QUERIES == 0
    return {
        "id": _last(url),
        "object": "image.generation",
        "created": 1,
        "model": "imgb-2",
        "status": "completed" if done else "processing",
        "image_url": "https://cdn.example.com/picture.png" if done else None,
    }


def _fal(url: str, number: int, count: int) -> Record:
    if "/requests/" not in url:
        task = f"{url}/requests/task-{number}"
        return {
            "request_id": f"task-{number}",
            "response_url": task,
            "status_url": f"{task}/status",
            "cancel_url": f"{task}/cancel",
        }
    if _last(url) != "status":
        return {"images": [{"url": "https://cdn.example.com/picture.png"}], "seed": 1}
    done = count % (QUERIES - 1) == 0  # the result itself is asked for once more
    return {"status": "COMPLETED" if done else "IN_PROGRESS", "logs": None, "metrics": {}}


def _replicate(url: str, number: int, count: int) -> Record:
    made = _last(url) == "predictions"
    done = not made and count % QUERIES == 0
    return {
        "id": f"task-{number}" if made else _last(url),
        "model": "a/horse",
        "version": "0" * 64,
        "input": {"prompt": "a horse"},
        "status": "starting" if made else "succeeded" if done else "processing",
        "output": ["https://cdn.example.com/picture.png"] if done else None,
        "error": None,
        "logs": "",
        "created_at": "2026-01-01T00:00:00Z",
        "urls": {},
    }


def _openai(url: str, number: int, count: int) -> Record:
    made = _last(url) == "videos"
    done = not made and count % QUERIES == 0
    return {
        "id": f"task-{number}" if made else _last(url),
        "object": "video",
        "created_at": 1,
        "model": "sora-2",
        "progress": 100 if done else 0,
        "seconds": "4",
        "size": "720x1280",
        "status": "queued" if made else "completed" if done else "in_progress",
    }


def _runwayml(url: str, number: int, count: int) -> Record:
    if "/tasks/" not in url:
        return {"id": f"task-{number}"}
    record = {"id": _last(url), "createdAt": "2026-01-01T00:00:00Z"}
    if count % QUERIES:
        return {**record, "status": "RUNNING", "progress": 0.5}
    return {**record, "status": "SUCCEEDED", "output": ["https://cdn.example.com/film.mp4"]}


def _google(url: str, number: int, count: int) -> Record:
    model = url.rpartition(":")[0].partition("/projects/")[2]
    operation: Record = {"name": f"projects/{model}/operations/task-{number}"}
    if not url.endswith(":fetchPredictOperation") or count % QUERIES:
        return operation
    video = {"gcsUri": "gs://horses/film.mp4", "mimeType": "video/mp4"}
    return {**operation, "done": True, "response": {"videos": [video]}}


def _last(url: str) -> str:
    return url.rpartition("/")[2]


_SHAPES: Mapping[str, Callable[[str, int, int], Record]] = {
    "v1": _ours,
    "fal-ai": _fal,
    "replicate": _replicate,
    "openai": _openai,
    "runwayml": _runwayml,
    "google": _google,
}
"""By the first segment of the path: what is answered, given the URL, the number of the request,
and how often that URL has been asked for."""


class _Answers(asyncio.Protocol):
    """The server's end of one connection."""

    def __init__(self, origin: str, asked: Counter[str]) -> None:
        self._origin = origin
        self._asked = asked
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or (length is not None and len(body) < int(length[1])):
            return
        self._received = b""
        path = head.split(b" ", 2)[1].partition(b"?")[0].decode()
        self._asked[path] += 1
        shape = _SHAPES[path.split("/", 2)[1]]
        record = shape(self._origin + path, len(self._asked), self._asked[path])
        response = json.dumps(record).encode()
        last = _last(path) == ONCE
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%s"
            b"Content-Length: %d\r\n\r\n%s"
            % (b"Connection: close\r\n" if last else b"", len(response), response)
        )
        if last:
            self._transport.close()


async def _serve(*certificate: str) -> None:
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
    asked: Counter[str] = Counter()
    origin = ""
    server = await asyncio.get_running_loop().create_server(
        lambda: _Answers(origin, asked), "127.0.0.1", 0, ssl=context, backlog=4096
    )
    scheme, port = "https" if certificate else "http", server.sockets[0].getsockname()[1]
    origin = f"{scheme}://127.0.0.1:{port}"
    print(origin, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
