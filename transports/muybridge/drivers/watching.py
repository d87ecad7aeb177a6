"""Watching a task: its results as an async iterator, one for each change."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from muybridge.drivers.driver import Drive, Driver
from muybridge_protocol.errors import TaskFailed
from muybridge_protocol.events import Event, Polled
from muybridge_protocol.operations import Poll
from muybridge_protocol.records.tasks import Result


class Watch:
    """The results of a watched task, one for each new status or link, as long as the context lasts.

    Args:
        driver: Drives the polls.
        begin: Returns the operation that waits for the task, when the context is entered.
    """

    def __init__(self, driver: Driver, begin: Callable[[], Poll]) -> None:
        self._driver = driver
        self._begin = begin
        self._last: Result | None = None
        self._results: deque[Result] = deque()
        self._drive: Drive[Poll] | None = None
        self._reading = False

    async def __aenter__(self) -> Self:
        poll = self._begin()
        if poll.settled is not None:  # the task ended when it was created
            self._results.append(poll.task.to_result())
        self._drive = Drive(self._driver, poll)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        drive, self._drive = self._drive, None
        self._results.clear()
        if drive is not None:
            drive.leave()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Result:
        if self._reading:
            raise RuntimeError("another task or thread is already reading this watch")
        try:
            self._reading = True
            return await self._next()
        finally:
            self._reading = False

    async def _next(self) -> Result:
        while not self._results:
            drive = self._drive  # the context may be left meanwhile
            if drive is None:
                raise StopAsyncIteration
            if await drive.step():
                self._take(drive.events)
            else:
                self._drive = None
                with contextlib.suppress(TaskFailed):  # its last record was yielded
                    drive.outcome()
        return self._results.popleft()

    def _take(self, events: tuple[Event, ...]) -> None:
        """Keep the results whose status or link is new."""
        for event in events:
            if isinstance(event, Polled):
                last, self._last = self._last, event.result
                if last is None or event.changed or last.url != event.result.url:
                    self._results.append(event.result)
