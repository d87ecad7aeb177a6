"""`TrioClient`: the service for programs that run under trio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Never

from muybridge.async_client import AsyncClient

if TYPE_CHECKING:
    from muybridge.drivers.fleet_run import Work
    from muybridge.drivers.trio_outcomes import TrioOutcomes
    from muybridge_protocol.operations.defaults import CONCURRENCY
    from muybridge_protocol.operations.poll import WAIT_TIMEOUT
    from muybridge_protocol.purchases import Tags
    from muybridge_protocol.purchases.names import Dedupe


class TrioClient(AsyncClient):
    """An `AsyncClient` that runs under trio only, with the same arguments and errors."""

    if TYPE_CHECKING:

        def run_all(
            self,
            work: Iterable[Work],
            *,
            concurrency: int = CONCURRENCY,
            per_family: int | Mapping[str, int] | None = None,
            timeout: float | None = WAIT_TIMEOUT,
            dedupe: Dedupe = False,
            tags: Tags | Sequence[Tags | None] | None = None,
            **_misplaced: Never,
        ) -> TrioOutcomes:
            """Return a context that creates and awaits many tasks, as `AsyncClient.run_all` does.

            Args:
                work: Requests to create, and tasks, results, tokens or ids to wait for.
                concurrency: Maximum number of tasks in progress at once, from create to end; 32 by
                    default.
                per_family: Maximum number of them per family: one number for all families, or a
                    mapping by name.
                timeout: Seconds to wait for each task, an hour by default; None for no limit.
                dedupe: Whether identical requests share one task: those with the same tags, or
                    "across-tags".
                tags: Tags of what is bought: one mapping for all work, or a list with one mapping,
                    or None, for each piece of it.
            """
            ...

    def _find_event_loop(self) -> tuple[str, object]:
        return "trio", None
