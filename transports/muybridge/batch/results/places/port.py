"""`Store`: what a batch needs of the place where its results go.

A result is paid for, and its link expires. So a worker first downloads it to a file on its own
disk, whole or not at all, and then stores that file. If the store is away, the file and the link
are both kept: the item stays completed, and another attempt stores it later.

Every implementation keeps three rules:

**Whole or absent.** Nobody ever finds a part of a result under its name.

**Never over another file.** The name is given by an operation that fails if there is one already.
A file that is in the way keeps its name, and the result gets a numbered one.

**Once.** A worker may end after storing a result and before recording that. The next attempt
recognizes the file as its own, and does not store it a second time.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any, Protocol

import attrs

from muybridge_protocol.errors import MuybridgeError
from muybridge_protocol.remedies import Face, in_python


class PlaceUnusable(MuybridgeError):
    """Results cannot be stored. The message says why. The results can still be downloaded.

    Args:
        parts: The message: texts, and the remedies among them.
        away: Whether the place cannot be reached, or is overloaded, at the moment.
    """

    _charged = "perhaps"  # the result of a task may be what cannot be stored

    def __init__(self, *parts: Any, away: bool = False) -> None:
        super().__init__(*parts)
        self.away = away

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error as a JSON object, with whether the place is away."""
        return {**super().to_dict(face), "away": self.away}


@attrs.frozen(kw_only=True)
class Stored:
    """A result under its name.

    Args:
        name: The name, as the store of the batch records it.
        size: Its bytes.
        sha256: Its checksum.
        path: Where it is on this machine, or None.
        avoided: The intended name, if another file had it; or "".
    """

    name: str
    size: int
    sha256: str
    path: Path | None = None
    avoided: str = ""


class Store(Protocol):
    """Where the results of a batch go. Several threads may use it at the same time."""

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        ...

    def check(self) -> None:
        """Check that results can be stored, before anything is paid for.

        Raises:
            PlaceUnusable: They cannot; `away` if that may pass.
        """
        ...

    def taken_names(self, saved: Path, stem: str) -> list[str]:
        """Return the names for *saved* that are taken, if only the batch can say by what."""
        ...

    def place(self, saved: Path, stem: str, task_id: str, leftovers: Container[str]) -> Stored:
        """Store *saved* durably under a name that no other file has.

        If *saved* is not moved, it is removed once the batch has recorded the name: until then,
        another attempt needs it.

        Args:
            saved: A whole file on this machine.
            stem: The intended name, without the suffix.
            task_id: The task whose result it is.
            leftovers: The names that an earlier attempt may have given and that no other item has.

        Raises:
            PlaceUnusable: It cannot be stored.
            OSError: It cannot be read or moved.
        """
        ...
