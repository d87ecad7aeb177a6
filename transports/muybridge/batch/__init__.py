"""Batches: many requests at once, with a crash-safe store and a contact sheet.

from muybridge import Client, batch

with Client() as client:
    report = batch.run(client, "requests.jsonl", "out")
"""

from __future__ import annotations

from muybridge.batch.events import BatchEvent, Report, What
from muybridge.batch.items.decision_table import (
    Decision,
    ambiguous,
    decide_all,
    decision_table,
)
from muybridge.batch.items.decisions import abandon, adopt, release, resubmit, retry
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.preview import Preview, preview
from muybridge.batch.items.reading import ValidItems, read_items
from muybridge.batch.results.manifest import (
    ManifestRow,
    manifest,
    manifest_lines,
    write_manifest,
)
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.batch.results.reports import status, write_sheet
from muybridge.batch.running.runs import run, run_async, run_trio
from muybridge.batch.running.worker import work, work_async
from muybridge.batch.shared import SharedBatch, SharedReport, shared_status, submit
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.purchases import CannotDecide, Choice, Stage

__all__ = [
    "BatchEvent",
    "CannotDecide",
    "Choice",
    "Decision",
    "Entry",
    "ManifestRow",
    "PlaceUnusable",
    "Preview",
    "Report",
    "SharedBatch",
    "SharedReport",
    "Stage",
    "StoreUnusable",
    "ValidItems",
    "What",
    "abandon",
    "adopt",
    "ambiguous",
    "decide_all",
    "decision_table",
    "manifest",
    "manifest_lines",
    "preview",
    "read_items",
    "release",
    "resubmit",
    "retry",
    "run",
    "run_async",
    "run_trio",
    "shared_status",
    "status",
    "submit",
    "work",
    "work_async",
    "write_manifest",
    "write_sheet",
]
