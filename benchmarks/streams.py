"""Streamed replies, from the bytes to JSON values, against a floor and the decoders of peers.

The floor splits the whole body on blank lines and reads each event with json.loads. Peers are read
with json.loads as well, so that only the decoders differ; those that are not installed are left
out: `pip install openai anthropic google-genai httpx httpx-sse`.
"""

from __future__ import annotations

import base64
import importlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from benchmarks.measuring import Benchmark, Target, ahead_of
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.text.dialects import NATIVE
from muybridge_protocol.text.stream_parser import StreamParser
from muybridge_protocol.text.stream_reader import StreamReader

EVENTS = 10_000
LARGE_EVENTS = 2
_LARGE = 8 * MEBIBYTE

Pieces = Sequence[bytes]
Reader = Callable[[Pieces], Iterator[Any]]


def _event(part: dict[str, Any]) -> bytes:
    """Return an event with *part*: of about 320 bytes, if it is a short text."""
    return json.dumps(
        {
            "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": 12,
                "candidatesTokenCount": 34,
                "totalTokenCount": 46,
            },
            "modelVersion": "text-2.5-pro",
            "responseId": "3f9a2c7b5d1e4860",
        }
    ).encode()


_TEXT = {"text": 'A horse in motion, she said, is "never" quite still.\nIt was true, too. '}
_SMALL = [_event(_TEXT)] * EVENTS


def _as_lines(events: Sequence[bytes]) -> bytes:
    return b"".join(b"data: %s\n\n" % event for event in events)


def _cut(body: bytes) -> Pieces:
    """Return *body* in pieces as large as a transport gives them."""
    return [body[at : at + 65536] for at in range(0, len(body), 65536)]


def _cut_lines() -> Pieces:
    return [_as_lines([event]) for event in _SMALL]


def _cut_anywhere(body: bytes) -> Pieces:
    """Return *body* in pieces of up to 1,024 bytes, the same in every run."""
    draw = random.Random(1)  # noqa: S311 - it cuts a benchmark's data
    pieces: list[bytes] = []
    at = 0
    while at < len(body):
        pieces.append(body[at : at + draw.randint(1, 1024)])
        at += len(pieces[-1])
    return pieces


def _floor(pieces: Pieces) -> Iterator[Any]:
    (body,) = pieces
    for block in body.split(b"\n\n"):
        if event := block.strip():
            yield json.loads(event[6:].decode())


def _split(pieces: Pieces) -> Iterator[Any]:
    rest = b""
    for piece in pieces:
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            yield json.loads(event[6:].decode())["candidates"][0]["content"]["parts"][0]["text"]


def _typed(pieces: Pieces) -> Iterator[str]:
    reader = StreamReader(NATIVE)
    for piece in pieces:
        for chunk in reader.take(piece):
            yield chunk.text


def _whole(pieces: Pieces) -> Iterator[Any]:
    (body,) = pieces
    yield from json.loads(body)


def _ours(pieces: Pieces) -> Iterator[Any]:
    parser = StreamParser()
    for piece in pieces:
        for payload in parser.feed(piece):
            yield json.loads(payload.decode())
    for payload in parser.end():
        yield json.loads(payload.decode())


def _httpx_sse() -> Reader:
    httpx, httpx_sse = importlib.import_module("httpx"), importlib.import_module("httpx_sse")

    def read(pieces: Pieces) -> Iterator[Any]:
        headers = {"content-type": "text/event-stream"}
        response = httpx.Response(200, headers=headers, content=iter(pieces))
        for event in httpx_sse.EventSource(response).iter_sse():
            yield json.loads(event.data)

    return read


def _decoder_of(package: str) -> Reader:
    streaming = importlib.import_module(f"{package}._streaming")

    def read(pieces: Pieces) -> Iterator[Any]:
        for event in streaming.SSEDecoder().iter_bytes(iter(pieces)):
            yield json.loads(event.data)

    return read


def _google_genai() -> Reader:
    httpx = importlib.import_module("httpx")
    client = importlib.import_module("google.genai._api_client")

    def read(pieces: Pieces) -> Iterator[Any]:
        response = httpx.Response(200, content=iter(pieces))
        return client.HttpResponse({}, response).segments()

    return read


_PEERS: dict[str, Callable[[], Reader]] = {
    "google-genai": _google_genai,
    "httpx-sse": _httpx_sse,
    "anthropic": lambda: _decoder_of("anthropic"),
    "openai": lambda: _decoder_of("openai"),
}


def _peers() -> dict[str, Reader]:
    """Return the peers that are installed, and tell which are not."""
    found: dict[str, Reader] = {}
    for name, make in _PEERS.items():
        try:
            found[name] = make()
        except ImportError as error:
            print(f"left out: {name} ({error})", file=sys.stderr)
    return found


