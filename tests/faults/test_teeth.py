"""The suite's own checks fail on transports that are wrong on purpose."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from muybridge_protocol.text.dialects import Ending
from processes import Nursery
from transport.scripted_server import Peer

from .acts import HEAD
from .bad_variants import VARIANTS
from .cells import Cell, Surroundings, cells, commit
from .clients import DRIVERS, Driven, MakeDriven, MakeDriver, requests_driver
from .connections import connections
from .hostile_server import TASK_ID, HostileServer
from .memory_child import RESET
from .rows import STREAMED
from .test_memory import API_GROWTH, RECORD, nursery

__all__ = ["nursery"]


def with_variant(variant: str) -> MakeDriver:
    """Return what makes clients on a transport that is wrong."""
    return lambda closing, trust: requests_driver(closing, trust, VARIANTS[variant])


def cell_of(name: str, operation: str) -> Cell:
    """Return the cell of a row on plain http."""
    alike = [cell for cell in cells() if cell.row.name == name and cell.operation == operation]
    return next(cell for cell in alike if cell.scheme == "http" and not cell.once)


@pytest.mark.muybridge_paid_requests  # as in test_cells.py
@pytest.mark.parametrize(
    ("variant", "name", "operation", "complaint"),
    [
        ("naive retry", "closed instead of a reply", "create", "accepted twice"),
        ("naive retry", "reset instead of a reply", "batch", "accepted twice"),
        ("naive retry", "reset in the request", "create", "sent again"),
        ("naive retry", "closed instead of a reply", "text stream", "accepted twice"),
        ("retry of time-outs", "silence", "text", "accepted twice"),
        ("retry of time-outs", "silence", "messages stream", "accepted twice"),
        ("exception classes", "closed instead of a reply", "create", "accepted twice"),
        ("exception classes", "reset instead of a reply", "call", "accepted twice"),
        ("exception classes", "cut off", "create", "accepted twice"),
        ("key in the session", "closed while idle", "download", "download host"),
        ("key in the session", "closed while idle", "check", "download host"),
    ],
)
def test_money_and_key(
    variant: str,
    name: str,
    operation: str,
    complaint: str,
    around: Surroundings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cell of the table fails on a transport that pays twice or gives the key away."""
    driver = with_variant(variant)
    if variant == "key in the session":
        driver = _used_before(driver)
    with pytest.raises(AssertionError, match=complaint):
        commit(cell_of(name, operation), driver, around, tmp_path, monkeypatch)


@pytest.mark.parametrize("driver", DRIVERS)
def test_connections(driver: str) -> None:
    """A place that a client connects to is noticed under every driver."""
    with ExitStack() as closing, HostileServer() as server, connections() as reached:
        DRIVERS[driver](closing, None)(server.url).client.get(TASK_ID)
    assert reached == {server.address}


@pytest.mark.parametrize("operation", STREAMED)
@pytest.mark.parametrize("driver", DRIVERS)
def test_streams_that_are_cut_off(
    driver: str,
    operation: str,
    around: Surroundings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cell fails on a client that takes a stream for whole once its connection has ended."""
    monkeypatch.setattr(Ending, "seen", True)
    monkeypatch.setattr(Ending, "certain", True)
    with pytest.raises(AssertionError, match="taken for whole"):
        commit(cell_of("cut off", operation), DRIVERS[driver], around, tmp_path, monkeypatch)


def _used_before(driver: MakeDriver) -> MakeDriver:
    """Return what makes clients that have spoken to the service before."""

    def make(closing: ExitStack, trust: ssl.SSLContext | None) -> MakeDriven:
        def used(url: str, **options: Any) -> Driven:
            driven = driver(closing, trust)(url, **options)
            driven.client.get(TASK_ID)
            return driven

        return used

    return make


def test_every_variant_is_tried() -> None:
    """The variants are those of this module's tests."""
    assert set(VARIANTS) == {
        "naive retry", "retry of time-outs", "exception classes", "key in the session",
        "unbounded content",
    }  # fmt: skip


@pytest.mark.skipif(not RESET.exists(), reason="measures memory by /proc")
def test_memory(nursery: Nursery) -> None:
    """The measure of memory notices a body that is read without a bound."""

    def act(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + b"\r\n" + RECORD)
        peer.send(b" " * (API_GROWTH * 3 // 4))

    with HostileServer(on_request=act, warm=True) as server:
        answer = nursery.run(
            driver="requests", variant="unbounded content", call="create", url=server.url, folder=""
        )
    assert answer["growth"] > API_GROWTH
