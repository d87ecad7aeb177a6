"""The journal of a batch on one machine, in SQLite."""

from __future__ import annotations

from muybridge.batch.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
