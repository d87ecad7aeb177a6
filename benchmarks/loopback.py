"""A service on loopback, in a process of its own, that answers as cheaply as possible.

`POST` creates a task, which is completed at every fourth query. With the files of a certificate and
its key it speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

QUERIES = 4
"""Queries that a task takes: all but the last one come too early."""


@contextmanager
def serving(module: str = "benchmarks.loopback", *arguments: str) -> Iterator[str]:
    """Serve while the context lasts, and give the base URL.

    Args:
        module: What to run. It prints its base URL first.
        arguments: What to run it with.
    """
    with subprocess.Popen(  # noqa: S603  a module of these benchmarks
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


class _Answers(asyncio.Protocol):
    """The server's end of one connection."""

    def __init__(self, queries: dict[bytes, int]) -> None:
        self._queries = queries
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        posted = head.startswith(b"POST")
        if not blank or (posted and not body.endswith(b"}")):
            return
        self._received = b""
        record = self._create() if posted else self._query(head.split(b" ", 2)[1])
        reply = json.dumps(record).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(reply), reply)
        )

    def _create(self) -> dict[str, object]:
        task = f"task-{len(self._queries)}"
        self._queries[task.encode()] = 0
        return {"id": task, "status": "queued", "created": 1}

    def _query(self, path: bytes) -> dict[str, object]:
        task = path.rpartition(b"/")[2]
        self._queries[task] = count = self._queries.get(task, 0) + 1
        done = count % QUERIES == 0
        return {
            "id": task.decode(),
            "object": "image.generation",
            "created": 1,
            "model": "imgb-2",
            "status": "completed" if done else "processing",
            "image_url": "https://cdn.example.com/picture.png" if done else None,
        }


async def _serve(*certificate: str) -> None:
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
    queries: dict[bytes, int] = {}
    server = await asyncio.get_running_loop().create_server(
        lambda: _Answers(queries), "127.0.0.1", 0, ssl=context, backlog=4096
    )
    scheme, port = "https" if certificate else "http", server.sockets[0].getsockname()[1]
    print(f"{scheme}://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
