"""`Items`: what the results of a batch need of its store.

The contact sheet, the manifest and the search for missing files read a page of items at a time and
keep none of them, so that a batch may be larger than memory. Whatever looks at every item each
time reads *outlines*, which take a tenth of the time of whole items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from muybridge.batch.items.entry import Entry
from muybridge_protocol.purchases import Stage


class Outline(NamedTuple):
    """As much of an item as shows whether something about it has changed.

    Args:
        number: Its place in the batch, from 1.
        state: Its stage.
        path: The file's name within the batch's folder, or None. A completed item keeps that of a
            file that it has lost.
        size: The file's bytes, or None.
        facts: Everything else that a contact sheet shows of it and that may change, in any form;
            or "" if only the items in a stage were asked for.
    """

    number: int
    state: Stage
    path: str | None
    size: int | None
    facts: str


class Items(Protocol):
    """The items of a batch, as its results need them. Everything is in the order of the numbers."""

    def counts(self) -> Mapping[Stage, int]:
        """Return how many items are in each stage, without empty ones."""
        ...

    def outlines(self, stage: Stage | None = None) -> Iterator[Outline]:
        """Yield the outline of every item, or of those in a stage that nobody works on."""
        ...

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield every item whose number is above *after*, reading a page at a time."""
        ...

    def reasons(self) -> Iterator[Entry]:
        """Yield every item that has a reason and is not downloaded, reading a page at a time."""
        ...

    def entry(self, number: int) -> Entry:
        """Return the item *number*.

        Raises:
            LookupError: There is none.
        """
        ...
