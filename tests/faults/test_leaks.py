"""Case 31: thousands of faults leave no file descriptor open and no thread running."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from client.requests_made import image
from muybridge import MuybridgeError
from transport.scripted_server import Peer

from .acts import half_then_reset, honest, status
from .cells import Surroundings
from .clients import DRIVERS
from .hostile_server import Act, HostileServer
from .rows import Certificate

DESCRIPTORS = Path("/proc/self/fd")

FAULTS: tuple[Act, ...] = (
    Peer.read_request,
    lambda peer: (peer.read_request(), peer.reset()),
    lambda peer: peer.send(honest(peer)[:-1]),
    lambda peer: peer.send(b"SSH-2.0\r\n\r\n" if peer.read_request() else b""),
    lambda peer: peer.send(honest(peer).replace(b"Content-Length: ", b"Content-Length: x")),
    lambda peer: (peer.receive(20), peer.reset()),
    half_then_reset,
    status(500),
    status(200, b"<html>"),
    status(302, b"", location="/elsewhere"),
)


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def commit_many(around: Surroundings, driver: str, scheme: str, folder: Path, count: int) -> None:
    """Commit *count* faults, and check that nothing is left of them."""
    tls = around.contexts[Certificate.GOOD]
    committed = 0

    def act(peer: Peer) -> None:
        nonlocal committed
        committed += 1
        FAULTS[committed % len(FAULTS)](peer)

    with (
        ExitStack() as closing,
        HostileServer(on_request=act, scheme=scheme, tls=tls) as server,
    ):
        driven = DRIVERS[driver](closing, around.trust)(server.url)
        client = driven.client
        calls = (
            lambda: client.create(image()),
            lambda: client.get("task-1"),
            lambda: client.delete_asset("asset-1"),
            lambda: client.download(f"{server.url}/media/a.png", folder / "a.png", timeout=60),
            lambda: client.call("POST", "/v1/any", {}),
        )

        def call_all() -> None:
            for call in calls:
                with suppress(MuybridgeError):
                    call()

        def settle() -> tuple[int, int]:
            """Close what is idle, and return how many descriptors and threads are left."""
            driven.hang_up()
            server.forget()
            gc.collect()
            # trio keeps some threads for the files of later runs.
            kept = [t for t in threading.enumerate() if not t.name.startswith("Trio")]
            return len(os.listdir(DESCRIPTORS)), len(kept)  # noqa: PTH208  a count

        call_all()  # what is made once is there afterwards
        before = settle()
        while committed < count:
            call_all()
        after = settle()
        assert after[0] <= before[0], "descriptors"
        assert after[1] <= before[1], "threads"
    assert committed >= count


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors by /proc")
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_few_hundred_faults(
    around: Surroundings, driver: str, scheme: str, tmp_path: Path
) -> None:
    """A few hundred faults of every kind leave nothing behind."""
    commit_many(around, driver, scheme, tmp_path, 200)


@pytest.mark.nightly
@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors by /proc")
@pytest.mark.parametrize("driver", DRIVERS)
def test_ten_thousand_faults(
    around: Surroundings, driver: str, scheme: str, tmp_path: Path
) -> None:
    """Ten thousand faults leave nothing behind either."""
    commit_many(around, driver, scheme, tmp_path, 10_000)
