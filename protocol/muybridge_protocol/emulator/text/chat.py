"""Chat completions, in the shapes that OpenAI's own software reads.

The specification shows neither the request nor the response of this endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.text.answer import (
    INTERRUPTION,
    Answer,
    Call,
    Candidate,
    Ending,
)
from muybridge_protocol.emulator.text.functions import Function, Functions
from muybridge_protocol.emulator.text.markers import TextMarker
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.emulator.text.prompt import (
    MOST_CANDIDATES,
    USER,
    Called,
    Inline,
    Linked,
    Other,
    Part,
    Prompt,
    Returned,
    Turn,
)
from muybridge_protocol.emulator.text.wire import TextProtocol, write
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.values import either

_SYSTEM_ROLES = ("system", "developer")
_ROLES = (*_SYSTEM_ROLES, USER, "assistant", "tool", "function")

_SETTINGS = (("temperature",), ("top_p",))
_MOST_TOKENS = ("max_completion_tokens", "max_tokens")

_FINISH_REASONS: Mapping[Ending, str] = {
    Ending.STOP: "stop",
    Ending.MAX_TOKENS: "length",
    Ending.SAFETY: "content_filter",
    Ending.BLOCKED: "content_filter",
}
_ERROR_TYPES: Mapping[int, tuple[str, str | None]] = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", "forbidden"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", None),
}
_BAD_REQUEST = ("invalid_request_error", None)


@attrs.frozen
class Chat(TextProtocol):
    """The chat completions protocol."""

    def read(self, body: JsonObject) -> Prompt:
        """Return what the *body* of a request asks for."""
        root = Node(body)
        limits = [root.field(name) for name in _MOST_TOKENS]
        counts = [(node.name, node.count()) for node in limits if node is not None]
        turns = [_turn(node) for node in root.required("messages").elements()]
        options = root.field("stream_options")
        form = root.field("response_format")
        kind = "" if form is None else form.text_of("type")
        schema = form.required(kind) if form is not None and kind == "json_schema" else None
        return Prompt(
            model=self.model(body),
            turns=tuple(turn for turn in turns if turn.role not in _SYSTEM_ROLES),
            system=tuple(turn.text for turn in turns if turn.role in _SYSTEM_ROLES),
            settings=(*root.numbers(*_SETTINGS), *counts),
            most_tokens=min((count for _, count in counts), default=None),
            streaming=root.is_set("stream"),
            usage_wanted=options is not None and options.is_set("include_usage"),
            candidates=root.count_of("n", most=MOST_CANDIDATES),
            functions=_functions(root),
            json_wanted=kind == "json_object",
            json_schema=None if schema is None else schema.required("schema"),
        )

    def response(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""
        choices: list[JsonObject] = []
        for number, candidate in enumerate(answer.candidates):
            message = {"role": "assistant", "content": candidate.text or None, "refusal": None}
            calls = [
                {"id": _call_id(answer, number, at), "type": "function", "function": _called(call)}
                for at, call in enumerate(candidate.calls)
            ]
            choices.append(
                {
                    "index": number,
                    "message": {**message, **({"tool_calls": calls} if calls else {})},
                    "logprobs": None,
                    "finish_reason": _finish_reason(candidate),
                }
            )
        return {**_record(answer, "chat.completion", choices), "usage": _usage(answer)}

    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""
        numbers = range(len(answer.candidates))
        begin: JsonObject = {"role": "assistant", "content": ""}
        records = [_delta(answer, number, begin) for number in numbers]
        calls = dict.fromkeys(numbers, 0)
        for chunks in answer.rounds():
            for number, chunk in chunks:
                if chunk.text:
                    records.append(_delta(answer, number, {"content": chunk.text}))
                if chunk.call is not None:
                    at = calls[number]
                    identifier = _call_id(answer, number, at)
                    deltas = _call_deltas(chunk.call, at, identifier)
                    records += [_delta(answer, number, {"tool_calls": [one]}) for one in deltas]
                    calls[number] += 1
        if answer.interruption is TextMarker.STREAM_ERROR:
            records.append(self.error(Refused(503, INTERRUPTION)))
        if answer.interruption is not None:
            return tuple(_event(record) for record in records)
        for number, candidate in enumerate(answer.candidates):
            records.append(_delta(answer, number, {}, _finish_reason(candidate)))
        if answer.prompt.usage_wanted:
            records = [{**record, "usage": None} for record in records]
            last = _record(answer, "chat.completion.chunk", [])
            records.append({**last, "usage": _usage(answer)})
        return (*(_event(record) for record in records), b"data: [DONE]\n\n")

    def error(self, refused: Refused) -> JsonObject:
        """Return the body of the response that refuses a request."""
        kind, code = _ERROR_TYPES.get(refused.status, _BAD_REQUEST)
        return {
            "error": {
                "message": str(refused),
                "type": kind,
                "param": refused.field,
                "code": code,
            }
        }


def _functions(root: Node) -> Functions:
    tools = [tool for tool in root.items_of("tools") if tool.text_of("type") == "function"]
    declared = [tool.required("function") for tool in tools]
    functions = Functions(
        tuple(Function(one.required("name").text(), one.field("parameters")) for one in declared)
    )
    choice = root.field("tool_choice")
    if choice is None:
        return functions
    if isinstance(choice.value, str):
        return functions.under(choice.value, demanding="required")
    if choice.text_of("type") == "allowed_tools":
        allowed = choice.required("allowed_tools")
        names = [
            tool.required("function").required("name") for tool in allowed.required("tools").items()
        ]
        return functions.only(names).under(allowed.text_of("mode"), demanding="required")
    return functions.only([choice.required("function").required("name")]).demand()


def _turn(node: Node) -> Turn:
    role = node.required("role")
    if role.text() not in _ROLES:
        raise role.refused(f"must be {either(_ROLES)}")
    content = node.field("content")
    if role.text() == "tool" and content is not None:
        texts = [part for part in content.text_or(_part) if isinstance(part, str)]
        result = Returned("tool", id=node.text_of("tool_call_id"), value="\n".join(texts))
        return Turn(role.text(), (result,))
    calls = tuple(_call(call) for call in node.items_of("tool_calls"))
    if content is None:
        # A turn of the assistant that only calls functions has no content.
        if role.text() != "assistant":
            raise node.refused("must have content")
        return Turn(role.text(), calls)
    return Turn(role.text(), (*content.text_or(_part), *calls))


def _call(node: Node) -> Called:
    function = node.field("function")
    name = "" if function is None else function.text_of("name")
    return Called("tool_calls", name, node.text_of("id"))


def _part(node: Node) -> Part:
    kind = node.required("type").text()
    if kind == "text":
        return node.required("text").text()
    if kind == "image_url":
        image = node.required("image_url")
        return _picture(image if isinstance(image.value, str) else image.required("url"))
    return Other(kind)


def _picture(node: Node) -> Inline | Linked:
    url = node.text()
    if url[:5].lower() != "data:":
        return Linked(url)
    head, comma, data = url[5:].partition(",")
    media_type, *parameters = head.split(";")
    if not comma or parameters[-1:] != ["base64"]:
        raise node.refused("must be a base64 data: URL, or another URL")
    return Inline(media_type, node.decoded(data))


def _called(call: Call) -> JsonObject:
    return {"name": call.name, "arguments": call.written}


def _call_id(answer: Answer, candidate: int, number: int) -> str:
    return f"call_{answer.id}_{candidate}_{number}"


def _call_deltas(call: Call, number: int, identifier: str) -> list[JsonObject]:
    """Return the deltas of a call: its beginning, and its arguments piece by piece."""
    begin = {"name": call.name, "arguments": ""}
    return [
        {"index": number, "id": identifier, "type": "function", "function": begin},
        *({"index": number, "function": {"arguments": piece}} for piece in call.pieces),
    ]


def _finish_reason(candidate: Candidate) -> str:
    return "tool_calls" if candidate.ends_in_calls else _FINISH_REASONS[candidate.ending]


def _delta(
    answer: Answer, number: int, delta: JsonObject, finish_reason: str | None = None
) -> JsonObject:
    choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _record(answer, "chat.completion.chunk", [choice])


def _record(answer: Answer, kind: str, choices: list[JsonObject]) -> JsonObject:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created,
        "model": answer.prompt.model,
        "choices": choices,
    }


def _usage(answer: Answer) -> JsonObject:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.tokens,
        "total_tokens": answer.prompt_tokens + answer.tokens,
    }


def _event(record: JsonObject) -> bytes:
    return b"data: " + write(record) + b"\n\n"
