"""The store fails while responses are in hand: none is lost, and nothing more is sent."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge.batch import Stage, StoreUnusable

from .billing import BillingServer, Fault
from .conftest import Run
from .runner_process import horses


class Holder:
    """Another program, which locks the store at a moment of the test's choice."""

    def __init__(self, path: Path, place: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._held = False
        self._db = sqlite3.connect(place, isolation_level=None, check_same_thread=False)

    def hold(self, *_: Any) -> None:
        """Lock it, once, until `close`."""
        with self._guard:
            if not self._held:
                self._db.execute("ATTACH ? AS batch", (str(self._path),))
                self._db.execute("BEGIN EXCLUSIVE")
                self._held = True

    def close(self) -> None:
        """Let it be used again."""
        with self._guard:
            self._db.close()


def _meet(barrier: threading.Barrier) -> None:
    barrier.wait(30)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    holding = Holder(tmp_path / "out" / "state" / "store.sqlite3", tmp_path / "other.sqlite3")
    yield holding
    holding.close()


def left(folder: Path) -> list[str]:
    """Return the kinds of files of runners that stand beside the store."""
    found = sorted(path.name.partition("-")[0] for path in (folder / "out" / "state").iterdir())
    return [name for name in found if name in ("response", "runner")]


def test_several_responses_at_once(
    server: BillingServer, run: Run, holder: Holder, tmp_path: Path
) -> None:
    """Three responses that find the store locked are kept, and nothing more is sent."""
    met = threading.Barrier(3, action=holder.hold)
    server.on_create = lambda _: _meet(met)
    with pytest.raises(StoreUnusable, match="Other processes are writing") as raised:
        run(server, horses(6), concurrency=3, patience=0.1)
    assert "the next run reads them" in " ".join(raised.value.__notes__)
    assert server.posts == 3
    assert left(tmp_path) == ["response", "response", "response", "runner"]
    holder.close()
    server.on_create = lambda _: None
    assert run(server, None).counts == {Stage.DOWNLOADED: 6}
    assert (server.posts, server.doubles, left(tmp_path)) == (6, [], ["runner"])


@pytest.mark.parametrize("moment", ["response kept", "verdict recorded"])
def test_before_and_after_each_entry(
    moment: str,
    server: BillingServer,
    run: Run,
    holder: Holder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever the store fails between a response and its verdict, the next run has the id."""
    with monkeypatch.context() as patched:
        moments.at(moment).strike(holder.hold, put=patched.setattr)
        with pytest.raises(StoreUnusable, match="Other processes are writing"):
            run(server, horses(3), concurrency=1, patience=0.1)
    assert server.posts == 1
    assert left(tmp_path) == ["response", "runner"]
    holder.close()
    assert run(server, None).counts == {Stage.DOWNLOADED: 3}
    assert (server.posts, server.doubles, left(tmp_path)) == (3, [], ["runner"])


def test_a_part_of_a_response(run: Run, holder: Holder, tmp_path: Path) -> None:
    """What had arrived of a response is kept too: the item is ambiguous, and its id is shown."""
    with BillingServer(lambda _: Fault.ACCEPTED_CUT) as server:
        server.cut = -5
        server.on_create = holder.hold
        with pytest.raises(StoreUnusable, match="Other processes are writing"):
            run(server, horses(2), concurrency=1, patience=0.1)
        assert (server.posts, left(tmp_path)) == (1, ["response", "runner"])
        holder.close()
        report = run(server, None, concurrency=1)
        assert report.counts == {Stage.AMBIGUOUS: 2}
        assert report.entries[0].candidate == server.accepted["horse 1"][0]
        assert (server.posts, server.doubles) == (2, [])


def test_nothing_can_be_written_any_more(
    server: BillingServer, run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not even the side files take them, the error has every response, with its id."""
    met = threading.Barrier(2, action=holder.hold)
    server.on_create = lambda _: _meet(met)

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(*moments.at("response kept").place, full)
    with pytest.raises(StoreUnusable) as raised:
        run(server, horses(4), concurrency=2, patience=0.1)
    notes = " ".join(raised.value.__notes__)
    assert server.posts == 2
    for number in (1, 2):
        assert f"item {number} (h{number}) (task {server.accepted[f'horse {number}'][0]})" in notes
    holder.close()
    server.on_create = lambda _: None
    report = run(server, None)
    assert report.counts == {Stage.AMBIGUOUS: 2, Stage.DOWNLOADED: 2}
    assert server.posts == 4


def test_a_side_file_that_cannot_be_read_stops_the_run(
    server: BillingServer, run: Run, holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A side file that may hold a paid id is not passed over: nothing is sent before it is read."""
    server.on_create = holder.hold
    with pytest.raises(StoreUnusable):
        run(server, horses(2), concurrency=1, patience=0.1)
    holder.close()
    server.on_create = lambda _: None
    read_bytes = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name.startswith("response-"):
            raise PermissionError(13, os.strerror(13))
        return read_bytes(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refused)
        with pytest.raises(StoreUnusable, match="may hold the response to a paid request"):
            run(server, None)
    assert (server.posts, left(tmp_path)) == (1, ["response", "runner"])
    assert run(server, None).counts == {Stage.DOWNLOADED: 2}
    assert (server.posts, server.doubles) == (2, [])
