"""`Outcomes`: what `Client.run_all` gives."""

from __future__ import annotations

from typing import Self

from muybridge.drivers.blocking import BlockingIterator
from muybridge.drivers.fleet_run import Outcome
from muybridge.drivers.outcomes import AsyncOutcomes, check_entered
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.tasks import Task


class Outcomes(BlockingIterator[Outcome]):
    """The outcomes of a run as they settle; it lasts as long as the context.

        with client.run_all(requests) as outcomes:
            for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    A failed task is an outcome like any other. Left early, nothing more is sent; what may be
    charged is heard out, so that its id is known, and an exception that passes through has in
    its notes what is still out. The client's listeners are called by the run's own threads, one
    at a time; what one of them raises ends the run, and is raised by the loop.

    Args:
        outcomes: The same as coroutines.
    """

    def __init__(self, outcomes: AsyncOutcomes) -> None:
        super().__init__(outcomes)
        self._outcomes = outcomes
        self._entered = False

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have been accepted and have not ended."""
        return self._outcomes.outstanding

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that have not been sent."""
        return self._outcomes.unsent

    @property
    def unread(self) -> list[Outcome]:
        """The outcomes that the loop has not been given."""
        return self._outcomes.unread

    def __enter__(self) -> Self:
        self._entered = True
        return super().__enter__()

    def __iter__(self) -> Self:
        check_entered("with", entered=self._entered)
        return self

    def __next__(self) -> Outcome:
        check_entered("with", entered=self._entered)
        return super().__next__()
