"""What a batch's durable store costs for each item, beside the same tasks without one.

The service is in memory, so that nothing but the library is measured. Waiting for the disk is no
CPU time. A batch of 100,000 items is measured by itself: how much longer it takes to begin than to
check it, and how much memory a process needs for it.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.lifecycle import KEY
from benchmarks.measuring import Benchmark, Report, Target, race
from muybridge import Client, ImgbRequest, batch
from muybridge.batch import read_items
from muybridge_protocol.http import HttpHead, HttpRequest

ITEMS = 20
LARGE = 100_000
_URL = "http://127.0.0.1:1"
_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360"
    "000000020001e221bc330000000049454e44ae426082"
)
_REQUESTS = [ImgbRequest(model="imgb-2", prompt=f"a horse, frame {n}") for n in range(10 * ITEMS)]


class _Reply:
    """A response that is there already."""

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
    ) -> Generator[_Reply, None, None]:
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
def _benchmark() -> Generator[Benchmark, None, None]:
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


class _Sent(BaseException):
    """The first request is about to be sent."""


class _Start(_Memory):
    """A transport that ends the run at its first request."""

    @contextmanager
    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Generator[_Reply, None, None]:
        del request, timeout, authorization
        raise _Sent
        yield


def _write_file(folder: Path) -> Path:
    path = folder / "batch.jsonl"
    with path.open("w", encoding="ascii") as file:
        for number in range(LARGE):
            prompt = f"a horse at full gallop along a beach at dawn, frame {number}"
            item = {"family": "imgb", "model": "imgb-2", "prompt": prompt, "name": f"{number}"}
            file.write(json.dumps(item) + "\n")
    return path


def _start(folder: Path) -> None:
    with (
        Client(KEY, _URL, poll_interval=0, transport=_Start()) as client,
        suppress(_Sent),
    ):
        batch.run(client, folder / "batch.jsonl", folder / "out", concurrency=1)


def _resume(folder: Path) -> None:
    with Client(KEY, _URL, poll_interval=0, transport=_Memory()) as client:
        report = batch.run(client, folder / "batch.jsonl", folder / "out", concurrency=1)
        assert report.done


def _status(folder: Path) -> None:
    assert batch.status(folder / "out").done


def _nearly_finish(folder: Path) -> None:
    """Let all items but a few be as if they had been done."""
    path = folder / "out" / "state" / "store.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "UPDATE muybridge_item SET stage = 'downloaded', owner = NULL, "
            "path = stem || '.png', size = 81, sha256 = ?, "
            "began = 1.5e9, ended = 1.6e9, result = ? WHERE number > ?",
            ("0" * 64, '{"status": "completed"}', ITEMS),
        )
        db.execute(
            "UPDATE muybridge_item SET stage = 'queued', owner = NULL, purchase = NULL "
            "WHERE number <= ?",
            (ITEMS,),
        )
        db.execute("UPDATE muybridge_purchases SET state = 'released'")
        db.commit()


def starts(rounds: int) -> Report:
    """Compare beginning a large batch, up to its first request, with checking its items."""
    return race(_starts)(min(rounds, 3))


@contextmanager
def _starts() -> Generator[Benchmark, None, None]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = _write_file(folder)

        def start() -> None:
            with TemporaryDirectory(dir=folder) as other:
                (Path(other) / path.name).hardlink_to(path)
                _start(Path(other))

        contestants = {"checking": lambda: read_items(path), "first start": start}
        yield Benchmark(
            "item", LARGE, contestants, [Target("first start", at_most=1.3, of="checking")]
        )


def _peak(work: Callable[[Path], None], folder: Path) -> float:
    """Return the most memory that a process occupies that does *work*, in MB."""
    work(folder)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def memory(_: int) -> Report:
    """Tell what a large batch needs, each step measured once in a process of its own."""
    context = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_file(folder)
        for step, work in {"start": _start, "resume": _resume, "status": _status}.items():
            if work is _resume:
                _nearly_finish(folder)
            with context.Pool(1) as pool:
                found[step] = {"mb": pool.apply(_peak, (work, folder))}
    return Report(
        f"memory of a whole process with a batch of {LARGE:,} items",
        found,
        [Target(step, at_most=100, figure="mb") for step in found],
    )