def _contestant(read: Reader, pieces: Pieces, events: int) -> Callable[[], None]:
    def run() -> None:
        assert sum(1 for _ in read(pieces)) == events

    return run


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of many small events, cut anywhere and in pieces of 64 KiB."""
    return _small_events()


def large_events() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of events with an inline picture, 8 MiB each, in pieces of 64 KiB."""
    return _large_events()


def array() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of a JSON array of small events, which peers do not read."""
    return _array()


def text() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of typed chunks whose text is read: one event, or 64 KiB, a piece."""
    return _text()


def growth() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of typed chunks of streams of 1,000, 10,000 and 100,000 events."""
    return _growth()


@contextmanager
def _text() -> Iterator[Benchmark]:
    body = _as_lines(_SMALL)
    cuttings = {"64 KiB": _cut(body), "an event": _cut_lines(), "up to 1 KiB": _cut_anywhere(body)}
    contestants: dict[str, Callable[[], None]] = {}
    targets: list[Target] = []
    peers = _peers()
    for cutting, pieces in cuttings.items():
        floor, ours = f"split and json.loads, {cutting} a piece", f"muybridge, {cutting} a piece"
        contestants[floor] = _contestant(_split, pieces, EVENTS)
        contestants[ours] = _contestant(_typed, pieces, EVENTS)
        for name, read in peers.items():
            contestants[f"{name}, {cutting} a piece"] = _contestant(read, pieces, EVENTS)
        targets.append(Target(ours, at_most=1.5, of=floor))
        targets += ahead_of(ours, (f"{name}, {cutting} a piece" for name in peers))
    rates = {"events": 1, "MB": len(body) / EVENTS / 1e6}
    yield Benchmark(f"event of {len(_SMALL[0])} bytes", EVENTS, contestants, targets, rates)


@contextmanager
def _growth() -> Iterator[Benchmark]:
    most = 10 * EVENTS

    def streams(count: int) -> Callable[[], None]:
        pieces = _cut(_as_lines(_SMALL[:1] * count))
        read = _contestant(_typed, pieces, count)

        def run() -> None:
            for _ in range(most // count):
                read()

        return run

    contestants = {
        f"{count:,} a stream": streams(count) for count in (most // 100, most // 10, most)
    }
    largest, smallest = f"{most:,} a stream", f"{most // 100:,} a stream"
    yield Benchmark(
        f"event of {len(_SMALL[0])} bytes",
        most,
        contestants,
        [Target(largest, at_most=1.2, of=smallest)],
    )


@contextmanager
def _small_events() -> Iterator[Benchmark]:
    body = _as_lines(_SMALL)
    contestants = {"split and json.loads": _contestant(_floor, [body], EVENTS)}
    readers = {"muybridge": _ours, **_peers()}
    for cutting, pieces in (("cut anywhere", _cut_anywhere(body)), ("64 KiB", _cut(body))):
        for name, read in readers.items():
            contestants[f"{name}, {cutting}"] = _contestant(read, pieces, EVENTS)
    yield Benchmark(f"event of {len(_SMALL[0])} bytes", EVENTS, contestants)


@contextmanager
def _large_events() -> Iterator[Benchmark]:
    picture = base64.b64encode(random.Random(1).randbytes(_LARGE * 3 // 4)).decode()  # noqa: S311 - noise
    event = _event({"inlineData": {"mimeType": "image/png", "data": picture}})
    body = _as_lines([event] * LARGE_EVENTS)
    contestants = {"split and json.loads": _contestant(_floor, [body], LARGE_EVENTS)}
    for name, read in {"muybridge": _ours, **_peers()}.items():
        contestants[name] = _contestant(read, _cut(body), LARGE_EVENTS)
    in_array = _cut(b"[" + b"\n,\r\n".join([event] * LARGE_EVENTS) + b"\n]")
    contestants["muybridge, as an array"] = _contestant(_ours, in_array, LARGE_EVENTS)
    yield Benchmark("event of 8 MiB", LARGE_EVENTS, contestants)


@contextmanager
def _array() -> Iterator[Benchmark]:
    body = b"[" + b"\n,\r\n".join(_SMALL) + b"\n]"
    contestants = {
        "json.loads of the whole": _contestant(_whole, [body], EVENTS),
        "muybridge, cut anywhere": _contestant(_ours, _cut_anywhere(body), EVENTS),
        "muybridge, 64 KiB": _contestant(_ours, _cut(body), EVENTS),
    }
    yield Benchmark(f"event of {len(_SMALL[0])} bytes", EVENTS, contestants)
