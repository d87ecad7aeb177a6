"""One task from its create to its result: a create, three polls without a result, and one with."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import requests

from muybridge import Client, ImgbRequest

LIFECYCLES = 100
_POLLS = 4


@dataclass
class Benchmark:
    """Contestants that do the same work.

    Args:
        unit: What one unit of the work is.
        units: How many units a contestant does in one call.
        contestants: By name; the first one is the reference.
    """

    unit: str
    units: int
    contestants: Mapping[str, Callable[[], object]]


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark, with its server."""
    return _benchmark()


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.lifecycle"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    base_url = server.stdout.readline().strip()
    session = requests.Session()
    client = Client("key", base_url, poll_interval=0)
    request = ImgbRequest(model="imgb-2", prompt="a horse")
    body = request.to_body()
    headers = {"Authorization": "Bearer key"}

    def by_hand() -> None:
        for _ in range(LIFECYCLES):
            url = f"{base_url}/v1/image2/images"
            task = session.post(url, json=body, headers=headers, timeout=60).json()
            while True:
                url = f"{base_url}/v1/result/{task['id']}"
                result = session.get(url, headers=headers, timeout=60).json()
                if result["status"] in ("completed", "failed"):
                    break

    def ours() -> None:
        for _ in range(LIFECYCLES):
            client.run(request)

    try:
        yield Benchmark(
            "create, 4 polls and result",
            LIFECYCLES,
            {"a loop on requests.Session": by_hand, "muybridge.Client": ours},
        )
    finally:
        client.close()
        session.close()
        server.terminate()
        server.wait()
        server.stdout.close()


def _serve() -> None:
    """Answer creates and polls as cheaply as possible, until terminated."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    polls: dict[bytes, int] = {}

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while head := connection.recv(65536):
                if head.startswith(b"POST"):
                    while b'"model"' not in head:
                        head += connection.recv(65536)
                    record = {"id": f"task-{len(polls)}", "status": "queued", "created": 1}
                    polls[str(record["id"]).encode()] = 0
                else:
                    task = head.split(b" ", 2)[1].rpartition(b"/")[2]
                    polls[task] += 1
                    done = polls[task] >= _POLLS
                    record = {
                        "id": task.decode(),
                        "object": "image.generation",
                        "created": 1,
                        "model": "imgb-2",
                        "status": "completed" if done else "processing",
                        "image_url": "https://cdn.example.com/picture.png" if done else None,
                    }
                body = json.dumps(record).encode()
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                )

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    _serve()
