"""What the events of a streamed reply are, in each of the protocols that the service speaks.

Chunks are "not shown" in the specification, so that no more is asked of them than to tell whether
the answer is complete, or an error has come in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import attrs

from muybridge_protocol.codec import JsonObject, as_array, as_object
from muybridge_protocol.text.responses import GenerateContentChunk

T = TypeVar("T")


class Ending:
    """Watches a stream's events for the end of the answer, which may have several candidates."""

    def __init__(self) -> None:
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._whole = False

    @property
    def seen(self) -> bool:
        """Whether the answer is complete: as a whole, or every candidate that has begun."""
        return self._whole or bool(self._ended and self._begun <= self._ended)

    def end(self) -> None:
        """Take note that the answer as a whole is complete."""
        self._whole = True

    def watch(self, candidates: Any, reason: str) -> None:
        """Take note of an event's *candidates*: those that have a *reason* to stop have ended."""
        for candidate in as_array(candidates):
            if not isinstance(candidate, dict):
                continue
            record = cast("JsonObject", candidate)
            index: object = record.get("index")
            number = index if isinstance(index, int) else 0
            self._begun.add(number)
            if record.get(reason):
                self._ended.add(number)


@attrs.frozen
class Dialect(Generic[T]):
    """One protocol's events.

    Args:
        name: Its name.
        chunk: Makes a chunk of an event.
        watch: Tells whether the answer is complete.
        done_ends: Whether `[DONE]` says that it is.
    """

    name: str
    chunk: Callable[[JsonObject], T]
    watch: Callable[[JsonObject, Ending], None]
    done_ends: bool = False


def tells_error(record: JsonObject) -> bool:
    """Whether *record*, a whole reply or an event, tells an error in place of an answer."""
    return bool(record.get("error")) or record.get("type") == "error"


def _watch_native(event: JsonObject, ending: Ending) -> None:
    ending.watch(event.get("candidates"), "finishReason")
    if "promptFeedback" in event:
        feedback = as_object(event["promptFeedback"])
        if feedback is not None and feedback.get("blockReason"):
            ending.end()


def _watch_chat(event: JsonObject, ending: Ending) -> None:
    ending.watch(event.get("choices"), "finish_reason")


def _watch_messages(event: JsonObject, ending: Ending) -> None:
    # A service that does not stream gives the message itself, with the reason at its top.
    delta = as_object(event.get("delta")) or event
    if delta.get("stop_reason") or event.get("type") == "message_stop":
        ending.end()


def _as_it_is(event: JsonObject) -> JsonObject:
    return event


NATIVE = Dialect("generateContent", GenerateContentChunk, _watch_native)
CHAT = Dialect("chat completions", _as_it_is, _watch_chat, done_ends=True)
MESSAGES = Dialect("messages", _as_it_is, _watch_messages)
