"""A folder on this machine as the store of a batch's results."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from muybridge.batch.file_names import place, taken_names
from muybridge.batch.stores.port import Stored


class FolderStore:
    """A folder, which may hold other people's files.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        return str(self._folder)

    def check(self) -> None:
        """Do nothing: the same disk takes the files of the runner before anything is sent."""

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
