"""Interrupted batches: the store says what the driver knows, under both runners."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

import moments
from client.alarms import (
    ERRORS,
    NAMES,
    Late,
    LateAtAll,
    LateTimeout,
    alarm_in,
    alarm_raises,
    notes,
    posix,
)
from moments import Moment
from muybridge import AsyncClient, Client, TrioClient, batch
from muybridge.batch import Stage
from muybridge.drivers.notes import NOT_SENT, UNDER_WAY

from .billing import BillingServer
from .runner_process import KEY, horses


@pytest.fixture
def server() -> Iterator[BillingServer]:
    with BillingServer() as serving:
        yield serving


def states(out: Path) -> dict[Stage, int]:
    return dict(batch.status(out).counts)


@pytest.fixture(params=["requests", "trio", "asyncio"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], batch.Report]:
    """Run a batch in the folder `out`, under the driver under test."""

    def go(url: str) -> batch.Report:
        with Client(KEY, url, poll_interval=0.005) as client:
            return batch.run(client, horses(3), tmp_path / "out", concurrency=1)

    async def go_async(url: str) -> batch.Report:
        async with AsyncClient(KEY, url, poll_interval=0.005) as client:
            return await batch.run_async(client, horses(3), tmp_path / "out", concurrency=1)

    runs: dict[str, Callable[[str], batch.Report]] = {
        "requests": go,
        "trio": lambda url: trio.run(go_async, url),
        "asyncio": lambda url: asyncio.run(go_async(url)),
    }
    return runs[request.param]


PLACES: dict[str, list[Moment]] = {
    "before": [moments.at("preparation")],
    "after": [moments.at("no response yet", "requests"), moments.at("bytes from a socket")],
}


@pytest.mark.parametrize("kind", [TypeError, KeyError, AssertionError, SystemExit])
@pytest.mark.parametrize("place", PLACES)
def test_a_defect(
    server: BillingServer,
    run: Callable[[str], batch.Report],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    kind: type[BaseException],
) -> None:
    """A defect ends the run as itself: what was not sent is queued, and the rest is ambiguous."""

    def broken(*_: object, **__: object) -> Any:
        raise kind("a defect")

    for moment in PLACES[place]:
        monkeypatch.setattr(*moment.place, broken)
    with pytest.raises(kind, match="a defect") as caught:
        run(server.url)
    lost = {} if place == "before" else {Stage.AMBIGUOUS: 1}
    queued = 3 - len(lost)
    assert states(tmp_path / "out") == {**lost, Stage.QUEUED: queued}
    assert (NOT_SENT if place == "before" else UNDER_WAY) in notes(caught.value)
    assert "network" not in notes(caught.value)
    assert server.posts <= (place == "after")
    monkeypatch.undo()
    assert dict(run(server.url).counts) == {**lost, Stage.DOWNLOADED: queued}
    assert server.doubles == []


@posix
@pytest.mark.parametrize("make", ERRORS, ids=NAMES)
def test_a_signal_handler_under_trio(
    server: BillingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], BaseException],
) -> None:
    """What a signal handler raises in a worker ends the run as itself; its item is ambiguous."""
    error, out = make(), tmp_path / "out"
    alarm_in(monkeypatch, moments.at("no response yet", "trio"))

    async def work() -> None:
        async with TrioClient(KEY, server.url, poll_interval=0.005) as client:
            await batch.run_trio(client, horses(3), out, concurrency=1)

    with alarm_raises(error), pytest.raises(type(error)) as caught:
        trio.run(work)
    assert caught.value is error
    assert UNDER_WAY in notes(error)
    assert states(out) == {Stage.AMBIGUOUS: 1, Stage.QUEUED: 2}
    (ambiguous,) = batch.status(out).ambiguous
    assert type(error).__name__ in (ambiguous.reason or "")
    assert server.posts <= 1


def test_what_a_store_says_besides(
    server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails while a defect is written down does not hide the defect."""

    def broken(*_: object, **__: object) -> Any:
        raise TypeError("a defect")

    def full(*_: object, **__: object) -> Any:
        raise batch.StoreUnusable("the disk is full")

    monkeypatch.setattr(*moments.at("no response yet", "requests").place, broken)
    monkeypatch.setattr(*moments.at("verdict recorded").place, full)
    with Client(KEY, server.url) as client, pytest.raises(TypeError) as caught:
        batch.run(client, horses(1), tmp_path / "out")
    assert "the disk is full" in notes(caught.value)
    assert states(tmp_path / "out") == {Stage.AMBIGUOUS: 1}
    assert json.loads(batch.status(tmp_path / "out").entries[0].body)["prompt"] == "horse 1"


