from __future__ import annotations

from batch.fixtures import postgres

from .fixtures import place, store

__all__ = ["place", "postgres", "store"]
