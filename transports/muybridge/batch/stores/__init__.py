"""Where the results of a batch go: a folder, or a bucket of S3."""

from __future__ import annotations

from muybridge.batch.stores.opening import open_store
from muybridge.batch.stores.places import WrongPlace
from muybridge.batch.stores.port import PlaceUnusable, Store, Stored

__all__ = ["PlaceUnusable", "Store", "Stored", "WrongPlace", "open_store"]
