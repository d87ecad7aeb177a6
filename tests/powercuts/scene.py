"""A scene: a program that is recorded, how it continues after a power cut, and its judge."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Protocol

from .service import Note, Service, silent


class Scene(Protocol):
    """A program, and what must be true after a power cut.

    Attributes:
        name: Its name, and that of its recording.
        deaths: With how many accepted creates each process but the last is killed.
        is_steady: Whether each run does the same in the same order.
    """

    name: ClassVar[str]
    deaths: ClassVar[tuple[int, ...]]
    is_steady: ClassVar[bool]

    def service(self, note: Note = silent) -> Service:
        """Return the service, before anything was sent to it. It tells its marks to *note*."""
        ...

    def run(self, service: Service, root: Path) -> None:
        """Run the program, with all its files below *root*, which is empty."""
        ...

    def found(self, service: Service, root: Path) -> list[str]:
        """Return what is wrong with the files of *root*, as a power cut has left them."""
        ...

    def resume(self, service: Service, root: Path) -> list[str]:
        """Run the program again, and return what is wrong then. *service* has its books."""
        ...

    def recorded(self, root: Path) -> set[str]:
        """Return the ids of the tasks that are recorded below *root*."""
        ...
