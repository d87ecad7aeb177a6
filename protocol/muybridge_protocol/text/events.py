"""Combine the events of a chat completions or messages stream into the response.

The specification does not show events. Here they are read as OpenAI's and Anthropic's own software
reads them, and as services are known to deviate from it. How the pieces of a field are joined is
stated for each field, in `_MESSAGE` and `_BLOCK`. By default a delta adds to what came before:
texts and lists are joined and objects merged, whatever they are called, so that thoughts and other
additions are not lost. A field or event of an unexpected type is ignored, because the answer is
paid for; `received` of a stream still has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from muybridge_protocol.records.json import (
    InvalidJson,
    JsonObject,
    as_array,
    as_object,
    read_json,
)

_Join = Callable[[Any, Any], Any]
"""Returns what is known of a field, or None, joined with the next piece, which may be None too."""


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
                    _extend(choice["message"], as_object(value) or {}, _MESSAGE)
                elif isinstance(value, dict):  # token probabilities come in pieces
                    _extend(choice, {name: value}, _MOST)
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
            calls = [*filter(None, map(as_object, as_array(message.get("tool_calls"))))]
            for call in calls:
                call.pop("index", None)
            functions = [*(call.get("function") for call in calls), message.get("function_call")]
            for function in filter(None, map(as_object, functions)):
                if _is_blank(function.get("arguments")):
                    function["arguments"] = "{}"  # which can be sent back
        kind = str(self._fields.get("object", "")).removesuffix(".chunk")
        return {**self._fields, **({"object": kind} if kind else {}), "choices": choices}


class _MessagePieces:
    """What the events of messages bring."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: list[_Block] = []
        self.begun = False

    def add(self, event: JsonObject) -> None:
        delta = as_object(event.get("delta")) or {}
        match event.get("type"):
            case "message_start":
                self._begin(as_object(event.get("message")) or {})
            case "message":  # a service that does not stream
                self._begin(event)
            case "content_block_start":
                self._begin_block(event, as_object(event.get("content_block")) or {})
            case "content_block_delta":
                self._block_of(event, delta).add(delta)
            case "message_delta":
                _tell(self._message, delta)
                usage = dict(as_object(self._message.get("usage")) or {})
                _tell(usage, as_object(event.get("usage")) or {})
                self._message["usage"] = usage
            case _:
                pass

    def joined(self) -> JsonObject:
        blocks = [block.joined() for block in sorted(self._blocks, key=lambda block: block.index)]
        return {**self._message, "content": [*as_array(self._message.get("content")), *blocks]}

    def _begin(self, message: JsonObject) -> None:
        self.begun = True
        _tell(self._message, message)

    def _begin_block(self, event: JsonObject, record: JsonObject) -> _Block:
        """Begin a block. An index may be used again, and does not end what came before."""
        index: object = event.get("index")
        block = _Block(index if isinstance(index, int) else len(self._blocks), _added(None, record))
        self._blocks.append(block)
        return block

    def _block_of(self, event: JsonObject, delta: JsonObject) -> _Block:
        """Return the last block with the index of *event*, or the last one if it has none."""
        index: object = event.get("index")
        for block in reversed(self._blocks):
            if not isinstance(index, int) or block.index == index:
                return block
        return self._begin_block(event, {"type": "tool_use" if _PARTIAL in delta else "text"})


_PARTIAL: Final = "partial_json"


class _Block:
    """One block of a message: what began it, and the text of its input."""

    def __init__(self, index: int, record: JsonObject) -> None:
        self.index = index
        self._record = record
        self._input = ""

    def add(self, delta: JsonObject) -> None:
        partial: object = delta.get(_PARTIAL)
        if isinstance(partial, str):
            self._input += partial
            return
        brought = {name: value for name, value in delta.items() if name != "type"}
        if "citation" in brought:
            brought = {"citations": [brought["citation"]]}
        _extend(self._record, brought, _BLOCK)

    def joined(self) -> JsonObject:
        block = self._record
        if self._input.strip():
            try:
                block["input"] = read_json(self._input)
            except InvalidJson:
                block["input"] = self._input  # which a call reports as its problem
        elif str(block.get("type")).endswith("tool_use") and _is_blank(block.get("input")):
            block["input"] = {}
        return block


def _tell(record: JsonObject, facts: JsonObject) -> None:
    """Update *record* with what was *facts* later. Nulls replace nothing."""
    record.update({k: v for k, v in facts.items() if v is not None or k not in record})


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _extend(record: JsonObject, delta: JsonObject, joins: Mapping[str, _Join]) -> None:
    """Add *delta* to *record*, whose fields have their own *joins*."""
    for name, value in delta.items():
        record[name] = joins.get(name, _added)(record.get(name), value)


