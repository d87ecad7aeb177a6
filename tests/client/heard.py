"""The events that an observer has received, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muybridge_protocol.events import Event
from muybridge_protocol.observations import AnyEvent, CallEnded, CallInfo

E = TypeVar("E")


class Heard:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def __call__(self, event: AnyEvent) -> None:
        """Keep *event*."""
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The names of their classes."""
        return [type(event).__name__ for event in self.events]

    def of(self, kind: type[E]) -> list[E]:
        """Return those of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        """Return the only one of a class."""
        (event,) = self.of(kind)
        return event

    @property
    def end(self) -> CallEnded:
        """The end of the only call."""
        return self.one(CallEnded)

    def by_call(self) -> dict[int, list[AnyEvent]]:
        """Return the events of each call."""
        found: dict[int, list[AnyEvent]] = {}
        for event in self.events:
            found.setdefault(call_of(event).number, []).append(event)
        return found


def call_of(event: AnyEvent) -> CallInfo:
    """Return the call of an event that a driver has told."""
    assert event.call is not None
    return event.call


def tasks_alone(hear: Callable[[Event], object]) -> Callable[[AnyEvent], None]:
    """Return a listener that passes on the events of tasks, but not of calls or requests."""

    def listen(event: AnyEvent) -> None:
        if isinstance(event, Event):
            hear(event)

    return listen
