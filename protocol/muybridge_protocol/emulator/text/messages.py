"""Messages, in the shapes that Anthropic's own software reads.

The specification shows neither the path nor the shape of this endpoint.
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

_ROLES = (USER, "assistant")
_FILES = ("image", "document")

# Tools of other types run at the service.
_FUNCTION_TYPES = ("", "custom")

_SETTINGS = (("temperature",), ("top_p",))
_MOST_TOKENS = "max_tokens"

_STOP_REASONS: Mapping[Ending, str] = {
    Ending.STOP: "end_turn",
    Ending.MAX_TOKENS: "max_tokens",
    Ending.SAFETY: "refusal",
    Ending.BLOCKED: "refusal",
}
_ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}


@attrs.frozen
class Messages(TextProtocol):
    """The messages protocol."""

    def read(self, body: JsonObject) -> Prompt:
        """Return what the *body* of a request asks for."""
        root = Node(body)
        most_tokens = root.required(_MOST_TOKENS).count()
        system = root.field("system")
        config = root.field("output_config")
        form = None if config is None else config.field("format")
        return Prompt(
            model=self.model(body),
            turns=tuple(_turn(node) for node in root.required("messages").elements()),
            system=() if system is None else system.text_or(_text),
            settings=(*root.numbers(*_SETTINGS), (_MOST_TOKENS, most_tokens)),
            most_tokens=most_tokens,
            streaming=root.is_set("stream"),
            functions=_functions(root),
            json_schema=None if form is None else form.required("schema"),
        )

    def response(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""
        candidate = answer.first
        blocks: list[JsonObject] = []
        if candidate.text:
            blocks.append({"type": "text", "text": candidate.text})
        for number, call in enumerate(candidate.calls):
            blocks.append(_call_block(answer, number, call, call.arguments))
        return _message(answer, blocks, _stop_reason(candidate), candidate.tokens)

    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""
        candidate = answer.first
        events: list[JsonObject] = [
            {"type": "message_start", "message": _message(answer, [], None, 0)}
        ]
        blocks = _streamed_blocks(answer)
        for index, (block, deltas) in enumerate(blocks):
            # A stream that breaks off does so within its last block.
            ended = answer.interruption is None or index < len(blocks) - 1
            events += _block_events(index, block, deltas, ended=ended)
        if not blocks:
            events.append({"type": "ping"})
        if answer.interruption is TextMarker.STREAM_ERROR:
            events.append(self.error(Refused(503, INTERRUPTION)))
        if answer.interruption is None:
            delta = {"stop_reason": _stop_reason(candidate), "stop_sequence": None}
            usage = {"output_tokens": candidate.tokens}
            events.append({"type": "message_delta", "delta": delta, "usage": usage})
            events.append({"type": "message_stop"})
        return tuple(_event(event) for event in events)

    def error(self, refused: Refused) -> JsonObject:
        """Return the body of the response that refuses a request."""
        kind = _ERROR_TYPES.get(refused.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": str(refused)}}


def _functions(root: Node) -> Functions:
    tools = [tool for tool in root.items_of("tools") if tool.text_of("type") in _FUNCTION_TYPES]
    functions = Functions(
        tuple(Function(tool.required("name").text(), tool.field("input_schema")) for tool in tools)
    )
    choice = root.field("tool_choice")
    kind = "" if choice is None else choice.text_of("type")
    if choice is not None and kind == "tool":
        return functions.only([choice.required("name")]).demand()
    return functions.under(kind, demanding="any")


def _turn(node: Node) -> Turn:
    role = node.required("role")
    if role.text() not in _ROLES:
        raise role.refused(f"must be {either(_ROLES)}")
    return Turn(role.text(), node.required("content").text_or(_part))


def _part(node: Node) -> Part:
    kind = node.required("type").text()
    if kind == "text":
        return _text(node)
    if kind == "tool_use":
        return Called(kind, node.text_of("name"), node.text_of("id"))
    if kind == "tool_result":
        content = node.fields().get("content")
        return Returned(kind, id=node.text_of("tool_use_id"), value=content)
    return _file(node.required("source")) if kind in _FILES else Other(kind)


def _text(node: Node) -> str:
    return node.required("text").text()


def _file(source: Node) -> Part:
    kind = source.required("type").text()
    if kind == "base64":
        media_type = source.required("media_type").text()
        return Inline(media_type, source.required("data").base64())
    return Linked(source.required("url").text()) if kind == "url" else Other(kind)


def _stop_reason(candidate: Candidate) -> str:
    return "tool_use" if candidate.ends_in_calls else _STOP_REASONS[candidate.ending]


def _call_block(
    answer: Answer, number: int, call: Call, arguments: Mapping[str, object]
) -> JsonObject:
    identifier = f"toolu_{answer.id}_{number}"
    return {"type": "tool_use", "id": identifier, "name": call.name, "input": arguments}


def _streamed_blocks(answer: Answer) -> list[tuple[JsonObject, list[JsonObject]]]:
    """Return each block of the message at its beginning, and the deltas that complete it."""
    chunks = [chunk for ((_, chunk),) in answer.rounds()]
    texts: list[JsonObject] = [
        {"type": "text_delta", "text": chunk.text} for chunk in chunks if chunk.text
    ]
    calls = [chunk.call for chunk in chunks if chunk.call is not None]
    blocks: list[tuple[JsonObject, list[JsonObject]]] = []
    if texts:
        blocks.append(({"type": "text", "text": ""}, texts))
    for number, call in enumerate(calls):
        blocks.append((_call_block(answer, number, call, {}), _call_deltas(call)))
    return blocks


def _block_events(
    index: int, block: JsonObject, deltas: list[JsonObject], *, ended: bool
) -> list[JsonObject]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *([{"type": "ping"}] if index == 0 else []),
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        *([{"type": "content_block_stop", "index": index}] if ended else []),
    ]


def _call_deltas(call: Call) -> list[JsonObject]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in call.pieces]


def _message(
    answer: Answer, content: list[JsonObject], stop_reason: str | None, tokens: int
) -> JsonObject:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.prompt.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": answer.prompt_tokens, "output_tokens": tokens},
    }


def _event(record: JsonObject) -> bytes:
    return b"event: " + str(record["type"]).encode() + b"\ndata: " + write(record) + b"\n\n"
