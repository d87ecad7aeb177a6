"""The forms in which services stream function calls, and the calls that they are.

Forms that a protocol's own software joins as well are marked: it is the oracle for those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

Call = tuple[str | None, str, dict[str, Any], str | None]
"""The id, name, arguments and problem of a call."""

CUT = "The arguments are not a JSON object."
PARTIAL = "The arguments are not complete."
NAMELESS = "The call has no name of a function."


@attrs.frozen
class Form:
    """One form of a stream.

    Args:
        events: The events.
        calls: What they are.
        standard: Whether the protocol's own software reads it in the same way.
    """

    events: tuple[dict[str, Any], ...]
    calls: tuple[Call, ...]
    standard: bool = True


def chat_events(*deltas: dict[str, Any], reason: str = "tool_calls") -> tuple[dict[str, Any], ...]:
    """Return the events of chat completions with *deltas*."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def event(delta: dict[str, Any], why: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]}

    return (event({"role": "assistant"}), *map(event, deltas), event({}, reason))


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [*pieces]}


def piece(
    arguments: str | None = None, name: str | None = None, **fields: object
) -> dict[str, Any]:
    """Return a piece of a call, with only what is given."""
    function = {"name": name, "arguments": arguments}
    return {
        **fields,
        "function": {key: value for key, value in function.items() if value is not None},
    }


T1, T2 = {"id": "t1", "type": "function"}, {"id": "t2", "type": "function"}
WALK: Call = ("t1", "walk", {"a": 1}, None)
TROT: Call = ("t2", "trot", {"b": 2}, None)
WALK_0 = piece('{"a":1}', "walk", index=0, **T1)
TROT_1 = piece('{"b":2}', "trot", index=1, **T2)

CHAT: Mapping[str, Form] = {
    "whole": Form(chat_events(calls(WALK_0)), (WALK,)),
    "in pieces": Form(
        chat_events(
            calls(piece("", "walk", index=0, **T1)),
            calls(piece('{"a"', index=0)),
            calls(piece(":1}", index=0)),
        ),
        (WALK,),
    ),
    "two, one after the other": Form(chat_events(calls(WALK_0), calls(TROT_1)), (WALK, TROT)),
    "two in one delta": Form(chat_events(calls(WALK_0, TROT_1)), (WALK, TROT)),
    "two interleaved": Form(
        chat_events(
            calls(piece('{"a"', "walk", index=0, **T1), piece('{"b"', "trot", index=1, **T2)),
            calls(piece(":1}", index=0), piece(":2}", index=1)),
        ),
        (WALK, TROT),
    ),
    "two pieces of one call in one delta": Form(
        chat_events(calls(piece('{"a"', "walk", index=0, **T1), piece(":1}", index=0))), (WALK,)
    ),
    "a name in pieces": Form(
        chat_events(
            calls(piece(None, "wa", index=0, **T1)),
            calls(piece('{"a":1}', "lk", index=0)),
        ),
        (WALK,),
    ),
    "no parameters": Form(
        chat_events(calls(piece("", "walk", index=0, **T1))), (("t1", "walk", {}, None),)
    ),
    "one call without tool_calls": Form(
        chat_events(
            {"function_call": {"name": "walk", "arguments": ""}},
            {"function_call": {"arguments": '{"a"'}},
            {"function_call": {"arguments": ":1}"}},
            reason="function_call",
        ),
        ((None, "walk", {"a": 1}, None),),
    ),
    "cut off": Form(
        chat_events(calls(piece('{"a"', "walk", index=0, **T1))),
        (("t1", "walk", {}, CUT),),
        standard=False,
    ),
    "one index, two ids": Form(
        chat_events(
            calls(WALK_0), calls(piece('{"b"', "trot", index=0, **T2)), calls(piece(":2}", index=0))
        ),
        (WALK, TROT),
        standard=False,
    ),
    "one id, no index": Form(
        chat_events(calls(piece('{"a"', "walk", **T1)), calls(piece(":1}", id="t1"))),
        (WALK,),
        standard=False,
    ),
    "two ids, no index": Form(
        chat_events(
            calls(piece('{"a"', "walk", **T1), piece('{"b"', "trot", **T2)),
            calls(piece(":1}", **T1), piece(":2}", **T2)),
        ),
        (WALK, TROT),
        standard=False,
    ),
    "one id, two indexes": Form(
        chat_events(calls(WALK_0), calls(piece('{"b":2}', "trot", index=1, **T1))),
        (WALK, ("t1", "trot", {"b": 2}, None)),
    ),
    "neither id nor index": Form(
        chat_events(
            calls(piece('{"a"', "walk")),
            calls(piece(":1}")),
            calls(piece('{"b"', "trot")),
            calls(piece(":2}")),
        ),
        ((None, *WALK[1:]), (None, *TROT[1:])),
        standard=False,
    ),
    "the same function twice, neither id nor index": Form(
        chat_events(calls(piece('{"a":1}', "walk")), calls(piece('{"a":2}', "walk"))),
        ((None, *WALK[1:]), (None, "walk", {"a": 2}, None)),
        standard=False,
    ),
    "one index, no ids": Form(
        chat_events(
            calls(piece('{"a":1}', "walk", index=0)), calls(piece('{"b":2}', "trot", index=0))
        ),
        ((None, *WALK[1:]), (None, *TROT[1:])),
        standard=False,
    ),
    "all repeated in each piece": Form(
        chat_events(
            calls(piece('{"a"', "walk", index=0, **T1)), calls(piece(":1}", "walk", index=0, **T1))
        ),
        (WALK,),
        standard=False,
    ),
    "blank ids after the first": Form(
        chat_events(
            calls(piece('{"a"', "walk", index=0, **T1)),
            calls(piece(":1}", "", index=0, id="")),
        ),
        (WALK,),
    ),
    "another id in each piece": Form(
        chat_events(
            calls(piece('{"a"', "walk", index=0, **T1)), calls(piece(":1}", index=0, **T2))
        ),
        (WALK,),
        standard=False,
    ),
    "an id that comes late": Form(
        chat_events(calls(piece('{"a"', "walk", index=0)), calls(piece(":1}", index=0, **T1))),
        (WALK,),
    ),
}


