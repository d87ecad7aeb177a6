"""Checking create requests, against reading them as JSON without any check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.measuring import Benchmark, Target
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.request import parse
from muybridge_protocol.operations.create import encode
from muybridge_protocol.service import Service

LINES = 5_000

_BODIES = (
    ("imga", {"model": "imga-pro", "prompt": "a horse", "resolution": "2k", "size": "16:9"}),
    ("vidg", {"model": "vidg_video3", "prompt": "a horse", "duration": 10}),
    ("videos", {"model": "videos", "prompt": "a horse", "duration": 5, "ratio": "1:1"}),
    (
        "vidsb",
        {"model": "vidsb_2_0_pro", "prompt": "a horse", "first_image": "https://a.example/1"},
    ),
)


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark."""
    return _benchmark()


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    lines = [
        json.dumps({"family": family, "body": body})
        for family, body in (_BODIES[i % len(_BODIES)] for i in range(LINES))
    ]

    def read() -> None:
        for line in lines:
            json.loads(line)

    def check() -> None:
        for line in lines:
            record = json.loads(line)
            assert FAMILIES[record["family"]].check(record["body"]).ok

    service = Service(base_url="https://api.example.com")
    requests = [
        parse(FAMILIES[family], body)
        for family, body in (_BODIES[i % len(_BODIES)] for i in range(LINES))
    ]

    def encoded() -> None:
        for request in requests:
            encode(request, service)

    contestants = {
        "json.loads": read,
        "json.loads and check": check,
        "encode for the wire, checked again": encoded,
    }
    yield Benchmark(
        "request",
        LINES,
        contestants,
        [Target("json.loads and check", at_least=20_000, figure="requests a second")],
        rates={"requests": 1},
    )
