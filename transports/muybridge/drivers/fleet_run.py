"""Run many requests and tasks at once: everything that does no I/O.

The core's `Fleet` decides what is sent next. A `FleetRun` adds what a client has besides: it reads
the work as users write it, tells the listeners, and keeps the outcomes until the loop takes them.
`outcomes` does the I/O around it. Workers share one run, so each method is a short step under their
lock.

All work is read and checked before anything is sent: a mistake in the last item must not show after
the first ones have been paid for. A listener that raises ends the run, but never loses an id
(`take_end`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING

from muybridge.drivers.calls import Calls, check_wait_of_create, warn_caller
from muybridge.drivers.fleet_team import End, take_end
from muybridge.drivers.listeners import Listeners, SilentTracker
from muybridge_protocol.arguments import NO_TAGS, check_type
from muybridge_protocol.errors import CreateAmbiguous, MuybridgeWarning
from muybridge_protocol.events import Submitted
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet import Dispatch, Fleet, FleetOutcome
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.operations.defaults import CONNECTIONS
from muybridge_protocol.operations.poll import too_often
from muybridge_protocol.records.tasks import Result, Task, as_task
from muybridge_protocol.service import shown_id

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking
    from muybridge_protocol.purchases import Tags

Work = MediaRequest | tuple[str, Mapping[str, object]] | Task | Result | str
"""A request to create, itself or as a family's name and fields, or a task to wait for: itself, a
result of it, its token or its id."""

_PAIR = 2

Outcome = FleetOutcome[int]
"""How one piece of work ended; its `key` is the place that it had among the others, from 0."""


class FleetRun:
    """A fleet, its outcomes, and the trackers of its calls. `AsyncOutcomes` guards it with a lock.

    Args:
        calls: The client's.
        listeners: The client's.
        clock: Tells seconds on the driver's clock.
        work: What to do.
        concurrency: Most tasks in progress at once.
        per_family: Maximum number of them per family: one number for all families, or a mapping by
            name.
        timeout: Seconds to wait for each task, or None for no limit.
        now: Seconds on the driver's clock.
        wall: Unix seconds at the same moment.
        tags: The tags of what is bought: one mapping for all work, or one for each piece of it.
        common: The client's tags, which these may replace.

    Raises:
        LocalError: Some tags, a token or a bare id cannot be used.
        ValueError: A limit is below one, or there are not as many tags as pieces of work.
        TypeError: Some work is no request and no task.
    """

    def __init__(
        self,
        calls: Calls,
        listeners: Listeners,
        clock: Callable[[], float],
        work: Iterable[Work],
        *,
        concurrency: int,
        per_family: int | Mapping[str, int] | None,
        timeout: float | None,
        now: float,
        wall: float,
        tags: Tags | Sequence[Tags | None] | None = None,
        common: Tags = NO_TAGS,
    ) -> None:
        check_wait_of_create(timeout)
        limits = per_family.values() if isinstance(per_family, Mapping) else (per_family,)
        check_type("concurrency", concurrency, int, "a number of tasks")
        for limit in limits:
            line = "per_family={'imga': 4}"
            check_type("per_family", limit, (int, NoneType), "one number, or one by family", line)
        self._listeners = listeners
        self._clock = clock
        self._trackers: dict[int, SilentTracker] = {}
        """The calls in progress, by place."""
        self._waiting: dict[int, MediaRequest | Task] = {}
        """The work that has not begun, by place."""
        self._booked: dict[int, Booking] = {}
        """What books the latest paid request, by place."""
        self._left = False
        self.settled: deque[Outcome] = deque()
        """What has ended and was not handed out yet, except perhaps the first."""
        self.connections: int = min(concurrency, CONNECTIONS)
        """Most exchanges at once."""
        self.fleet: Fleet[int] = calls.fleet(
            now=now,
            wall=wall,
            concurrency=concurrency,
            connections=self.connections,
            wait=timeout,
            per_family=per_family,
        )
        kind = type(work).__name__
        if isinstance(work, MediaRequest | Task | Result | str | Mapping):
            raise TypeError(
                f"run_all takes an iterable of requests and tasks, not one {kind}: put it into a "
                "list. Nothing was sent."
            )
        check_type("work", work, Iterable, "a list of requests and tasks")
        work = [*work]
        self._common = common
        self._tags = None if tags is None else _read_tags(tags, len(work))
        reasons: dict[str, None] = {}
        for number, item in enumerate(work):
            request = _read(item)
            self.fleet.add(number, request, now)
            self._waiting[number] = request
            reason = None
            if calls.poll_interval is not None:
                reason = too_often(_task_of(request), calls.poll_interval, calls.service)
            if reason is not None:
                reasons[reason] = None
        for reason in reasons:
            warn_caller(reason, MuybridgeWarning)

    def tags_of(self, place: int) -> Tags:
        """Return the tags of the work at *place*: the client's, unless it replaces them."""
        return self._common if self._tags is None else {**self._common, **self._tags[place]}

    def settle(self, end: Outcome) -> None:
        """Keep an outcome until the loop takes it, and tell the listeners.

        Raises:
            BaseException: From a listener.
        """
        booking = self._booked.pop(end.key, None)
        if booking is not None:
            booking.explain(end.outcome)
        # Before the listeners hear of it: one that raises must not take the outcome from the loop.
        self.settled.append(end)
        if end.key in self._trackers:
            self._trackers.pop(end.key).end(end.outcome)

    def sending(self, dispatch: Dispatch[int], now: float, booking: Booking | None = None) -> None:
        """Tell the listeners that a request is about to be sent.

        Args:
            dispatch: The request.
            now: Seconds on the driver's clock.
            booking: Books it in the store, or None.

        Raises:
            BaseException: From a listener. The request goes back to the fleet; it was not sent.
        """
        if booking is not None:
            self._booked[dispatch.key] = booking
        try:
            tracker = self._trackers.get(dispatch.key)
            if tracker is None:
                tracker = self._track(self._waiting.pop(dispatch.key), dispatch.key)
            tracker.sending(dispatch.request)
        except BaseException:
            # For the fleet it is under way, until it hears that nothing was sent.
            self.fleet.fail(dispatch.ticket, _GIVEN_BACK, now)
            raise

    def take(self, dispatch: Dispatch[int], end: End, now: float) -> None:
        """Take the outcome of an exchange, and tell the listeners.

        Raises:
            BaseException: From a listener or a signal handler.
        """
        tracker = self._trackers.get(dispatch.key) or SilentTracker(self._listeners)
        events = take_end(self.fleet, tracker, dispatch, end, now)
        tracker.tell_end(events)
        for event in events:
            if isinstance(event, Submitted):  # the create is done, and waiting begins
                tracker.end(event.task)
                self._track(event.task, dispatch.key)

    def join(
        self, dispatch: Dispatch[int], end: Task | CreateAmbiguous | TransportFailure, now: float
    ) -> None:
        """Take what an identical request has led to, in place of an exchange.

        Raises:
            BaseException: From a listener.
        """
        from muybridge.purchases.joining import settle

        self._booked.pop(dispatch.key, None)  # that one was not sent
        settle(self.fleet, dispatch.ticket, end, now)
        tracker = self._trackers.get(dispatch.key)
        if isinstance(end, TransportFailure) and tracker is not None:
            tracker.failed(end, now)  # the name was taken after listeners were told of sending
            tracker.tell_end(())
        if isinstance(end, Task):
            self._waiting.pop(dispatch.key, None)
            if dispatch.key in self._trackers:  # of an earlier attempt
                self._trackers.pop(dispatch.key).end(end)
            self._track(end, dispatch.key)

    def leave(self) -> None:
        """Tell the listeners that the remaining calls are abandoned.

        Responses may still arrive: after that, only their ids are told.
        """
        self._left = True
        while self._trackers:
            _, tracker = self._trackers.popitem()
            tracker.end(GeneratorExit())

    def _track(self, work: MediaRequest | Task, place: int) -> SilentTracker:
        tracker = SilentTracker(self._listeners)
        if self._listeners.listen and not self._left:
            from muybridge.drivers.tracking import track_work

            tags = self.tags_of(place)
            tracker = track_work(self._listeners, work, place, self._clock, tags)
        self._trackers[place] = tracker
        return tracker

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have not ended."""
        return [left.task for left in self.fleet.outstanding() if left.task is not None]

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that were neither created nor are in flight."""
        return [
            left.request
            for left in self.fleet.outstanding()
            if left.request is not None and left.task is None and not left.under_way
        ]

    def note(self) -> str | None:
        """Return what the user must know about a run that is left early, or None."""
        parts: list[str] = []
        tasks, unsent = self.outstanding, self.unsent
        # All of them, however many: this may be the only place that shows a paid id.
        if tasks:
            ids = ", ".join(shown_id(task.id) for task in tasks)
            parts.append(
                f"{len(tasks)} accepted and not ended; get the results with wait(id): {ids}"
            )
        parts += [f"ended, but not yielded: {_summary(outcome)}" for outcome in self.settled]
        under_way = self.fleet.paid
        if under_way:
            parts.append(f"{under_way} under way, which may have been accepted: check your account")
        if unsent:
            parts.append(f"{len(unsent)} not sent")
        return "\n".join(["Left early:", *parts]) if parts else None