def messages_events(*events: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the events of a message with *events* for its blocks."""
    message: dict[str, Any] = {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }  # fmt: skip
    why = {"stop_reason": "tool_use", "stop_sequence": None}
    end = {"type": "message_delta", "delta": why, "usage": {"output_tokens": 9}}
    return (
        {"type": "message_start", "message": message},
        *events,
        end,
        {"type": "message_stop"},
    )


def started(ident: str, name: str, index: int | None = 0, **fields: object) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_use", "id": ident, "name": name, "input": {}, **fields}
    return {"type": "content_block_start", **_at(index), "content_block": block}


def brought(partial: str, index: int | None = 0) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": partial}
    return {"type": "content_block_delta", **_at(index), "delta": delta}


def stopped(index: int | None = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", **_at(index)}


def _at(index: int | None) -> dict[str, int]:
    return {} if index is None else {"index": index}


MESSAGES: Mapping[str, Form] = {
    "in pieces": Form(
        messages_events(
            started("t1", "walk"), brought(""), brought('{"a"'), brought(":1}"), stopped()
        ),
        (WALK,),
    ),
    "two blocks": Form(
        messages_events(
            started("t1", "walk"), brought('{"a":1}'), stopped(),
            started("t2", "trot", 1), brought('{"b":2}', 1), stopped(1),
        ),
        (WALK, TROT),
    ),
    "two interleaved": Form(
        messages_events(
            started("t1", "walk"), started("t2", "trot", 1), brought('{"a"'), brought('{"b"', 1),
            brought(":1}"), brought(":2}", 1), stopped(), stopped(1),
        ),
        (WALK, TROT),
    ),
    "no parameters, one empty piece": Form(
        messages_events(started("t1", "walk"), brought(""), stopped()),
        (("t1", "walk", {}, None),),
    ),
    "no parameters, no piece": Form(
        messages_events(started("t1", "walk"), stopped()), (("t1", "walk", {}, None),)
    ),
    "no parameters, a blank piece": Form(
        messages_events(started("t1", "walk"), brought(" "), stopped()),
        (("t1", "walk", {}, None),),
        standard=False,
    ),
    "no parameters, no input": Form(
        messages_events(started("t1", "walk", input=""), brought(""), stopped()),
        (("t1", "walk", {}, None),),
        standard=False,
    ),
    "the input at the start": Form(
        messages_events(started("t1", "walk", input={"a": 1}), brought(""), stopped()), (WALK,)
    ),
    "the input replaced": Form(
        messages_events(started("t1", "walk", input={"b": 2}), brought('{"a":1}'), stopped()),
        (WALK,),
    ),
    "one index, two blocks": Form(
        messages_events(
            started("t1", "walk"), brought('{"a":1}'), stopped(),
            started("t2", "trot"), brought('{"b":2}'), stopped(),
        ),
        (WALK, TROT),
        standard=False,
    ),
    "no index": Form(
        messages_events(
            started("t1", "walk", None), brought('{"a":1}', None), stopped(None),
            started("t2", "trot", None), brought('{"b":2}', None), stopped(None),
        ),
        (WALK, TROT),
        standard=False,
    ),
    "cut off": Form(
        messages_events(started("t1", "walk"), brought('{"a"'), stopped()),
        (("t1", "walk", {}, CUT),),
        standard=False,
    ),
}  # fmt: skip


def native_events(*several: dict[str, Any] | None) -> tuple[dict[str, Any], ...]:
    """Return chunks with a call each, or none."""
    parts = [[] if call is None else [{"functionCall": call}] for call in several]
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": one}, "index": 0}]} for one in parts
    ]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return tuple(chunks)


def at(path: str, *, more: bool = False, **value: object) -> dict[str, Any]:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def more(*pieces: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**fields, **({"partialArgs": [*pieces]} if pieces else {}), "willContinue": True}


NATIVE: Mapping[str, Form] = {
    "whole": Form(
        native_events({"name": "walk", "args": {"a": 1}}, {"name": "trot", "args": {"b": 2}}),
        ((None, *WALK[1:]), (None, *TROT[1:])),
    ),
    "no parameters": Form(native_events({"name": "walk"}), ((None, "walk", {}, None),)),
    "in pieces": Form(
        native_events(
            more(name="walk"),
            more(at("$.speed", numberValue=5), at("$.far", boolValue=False)),
            more(at("$.to", stringValue="Pal", more=True)),
            more(at("$.to", stringValue="o ", more=True)),
            more(at("$.to", stringValue="Alto")),
            more(at("$.with", nullValue="NULL_VALUE")),
            {},
        ),
        (
            (
                None,
                "walk",
                {"speed": 5, "far": False, "to": "Palo Alto", "with": None},
                None,
            ),
        ),
    ),
    "objects and arrays": Form(
        native_events(
            more(
                at("$.stops[0].name", stringValue="barn"),
                at("$.stops[1]['the name']", stringValue="hill"),
                at('$["gait"]', stringValue="trot"),
                name="walk",
            ),
            {"partialArgs": [at("$.stops[1].far", boolValue=True)]},
        ),
        (
            (
                None,
                "walk",
                {"stops": [{"name": "barn"}, {"the name": "hill", "far": True}], "gait": "trot"},
                None,
            ),
        ),
    ),
    "two by their ids": Form(
        native_events(
            more(at("$.a", numberValue=1), name="walk", id="t1"),
            more(name="trot", id="t2"),
            {"id": "t1"},
            {"id": "t2", "partialArgs": [at("$.b", numberValue=2)]},
        ),
        (WALK, TROT),
    ),
    "not continued": Form(
        native_events(more(at("$.a", numberValue=1), name="walk")),
        ((None, "walk", {}, PARTIAL),),
    ),
    "not continued, without a piece": Form(
        native_events(more(name="walk"), None), ((None, "walk", {}, PARTIAL),)
    ),
    "a text that is not continued": Form(
        native_events(more(at("$.to", stringValue="Pal", more=True), name="walk"), {}),
        ((None, "walk", {}, PARTIAL),),
    ),
    "another call first": Form(
        native_events(
            more(at("$.a", numberValue=1), name="walk"), {"name": "trot", "args": {"b": 2}}
        ),
        ((None, "walk", {}, PARTIAL), (None, *TROT[1:])),
    ),
    **{
        f"the path {path}": Form(
            native_events({"name": "walk", "partialArgs": [at(path, numberValue=1)]}),
            ((None, "walk", {}, PARTIAL),),
        )
        for path in ("$", "", "a", "$.", "$..a", "$.a[1]", "$.a[*]", "$.a[-1]", "$[0]", "$.a" * 101)
    },
    "a path through a text": Form(
        native_events(
            more(at("$.a", stringValue="x"), name="walk"),
            {"partialArgs": [at("$.a.b", numberValue=1)]},
        ),
        ((None, "walk", {}, PARTIAL),),
    ),
}
