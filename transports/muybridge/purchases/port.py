"""What a store of purchases needs from a database. Its statements and rules are not here.

A database gives transactions, in which statements are executed, and says who is alive. A statement
names its values as `:name`. A word in braces stands for one of the few words in which databases
differ (`WORDS`); each database has its own for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, Self

import attrs

WORDS: Final = frozenset({"now", "real", "bytes", "for_update", "for_share", "skip_locked"})
"""The words of every database.

- `now`: the database's clock, in Unix seconds with fractions. All machines share it.
- `real`: the type of a number of 64 bits with fractions; `bytes`: that of bytes.
- `for_update`, `for_share`, `skip_locked`: what makes a SELECT lock the rows that it returns, the
  last one without those that others have locked; empty if nobody else writes meanwhile.
"""


class Conflict(Exception):
    """Two transactions were in each other's way, and this one was undone. It can be repeated."""


@attrs.frozen
class Mark:
    """A purchase that was committed: a store that lacks it is an older copy.

    Args:
        salt: The salt of the store.
        key: The purchase's key.
        armed_at: When it was armed.
    """

    salt: str
    key: str
    armed_at: float


class Rows(Protocol):
    """A transaction. It must not be used once its context has ended, or by two threads."""

    is_ending: bool
    """Whether its end has begun. If that fails, nobody knows whether it was committed."""

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows, if it is one that has rows.

        Raises:
            Conflict: It violates a unique index, or waits for somebody who waits for us.
            StoreUnusable: Anything else.
        """
        ...

    def change(self, statement: str, **values: Any) -> int:
        """Execute a statement, and return how many rows it has changed.

        Raises:
            Conflict: As `run`.
            StoreUnusable: As `run`.
        """
        ...

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement with one set of values after the other, as fast as possible.

        Raises:
            Conflict: As `run`.
            StoreUnusable: As `run`.
        """
        ...

    def hold(self, tags: Sequence[str], *, shared: Sequence[str] = ()) -> None:
        """Wait until nobody else holds *tags*, and hold them until the transaction ends.

        Args:
            tags: Nobody else may hold them meanwhile.
            shared: These, others may hold as shared too.
        """
        ...


class Database(Protocol):
    """Keeps what a transaction has written, whatever happens. Safe to use from many threads."""

    @property
    def place(self) -> str:
        """Where it is, as `open_store` takes it, but without a password."""
        ...

    @property
    def leases(self) -> bool:
        """Whether owners live on leases, by its clock. If not, they hold locks (`lives`)."""
        ...

    @property
    def parts(self) -> int:
        """Into how many rows a sum is divided, so that writers seldom wait for each other."""
        ...

    def exists(self) -> bool:
        """Whether its tables exist.

        Raises:
            StoreUnusable: It cannot be read.
        """
        ...

    def create(self, statements: Sequence[str], salt: str) -> None:
        """Create the tables, all or none of them, unless they exist.

        Args:
            statements: What creates them. The values of the last one are `salt`.
            salt: Random text that belongs to this store alone.

        Raises:
            StoreUnusable: It cannot be written.
        """
        ...

    def transaction(self, *, waited: float = 0.0) -> AbstractContextManager[Rows]:
        """Begin a transaction. It is durable when the context ends without an error.

        It sees what every earlier one has confirmed, from any process and machine.

        Args:
            waited: The seconds for which the callers have waited already.

        Raises:
            Conflict: It was undone, and can be repeated.
            StoreUnusable: It was undone; unless it `is_ending`.
        """
        ...

    def reading(self) -> AbstractContextManager[Rows]:
        """Begin to read. Nothing is locked, and nothing may be written.

        Raises:
            StoreUnusable: It cannot be read.
        """
        ...

    def owner(self) -> str:
        """Return the name of this process as an owner: a new one after a fork.

        Without leases, it holds an operating system lock from now on, until the process has ended.
        """
        ...

    def another(self) -> Self:
        """Return the same database for another owner, with connections or a lock of its own."""
        ...

    def lives(self, owner: str) -> bool:
        """Whether *owner* holds its lock. Asked only of a database without leases."""
        ...

    def seen(self) -> Mark | None:
        """Return the last purchase that this machine has seen in the database.

        It makes an older copy noticed that is put in place while no process runs. None if nothing
        is known.
        """
        ...

    def note_seen(self, mark: Mark) -> None:
        """Remember a purchase for `seen`. It is durable already."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
