"""The events of a streamed response, in each of the protocols that the service speaks.

The specification does not show chunks. So the client reads only two things from them: whether the
answer is complete, and whether the service reported an error instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import attrs

from muybridge_protocol.records.json import JsonObject, as_array, as_object
from muybridge_protocol.text.responses import NO_REASON, GenerateContentChunk

T = TypeVar("T")


class Ending:
    """Watches a stream's events for the end of the answer, which may have several candidates.

    Some services send a finish reason in every event, or before the first word. So reasons alone
    end the answer only if some candidate brought content without a reason first, and no candidate
    brought any after its own reason. Otherwise the answer is complete only once the body has also
    ended.
    """

    def __init__(self) -> None:
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._spoken = False  # a candidate brought content without a reason
        self._whole = False
        self.doubtful: bool = False
        """Whether a candidate brought content after its finish reason."""
        self.over: bool = False
        """Whether the service has said that nothing follows."""

    @property
    def seen(self) -> bool:
        """Whether the answer is complete: as a whole, or every candidate that has begun."""
        return self._whole or bool(self._ended and self._begun <= self._ended)

    @property
    def certain(self) -> bool:
        """Whether the answer is complete, whatever happens to the rest of the body."""
        return self._whole or (self._spoken and self.seen and not self.doubtful)

    def end(self) -> None:
        """Record that the whole answer is complete."""
        self._whole = True

    def close(self) -> None:
        """Record that the whole answer is complete and that nothing follows."""
        self._whole = self.over = True

    def watch(
        self, candidates: Any, reason: str, speaks: Callable[[JsonObject], bool] | None = None
    ) -> None:
        """Record which of an event's *candidates* have ended: those with a finish reason.

        Args:
            candidates: The event's candidates.
            reason: The name of the field with the reason.
            speaks: Returns whether a candidate brings content.
        """
        if not isinstance(candidates, list):
            return
        for candidate in candidates:  # pyright: ignore[reportUnknownVariableType]  of anything
            if not isinstance(candidate, dict):
                continue
            record: JsonObject = candidate  # pyright: ignore[reportUnknownVariableType]  as above; a cast takes time
            index: object = record.get("index")
            number = index if isinstance(index, int) else 0
            self._begun.add(number)
            if number in self._ended and speaks is not None and speaks(record):
                self.doubtful = True
            why: object = record.get(reason)
            if why and why not in NO_REASON:
                self._ended.add(number)
            elif not self._spoken:
                self._spoken = speaks is not None and speaks(record)


@attrs.frozen
class Dialect(Generic[T]):
    """One protocol's events.

    Args:
        name: Its name.
        chunk: Makes a chunk of an event.
        watch: Updates the `Ending` from an event.
        done_ends: Whether `[DONE]` means that the answer is complete.
    """

    name: str
    chunk: Callable[[JsonObject], T]
    watch: Callable[[JsonObject, Ending], None]
    done_ends: bool = False


def tells_error(record: JsonObject) -> bool:
    """Whether *record*, a whole response or an event, reports an error instead of an answer.

    An empty error, such as one with the code 0 and an empty message, does not count.
    """
    error: Any = record.get("error")
    if error and (not isinstance(error, dict) or any(cast("JsonObject", error).values())):
        return True
    return record.get("type") == "error"


def _watch_native(event: JsonObject, ending: Ending) -> None:
    ending.watch(event.get("candidates"), "finishReason", _brings_parts)
    if "promptFeedback" in event:
        feedback = as_object(event["promptFeedback"])
        if feedback is not None and feedback.get("blockReason"):
            ending.end()


def _watch_chat(event: JsonObject, ending: Ending) -> None:
    ending.watch(event.get("choices"), "finish_reason", _brings_delta)


def _watch_messages(event: JsonObject, ending: Ending) -> None:
    # A service that does not stream sends the whole message, with the reason at the top level.
    kind, delta = event.get("type"), as_object(event.get("delta")) or event
    if kind == "message_stop":
        ending.close()
    elif delta.get("stop_reason"):
        ending.watch([delta], "stop_reason")
    elif kind == "content_block_delta":
        ending.watch([delta], "stop_reason", _brings_anything)


def _brings_parts(candidate: JsonObject) -> bool:
    content = as_object(candidate.get("content")) or {}
    parts = [as_object(part) or {} for part in as_array(content.get("parts"))]
    return any(part.get("text") or part.keys() - {"text", "thought"} for part in parts)


def _brings_delta(choice: JsonObject) -> bool:
    delta = as_object(choice.get("delta")) or {}
    return any(value for name, value in delta.items() if name != "role")


def _brings_anything(delta: JsonObject) -> bool:
    return any(value for name, value in delta.items() if name != "type")


def _as_it_is(event: JsonObject) -> JsonObject:
    return event


NATIVE = Dialect("generateContent", GenerateContentChunk, _watch_native)
CHAT = Dialect("chat completions", _as_it_is, _watch_chat, done_ends=True)
MESSAGES = Dialect("messages", _as_it_is, _watch_messages)
