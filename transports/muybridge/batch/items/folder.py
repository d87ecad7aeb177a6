"""Which store has the batch of a folder.

A batch is in the store that is given when it begins: to the run, to its client, or by the
environment. If none is, it has a store of its own, a file in its folder. A record in the folder
says which one it is, so the batch never continues in another store, which would not know what was
paid.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Final, Self

import attrs

from muybridge.batch.disk_errors import unusable
from muybridge.batch.items.batch import Batch
from muybridge.files.durable import make_folders, sync_folders, sync_names, write_all
from muybridge.purchases import open_store
from muybridge.purchases.environment import default_place
from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.store import NewItem, Store
from muybridge_protocol.errors import LocalError
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import InvalidJson, read_object

FOLDER: Final = "state"
"""The folder for what a batch keeps besides its results, within the batch's folder."""
STORE: Final = "store.sqlite3"
"""The file of a store of its own."""
PATIENCE: Final = 10.0
"""Seconds to wait for another process that is writing to a store of its own."""
_RECORD: Final = "batch.json"
_LONGEST_NAME: Final = 190
"""Most characters of a folder's name that becomes its batch's: a number may be added."""
_ADVICE: Final = "Nothing was sent. Make the file readable, then run again."
_DAMAGED: Final = (
    "{path} is damaged. Nothing was sent. Put back a copy of it. If {store} is beside it, that has "
    "the batch: you can remove this file, then run again."
)
_GONE: Final = (
    "{place} lacks the batch in {folder}: it was removed, or replaced by another store or an "
    "older copy. Nothing is sent. Put the latest one back. With another one, you could pay twice: "
    "it does not know what was paid since. If the latest one is lost, look in your account for the "
    "batch's tasks, and begin another batch, in another folder."
)


