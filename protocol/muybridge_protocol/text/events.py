"""Combine the events of a chat completions or messages stream into the response.

The specification does not show events. Here they are read as OpenAI's and Anthropic's own software
reads them: a delta adds to what came before. Texts are joined whatever their field is called, so
that thoughts and other additions are not lost. A field or event of an unexpected type is ignored,
because the answer is paid for; `received` of a stream still has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from muybridge_protocol.records.json import (
    InvalidJson,
    JsonObject,
    as_array,
    as_object,
    read_json,
)

_SAID_ONCE: Final = ("id", "type", "role", "name", "index")
"""Texts that some services repeat in each delta."""


def collect_events(events: Iterable[JsonObject]) -> JsonObject:
    """Return the response that *events* make up.

    Args:
        events: The events of a stream of chat completions or messages.
    """
    chat, messages = _ChatPieces(), _MessagePieces()
    for event in events:
        if "choices" in event:
            chat.add(event)
        else:
            messages.add(event)
    return messages.joined() if messages.begun else chat.joined()


class _ChatPieces:
    """What the events of chat completions bring."""

    def __init__(self) -> None:
        self._fields: JsonObject = {}
        self._choices: dict[int, JsonObject] = {}

    def add(self, event: JsonObject) -> None:
        _tell(self._fields, event)
        for record in filter(None, map(as_object, as_array(event.get("choices")))):
            index: object = record.get("index")
            number = index if isinstance(index, int) else 0
            choice = self._choices.setdefault(number, {"index": number, "message": {}})
            for name, value in record.items():
                if name in ("delta", "message"):
                    _extend(choice["message"], as_object(value) or {})
                elif isinstance(value, dict):  # token probabilities come in pieces
                    _extend(choice, {name: value})
                else:
                    _tell(choice, {name: value})
            choice["index"] = number

    def joined(self) -> JsonObject:
        if not self._fields:
            return {}
        choices = [self._choices[number] for number in sorted(self._choices)]
        for choice in choices:
            message = choice["message"]
            message.setdefault("content", None)
            for call in filter(None, map(as_object, as_array(message.get("tool_calls")))):
                call.pop("index", None)
        kind = str(self._fields.get("object", "")).removesuffix(".chunk")
        return {**self._fields, **({"object": kind} if kind else {}), "choices": choices}


class _MessagePieces:
    """What the events of messages bring."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: dict[int, JsonObject] = {}
        self._arguments: dict[int, str] = {}
        self.begun = False

    def add(self, event: JsonObject) -> None:
        given: object = event.get("index")
        index = given if isinstance(given, int) else 0
        delta = as_object(event.get("delta")) or {}
        match event.get("type"):
            case "message_start":
                self._begin(as_object(event.get("message")) or {})
            case "message":  # a service that does not stream
                self._begin(event)
            case "content_block_start":
                self._blocks[index] = _begun(as_object(event.get("content_block")) or {})
            case "content_block_delta":
                self._add_to_block(index, delta)
            case "message_delta":
                _tell(self._message, delta)
                usage = dict(as_object(self._message.get("usage")) or {})
                _tell(usage, as_object(event.get("usage")) or {})
                self._message["usage"] = usage
            case _:
                pass

    def joined(self) -> JsonObject:
        for index, text in self._arguments.items():
            block = self._blocks.setdefault(index, {"type": "tool_use"})
            try:
                block["input"] = read_json(text)
            except InvalidJson:
                block["input"] = text  # which a call reports as its problem
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return {**self._message, "content": [*as_array(self._message.get("content")), *blocks]}

    def _begin(self, message: JsonObject) -> None:
        self.begun = True
        _tell(self._message, message)

    def _add_to_block(self, index: int, delta: JsonObject) -> None:
        partial: object = delta.get("partial_json")
        if isinstance(partial, str):
            self._arguments[index] = self._arguments.get(index, "") + partial
            return
        block = self._blocks.setdefault(index, {"type": "text"})
        brought = {name: value for name, value in delta.items() if name != "type"}
        if "citation" in brought:
            brought = {"citations": [brought["citation"]]}
        _extend(block, brought)


def _tell(record: JsonObject, said: JsonObject) -> None:
    """Update *record* with what was *said* later. Nulls replace nothing."""
    record.update({k: v for k, v in said.items() if v is not None or k not in record})


def _extend(record: JsonObject, delta: JsonObject) -> None:
    """Add *delta* to *record*: texts and lists are joined, objects merged."""
    for name, value in delta.items():
        known: Any = record.get(name)
        if known is None:
            record[name] = _begun(value)
        elif isinstance(known, str) and isinstance(value, str):
            record[name] = (known or value) if name in _SAID_ONCE else known + value
        elif isinstance(known, list) and isinstance(value, list):
            _extend_list(as_array(known), as_array(value))
        elif isinstance(known, dict) and isinstance(value, dict):
            _extend(record[name], as_object(value) or {})
        elif value is not None:
            record[name] = value


def _begun(value: Any) -> Any:
    """Return a copy of *value* that later deltas are added to."""
    record = as_object(value)
    if record is not None:
        begun: JsonObject = {}
        _extend(begun, record)
        return begun
    if isinstance(value, list):
        several: list[Any] = []
        _extend_list(several, as_array(value))
        return several
    return value


def _extend_list(known: list[Any], delta: list[Any]) -> None:
    """Add the items of *delta*. Objects with an index belong to the one that has it already."""
    for item in delta:
        record = as_object(item)
        index = None if record is None else record.get("index")
        same = [
            one
            for one in known
            if index is not None and (as_object(one) or {}).get("index") == index
        ]
        if same and record is not None:
            _extend(same[0], record)
        else:
            known.append(_begun(item))
