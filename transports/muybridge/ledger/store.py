"""`Store`: where a ledger keeps its entries. The rules are in `muybridge.ledger.ledger`.

A store gives transactions. A transaction sees what every earlier one has confirmed, from whichever
process, and nobody else writes until it ends. So what a transaction reads, it may rely on:

    with store.writing() as rows:
        if rows.spent(since)[Measure.CREATES] < limit:
            rows.put(entry)
    # it is on the disk
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from muybridge.ledger.entries import Entry, State
from muybridge_protocol.purchases import Amounts


class Rows(Protocol):
    """The entries, within a transaction."""

    def spent(self, since: float) -> Amounts:
        """Return the sums of what counts as spent, of the entries from *since* on.

        A sum is None if an amount in it is unknown.

        Args:
            since: The beginning of a day of UTC, in Unix seconds, or minus infinity.
        """
        ...

    def find(self, key: str) -> Entry | None:
        """Return the entry *key*, or None."""
        ...

    def named(self, account: str, once: str) -> Entry | None:
        """Return the entry of *account* that has the name *once*, or None."""
        ...

    def sharing(self, entry: Entry) -> Entry | None:
        """Return another entry of the same account that has the task of *entry*, or None."""
        ...

    def put(self, entry: Entry) -> None:
        """Insert *entry*, or replace the one with its key.

        Raises:
            EntryUnstorable: It has a value that cannot be stored. Nothing was changed, and the
                transaction can go on.
        """
        ...


class Store(Protocol):
    """Keeps the entries of one ledger. Safe to use from many threads and processes."""

    @property
    def place(self) -> str:
        """Where it is, as `open_ledger` takes it."""
        ...

    @property
    def salt(self) -> bytes:
        """Random bytes of this ledger, from which accounts are derived."""
        ...

    @property
    def owner(self) -> str:
        """The name of this store, which holds an operating system lock while it is in use."""
        ...

    def writing(self) -> AbstractContextManager[Rows]:
        """Return a transaction. It is on the disk when the context ends without an error.

        Raises:
            LedgerUnusable: The ledger cannot be read or written.
        """
        ...

    def spent(self, since: float) -> Amounts:
        """Return the same as `Rows.spent`, and write nothing: a missing store is empty.

        Raises:
            LedgerUnusable: The ledger cannot be read.
        """
        ...

    def entries(self, *states: State) -> Iterator[Entry]:
        """Yield the entries in *states*, or all of them, from the oldest on.

        It writes nothing: a missing store is empty.

        Raises:
            LedgerUnusable: The ledger cannot be read.
        """
        ...

    def lives(self, owner: str) -> bool:
        """Whether the store *owner* is in use, in any process."""
        ...
