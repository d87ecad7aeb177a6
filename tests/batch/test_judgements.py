"""A task belongs to one item, whatever the service says and people copy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from muybridge_protocol.errors import LocalError

from .begun import begun, lost
from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .runner_process import horses


def _one_id(_: str, kind: str, record: dict[str, Any]) -> bytes:
    return json.dumps(record | ({"id": "task-7"} if kind == "create" else {})).encode()


def _check_one_id(report: batch.Report | batch.SharedReport, server: BillingServer) -> None:
    assert report.counts == {Stage.AMBIGUOUS: 2, Stage.DOWNLOADED: 1}
    assert server.posts == 3
    (done,) = (entry for entry in report.entries if entry.state is Stage.DOWNLOADED)
    assert done.task_id == "task-7"
    for entry in report.ambiguous:
        assert entry.candidate == "task-7"
        assert "the service gave it task task-7, which purchase" in (entry.reason or "")
        assert f"(item {done.number} of the batch " in (entry.reason or "")


def test_a_service_gives_one_id_to_several_creates(run: Run, server: BillingServer) -> None:
    """The task is the first one's; the others are ambiguous, and their person is told why."""
    server.write = _one_id
    server.accept("horse 1", "task-7")
    told: list[str] = []

    def noting(event: batch.BatchEvent) -> None:
        told.append(event.what)

    report = run(server, horses(3), on_event=noting)
    _check_one_id(report, server)
    assert (told.count("downloaded"), told.count("ambiguous")) == (1, 2)
    _check_one_id(run(server, None), server)


def test_a_service_gives_one_id_to_several_items_of_a_database(
    work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """It is the same for workers, and across the batches of a database."""
    server.write = _one_id
    server.accept("horse 1", "task-7")
    submit(server, shared, 3)
    _check_one_id(work(server, shared), server)
    other = SharedBatch(str(shared.store), "mules")
    submit(server, other, 1)
    (entry,) = work(server, other).ambiguous
    assert "of the batch horses) has" in (entry.reason or "")


def test_an_id_with_blanks_around_it(tmp_path: Path) -> None:
    """A blank that was copied with an id is not taken for a part of it."""
    lost(begun(tmp_path), 1)
    for wrong in ("task-of-1 ", " task-of-1", "task-of-1\N{NO-BREAK SPACE}"):
        with pytest.raises(LocalError, match="begins or ends with a blank"):
            batch.adopt(tmp_path, 1, wrong)
    assert batch.adopt(tmp_path, 1, "task-of-1").task_id == "task-of-1"
    assert batch.status(tmp_path).counts == {Stage.SUBMITTED: 1}
