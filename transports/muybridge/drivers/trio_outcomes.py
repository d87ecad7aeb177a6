"""`run_all` under trio."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import trio

from muybridge.drivers.outcomes import AsyncOutcomes


class TrioOutcomes(AsyncOutcomes):
    """The outcomes of a run under trio. Ctrl-C cannot leave its nursery open."""

    # Trio could not continue.
    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Self:
        return await super().__aenter__()

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, traceback)
