"""Where the results of a batch go: a folder, or a bucket of S3."""

from __future__ import annotations

from muybridge.batch.results.places.opening import open_store
from muybridge.batch.results.places.port import PlaceUnusable, Store, Stored

__all__ = ["PlaceUnusable", "Store", "Stored", "open_store"]
