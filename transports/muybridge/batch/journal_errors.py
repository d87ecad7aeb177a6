"""Errors of a journal, whose messages say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from muybridge.files.sqlite import said_by
from muybridge.signals import genuine
from muybridge_protocol.errors import MuybridgeError
from muybridge_protocol.remedies import Charged


class JournalUnusable(MuybridgeError):
    """The journal cannot be read or written, so nothing is sent. The message says why."""

    _charged: ClassVar[Charged | None] = "perhaps"  # earlier items may have been sent


class JournalAway(JournalUnusable):
    """The journal's database cannot be reached at the moment."""


class JournalOutdated(JournalUnusable):
    """The journal lacks what was recorded in it: it is an older copy of itself, or a new one."""


class JournalMissing(JournalUnusable):
    """There is no journal in the folder."""

    _charged: ClassVar[Charged | None] = "no"


class Unstorable(MuybridgeError):
    """A value of one item cannot be recorded. The journal and the other items are unaffected."""


class ClaimLost(MuybridgeError):
    """An item is not in the expected state, or belongs to another runner."""


class StillSending(ClaimLost):
    """An item cannot be sent again yet, because its create may still be under way."""


class TaskTaken(MuybridgeError):
    """A task belongs to another item, so that it cannot be this one's."""


class OverBudget(MuybridgeError):
    """An item does not fit into the budget of its batch. The message names the limit."""


class UnknownAmount(OverBudget):
    """The budget limits something of which nobody knows how much the item needs."""


DAMAGED: Final = (
    "Nothing more is sent. Repair it if you can, or look in your account for the batch's tasks. A "
    "copy does not know what was paid for since it was made, and a new batch knows nothing: they "
    "would pay for it again."
)
"""What to do about a journal that cannot be trusted."""


OUTDATED: Final = (
    "{name} lacks what this process has recorded: an older copy has taken its place. Nothing more "
    "is sent. Put the latest one back. What it lacks is in your account alone: the older copy "
    "would pay for it again."
)
REPLACED: Final = (
    "{name} was removed or replaced while it was in use. Nothing more is sent. Put the latest one "
    "back. An older copy does not know what was paid for since it was made, and a new batch knows "
    "nothing: they would pay for it again."
)
_OLDER_THAN: Final = (
    "{name} lacks what {file} belongs to: it is an older copy, or a new journal. Nothing more is "
    "sent. Put the latest one back. If there is none, look in your account for the tasks that it "
    "lacks, because it would pay for them again; remove that file to use this journal all the same."
)


def older_than(file: Path, name: str) -> JournalOutdated:
    """Return the error that the journal *name* does not know what *file* beside it is about."""
    return JournalOutdated(_OLDER_THAN.format(name=name, file=file))


@contextmanager
def unusable(path: Path, advice: str) -> Generator[None, None, None]:
    """Turn a fault of the disk in the block into a `JournalUnusable` that ends with *advice*."""
    try:
        yield
    except genuine(OSError) as error:
        raise JournalUnusable(f"{path}: {error.strerror or error}. {advice}") from error


def sentence(path: Path, error: OSError | sqlite3.Error) -> str:
    """Describe what is wrong with the file at *path*, and what to do."""
    return f"{path}: {said_by(error, _ADVICE, 'Nothing more is sent.')}"


_WRITABLE = "Nothing more is sent. Make the file and its folder writable, then run again."
_ADVICE: Final = {
    "locked": "Another process is writing to it; run the batch again when that one has ended.",
    "readonly": _WRITABLE,
    "unable to open": _WRITABLE,
    "Permission": "Nothing more is sent. Make the folder writable, then run again.",
    "Read-only": "Nothing more is sent. Make the folder writable, then run again.",
    "not permitted": "Nothing more is sent. Use a folder on a disk that supports hard links.",
    "not supported": "Nothing more is sent. Use a folder on a disk that supports hard links.",
    "full": "Make room on the disk, then run again.",
    "space": "Make room on the disk, then run again.",
    "quota": "Make room on the disk, then run again.",
    "cross-device": "Nothing more is sent. Use a spool on the disk that the results go to.",
    "disk I/O": "Make room on the disk and see that it works, then run again.",
    "malformed": DAMAGED,
    "not a database": DAMAGED,
}
