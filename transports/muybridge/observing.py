"""Being told of everything that a client does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muybridge_protocol.observations import AnyEvent


class Observer:
    """A listener that is told of every event: of calls, requests and replies as well.

        Client(on_event=Observer(print))

    A function alone, as `on_event`, is told what becomes of tasks: `muybridge_protocol.events`.
    Wrapped in this it is told, beside that, what the client does, from the beginning of each call
    to its end, with each request and reply: `muybridge_protocol.observations`.

    Args:
        listener: Called with each event.
    """

    def __init__(self, listener: Callable[[AnyEvent], None]) -> None:
        self._listener = listener

    def __call__(self, event: AnyEvent) -> None:
        """Tell *event*."""
        self._listener(event)
