"""What starting costs: importing, and a process from nothing to its first result.

Each contestant is a child process, and its CPU time is taken from the system.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from benchmarks.loopback import serving
from benchmarks.measuring import Benchmark, Target, ahead_of, installed

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

_LOOP = """
session = requests.Session()
headers = {"Authorization": "Bearer key"}
body = {"model": "imgb-2", "prompt": "a horse"}
task = session.post(BASE + "/v1/image2/images", json=body, headers=headers).json()
while task["status"] != "completed":
    task = session.get(f"{BASE}/v1/result/{task['id']}", headers=headers).json()
"""
_FLOOR = "import requests, attrs, cattrs"
_FIRST_RESULTS: Mapping[str, str] = {
    _FLOOR: _FLOOR + _LOOP,
    "import requests": "import requests" + _LOOP,
    "muybridge.Client": """
import muybridge
with muybridge.Client("key", BASE, poll_interval=0) as client:
    client.run(muybridge.ImgbRequest(model="imgb-2", prompt="a horse"))
""",
}
_PEERS: Mapping[str, str] = {
    "openai": """
import openai
client = openai.OpenAI(api_key="key", base_url=BASE + "/openai")
made = client.videos.create(model="sora-2", prompt="a horse")
client.videos.poll(made.id, poll_interval_ms=0)
""",
    "replicate": """
import replicate
client = replicate.Client("key", base_url=BASE + "/replicate")
client.poll_interval = 0
client.predictions.create(version="0" * 64, input={"prompt": "a horse"}).wait()
""",
    "fal-client": """
import fal_client.client
fal_client.client.QUEUE_URL_FORMAT = BASE + "/"
client = fal_client.client.SyncClient(key="key")
client.subscribe("fal-ai/horse", {"prompt": "a horse"}, interval=0)
""",
}


def imports() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of `import muybridge` with nothing used."""
    return _imports()


def first_results() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of processes that make one task and wait for it."""
    return _first_results()


@contextmanager
def _imports() -> Iterator[Benchmark]:
    floor, ours = "import attrs, cattrs", "import muybridge"
    lines = (floor, "pass", ours, "import requests", "import trio")
    contestants = {line: _processes(line) for line in lines}
    targets = [Target(ours, at_most=1.15, of=floor)]
    yield Benchmark("process, Python's own start included", 1, contestants, targets, turns=4)


@contextmanager
def _first_results() -> Iterator[Benchmark]:
    with serving() as base_url:
        scripts = {**_FIRST_RESULTS, **{name: _PEERS[name] for name in installed(_PEERS)}}
        contestants = {
            name: _processes(f"BASE = {base_url!r}\n{script}") for name, script in scripts.items()
        }
        ours = "muybridge.Client"
        targets = [Target(ours, at_most=1.25, of=_FLOOR), *ahead_of(ours, _PEERS)]
        yield Benchmark("process to its first result", 1, contestants, targets, turns=4)


def _processes(script: str) -> Callable[[], float]:
    command = [sys.executable, "-W", "ignore", "-c", script]
    # As after an installation, what is imported has been compiled: also here, in a checkout that
    # was edited, and where the environment says to write no bytecode.
    writing = {name: text for name, text in os.environ.items() if name != _NO_BYTECODE}
    subprocess.run(command, check=True, env=writing)  # noqa: S603  scripts of this file

    def run() -> float:
        before = _spent_by_children()
        subprocess.run(command, check=True)  # noqa: S603  scripts of this file
        return _spent_by_children() - before

    return run


def _spent_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
