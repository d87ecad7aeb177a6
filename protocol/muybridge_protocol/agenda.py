"""A queue by time that stays fast with a million entries."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

PAGE: Final = 0.25
"""Seconds on one page."""
_LAST: Final = 1e15
"""Seconds after which all is one page; infinity has no whole number."""

T = TypeVar("T")

Entry = tuple[float, int, T]
"""When, a number that tells apart what is at the same time, and what."""


class Agenda(Generic[T]):
    """Entries in the order of their time, and of their number where that is the same.

    It does what a heap does. But a heap of a million entries is slow, because each step touches
    twenty places all over the memory. An agenda has pages instead; an entry is only put on its
    page, and a page is sorted when its time has come. What is entered on the page that lies open
    is held in a small heap beside it.
    """

    __slots__ = ("_late", "_leaf", "_open", "_pages", "_unopened")

    def __init__(self) -> None:
        self._pages: dict[int, list[Entry[T]]] = {}
        self._unopened: list[int] = []  # a heap of the pages' numbers
        self._leaf: float = float("-inf")  # the number of the page that lies open
        self._open: list[Entry[T]] = []  # from last to first
        self._late: list[Entry[T]] = []  # a heap

    def __bool__(self) -> bool:
        """Return whether there is an entry."""
        return bool(self._open or self._late or self._pages)

    def __iter__(self) -> Iterator[T]:
        """Yield everything, in no order."""
        for page in (self._open, self._late, *self._pages.values()):
            for _, _, item in page:
                yield item

    def add(self, time: float, number: int, item: T) -> None:
        """Enter *item* at *time*; no other entry has the same *number*."""
        leaf = int(min(time, _LAST) // PAGE)
        if leaf <= self._leaf:
            heapq.heappush(self._late, (time, number, item))
            return
        page = self._pages.get(leaf)
        if page is None:
            self._pages[leaf] = [(time, number, item)]
            heapq.heappush(self._unopened, leaf)
        else:
            page.append((time, number, item))

    @property
    def first(self) -> float | None:
        """The time of the first entry, or None if there is none."""
        if self._late:
            late = self._late[0][0]
            return min(late, self._open[-1][0]) if self._open else late
        if not self._open and not self._turn():
            return None
        return self._open[-1][0]

    def pop(self) -> Entry[T]:
        """Take the first entry out.

        Raises:
            IndexError: There is none.
        """
        if self._late and (not self._open or self._late[0] < self._open[-1]):
            return heapq.heappop(self._late)
        if not self._open:
            self._turn()
        return self._open.pop()

    def _turn(self) -> bool:
        """Open the next page, and return whether there is one."""
        if not self._unopened:
            return False
        self._leaf = heapq.heappop(self._unopened)
        self._open = self._pages.pop(int(self._leaf))
        self._open.sort(reverse=True)
        return True
