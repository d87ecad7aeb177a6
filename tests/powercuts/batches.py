"""Batches: a store, a folder of results, and their sidecars, all of them new.

The program has just made the folder above, and has not synced its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Final

from muybridge import batch
from muybridge.batch import BatchEvent, Entry, Stage

from .results import faults_of_files
from .service import Note, Response, Service, silent

RESPONSES: Final = {
    "lost roan": (Response.LOST,),
    "refused grey": (Response.REFUSED,),
    "late dun": (Response.THROTTLED, Response.ACCEPTED),
}
HORSES: Final = ("bay", *RESPONSES, "pinto")
LOST: Final = 1
"""Items whose response is lost, which are ambiguous without a power cut, too."""


class Batch:
    """Runs a batch, one item after the other."""

    name: ClassVar[str] = "batch"
    deaths: ClassVar[tuple[int, ...]] = ()
    is_steady: ClassVar[bool] = True
    concurrency: ClassVar[int] = 1

    def service(self, note: Note = silent) -> Service:
        return Service(RESPONSES, note)

    def run(self, service: Service, root: Path) -> None:
        def tell(event: BatchEvent) -> None:
            if event.what is batch.What.SUBMITTED:
                service.mark(f"told {event.task} {HORSES[event.item - 1]}")
            elif event.what is batch.What.DOWNLOADED and event.path is not None:
                service.mark(f"saved {event.path.name}")

        items: list[Any] = [
            {"family": "imgb", "model": "imgb-2", "prompt": horse} for horse in HORSES
        ]
        _folder(root).parent.mkdir(exist_ok=True)  # as programs do, without syncing it
        with service.client() as client:
            batch.run(
                client,
                items,
                _folder(root),
                concurrency=self.concurrency,
                on_event=tell,
                sidecar=True,
            )

    def found(self, service: Service, root: Path) -> list[str]:
        return faults_of_files(_folder(root), service, service.saved)

    def resume(self, service: Service, root: Path) -> list[str]:
        told = dict(service.told)
        self.run(service, root)
        entries = batch.status(_folder(root)).entries
        wrong = [fault for entry in entries for fault in _judge(service, entry, told)]
        if len(entries) != len(HORSES):
            wrong.append(f"the store has {len(entries)} items")
        unsure = [entry for entry in entries if entry.state is Stage.AMBIGUOUS]
        if len(unsure) > self.concurrency + LOST + len(self.deaths):
            wrong.append(f"{len(unsure)} items are ambiguous")
        results = {str(entry.path): str(entry.task_id) for entry in entries if entry.path}
        for name, task in results.items():
            path = _folder(root) / name
            if not path.exists() or path.read_bytes() != service.picture(task):
                wrong.append(f"{name} is not the picture of {task}")
        return wrong + faults_of_files(_folder(root), service, service.saved, results)

    def recorded(self, root: Path) -> set[str]:
        entries = batch.status(_folder(root)).entries
        return {entry.task_id for entry in entries if entry.task_id is not None}


class Crowd(Batch):
    """Runs a batch with several items at once, so that their steps mix."""

    name: ClassVar[str] = "crowd"
    is_steady: ClassVar[bool] = False
    concurrency: ClassVar[int] = 3


class BatchAgain(Batch):
    """Is killed while a create is under way, and then while another is, and is resumed."""

    name: ClassVar[str] = "batch-again"
    deaths: ClassVar[tuple[int, ...]] = (1, 3)


def _judge(service: Service, entry: Entry, told: dict[str, str]) -> list[str]:
    """Return what is wrong with an item. The user was *told* the ids before the cut."""
    horse: str = json.loads(entry.body)["prompt"]
    paid = service.accepted[horse]
    if len(paid) > 1:
        return [f"{horse} was paid for twice"]
    if horse in told and entry.task_id != told[horse]:
        return [f"{horse} has the task {entry.task_id}, and the user was told {told[horse]}"]
    match entry.state:
        case Stage.DOWNLOADED if [entry.task_id] == paid:
            return []
        case Stage.AMBIGUOUS if horse not in told:
            return []
        case Stage.REFUSED if not paid and RESPONSES.get(horse) == (Response.REFUSED,):
            return []
        case state:
            return [f"{horse} is {state} ({entry.reason}); it was paid for as {paid}"]


def _folder(root: Path) -> Path:
    return root / "paddock" / "today"
