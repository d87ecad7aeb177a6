"""What a batch's durable journal costs for each item, beside the same tasks without one.

The service is in memory, so that nothing but the library is measured. Waiting for the disk is no
CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.lifecycle import KEY
from benchmarks.measuring import Benchmark, Target
from muybridge import Client, ImgbRequest, batch
from muybridge_protocol.http import HttpHead, HttpRequest

ITEMS = 20
_URL = "http://127.0.0.1:1"
_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360"
    "000000020001e221bc330000000049454e44ae426082"
)
_REQUESTS = [ImgbRequest(model="imgb-2", prompt=f"a horse, frame {n}") for n in range(10 * ITEMS)]


class _Reply:
    """A reply that is there already."""

    def __init__(self, kind: str, body: bytes) -> None:
        headers = (("Content-Type", kind), ("Content-Length", str(len(body))))
        self.head = HttpHead(200, headers)
        self._body = body

    def pieces(self) -> Iterator[bytes]:
        yield self._body


class _Memory:
    """A transport that answers by itself: every task is completed at the first query."""

    def __init__(self) -> None:
        self._numbers = count()

    @contextmanager
    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Iterator[_Reply]:
        del timeout, authorization
        if request.url.endswith(".png"):
            yield _Reply("image/png", _PICTURE)
            return
        record: dict[str, object] = {"id": f"task-{next(self._numbers)}", "status": "queued"}
        if request.method == "GET":
            task = request.url.rpartition("/")[2]
            record = {"id": task, "status": "completed", "image_url": f"{_URL}/{task}.png"}
        yield _Reply("application/json", json.dumps(record).encode())

    def close(self) -> None:
        """Do nothing."""


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of items created, polled and saved."""
    return _benchmark()


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    with Client(KEY, _URL, poll_interval=0, transport=_Memory()) as client:

        def one_by_one() -> None:
            with TemporaryDirectory() as folder:
                for request in _REQUESTS[: 10 * ITEMS]:
                    client.download(client.run(request), Path(folder))

        def batches(size: int) -> Callable[[], None]:
            def run() -> None:
                for at in range(0, 10 * ITEMS, size):
                    with TemporaryDirectory() as folder:
                        report = batch.run(client, _REQUESTS[at : at + size], folder, concurrency=1)
                        assert report.done

            return run

        small, large = f"batches of {ITEMS:,}", f"a batch of {10 * ITEMS:,}"
        contestants = {
            "run and download, one by one": one_by_one,
            small: batches(ITEMS),
            large: batches(10 * ITEMS),
        }
        yield Benchmark("item", 10 * ITEMS, contestants, [Target(large, at_most=1.2, of=small)])
