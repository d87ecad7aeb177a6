"""The journal of a batch that many machines share, in PostgreSQL."""

from __future__ import annotations

from muybridge.batch.postgres.journal import LEASE, PostgresJournal

__all__ = ["LEASE", "PostgresJournal"]
