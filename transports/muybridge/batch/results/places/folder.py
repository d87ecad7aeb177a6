"""A folder on this machine as the store of a batch's results."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Container
from pathlib import Path
from typing import Final

from muybridge.batch.disk_errors import sentence
from muybridge.batch.results.places.file_names import place, taken_names
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.files.durable import make_folders
from muybridge.signals import genuine, ignoring_errors

_PROBE: Final = 4096
"""Bytes that a disk must have room for."""
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def no_room(error: Exception, folder: Path) -> PlaceUnusable | None:
    """Return what *error* means if every other result would meet it, too, or None.

    Args:
        error: Why a result was not saved.
        folder: Where it was to be saved.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError) or cause.errno not in _NO_ROOM:
        return None
    return PlaceUnusable(sentence(folder, cause))


class FolderStore:
    """A folder, which may hold other people's files.

    Args:
        folder: The folder.
        spool: Where results are downloaded to, or None if that is in the folder, on whose disk the
            store may be, too.
    """

    def __init__(self, folder: Path, spool: Path | None = None) -> None:
        self._folder = folder
        self._spool = spool

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        return str(self._folder)

    def check(self) -> None:
        """Check that a file of the spool can be linked into the folder.

        Raises:
            PlaceUnusable: It cannot: the disk is full, another one, or has no hard links.
        """
        if self._spool is None:
            return
        name = f".muybridge-{secrets.token_hex(4)}"
        probe, linked = self._spool / name, self._folder / f"{name}-linked"
        at = self._spool
        try:
            try:
                make_folders(self._spool, mode=0o700)
                probe.write_bytes(bytes(_PROBE))
                at = self._folder
                make_folders(self._folder)
                linked.hardlink_to(probe)
            finally:
                for path in (linked, probe):
                    with ignoring_errors(OSError):
                        path.unlink(missing_ok=True)
        except genuine(OSError) as error:
            raise PlaceUnusable(sentence(at, error)) from error

    def taken_names(self, saved: Path, stem: str) -> list[str]:
        """Return the names for *saved* that files in the folder have."""
        return taken_names(saved, self._folder, stem)

    def place(self, saved: Path, stem: str, task_id: str, leftovers: Container[str]) -> Stored:  # noqa: ARG002  a file says nothing about its task
        """Move *saved* into the folder.

        Args:
            saved: A whole file on the same disk.
            stem: The intended name, without the suffix.
            task_id: The task whose result it is.
            leftovers: The names that an earlier run may have given and that no other item has.

        Raises:
            OSError: It cannot be moved.
        """
        placed = place(saved, self._folder, stem, leftovers)
        return Stored(
            name=placed.path.name,
            size=placed.size,
            sha256=placed.sha256,
            path=placed.path,
            avoided=placed.avoided,
        )
