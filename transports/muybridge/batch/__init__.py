"""Batches: many requests, a journal that survives whatever stops the process, and a contact sheet.

from muybridge import Client, batch

with Client() as client:
    report = batch.run(client, "requests.jsonl", "out")
"""

from muybridge.batch.events import BatchEvent, Report, What
from muybridge.batch.items import BatchProblem, InvalidBatch, read_items
from muybridge.batch.resolving import CannotResolve, abandon, adopt, resubmit
from muybridge.batch.runner import WrongService, run, status
from muybridge.journal_entries import Entry, State
from muybridge.journal_errors import JournalMissing, JournalUnusable

__all__ = [
    "BatchEvent",
    "BatchProblem",
    "CannotResolve",
    "Entry",
    "InvalidBatch",
    "JournalMissing",
    "JournalUnusable",
    "Report",
    "State",
    "What",
    "WrongService",
    "abandon",
    "adopt",
    "read_items",
    "resubmit",
    "run",
    "status",
]