@attrs.frozen
class Record:
    """Which store has the batch of a folder.

    Args:
        store: The place of the store, without a password, or None for one in the folder.
        batch: The number of the batch in it.
        name: The batch's name.
    """

    store: str | None
    batch: int
    name: str

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the record in *folder*, or None if there is none.

        Raises:
            StoreUnusable: It cannot be read.
        """
        path = folder / FOLDER / _RECORD
        with unusable(path, _ADVICE):
            try:
                text = path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
        try:
            facts = read_object(text)
            return cls(facts["store"], int(facts["batch"]), str(facts["name"]))
        except (InvalidJson, LookupError, TypeError, ValueError) as error:
            raise StoreUnusable(_DAMAGED.format(path=path, store=STORE)) from error

    def write(self, folder: Path) -> bool:
        """Write it durably, unless there is one already. Return whether it was written.

        Raises:
            StoreUnusable: It cannot be written.
        """
        place = folder / FOLDER
        path = place / _RECORD
        new = place / f"{_RECORD}.{secrets.token_hex(8)}.new"
        with unusable(path, "Nothing was sent. Make room, or the folder writable, then run again."):
            make_folders(place, mode=0o700)
            sync_names(place)
            try:
                with new.open("xb", buffering=0) as file:
                    text = json.dumps(attributes(self, "store", "batch", "name"))
                    write_all(file, text.encode() + b"\n")
                    os.fsync(file.fileno())
                try:
                    # A link fails where a rename would replace the record of whoever was faster.
                    os.link(new, path)
                except FileExistsError:
                    return False
            finally:
                new.unlink(missing_ok=True)
            sync_folders(place)
        return True


def own_store(folder: Path) -> Path:
    """Return where a batch in *folder* has a store of its own."""
    return folder / FOLDER / STORE


def find_in_folder(
    folder: Path, given: Store | None = None, *, patience: float = PATIENCE
) -> Batch | None:
    """Return the batch in *folder*, or None if there is none.

    Args:
        folder: The folder.
        given: The store that the caller was given, or None.
        patience: Seconds to wait for another process that is writing to a store of its own.

    Raises:
        LocalError: It is in another store than the given one.
        StoreUnusable: Its store cannot be read, or lacks it.
    """
    record = Record.read(folder)
    own = own_store(folder)
    if record is None:
        # Whoever began it may have died before the record was written. Nothing was sent then.
        return Batch.only(_open_own(own, patience)) if own.exists() else None
    if record.store is None:
        if given is not None and given.place != os.path.realpath(own):
            raise LocalError(
                f"The batch in {folder} was begun with a store of its own, {own}, and not in "
                f"{given.place}. Nothing was sent. Run it without a budget and without another "
                "store, or begin another batch in another folder.",
                argument="store",
            )
        if not own.exists():
            raise StoreUnusable(_GONE.format(place=own, folder=folder), lacks="past")
        store = _open_own(own, patience)
    else:
        if given is not None and given.place != record.store:
            raise LocalError(
                f"The batch in {folder} is in the store {record.store}, and not in {given.place}. "
                "Nothing was sent. Use that store, or begin another batch in another folder.",
                argument="store",
            )
        store = given or _open_shared(record.store)
    with ExitStack() as stack:
        if store is not given:
            stack.enter_context(store)
        batch = Batch.find(store, record.batch)
        if batch is None:
            raise StoreUnusable(_GONE.format(place=store.place, folder=folder), lacks="past")
        stack.pop_all()  # the batch closes it
    return batch


def find_batch(folder: Path, given: Store | None = None) -> Batch:
    """Return the batch in *folder*, as `find_in_folder` does.

    Raises:
        LocalError: It is in another store than the given one.
        StoreUnusable: There is no batch, or its store cannot be read or does not contain it.
    """
    batch = find_in_folder(folder, given)
    if batch is None:
        raise StoreUnusable(f"There is no batch in {folder}.", lacks="batch")
    return batch


def begin_in_folder(
    folder: Path,
    given: Store | None,
    items: Iterable[NewItem],
    *,
    service: str,
    patience: float = PATIENCE,
) -> Batch:
    """Begin a batch in *folder*, unless another process has just done so.

    Args:
        folder: The folder.
        given: The store that the caller was given, or None for one in the folder.
        items: Its items.
        service: Where its tasks are.
        patience: Seconds to wait for another process that is writing to a store of its own.

    Raises:
        StoreUnusable: It cannot be recorded.
    """
    if given is None:
        own = own_store(folder)
        with unusable(own, "Nothing was sent. Make the folder writable, then run again."):
            make_folders(own.parent, mode=0o700)
        given, place = _open_own(own, patience), None
    else:
        place = given.place
    begun = _begun(folder, given, items, service, is_own=place is None)
    if Record(place, begun.number, begun.name).write(folder):
        return begun
    # Another process has begun the batch of this folder at the same moment. In a shared store, ours
    # has another name and would stay there for ever.
    if begun.is_new and place is not None:
        begun.forget()
    batch = find_in_folder(folder, None if place is None else given, patience=patience)
    assert batch is not None  # noqa: S101  there is a record
    return batch


def _begun(
    folder: Path, store: Store, items: Iterable[NewItem], service: str, *, is_own: bool
) -> Batch:
    """Begin a batch under a name that no other batch of the store has."""
    wanted = folder.resolve().name.strip()
    if not wanted or len(wanted) > _LONGEST_NAME or not wanted.isprintable():
        wanted = "batch"
    for number in count(1):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if is_own or Batch.find(store, name) is None:
            begun = Batch.begin(store, name, items, service=service)
            if is_own or begun.is_new:
                return begun
    raise AssertionError


def _open_own(path: Path, patience: float) -> Store:
    from muybridge.purchases.sqlite import SqliteDatabase

    return Store(SqliteDatabase(path, patience=patience))


def close(batch: Batch, *, resigns: bool) -> None:
    """Close the store of a batch, which was opened for it alone.

    Args:
        batch: The batch.
        resigns: Whether nothing is being sent any more: what it could not give back is free then.
    """
    from muybridge.purchases.sqlite import SqliteDatabase

    batch.store.close()
    if resigns and isinstance(batch.store.database, SqliteDatabase):
        batch.store.database.resign()


def _open_shared(place: str) -> Store:
    """Open the store at *place*, which says neither who uses a database nor the password.

    If it is where the environment has the store, that says it.
    """
    usual = open_store(default_place())
    return usual if usual.place == place else open_store(place)
