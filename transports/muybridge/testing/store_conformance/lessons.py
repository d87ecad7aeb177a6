"""What a failed check teaches, and what a database may declare that it does not do or show."""

from __future__ import annotations

from typing import ClassVar, Final

import attrs

from muybridge.testing.conformance.lessons import Lesson


@attrs.frozen(kw_only=True)
class StoreCapabilities:
    """What a database does or shows beyond the rules for every database.

    Whatever is declared False is still checked: the check is reported as an expected failure, "not
    shown", and fails if the database does it after all. So a declaration is never out of date.

    Args:
        shows_syncs: The process that commits writes and syncs the database's files itself, so that
            `strace` shows that they are on the disk before anything is sent. If not, the kit cannot
            show whether a commit survives a power cut: that is the server's job.
        notices_copies_later: A process that begins after an older copy was put in place notices it,
            if it runs on the machine that has used the newer one (`Database.seen`). If not, only
            processes that were running notice it.
        undoes_tables: A transaction that fails also undoes what it has done to tables. If not, an
            upgrade that fails leaves the tables between two versions: restore a copy then.
    """

    subject: ClassVar[str] = "database"
    otherwise: ClassVar[str] = "not shown"

    shows_syncs: bool = True
    notices_copies_later: bool = True
    undoes_tables: bool = True


SMOKE: Final = Lesson(
    "a database that does not keep one purchase fails every check, for reasons that have nothing "
    "to do with them",
    "the whole of it: `exists`, `create`, `transaction`, and `run` of Rows",
)
DURABLE: Final = Lesson(
    "what was paid for is forgotten when a process is killed, and is paid for again",
    "`transaction`: it is durable when its context ends, for every process that opens the database",
)
SYNCED: Final = Lesson(
    "what was paid for is forgotten after a power cut, and is paid for again",
    "the end of `transaction`: fsync the files, and the folder if names in it have changed",
)
WHOLE: Final = Lesson(
    "what the store reads is not what was paid for",
    "the types of columns, the words `real` and `bytes`, and how values are bound and returned",
)
BYTES: Final = Lesson(
    "a request is taken for another one with a similar name, and its result for the wrong one; or "
    "a budget counts what another tag has spent",
    "the collation of text columns: compare byte by byte, and pad nothing",
)
CONFLICT: Final = Lesson(
    "two purchases that meet are reported as a failure of the database",
    "where errors of the driver are turned into `Conflict`: unique indexes and deadlocks",
)
UNUSABLE: Final = Lesson(
    "callers do not know the driver's errors: they do not learn that nothing was sent",
    "where errors of the driver are turned into StoreUnusable: in every method",
)
COUNTED: Final = Lesson(
    "the store takes a purchase that exists for a new one, and deletes it",
    "`change`: how many rows a statement has inserted, changed or deleted; 0 if it did nothing",
)
CLOCK: Final = Lesson(
    "an owner that has waited for a lock believes in its lease, while another one has its items",
    "the word `now`: the time when it is evaluated, with fractions, not when the transaction began",
)
ONE_STORE: Final = Lesson(
    "two processes that begin at once have two stores, and each pays for what the other has bought",
    "`create`: all tables or none, and only if there are none yet, whoever else creates them",
)
NAMES: Final = Lesson(
    "a request is paid for twice under one name",
    "`Conflict` for what violates a unique index, and transactions that see what others confirmed",
)
BUDGETS: Final = Lesson(
    "several processes together spend more than the budget",
    "`hold`: until the transaction ends, nobody else has the tag, or only as shared",
)
TASKS: Final = Lesson(
    "two purchases have one task, so that one of them is never asked about",
    "`Conflict` for what violates a unique index",
)
ITEMS: Final = Lesson(
    "two processes send the request of one item",
    "the words `for_update` and `skip_locked`, and transactions that see what others confirmed",
)
UNDONE: Final = Lesson(
    "what was not sent stays reserved, or what was sent is released",
    "`transaction`: if its block raises or its process dies, nothing of it is written, and its "
    "locks are free",
)
FRESH: Final = Lesson(
    "an older copy of the database goes unnoticed: what it does not know is paid for again",
    "`run`: each transaction reads the database itself, and nothing that was kept; `seen`",
)
ALIVE: Final = Lesson(
    "a person sends a request again while its sender is still sending it: it is paid for twice",
    "`leases` and the word `now`; or `lives`: the lock of a process that lives is never free",
)
BURIED: Final = Lesson(
    "nobody can ever decide about what a dead process was sending, and its name is never free",
    "`leases` and the word `now`; or `lives`: the lock of a process that has ended is free",
)
APART: Final = Lesson(
    "what a worker leaves when it ends is taken for that of a client which is still sending",
    "`another`: the same database, with connections or a lock of its own, and another owner",
)
FORKED: Final = Lesson(
    "a forked child uses its parent's connection, or is taken for its parent when it has died",
    "os.register_at_fork: leave connections and locks to the parent, and be another owner",
)
AT_ONCE: Final = Lesson(
    "a user sees an error only because others use the store at the same moment",
    "`Conflict` for deadlocks and for what violates a unique index; the order of locks in `hold`",
)
