"""One task from its create to its result: a create, three polls without a result, and one with.

Loops by hand and clients of other services, each on a kept connection to the same server, which
answers a client in the shapes of its own service. None of them sleeps.
"""

from __future__ import annotations

import http.client
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import requests

from benchmarks.loopback import serving
from benchmarks.measuring import Benchmark, Target, ahead_of, installed, on_one_cpu
from muybridge import Client, ImgbRequest

__all__ = ["Benchmark", "benchmark", "growth"]

LIFECYCLES = 100
KEY = "the-key-of-a-benchmark"
OURS, FLOOR = "muybridge.Client", "a loop on requests.Session"
_HEADERS = {"Authorization": f"Bearer {KEY}"}
_BODY = {"model": "imgb-2", "prompt": "a horse"}

Run = Callable[[], object]


def _loop(call: Callable[[str, str, object], Any]) -> Run:
    """Return the loop of a user, on what sends a request and returns the JSON of its response."""

    def run() -> None:
        task = call("POST", "/v1/image2/images", _BODY)
        while call("GET", f"/v1/result/{task['id']}", None)["status"] != "completed":
            pass

    return run


def _requests(base_url: str, opened: ExitStack) -> Run:
    session = opened.enter_context(requests.Session())

    def call(method: str, path: str, body: object) -> Any:
        url = f"{base_url}{path}"
        return session.request(method, url, json=body, headers=_HEADERS, timeout=60).json()

    return _loop(call)


def _http_client(base_url: str, opened: ExitStack) -> Run:
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
    opened.callback(connection.close)

    def call(method: str, path: str, body: object) -> Any:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {**_HEADERS, "Content-Type": "application/json"})
        with connection.getresponse() as response:
            return json.loads(response.read())

    return _loop(call)


def _ours(base_url: str, opened: ExitStack) -> Run:
    client = opened.enter_context(Client(KEY, base_url, poll_interval=0))
    return lambda: client.run(ImgbRequest(model="imgb-2", prompt="a horse"))


def _httpx2(base_url: str, opened: ExitStack) -> Run:
    client = opened.enter_context(import_module("httpx2").Client(base_url=base_url))

    def call(method: str, path: str, body: object) -> Any:
        return client.request(method, path, json=body, headers=_HEADERS).json()

    return _loop(call)


def _fal(base_url: str, opened: ExitStack) -> Run:
    module = import_module("fal_client.client")
    opened.enter_context(patch.object(module, "QUEUE_URL_FORMAT", f"{base_url}/"))
    client = module.SyncClient(key=KEY)
    return lambda: client.subscribe("fal-ai/horse", {"prompt": "a horse"}, interval=0)


def _replicate(base_url: str, _: ExitStack) -> Run:
    client = import_module("replicate").Client(KEY, base_url=f"{base_url}/replicate")
    client.poll_interval = 0

    def run() -> None:
        made = client.predictions.create(version="0" * 64, input={"prompt": "a horse"})
        made.wait()
        assert made.output

    return run


def _openai(base_url: str, opened: ExitStack) -> Run:
    module = import_module("openai")
    client = opened.enter_context(module.OpenAI(api_key=KEY, base_url=f"{base_url}/openai"))

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its videos API is deprecated
            made = client.videos.create(model="sora-2", prompt="a horse")
            assert client.videos.poll(made.id, poll_interval_ms=0).status == "completed"

    return run


def _runwayml(base_url: str, opened: ExitStack) -> Run:
    module = import_module("runwayml")
    client = opened.enter_context(module.RunwayML(api_key=KEY, base_url=f"{base_url}/runwayml"))

    def run() -> None:
        made = client.text_to_video.create(
            model="veo3.1", prompt_text="a horse", ratio="1280:720", duration=4
        )
        # Its own loop sleeps for six seconds, whatever one asks for.
        while client.tasks.retrieve(made.id).status != "SUCCEEDED":
            pass

    return run


def google_client(base_url: str) -> Any:
    """Return a client of google-genai for the server at *base_url*."""
    return import_module("google.genai").Client(
        vertexai=True,
        project="horses",
        location="us-central1",
        credentials=import_module("google.oauth2.credentials").Credentials(KEY),
        http_options={"base_url": f"{base_url}/google"},
    )


def _google(base_url: str, _: ExitStack) -> Run:
    client = google_client(base_url)

    def run() -> None:
        made = client.models.generate_videos(model="veo-3.0", prompt="a horse")
        while not made.done:
            made = client.operations.get(made)

    return run


_LOOPS: Mapping[str, Callable[[str, ExitStack], Run]] = {
    FLOOR: _requests,
    "a loop on http.client": _http_client,
    OURS: _ours,
}
PEERS: Mapping[str, Callable[[str, ExitStack], Run]] = {
    "httpx2": _httpx2,
    "fal-client": _fal,
    "replicate": _replicate,
    "google-genai": _google,
    "openai": _openai,
    "runwayml": _runwayml,
}
"""By distribution. httpx2 is a loop by hand, too."""


def _many(run: Run, times: int) -> Run:
    def runs() -> None:
        for _ in range(times):
            run()

    return runs


def _opened(base_url: str, opened: ExitStack) -> dict[str, Run]:
    """Return all that take part, each of which has shown that it works here."""
    found = {name: make(base_url, opened) for name, make in _LOOPS.items()}
    for name in installed(PEERS):
        try:
            run = PEERS[name](base_url, opened)
            run()
        except Exception as error:  # noqa: BLE001  each library has its own
            print(f"left out: {name} ({error!r})", file=sys.stderr)
        else:
            found[name] = run
    return found


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark, with its server."""
    return _benchmark()


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    with on_one_cpu(), serving() as base_url, ExitStack() as opened:
        contestants = {
            name: _many(run, LIFECYCLES) for name, run in _opened(base_url, opened).items()
        }
        sdks = (name for name in PEERS if name != "httpx2")
        yield Benchmark(
            "create, 4 polls and result",
            LIFECYCLES,
            contestants,
            [
                Target(OURS, at_most=0.65, of=FLOOR),
                *ahead_of(OURS, sdks),
            ],
        )


def growth() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of 10, 100 and 1,000 lifecycles by one client, each time a new one."""
    return _growth()


@contextmanager
def _growth() -> Iterator[Benchmark]:
    most = 1_000

    def lifecycles(base_url: str, count: int) -> Run:
        def run() -> None:
            for _ in range(most // count):
                with ExitStack() as opened:
                    _many(_ours(base_url, opened), count)()

        return run

    with on_one_cpu(), serving() as base_url:
        contestants = {
            f"{count:,} by one client": lifecycles(base_url, count) for count in (10, 100, most)
        }
        longest, shortest = f"{most:,} by one client", "10 by one client"
        yield Benchmark(
            "create, 4 polls and result",
            most,
            contestants,
            [Target(longest, at_most=1.2, of=shortest)],
        )
