"""Sidecars of a batch's results, made from its store alone.

An item counts as downloaded even if its sidecar cannot be written: the result must not be at risk.
So a run first writes the sidecars that earlier runs did not.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.requests import request_of
from muybridge.batch.running.run_state import Run
from muybridge.drivers.runtime import Runtime
from muybridge.files.sidecar import Content, Sidecar, SidecarFailed, has_sidecar, write_sidecar
from muybridge_protocol.purchases import Stage

_AT_ONCE = 100
"""How many items are looked at between two chances to cancel."""


async def catch_up(run: Run, runtime: Runtime) -> None:
    """Write the sidecars that earlier runs did not write."""
    entries = run.batch.entries()
    folder = run.folder
    while page := list(islice(entries, _AT_ONCE)):
        for entry, failure in await runtime.in_thread(
            partial(_write_missing, run.batch, page, folder)
        ):
            report_missing(run, entry, failure)
        await runtime.checkpoint()


def report_missing(run: Run, entry: Entry, failure: SidecarFailed) -> None:
    """Report that the sidecar of *entry* is left to a later run."""
    run.without_sidecar += 1
    run.postpone(entry, failure.what())


def write_sidecar_of(batch: Batch, entry: Entry, folder: Path) -> SidecarFailed | None:
    """Write the sidecar of *entry*, which is downloaded, and return why that failed, or None.

    Args:
        batch: The batch.
        entry: The item, as it is in the store.
        folder: The batch's folder.
    """
    if entry.path is None or entry.size is None or entry.sha256 is None:
        return None
    about = Sidecar(request=request_of(entry), tags=batch.tags_of(entry))
    content = Content(entry.size, entry.sha256)
    try:
        write_sidecar(folder / entry.path, entry.task, about, content)
    except SidecarFailed as failure:
        return failure
    return None


def _write_missing(
    batch: Batch, entries: list[Entry], folder: Path
) -> list[tuple[Entry, SidecarFailed]]:
    """Write the sidecars of downloaded items that have none, and return what failed."""
    failures: list[tuple[Entry, SidecarFailed]] = []
    for entry in entries:
        if entry.state is not Stage.DOWNLOADED or entry.path is None or entry.sha256 is None:
            continue
        path = folder / entry.path
        if has_sidecar(path, entry.sha256) or not path.exists():  # a result may have been removed
            continue
        failure = write_sidecar_of(batch, entry, folder)
        if failure is not None:
            failures.append((entry, failure))
    return failures
