"""Streamed responses, from the bytes to chunks, against a floor and peers.

Two things are compared, and should not be taken for each other:

- `text-stream`: from the bytes to the chunk that a program gets, each peer going its own client's
  way and in its own protocol: google-genai to a GenerateContentResponse, openai to a
  ChatCompletionChunk, anthropic to a RawContentBlockDeltaEvent. All say the same words; chunks of
  the native protocol, which are ours and google-genai's, have the most bytes. httpx-sse has no
  types: it reads native chunks with json.loads. The floor splits on blank lines and reads each
  event with json.loads.
- `streams`: from the bytes to JSON values, so that only the decoders differ. Ours and those of the
  peers are read with json.loads.

Peers that are not installed are left out: `pip install openai anthropic google-genai httpx
httpx-sse`.
"""

from __future__ import annotations

import base64
import importlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from benchmarks.measuring import Benchmark, Target, ahead_of
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.text.dialects import NATIVE
from muybridge_protocol.text.stream_parser import StreamParser
from muybridge_protocol.text.stream_reader import StreamReader

EVENTS = 10_000
TEXT_EVENTS = 2_000
"""Events of a text: peers take up to a hundred times as long for each as the floor does."""
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


_WORDS = 'A horse in motion, she said, is "never" quite still.\nIt was true, too. '
_TEXT = {"text": _WORDS}
_SMALL = [_event(_TEXT)] * EVENTS


def _as_lines(events: Sequence[bytes]) -> bytes:
    return b"".join(b"data: %s\n\n" % event for event in events)


def _cut(body: bytes) -> Pieces:
    """Return *body* in pieces as large as a transport gives them."""
    return [body[at : at + 65536] for at in range(0, len(body), 65536)]


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


def _typed_google_genai() -> Reader:
    """Return what reads as its client does: no line of it but the sending is ours."""
    httpx = importlib.import_module("httpx")
    genai = importlib.import_module("google.genai")
    response_of = importlib.import_module("google.genai._api_client").HttpResponse
    client = genai.Client(api_key="none")

    def read(pieces: Pieces) -> Iterator[str]:
        response = response_of({}, httpx.Response(200, content=iter(pieces)))

        def send(*_: object, **__: object) -> Any:
            return response

        client._api_client._request = send  # noqa: SLF001  nothing else of it is replaced
        for chunk in client.models.generate_content_stream(model="text", contents="x"):
            yield chunk.text

    return read


def _typed_openai() -> Reader:
    openai, httpx2 = importlib.import_module("openai"), importlib.import_module("httpx2")
    chunk_type = importlib.import_module("openai.types.chat").ChatCompletionChunk
    client = openai.OpenAI(api_key="none")

    def read(pieces: Pieces) -> Iterator[str]:
        response = httpx2.Response(200, content=iter(pieces))
        for chunk in openai.Stream(cast_to=chunk_type, response=response, client=client):
            yield chunk.choices[0].delta.content

    return read


def _typed_anthropic() -> Reader:
    anthropic, httpx2 = importlib.import_module("anthropic"), importlib.import_module("httpx2")
    event_type = importlib.import_module("anthropic.types").RawMessageStreamEvent
    client = anthropic.Anthropic(api_key="none")

    def read(pieces: Pieces) -> Iterator[str]:
        response = httpx2.Response(200, content=iter(pieces))
        for event in anthropic.Stream(cast_to=event_type, response=response, client=client):
            yield event.delta.text

    return read


_CHAT_EVENT = (
    b"data: %s\n\n"
    % json.dumps(
        {
            "id": "chatcmpl-3f9a2c7b5d1e4860",
            "object": "chat.completion.chunk",
            "created": 1_790_000_000,
            "model": "text-2.5-pro",
            "choices": [{"index": 0, "delta": {"content": _WORDS}, "finish_reason": None}],
        }
    ).encode()
)
_MESSAGES_EVENT = (
    b"event: content_block_delta\ndata: %s\n\n"
    % json.dumps(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": _WORDS},
        }
    ).encode()
)
_NATIVE_EVENT = _as_lines(_SMALL[:1])
_SSE = "httpx-sse and json.loads"
"""Not an SDK: what a reader of events by hand would use."""
_TYPED_PEERS: dict[str, tuple[Callable[[], Reader], bytes]] = {
    "google-genai": (_typed_google_genai, _NATIVE_EVENT),
    _SSE: (_httpx_sse, _NATIVE_EVENT),
    "anthropic": (_typed_anthropic, _MESSAGES_EVENT),
    "openai": (_typed_openai, _CHAT_EVENT),
}
_PEERS: dict[str, Callable[[], Reader]] = {
    "google-genai": _google_genai,
    "httpx-sse": _httpx_sse,
    "anthropic": lambda: _decoder_of("anthropic"),
    "openai": lambda: _decoder_of("openai"),
}