@posix
def test_two_signals_at_once(server: BillingServer, tmp_path: Path) -> None:
    """Of two signals that arrive at once, what one of the handlers has raised comes out."""
    first, second = LateAtAll("first"), LateAtAll("second")

    def strike(event: batch.BatchEvent) -> None:
        if event.what is batch.What.SUBMITTED:
            for number in (signal.SIGALRM, signal.SIGUSR1):  # both before either is handled
                os.kill(os.getpid(), number)

    def handler(_number: int, _frame: object) -> None:
        raise second

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with (
            Client(KEY, server.url, poll_interval=0.005) as client,
            alarm_raises(first),
            pytest.raises(LateAtAll) as caught,
        ):
            batch.run(client, horses(1), tmp_path / "out", on_event=strike)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert caught.value in (first, second)


def test_interrupted_as_it_starts(
    server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paid requests are waited for, too, if Ctrl-C comes while the work is being started."""
    asked, go_on = threading.Event(), threading.Event()
    start_team = moments.at("team of threads started")
    original = start_team.value

    def wait(_: str) -> None:
        asked.set()
        go_on.wait(20)

    def told(_: str) -> None:
        go_on.set()

    def start(team: object, work: Callable[[], Any], *, paid: bool = False) -> None:
        original(team, work, paid=paid)
        if threading.current_thread() is threading.main_thread():
            asked.wait(20)
            raise KeyboardInterrupt

    server.on_create = wait
    monkeypatch.setattr(*moments.at("wait for paid requests announced").place, told)
    monkeypatch.setattr(*start_team.place, start)
    try:
        with Client(KEY, server.url) as client, pytest.raises(KeyboardInterrupt):
            batch.run(client, horses(3), tmp_path / "out", concurrency=1)
    finally:
        go_on.set()
    assert states(tmp_path / "out") == {Stage.SUBMITTED: 1, Stage.QUEUED: 2}


@posix
@pytest.mark.parametrize("make", [Late, LateTimeout, LateAtAll])
@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("store linked", None),
        ("runner locked", {Stage.QUEUED: 3}),
        ("sheet written", {Stage.DOWNLOADED: 3}),
    ],
)
def test_a_signal_handler_while_the_disk_is_used(
    server: BillingServer,
    run: Callable[[str], batch.Report],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: type[BaseException],
    moment: str,
    left: dict[Stage, int] | None,
) -> None:
    """What a signal handler raises is not taken for a fault of the disk, nor ignored."""
    error = make("time is up")
    alarm_in(monkeypatch, moments.at(moment))
    with alarm_raises(error), pytest.raises(make) as caught:
        run(server.url)
    assert caught.value is error
    if left is None:
        with pytest.raises(batch.StoreUnusable):
            states(tmp_path / "out")
    else:
        assert states(tmp_path / "out") == left


@posix
@pytest.mark.parametrize("make", [Late, LateTimeout, LateAtAll])
def test_a_signal_handler_between_steps_under_trio(
    server: BillingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: type[BaseException],
) -> None:
    """What a signal handler raises between two steps of an item ends the run as itself."""
    error, out = make("time is up"), tmp_path / "out"
    alarm_in(monkeypatch, moments.at("side file emptied"))  # once a task has its id

    async def work() -> None:
        async with TrioClient(KEY, server.url, poll_interval=0.005) as client:
            await batch.run_trio(client, horses(3), out, concurrency=1)

    with alarm_raises(error), pytest.raises(make) as caught:
        trio.run(work)
    assert caught.value is error
    assert states(out) == {Stage.SUBMITTED: 1, Stage.QUEUED: 2}
