"""The books of the billing server against the store of a batch: what must be true of the two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs

from muybridge import batch
from muybridge.batch import Entry, Stage
from muybridge_protocol.purchases import UNKNOWN_END
from muybridge_protocol.records.tasks import Task

from .billing import AMBIGUOUS, PNG, BillingServer, Fault


@attrs.define
class Audit:
    """What was found in one or several batches.

    Attributes:
        doubles: Items that were paid for more than once.
        losses: Items that were paid for, and are neither downloaded nor ambiguous.
        wrong: Items with an id, or a file, that is not theirs.
        unexplained: Ambiguous items at which nothing ambiguous happened.
        interrupted: Items that are ambiguous because their runner was killed.
        states: How many items are in each state.
    """

    doubles: list[str] = attrs.field(factory=list[str])
    losses: list[str] = attrs.field(factory=list[str])
    wrong: list[str] = attrs.field(factory=list[str])
    unexplained: list[str] = attrs.field(factory=list[str])
    interrupted: int = 0
    states: Counter[Stage] = attrs.field(factory=Counter[Stage])

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.doubles or self.losses or self.wrong or self.unexplained)

    def look_at(self, server: BillingServer, folder: Path) -> None:
        """Look at the batch in *folder*, whose tasks are at *server*."""
        self.doubles += server.doubles
        for entry in batch.status(folder).entries:
            self.states[entry.state] += 1
            self._look_at(server, folder, entry)

    def _look_at(self, server: BillingServer, folder: Path, entry: Entry) -> None:
        prompt: str = json.loads(entry.body)["prompt"]
        paid = server.accepted[prompt]
        if paid and entry.state not in (Stage.DOWNLOADED, Stage.AMBIGUOUS):
            self.losses.append(f"{prompt}: {entry.state}")
        if entry.state is Stage.AMBIGUOUS:
            if entry.reason == UNKNOWN_END.reason:
                self.interrupted += 1
            elif not AMBIGUOUS.intersection(server.asked[prompt]):
                self.unexplained.append(f"{prompt}: {entry.reason}")
        if entry.state is Stage.REFUSED and Fault.REFUSED not in server.asked[prompt]:
            self.unexplained.append(f"{prompt}: {entry.reason}")
        self.wrong += [
            f"{prompt}: {found}" for found in _claimed(folder, entry) if found not in paid
        ]


def _claimed(folder: Path, entry: Entry) -> Iterator[str]:
    """Yield every id that the batch takes for the item's."""
    if entry.token is not None:
        yield Task.from_token(entry.token).id
    if entry.path is not None:
        yield (folder / entry.path).read_bytes().removeprefix(PNG).decode()