def _installed(peers: Mapping[str, Callable[[], Reader]]) -> dict[str, Reader]:
    """Return those of *peers* that are installed, and tell which are not."""
    found: dict[str, Reader] = {}
    for name, make in peers.items():
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
    """Return the benchmark of decoders: many small events, from their bytes to JSON."""
    return _small_events()


def large_events() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of events with an inline picture, 8 MiB each, in pieces of 64 KiB."""
    return _large_events()


def array() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of a JSON array of small events, which peers do not read."""
    return _array()


def text() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of chunks as programs get them, whose text is read."""
    return _text()


def growth() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of typed chunks of streams of 1,000, 10,000 and 100,000 events."""
    return _growth()


def _cuttings(event: bytes) -> dict[str, Pieces]:
    body = event * TEXT_EVENTS
    return {
        "64 KiB": _cut(body),
        "an event": [event] * TEXT_EVENTS,
        "up to 1 KiB": _cut_anywhere(body),
    }


@contextmanager
def _text() -> Iterator[Benchmark]:
    contestants: dict[str, Callable[[], None]] = {}
    targets: list[Target] = []
    peers = _installed({name: make for name, (make, _) in _TYPED_PEERS.items()})
    for cutting, pieces in _cuttings(_NATIVE_EVENT).items():
        floor, ours = f"split and json.loads, {cutting} a piece", f"muybridge, {cutting} a piece"
        contestants[floor] = _contestant(_split, pieces, TEXT_EVENTS)
        contestants[ours] = _contestant(_typed, pieces, TEXT_EVENTS)
        for name, read in peers.items():
            theirs = _cuttings(_TYPED_PEERS[name][1])[cutting]
            contestants[f"{name}, {cutting} a piece"] = _contestant(read, theirs, TEXT_EVENTS)
        at_most = 2.0 if cutting == "an event" else 1.8
        targets.append(Target(ours, at_most=at_most, of=floor))
        sdks = (f"{name}, {cutting} a piece" for name in peers if name != _SSE)
        targets += ahead_of(ours, sdks)
    rates = {"events": 1}
    yield Benchmark(
        f"event of {len(_SMALL[0])} bytes, to a typed chunk",
        TEXT_EVENTS,
        contestants,
        targets,
        rates,
        turns=5,
    )


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
        f"event of {len(_SMALL[0])} bytes, to a typed chunk",
        most,
        contestants,
        [Target(largest, at_most=1.2, of=smallest)],
    )


@contextmanager
def _small_events() -> Iterator[Benchmark]:
    body = _as_lines(_SMALL)
    contestants = {"split and json.loads": _contestant(_floor, [body], EVENTS)}
    readers = {"muybridge": _ours, **_installed(_PEERS)}
    for cutting, pieces in (("cut anywhere", _cut_anywhere(body)), ("64 KiB", _cut(body))):
        for name, read in readers.items():
            contestants[f"{name}, {cutting}"] = _contestant(read, pieces, EVENTS)
    yield Benchmark(f"event of {len(_SMALL[0])} bytes, to JSON", EVENTS, contestants)


@contextmanager
def _large_events() -> Iterator[Benchmark]:
    picture = base64.b64encode(random.Random(1).randbytes(_LARGE * 3 // 4)).decode()  # noqa: S311 - noise
    event = _event({"inlineData": {"mimeType": "image/png", "data": picture}})
    body = _as_lines([event] * LARGE_EVENTS)
    contestants = {"split and json.loads": _contestant(_floor, [body], LARGE_EVENTS)}
    for name, read in {"muybridge": _ours, **_installed(_PEERS)}.items():
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
    yield Benchmark(f"event of {len(_SMALL[0])} bytes, to JSON", EVENTS, contestants)
