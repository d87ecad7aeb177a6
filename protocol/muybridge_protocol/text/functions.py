"""Function calls of a model, and the results that are returned to it.

The specification does not show them. A call is read from what each protocol's own software
expects, and a result is written so:

- native: a part with `functionCall` (`name`, `args`, perhaps `id`), and one with `functionResponse`
- chat completions: `tool_calls`, whose arguments are JSON in a text, and a message of the role
  `tool`; formerly `function_call`, and the role `function`
- messages: a block `tool_use` (`name`, `input`, `id`), and a block `tool_result`

Nothing runs a function by itself: the program decides what a call may do. A call is never dropped,
because it has been paid for. If its arguments cannot be read, `problem` says so, and a result can
tell the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import attrs

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.records.convert import as_it_is, exactly, structure, wire
from muybridge_protocol.records.json import (
    InvalidJson,
    JsonObject,
    as_array,
    as_object,
    read_object,
    write_json,
)
from muybridge_protocol.rules.json_values import unwritable
from muybridge_protocol.rules.values import Problem

CALL: Final = "functionCall"
"""The field of a native part that is a call."""
RESULT: Final = "functionResponse"
"""The field of a native part that is a result."""

ARGUMENTS: Final = "args"
PIECES: Final = "partialArgs"
CONTINUES: Final = "willContinue"
_LEGACY_CALL: Final = "function_call"
"""The field of a chat message that holds the only call, in place of `tool_calls`."""
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def _read_arguments(value: object, _: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        return read_object(value) if value.strip() else {}
    arguments = as_object(value)
    if arguments is None:
        raise InvalidJson("it is not an object")
    return arguments


def _as_dict(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)


def _write_value(value: Any) -> JsonObject:
    """Return the value of a result as an object, which the native protocol expects."""
    return dict(cast("JsonObject", value)) if isinstance(value, Mapping) else {"result": value}


@attrs.frozen
class FunctionCall:
    """A function that the model wants to be called.

    Args:
        name: The function's name, or "" if it is missing.
        arguments: Its arguments by name; empty if they cannot be read.
        id: The call's identifier, or None where the protocol has none.
        extra: Its other fields, and values that cannot be read.
    """

    name: str = attrs.field(default="", metadata=wire(exactly(str)))
    arguments: Mapping[str, Any] = attrs.field(
        default=_NONE,
        converter=_as_dict,
        hash=False,
        metadata=wire(_read_arguments, name=ARGUMENTS),
    )
    id: str | None = attrs.field(default=None, metadata=wire(exactly(str)))
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False, kw_only=True)

    @property
    def problem(self) -> str | None:
        """Why the call cannot be understood, as a sentence, or None."""
        if not self.name:
            return "The call has no name of a function."
        if self.extra.get(ARGUMENTS) is not None:
            return "The arguments are not a JSON object."
        if self.extra.get(PIECES) or self.extra.get(CONTINUES):
            return "The arguments are not complete."
        return None

    def result(self, value: Any) -> FunctionResult:
        """Return *value*, any JSON, as the result of this call."""
        return FunctionResult(self.name, value, self.id)


@attrs.frozen
class FunctionResult:
    """The result of a call, to be returned to the model.

    Args:
        name: The function's name.
        value: The result: any JSON. For the native protocol, a value that is not a mapping becomes
            the field `result` of one.
        id: The call's identifier, or None if it has none.
        extra: Other fields of the native part.
    """

    name: str
    value: Any = attrs.field(
        hash=False, metadata=wire(as_it_is, write=_write_value, name="response")
    )
    id: str | None = attrs.field(default=None, metadata=wire(exactly(str)))
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False, kw_only=True)


def function_calls(answer: Mapping[str, Any]) -> tuple[FunctionCall, ...]:
    """Return the function calls in an *answer* of chat completions or messages.

    Of several choices, those of the first one count. Responses in the native protocol have them as
    `function_calls`.

    Args:
        answer: The response, or what `collect` makes of a stream.
    """
    message = _chat_message(answer)
    calls = [*as_array(message.get("tool_calls"))]
    if message.get(_LEGACY_CALL) is not None:
        calls.append({"function": message[_LEGACY_CALL]})
    records = map(_chat_call, calls)
    blocks = (as_object(block) or {} for block in as_array(answer.get("content")))
    used = (_used_call(block) for block in blocks if block.get("type") == "tool_use")
    return tuple(structure(record, FunctionCall) for record in (*records, *used))


def next_messages(
    answer: Mapping[str, Any], results: Iterable[FunctionResult] = ()
) -> list[JsonObject]:
    """Return the messages that continue a conversation of chat completions or messages.

    They are the model's *answer* and the *results* of its calls, to be added to the `messages` of
    the next request. In the native protocol, a `Conversation` does the same.

    Args:
        answer: The response, or what `collect` makes of a stream.
        results: The result of each call.

    Raises:
        InvalidRequest: The answer has no message, or a result is not JSON.
    """
    returned = list(results)
    message = _chat_message(answer)
    if message:
        return [message, *(_chat_result(message, one) for one in returned)]
    blocks = as_array(answer.get("content"))
    if not blocks:
        hint = "use the whole response of chat completions or messages"
        problem = Problem("messages", answer, "required", "the answer has no message", hint)
        raise InvalidRequest("text", [problem])
    answers: list[JsonObject] = [
        {"type": "tool_result", "tool_use_id": one.id, "content": _text(one)} for one in returned
    ]
    messages: list[JsonObject] = [{"role": "assistant", "content": blocks}]
    return [*messages, {"role": "user", "content": answers}] if answers else messages


def _chat_result(message: JsonObject, result: FunctionResult) -> JsonObject:
    if result.id is None and message.get(_LEGACY_CALL) is not None:
        return {"role": "function", "name": result.name, "content": _text(result)}
    return {"role": "tool", "tool_call_id": result.id, "content": _text(result)}


def _text(result: FunctionResult) -> str:
    problem = unwritable("content", result.value)
    if problem is not None:
        raise InvalidRequest("text", [problem])
    return result.value if isinstance(result.value, str) else write_json(result.value).decode()


def read_call(record: object) -> FunctionCall:
    """Return the call in *record*, the value of `functionCall` in a native part."""
    return structure(as_object(record) or {}, FunctionCall)


def _chat_message(answer: Mapping[str, Any]) -> JsonObject:
    choices = as_array(answer.get("choices"))
    choice = as_object(choices[0]) if choices else None
    return as_object((choice or {}).get("message")) or {}


def _chat_call(call: object) -> JsonObject:
    record = dict(as_object(call) or {})
    function = dict(as_object(record.pop("function", None)) or {})
    record.pop("type", None)
    return _renamed({**record, **function}, "arguments")


def _used_call(block: JsonObject) -> JsonObject:
    return _renamed({name: value for name, value in block.items() if name != "type"}, "input")


def _renamed(record: JsonObject, arguments: str) -> JsonObject:
    """Return *record* with the name that a call's *arguments* have in the native protocol."""
    return {ARGUMENTS if name == arguments else name: value for name, value in record.items()}
