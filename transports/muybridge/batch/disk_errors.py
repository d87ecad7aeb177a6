"""What is wrong with a disk, and what to do about it, in words."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from muybridge.files.sqlite import explained
from muybridge.purchases.errors import StoreUnusable
from muybridge.signals import genuine

_OLDER_THAN: Final = (
    "{name} lacks what {file} belongs to: it is an older copy, or a new store. Nothing more is "
    "sent. Put the latest one back. If there is none, look in your account for the tasks that it "
    "lacks, because it would pay for them again; remove that file to use this store all the same."
)


def older_than(file: Path, name: str) -> StoreUnusable:
    """Return the error that the store *name* does not know what *file* is about."""
    return StoreUnusable(_OLDER_THAN.format(name=name, file=file), lacks="past")


@contextmanager
def unusable(path: Path, advice: str) -> Generator[None, None, None]:
    """Turn a fault of the disk in the block into a `StoreUnusable` that ends with *advice*."""
    try:
        yield
    except genuine(OSError) as error:
        raise StoreUnusable(f"{path}: {error.strerror or error}. {advice}") from error


def sentence(path: Path, error: OSError) -> str:
    """Describe what is wrong with the file at *path*, and what to do."""
    return f"{path}: {explained(error, _ADVICE, 'Nothing more is sent.')}"


_WRITABLE: Final = "Nothing more is sent. Make the folder writable, then run again."
_ROOM: Final = "Make room on the disk, then run again."
_LINKS: Final = "Nothing more is sent. Use a folder on a disk that supports hard links."
_ADVICE: Final = {
    "Permission": _WRITABLE,
    "Read-only": _WRITABLE,
    "not permitted": _LINKS,
    "not supported": _LINKS,
    "full": _ROOM,
    "space": _ROOM,
    "quota": _ROOM,
    "cross-device": "Nothing more is sent. Use a spool on the disk that the results go to.",
}