_GIVEN_BACK = TransportFailure(
    phase=Phase.CONNECT, sent=False, reason=Reason.INTERRUPTED, detail="not sent after all"
)


def _read(item: Work) -> MediaRequest | Task:
    """Return the request or the task that *item* stands for."""
    if isinstance(item, Result | str | FleetOutcome):
        return as_task(item)  # which says what to give in place of an outcome
    if not isinstance(item, tuple) or len(item) != _PAIR:
        return item  # type: ignore[return-value]  # the fleet refuses what is neither
    from muybridge.media.by_name import request_by_name

    name, fields = item
    return request_by_name(name, fields)


def _read_tags(tags: Tags | Sequence[Tags | None], count: int) -> Sequence[Tags]:
    """Return the tags of each of *count* pieces of work."""
    from muybridge_protocol.purchases import checked_tags

    if isinstance(tags, Mapping):
        return [checked_tags(tags)] * count
    check_type("tags", tags, Sequence, "one mapping, or a list with one for each piece of work")
    if len(tags) != count:
        raise ValueError(
            f"tags must have one mapping for each of {count} pieces of work (got {len(tags)}). "
            "Nothing was sent."
        )
    return [checked_tags(one, f"the tags of work {place}") for place, one in enumerate(tags)]


def _task_of(work: MediaRequest | Task) -> Task:
    if isinstance(work, Task):
        return work
    return Task(id="", family=work.family.name, requested_model=work.model_name)


def _summary(outcome: Outcome) -> str:
    name = (
        f"task {shown_id(outcome.task.id)}"
        if outcome.task is not None
        else f"request {outcome.key}"
    )
    if isinstance(outcome.outcome, Result):
        return f"{name} ({outcome.outcome.status})"
    return f"{name}: {outcome.outcome}"
