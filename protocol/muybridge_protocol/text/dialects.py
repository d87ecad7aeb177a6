"""What the events of a streamed reply are, in each of the protocols that the service speaks.

Chunks are "not shown" in the specification, so that no more is asked of them than to tell whether
the answer is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import attrs

from muybridge_protocol.codec import JsonObject, as_array, as_object
from muybridge_protocol.text.responses import GenerateContentChunk

T = TypeVar("T")


class Ending:
    """Watches a stream's events for the end of the answer. It may have several candidates."""

    def __init__(self) -> None:
        self._begun: set[object] = set()
        self._ended: set[object] = set()
        self._complete = False

    @property
    def seen(self) -> bool:
        """Whether every candidate that has begun has ended."""
        return self._complete or bool(self._ended and self._begun <= self._ended)

    def complete(self) -> None:
        """Take note that the whole stream is complete."""
        self._complete = True

    def candidate(self, index: object, *, ended: bool) -> None:
        """Take note of an event of the candidate *index*."""
        (self._ended if ended else self._begun).add(index)


@attrs.frozen
class Dialect(Generic[T]):
    """One protocol's events.

    Args:
        name: Its name.
        chunk: Makes a chunk of an event.
        watch: Tells whether the answer is complete.
        done_ends: Whether the event `[DONE]` says that it is.
    """

    name: str
    chunk: Callable[[JsonObject], T]
    watch: Callable[[JsonObject, Ending], None]
    done_ends: bool = True


def _watch_native(event: JsonObject, ending: Ending) -> None:
    for candidate in _records(event.get("candidates")):
        ending.candidate(candidate.get("index", 0), ended=bool(candidate.get("finishReason")))
    feedback = as_object(event.get("promptFeedback"))
    if feedback is not None and feedback.get("blockReason"):
        ending.complete()


def _watch_chat(event: JsonObject, ending: Ending) -> None:
    for choice in _records(event.get("choices")):
        ending.candidate(choice.get("index", 0), ended=bool(choice.get("finish_reason")))


def _watch_messages(event: JsonObject, ending: Ending) -> None:
    delta = as_object(event.get("delta"))
    stopped = delta is not None and bool(delta.get("stop_reason"))
    if stopped or event.get("type") == "message_stop":
        ending.complete()


def _records(values: Any) -> Iterable[JsonObject]:
    return [record for record in map(as_object, as_array(values)) if record is not None]


def _as_it_is(event: JsonObject) -> JsonObject:
    return event


NATIVE = Dialect("generateContent", GenerateContentChunk, _watch_native, done_ends=False)
CHAT = Dialect("chat completions", _as_it_is, _watch_chat)
MESSAGES = Dialect("messages", _as_it_is, _watch_messages)
