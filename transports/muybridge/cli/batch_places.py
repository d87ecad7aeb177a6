"""Which batch a command is about: one in a folder, or one in a store."""

from __future__ import annotations

import os
from pathlib import Path

import click

from muybridge.batch import SharedBatch
from muybridge.batch.items.folder import Record
from muybridge.batch.shared import Place
from muybridge.cli.purchase_records import store_words
from muybridge.cli.suggestions import files
from muybridge.purchases.environment import STORE_VARIABLE, default_place

BATCH: click.Argument = click.Argument(["batch"], metavar="BATCH", shell_complete=files)
"""The argument that names a batch."""


def place_of(batch: str, store: str | None) -> Place:
    """Return the batch with a name: in its folder, or else in a store.

    Args:
        batch: Its folder, or its name in the store.
        store: The place of the store that the user names, or None.
    """
    if Record.read(Path(batch)) is not None:
        return batch
    if store is None and not os.environ.get(STORE_VARIABLE):
        return batch
    return SharedBatch(store or default_place(), batch)


def words_of(place: Place) -> tuple[str, ...]:
    """Return the options that name a batch in a command that is shown.

    An address is not shown, because it may have a password.
    """
    if not isinstance(place, SharedBatch):
        return ("--batch", os.fspath(place))
    with place.open_store() as store:
        return (*store_words(store), "--batch", place.name)
