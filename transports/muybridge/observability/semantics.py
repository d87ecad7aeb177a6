"""What spans and metrics have in common: their names, and that they never end a call.

Where OpenTelemetry's semantic conventions for HTTP and for generative AI have a name, that is used.
For generative AI they know text and pictures, but no video and no tasks, so `video` and everything
that begins with `muybridge.` is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from muybridge.observability.logs import CALLS
from muybridge.signals import genuine, ignoring_errors
from muybridge_protocol.arguments import check_callable
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.observations import AnyEvent, CallInfo

TEXT: Final = ("text", "text stream")
"""The kinds of calls that generate text."""
PAID: Final = ("create", *TEXT)
"""The kinds of calls that generate something."""


def output_type(info: CallInfo) -> str | None:
    """Return what a call generates: `text`, `image`, `video`, or None if that is not known."""
    if info.kind in TEXT:
        return "text"
    family = FAMILIES.get(info.family or "")
    return None if family is None else str(family.media)


def generation(info: CallInfo) -> dict[str, str]:
    """Return the attributes of the generation that a call is about."""
    named = {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.provider.name": "muybridge",
        "gen_ai.request.model": info.model,
        "gen_ai.output.type": output_type(info),
    }
    return {name: value for name, value in named.items() if value is not None}


def tags_of(info: CallInfo, keys: Collection[str] | None = None) -> dict[str, str]:
    """Return the attributes that the tags of a call's purchase are: all, or those of *keys*."""
    return {
        f"muybridge.tag.{key}": value
        for key, value in info.tags.items()
        if keys is None or key in keys
    }


class Listener:
    """A listener that records events, and passes them on to another one.

    Args:
        on_event: The other listener, or None.
    """

    def __init__(self, on_event: Callable[[AnyEvent], None] | None) -> None:
        check_callable("on_event", on_event)
        self._next = on_event
        self._has_failed = False

    def __call__(self, event: AnyEvent) -> None:
        """Record *event*, and pass it on to the other listener.

        Raises:
            BaseException: Whatever the other listener raises.
        """
        if event.call is not None:
            try:
                self._record(event, event.call)
            except genuine(Exception) as error:  # a provider's: it must not end a call
                self._say_once(error)
        if self._next is None:
            return
        try:
            self._next(event)
        except BaseException as error:
            if event.call is not None:
                with ignoring_errors():  # the listener's error is the one to raise
                    self._break_off(event, event.call, type(error).__name__)
            raise

    def _record(self, event: AnyEvent, info: CallInfo) -> None:
        raise NotImplementedError

    def _break_off(self, event: AnyEvent, info: CallInfo, error: str) -> None:
        """Take note that the other listener has raised *error* on *event*."""

    def _say_once(self, error: BaseException) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        with ignoring_errors():  # of a log handler
            # The class alone: the message may contain anything.
            CALLS.warning(
                "%s cannot record everything: the provider raised %s. No call is affected.",
                type(self).__name__, type(error).__name__,
            )  # fmt: skip
