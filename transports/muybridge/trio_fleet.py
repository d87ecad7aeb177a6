"""`TrioClient.run_all`: one nursery, a task that schedules, and one for each exchange."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, cast

import trio

from muybridge.announcing import Unfollowed
from muybridge.fleet_run import INTERRUPTED, Answer, FleetRun, Outcome, check_entered
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations import Operation, Wait
from muybridge_protocol.tasks import Task

Exchange = Callable[[Operation[Any], HttpRequest, float, Unfollowed], Awaitable[Operation[Any]]]
"""Sends a request by a deadline, and tells the operation what came of it."""


class TrioOutcomes:
    """The outcomes of a run as they settle; it lasts as long as the context.

        async with client.run_all(requests) as outcomes:
            async for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    A failed task is an outcome like any other. Left early or cancelled, nothing more is sent;
    what may be charged is heard out, so that its id is known, and an exception that passes
    through has in its notes what is still out. What a listener of the client raises ends the
    run, and is raised by the loop.
    """

    def __init__(self, run: FleetRun, exchange: Exchange) -> None:
        self._run = run
        self._exchange = exchange
        self._nursery: trio.Nursery
        self._opened: AbstractAsyncContextManager[trio.Nursery]
        self._changed = trio.Event()
        self._send, self._receive = trio.open_memory_channel[Outcome | None](float("inf"))
        self._handed_out = False
        self._entered = False
        self._over = False
        self._broken: BaseException | None = None

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have been accepted and have not ended."""
        return self._run.outstanding

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that have not been sent."""
        return self._run.unsent

    @property
    def unread(self) -> list[Outcome]:
        """The outcomes that the loop has not been given."""
        return list(self._run.settled)[self._handed_out :]

    # Ctrl-C must not come between a nursery and its end: trio could not go on.
    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Self:
        self._entered = True
        self._opened = trio.open_nursery()
        self._nursery = await self._opened.__aenter__()
        self._nursery.start_soon(self._schedule)
        return self

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._put_by()
        self._run.fleet.stop()
        # Exchanges that may be charged are shielded by the transport, the others end at once.
        self._nursery.cancel_scope.cancel()
        late: BaseException | None = None
        try:
            # Without the exception that passes through, which would come out in a group.
            await self._opened.__aexit__(None, None, None)
        except BaseException as other:  # noqa: BLE001  a cancellation from without, seen below
            late = other
        finally:
            self._send.close()
            self._receive.close()
            self._run.leave()
        odd = _other_than_cancelled(late)
        if odd is not None:
            # Such as Ctrl-C, which trio may deliver to any task. It goes on alone, in no group.
            self._leave_note(odd)
            raise odd from None
        if error is not None:
            self._leave_note(error)
        elif late is not None:
            try:
                await trio.lowlevel.checkpoint_if_cancelled()  # the same, but in no group
            except trio.Cancelled as cancelled:
                self._leave_note(cancelled)
                raise

    def __aiter__(self) -> Self:
        check_entered("async with", entered=self._entered)
        return self

    async def __anext__(self) -> Outcome:
        check_entered("async with", entered=self._entered)
        self._put_by()
        outcome = await self._receive.receive()
        if outcome is None:
            self._send.send_nowait(None)  # for whoever asks again
            if self._broken is not None:
                raise self._broken
            raise StopAsyncIteration
        self._handed_out = True
        return outcome

    def _leave_note(self, error: BaseException) -> None:
        note = self._run.note()
        if note is not None:
            error.add_note(note)

    def _put_by(self) -> None:
        """Let go of the outcome that was handed out last: the loop is done with it."""
        if self._handed_out:
            self._handed_out = False
            self._run.settled.popleft()

    # Nor between a reply and its place in the run. The task that opened the run is told instead.
    @trio.lowlevel.enable_ki_protection
    async def _schedule(self) -> None:
        try:
            while not self._over:
                await self._step()
        except Exception as error:  # noqa: BLE001  the loop raises it
            self._broken = error
        self._send.send_nowait(None)

    async def _step(self) -> None:
        self._changed = trio.Event()
        match self._run.next_action(trio.current_time()):
            case Dispatch() as sent:
                self._nursery.start_soon(self._answer, sent)
            case Wait(until):
                with trio.move_on_at(until):
                    await self._changed.wait()
            case Busy():
                await self._changed.wait()
            case Done():
                self._over = True
            case None:
                self._send.send_nowait(self._run.settled[-1])

    @trio.lowlevel.enable_ki_protection
    async def _answer(self, sent: Dispatch[int]) -> None:
        try:
            self._run.sending(sent, trio.current_time())
        except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
            self._break_off(error)
            return
        answer = Answer()
        try:
            await self._exchange(
                answer.as_operation(), sent.request, sent.deadline, self._run.unfollowed
            )
        except trio.Cancelled:
            if sent.request.paid:
                self._take(sent, answer)
            raise
        except BaseException as error:
            if answer.failure is None:
                answer.fail(INTERRUPTED, trio.current_time())
            self._take(sent, answer)
            if not isinstance(error, Exception):
                raise
            self._break_off(error)  # a defect's or a signal handler's; the loop raises it
            return
        self._take(sent, answer)

    def _take(self, sent: Dispatch[int], answer: Answer) -> None:
        try:
            self._run.take(sent, answer, trio.current_time())
        except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
            self._break_off(error)
        self._changed.set()

    def _break_off(self, error: BaseException) -> None:
        self._broken = self._broken or error
        self._run.fleet.stop()
        self._changed.set()


def _other_than_cancelled(error: BaseException | None) -> BaseException | None:
    """Return the first exception in *error*, a group or not, that is no cancellation."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        found = map(_other_than_cancelled, group.exceptions)
        return next((one for one in found if one is not None), None)
    return None if isinstance(error, trio.Cancelled) else error
