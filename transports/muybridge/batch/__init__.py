"""Batches: many requests at once, with a crash-safe journal and a contact sheet.

from muybridge import Client, batch

with Client() as client:
    report = batch.run(client, "requests.jsonl", "out")
"""

from __future__ import annotations

from muybridge.batch.decisions.items import CannotResolve, Choice, abandon, adopt, resubmit
from muybridge.batch.decisions.table import (
    Decision,
    InvalidDecisions,
    ambiguous,
    decision_table,
    resolve_all,
)
from muybridge.batch.events import BatchEvent, Report, What
from muybridge.batch.items import BatchProblem, InvalidBatch, read_items
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import JournalMissing, JournalUnusable
from muybridge.batch.opening import WrongService
from muybridge.batch.preflight import Preview, preview
from muybridge.batch.results.manifest import (
    ManifestRow,
    manifest,
    manifest_lines,
    write_manifest,
)
from muybridge.batch.results.places.names import WrongPlace
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.batch.results.reports import status, write_sheet
from muybridge.batch.run_batch import run, run_async, run_trio
from muybridge.batch.shared import SharedBatch, SharedReport, shared_status, submit
from muybridge.batch.worker import work, work_async

__all__ = [
    "BatchEvent",
    "BatchProblem",
    "CannotResolve",
    "Choice",
    "Decision",
    "Entry",
    "InvalidBatch",
    "InvalidDecisions",
    "JournalMissing",
    "JournalUnusable",
    "ManifestRow",
    "PlaceUnusable",
    "Preview",
    "Report",
    "SharedBatch",
    "SharedReport",
    "State",
    "What",
    "WrongPlace",
    "WrongService",
    "abandon",
    "adopt",
    "ambiguous",
    "decision_table",
    "manifest",
    "manifest_lines",
    "preview",
    "read_items",
    "resolve_all",
    "resubmit",
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