def _added(whole: Any, value: Any) -> Any:
    """Join texts and lists, merge objects, and take the last of other values."""
    return _joined(whole, value, _MOST)


def _joined(whole: Any, value: Any, joins: Mapping[str, _Join]) -> Any:
    if isinstance(value, dict) and (whole is None or isinstance(whole, dict)):
        merged: JsonObject = as_object(whole) or {}
        _extend(merged, as_object(value) or {}, joins)
        return merged
    if isinstance(value, list) and (whole is None or isinstance(whole, list)):
        return _extended(as_array(whole), as_array(value))
    if isinstance(whole, str) and isinstance(value, str):
        return whole + value
    return cast("Any", whole if value is None else value)


def _extended(whole: list[Any], delta: list[Any]) -> list[Any]:
    """Add the items of *delta*. Objects with an index belong to the one that has it already."""
    for item in delta:
        record = as_object(item)
        index = None if record is None else record.get("index")
        same = None if index is None else _last_with(whole, "index", index)
        if same is not None and record is not None:
            _extend(same, record, _MOST)
        else:
            whole.append(_added(None, item))
    return whole


def _last_with(items: list[Any], name: str, value: object) -> JsonObject | None:
    """Return the last object in *items* whose field *name* has *value*, or None."""
    records = filter(None, map(as_object, reversed(items)))
    return next((record for record in records if record.get(name) == value), None)


def _first(whole: Any, value: Any) -> Any:
    """Keep a text that some services repeat in each delta."""
    both = isinstance(whole, str) and isinstance(value, str)
    return whole if both and whole else _added(None if both else whole, value)


def _last(whole: Any, value: Any) -> Any:
    return whole if value is None else value


def _name(whole: Any, value: Any) -> Any:
    """Join the name of a function, which comes in pieces, or whole in each delta."""
    return whole if whole == value else _added(whole, value)


def _function(whole: Any, value: Any) -> Any:
    return _joined(whole, value, _FUNCTION)


def _calls(whole: Any, value: Any) -> Any:
    """Add pieces of calls to the calls that they continue. Others begin a call."""
    if not isinstance(value, list) or not (whole is None or isinstance(whole, list)):
        return _added(whole, value)
    calls: list[Any] = [] if whole is None else as_array(whole)
    for item in as_array(value):
        piece = as_object(item)
        call = None if piece is None else _continued(calls, piece)
        if call is not None and piece is not None:
            _extend(call, piece, _CALL)
        else:
            calls.append(item if piece is None else _joined(None, piece, _CALL))
    return calls


def _continued(calls: list[Any], piece: JsonObject) -> JsonObject | None:
    """Return the call that *piece* continues, or None if it begins one.

    Its id decides, then its index; a piece with neither continues the last call. Some services give
    all calls the same index, and some give each piece another id. So a piece with an unknown id
    continues a call with its index only if it names no function. A piece without an id that names
    one begins a call, unless the arguments before it are not whole and were for the same function.
    """
    ident, index = piece.get("id"), piece.get("index")
    same = _last_with(calls, "id", ident) if ident else None
    if same is not None and (index is None or same.get("index", index) == index):
        return same
    if index is not None:
        call = _last_with(calls, "index", index)
    else:
        call = None if ident else next(filter(None, map(as_object, reversed(calls))), None)
    name = (as_object(piece.get("function")) or {}).get("name")
    if call is None or not name:
        return call
    function = as_object(call.get("function")) or {}
    arguments = function.get("arguments")
    begins = (ident and call.get("id")) or (
        not _is_blank(arguments) and (name != function.get("name") or _is_whole(arguments))
    )
    return None if begins else call


def _is_whole(arguments: object) -> bool:
    if not isinstance(arguments, str):
        return True
    try:
        read_json(arguments)
    except InvalidJson:
        return False
    return True


_MOST: Final[Mapping[str, _Join]] = dict.fromkeys(("id", "type", "role", "name", "index"), _first)
"""How most objects join their fields. All others are added."""
_FUNCTION: Final[Mapping[str, _Join]] = {"name": _name}
_CALL: Final[Mapping[str, _Join]] = {**_MOST, "function": _function}
_MESSAGE: Final[Mapping[str, _Join]] = {
    **_MOST,
    "tool_calls": _calls,
    "function_call": _function,
}
"""How the deltas of a message of chat completions are joined."""
_BLOCK: Final[Mapping[str, _Join]] = {**_MOST, "signature": _last}
"""How the deltas of a block of messages are joined."""
