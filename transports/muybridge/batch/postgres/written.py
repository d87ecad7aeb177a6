"""What a worker has written to a journal, which an older copy of the journal lacks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs


@attrs.define
class Written:
    """How much of what the workers of this process wrote was confirmed.

    A worker has two threads, with a connection each. If both count at the same moment, a write may
    be missed: a smaller number is true as well.
    """

    _counts: dict[str, int] = attrs.field(factory=dict[str, int])
    _note: Callable[[int], object] | None = None
    _last: str | None = None

    def begin(self, worker: str, note: Callable[[int], object] | None) -> None:
        """Count the writes of *worker*, which is registered."""
        self._counts[worker], self._last, self._note = 0, worker, note
        self._tell(worker)

    def mark(self, worker: object) -> dict[str, Any]:
        """Return what the next write of *worker* has to find: nothing for one that is not ours."""
        known = worker in self._counts
        return {
            "me": worker if known else None,
            "writes": self._counts[str(worker)] if known else 0,
        }

    def mark_of(self, owner: object) -> dict[str, Any]:
        """Return what the next write about an item of *owner*, alive or dead, has to find."""
        return self.mark(owner if owner in self._counts else self._last)

    def confirm(self, mark: Mapping[str, Any]) -> None:
        """Take note that a write with this *mark* was confirmed."""
        if mark["me"] is not None:
            self._counts[mark["me"]] += 1
            self._tell(mark["me"])

    @contextmanager
    def whole(self) -> Generator[None, None, None]:
        """Take back what the block confirms if it fails, because the transaction is undone."""
        before = dict(self._counts)
        try:
            yield
        except BaseException:
            self._counts.update(before)
            if self._last is not None:
                self._tell(self._last)
            raise

    def _tell(self, worker: str) -> None:
        if self._note is not None and worker == self._last:
            self._note(self._counts[worker])
