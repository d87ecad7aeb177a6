"""What an observer has been told, in order."""

from __future__ import annotations

from typing import TypeVar

from muybridge import Observer
from muybridge_protocol.observations import AnyEvent, CallEnded, CallInfo

E = TypeVar("E")


class Heard(Observer):
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        super().__init__(self.events.append)

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
