"""`Entries`: the items of a batch as a sequence that is read when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import overload

import attrs

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge_protocol.purchases import Stage


def _unchanged(entry: Entry) -> Entry:
    return entry


@attrs.frozen
class Entries(Sequence[Entry]):
    """The items of a batch, read from its store on access.

    They may not fit into memory, so they are read a page at a time, each as it is in the store at
    that moment. `tuple(entries)` makes a copy.

    Args:
        open_batch: Opens the batch.
        total: How many items there are.
        show: What each of them is shown as.
    """

    open_batch: Callable[[], Batch] = attrs.field(repr=False)
    total: int
    show: Callable[[Entry], Entry] = attrs.field(default=_unchanged, repr=False)

    def __len__(self) -> int:
        """Return how many items there are."""
        return self.total

    def __iter__(self) -> Iterator[Entry]:
        """Yield each item in the order of their numbers."""
        with self.open_batch() as batch:
            yield from map(self.show, islice(batch.entries(), self.total))

    def in_stage(self, stage: Stage) -> tuple[Entry, ...]:
        """Return the items in a stage, and read no others."""
        with self.open_batch() as batch:
            return tuple(map(self.show, batch.entries(stage)))

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        """Return the item at *index*, or those of a slice."""
        numbers = range(1, self.total + 1)[index]
        with self.open_batch() as batch:
            if isinstance(numbers, int):
                return self.show(batch.entry(numbers))
            return tuple(self.show(batch.entry(number)) for number in numbers)
