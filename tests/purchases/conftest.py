from __future__ import annotations

from batch.fixtures import postgres, server

from .fixtures import place, store

__all__ = ["place", "postgres", "server", "store"]
