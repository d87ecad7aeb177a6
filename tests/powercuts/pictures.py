"""Downloads into a new folder, with sidecars: one is interrupted and resumed, one has changed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar, Final

from muybridge import Client, DownloadFailed, Task

from .results import faults_of_files
from .service import Note, Service, silent

WHOLE: Final = "task-1-bay"
RESUMED: Final = "task-2-roan"
CHANGED: Final = "task-3-grey"
TASKS: Final = (WHOLE, RESUMED, CHANGED)
SIZE: Final = 200_000
"""Bytes of a picture. The transport of the tests gives 64 KiB at once."""


class Pictures:
    """Downloads three pictures."""

    name: ClassVar[str] = "pictures"
    deaths: ClassVar[tuple[int, ...]] = ()
    is_steady: ClassVar[bool] = True

    def service(self, note: Note = silent) -> Service:
        service = Service(note=note, size=SIZE)
        for task in TASKS:
            service.accepted[task].append(task)
        return service

    def run(self, service: Service, root: Path) -> None:
        with service.client() as client:
            _download(client, service, root, WHOLE)
            for task in (RESUMED, CHANGED):
                service.breaks[task] = SIZE * 3 // 4
                with contextlib.suppress(DownloadFailed):
                    _download(client, service, root, task)
                service.breaks.clear()
                if task == CHANGED:
                    service.mark(f"changed {task}")
                _download(client, service, root, task)

    def found(self, service: Service, root: Path) -> list[str]:
        return faults_of_files(_folder(root), service, service.saved, service.saved)

    def resume(self, service: Service, root: Path) -> list[str]:
        with service.client() as client:
            for task in TASKS:
                if f"{task}.png" not in service.saved:
                    _download(client, service, root, task)
        unfinished = [path.name for path in _folder(root).glob("*.part*")]
        return self.found(service, root) + [f"{name} is left" for name in unfinished]

    def recorded(self, root: Path) -> set[str]:  # noqa: ARG002  it has no database
        return set()


def _download(client: Client, service: Service, root: Path, task: str) -> None:
    """Download the picture of a task by its id alone, as after a restart."""
    path = client.download(Task(id=task), f"{_folder(root)}/", sidecar=True)
    service.mark(f"saved {path.name}")


def _folder(root: Path) -> Path:
    return root / "pictures" / "today"
