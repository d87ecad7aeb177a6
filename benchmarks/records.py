"""A result record: read as a typed value, strictly, against json.loads to a dict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.measuring import Benchmark, Target
from muybridge_protocol.records.json import read_object
from muybridge_protocol.records.tasks import read_result

READS = 20_000
_RECORD = (
    b'{"id":"task-9f2c4be0d1a84c53","object":"image.generation","created":1760000000,'
    b'"model":"imgb-2","status":"processing","image_url":null}'
)


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark. Bytes go in; the typed value keeps the fields that nobody knows."""
    return _benchmark()


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    contestants = {
        "json.loads": _many(lambda: json.loads(_RECORD)),
        "muybridge's Result": _many(lambda: read_result(read_object(_RECORD), family="imgb")),
    }
    targets = [Target("muybridge's Result", at_most=3.0, of="json.loads")]
    yield Benchmark(f"record of {len(_RECORD)} bytes", READS, contestants, targets)


def _many(read: Callable[[], object]) -> Callable[[], None]:
    def reads() -> None:
        for _ in range(READS):
            read()

    return reads
