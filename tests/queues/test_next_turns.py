"""What a turn under Celery does at its end: it queues the next one, or says why it does not."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from batch.billing import BillingServer, Fault
from batch.runner_process import horses
from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.purchases import Budget, StoreUnusable
from muybridge.workers import celery_app
from muybridge_protocol.service import Service

from .workers import KEY

Turn = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch, folder: Path, shared: SharedBatch) -> Turn:
    """Return what takes a turn in this process, and returns the options of the next turns."""
    monkeypatch.setenv("MUYBRIDGE_API_KEY", KEY)
    monkeypatch.setenv("MUYBRIDGE_STORE", str(shared.store))
    monkeypatch.setenv("MUYBRIDGE_OUT", str(folder / "pictures"))
    queued: list[dict[str, Any]] = []

    def queue(arguments: tuple[str, ...], **options: Any) -> None:
        assert arguments == (shared.name,)
        queued.append(options)

    monkeypatch.setattr(celery_app.take_turn, "apply_async", queue)

    def take() -> list[dict[str, Any]]:
        queued.clear()
        celery_app.take_turn(shared.name)
        return queued

    return take


def submit(url: str, shared: SharedBatch, count: int, budget: Budget | None = None) -> None:
    os.environ["MUYBRIDGE_BASE_URL"] = url
    batch.submit(shared, horses(count), Service(base_url=url), budget=budget)


def logged(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Return what the log says about batches at *level*."""
    return [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("muybridge.batch", level)
    ]


def test_the_service_is_unreachable(
    turn: Turn, shared: SharedBatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the service cannot be reached, the next turn follows later, and the log says why."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    submit(url, shared, 3)
    assert turn() == [{"countdown": 60}]
    assert batch.shared_status(shared).counts == {Stage.QUEUED: 3}
    (said,) = logged(caplog, logging.WARNING)
    assert "'horses'" in said
    assert "The request could not be sent" in said
    assert "in 60 s" in said


def test_a_refused_key(turn: Turn, shared: SharedBatch, caplog: pytest.LogCaptureFixture) -> None:
    """If the service refuses the key, a later turn of a worker with a valid one continues."""
    refused = iter([Fault.UNAUTHORIZED] * 4)
    with BillingServer(lambda _: next(refused, Fault.NONE)) as server:
        submit(server.url, shared, 1)
        assert turn() == [{"countdown": 60}]
        assert "with status 401" in caplog.text
        while turn():
            pass
    assert batch.shared_status(shared).counts == {Stage.DOWNLOADED: 1}


def test_a_used_up_budget(
    turn: Turn, server: BillingServer, shared: SharedBatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A used-up budget ends the turns, and the log says how to continue."""
    submit(server.url, shared, 3, Budget(creates=2))
    assert turn() == []
    (said,) = logged(caplog, logging.ERROR)
    assert "of the limit of 2 creates is left" in said
    assert "take_turn.delay('horses')" in said


def test_paid_results_are_fetched_over_budget(
    turn: Turn, server: BillingServer, shared: SharedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a paid task is in progress, a used-up budget does not end the turns."""
    monkeypatch.setenv("MUYBRIDGE_WORKER_TURN", "1")
    server.status = "processing"
    submit(server.url, shared, 3, Budget(creates=2))
    assert turn() == [{"countdown": 0}]
    server.status = "completed"
    monkeypatch.setenv("MUYBRIDGE_WORKER_TURN", "60")
    assert turn() == []
    assert batch.shared_status(shared).counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 2}


def test_results_that_cannot_be_downloaded(
    turn: Turn, server: BillingServer, shared: SharedBatch
) -> None:
    """If results cannot be downloaded, later turns fetch what was paid for."""
    server.media_works = False
    submit(server.url, shared, 2)
    assert turn() == [{"countdown": 60}]
    server.media_works = True
    assert turn() == []
    assert batch.shared_status(shared).counts == {Stage.DOWNLOADED: 2}
    assert server.posts == 2


@pytest.mark.parametrize("kind", [partial(StoreUnusable, away=True), PlaceUnusable])
def test_a_place_that_fails(
    kind: Callable[[str], Exception],
    turn: Turn,
    server: BillingServer,
    shared: SharedBatch,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However often the database or the place for results fails, the next turn is queued."""
    submit(server.url, shared, 1)

    def away(*_: object, **__: object) -> None:
        raise kind("The connection was refused.")

    with monkeypatch.context() as patch:
        patch.setattr(celery_app, "work", away)
        for _ in range(5):
            assert turn() == [{"countdown": 60}]
    assert "Batch 'horses' continues in 60 s: The connection was refused." in caplog.text
    assert turn() == []


def test_a_batch_that_does_not_exist(
    turn: Turn, server: BillingServer, shared: SharedBatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that only a person can fix ends the turns, and the log says how to continue."""
    os.environ["MUYBRIDGE_BASE_URL"] = server.url
    batch.submit(attrs.evolve(shared, name="mules"), horses(1), Service(base_url=server.url))
    with pytest.raises(StoreUnusable, match="There is no batch"):
        turn()
    assert "take_turn.delay('horses')" in caplog.text


def test_a_finished_batch(
    turn: Turn, server: BillingServer, shared: SharedBatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of a turn is logged with the counts, and each failed item with its reason."""
    caplog.set_level(logging.INFO)
    server.status = "failed"
    submit(server.url, shared, 1)
    assert turn() == []
    (failed,) = logged(caplog, logging.WARNING)
    assert failed.startswith("Batch 'horses', item 1 (h1): failed: Task ")
    (ended,) = logged(caplog, logging.INFO)
    assert ended == "Batch 'horses', at the end of a turn: 1 failed"
