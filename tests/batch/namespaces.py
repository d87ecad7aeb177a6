"""A worker whose database is in another network namespace, from which nothing arrives any more.

`python -m batch.namespaces PHASE LOST DATABASE`, in a network namespace of its own, prints what
happened. A veth pair leads to a relay in a second namespace. A packet for a wrong hardware address
is dropped by the kernel that receives it, so neither side ever gets an error or a reset.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import moments
from batch.billing import BillingServer
from batch.fixtures import submit
from batch.relay import Relay
from batch.runner_process import KEY
from batch.shared_audit import Audit

OURS, THEIRS = "10.77.0.1", "10.77.0.2"
NOWHERE = "02:00:00:00:00:99"
CREATES = 2
PHASES = ("claiming", "arming", "sent", "responded")
LOST = ("requests", "responses", "both")
"""What of the traffic with the database is lost."""


class Network:
    """The two namespaces, and the way between them.

    Args:
        process: A process in the other namespace.
    """

    def __init__(self, process: int) -> None:
        there = ["nsenter", "--target", str(process), "--net"]
        self._run("ip", "link", "add", "near", "type", "veth", "peer", "far", "netns", str(process))
        self._ends: tuple[tuple[list[str], str, str, str], ...] = (
            ([], "near", OURS, THEIRS),
            (there, "far", THEIRS, OURS),
        )
        for inside, device, address, _ in self._ends:
            self._run(*inside, "ip", "address", "add", f"{address}/24", "dev", device)
            self._run(*inside, "ip", "link", "set", device, "up")

    def vanish(self, lost: str) -> None:
        """From now on, what is *lost* arrives nowhere."""
        for (inside, device, _, other), name in zip(self._ends, LOST, strict=False):
            if lost in (name, "both"):
                self._run(
                    *inside, "ip", "neighbour", "replace", other, "lladdr", NOWHERE,
                    "dev", device, "nud", "permanent",
                )  # fmt: skip

    def heal(self) -> None:
        """Let everything arrive again."""
        for inside, device, _, _ in self._ends:
            self._run(*inside, "ip", "neighbour", "flush", "dev", device, "nud", "permanent")

    @staticmethod
    def _run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  our own


def relay(url: str) -> None:
    """Relay connections in this namespace, and print the address, until the input ends."""
    print(os.getpid(), flush=True)  # noqa: T201  the answer
    sys.stdin.readline()  # the address is there now
    with Relay(url, THEIRS) as serving:
        print(serving.address, flush=True)  # noqa: T201  the answer
        sys.stdin.read()


@contextmanager
def behind(url: str) -> Generator[tuple[Network, str], None, None]:
    """Yield the network between this namespace and the database at *url*, and its address."""
    command = ["unshare", "--net", sys.executable, "-m", "batch.namespaces", "relay", url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: S603  our own
        assert process.stdin is not None
        assert process.stdout is not None
        network = Network(int(process.stdout.readline()))
        print(file=process.stdin, flush=True)
        yield network, process.stdout.readline().strip()
        process.stdin.close()


def second(calls: Iterator[int], act: Callable[[], None]) -> None:
    """Call *act* at the second call."""
    if next(calls) == 1:
        act()


def before(owner: type, name: str, act: Callable[[], None]) -> None:
    """Call *act* before the second call of a method."""
    original, calls = getattr(owner, name), count()

    def acting(*arguments: Any, **more: Any) -> Any:
        second(calls, act)
        return original(*arguments, **more)

    setattr(owner, name, acting)


class Ears(logging.Handler):
    """Calls *act* when a worker says that it waits for the database."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act
        self.heard = 0

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002  it says nothing else
        self.heard += 1
        self._act()


def work(phase: str, lost: str, url: str) -> dict[str, Any]:
    """Work on six items while the database vanishes in a phase, and return what came of it."""
    from muybridge import Client, batch
    from muybridge.batch.items.batch import Batch
    from muybridge.purchases import Store
    from muybridge.purchases import postgres_connections as connecting

    connecting.SILENCE = 1.0  # type: ignore[misc]  # half a minute otherwise
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)  # noqa: S607  the one that is installed
    shared = batch.SharedBatch(url, "horses")
    with BillingServer() as server, behind(url) as (network, address), TemporaryDirectory() as out:
        submit(server, shared, 6)
        vanish, calls, lock = (lambda: network.vanish(lost)), count(), threading.Lock()

        def accepted(_: str) -> None:
            with lock:
                second(calls, vanish)

        match phase:
            case "claiming":
                before(Batch, "take", vanish)
            case "arming":
                before(Store, "arm", vanish)
            case "sent":
                server.on_create = accepted
            case _:
                before(*moments.at("response kept").place, vanish)
        ears = Ears(network.heal)
        logging.getLogger("muybridge.batch").addHandler(ears)
        away = batch.SharedBatch(f"{address} connect_timeout=2", "horses")
        with Client(KEY, server.url, poll_interval=0.005) as client:
            report = batch.work(client, away, out, creates=CREATES, lease=3)
        audit = Audit.of(server, shared)
        return {
            "heard": ears.heard,
            "posts": server.posts,
            "doubles": audit.doubles,
            "wrong": audit.wrong,
            "strays": len(report.strays),
            "states": {state.value: number for state, number in report.counts.items()},
        }


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay(sys.argv[2])
    else:
        print(json.dumps(work(*sys.argv[1:])))  # noqa: T201  the answer
