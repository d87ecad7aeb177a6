"""Messages, in the shapes that Anthropic's own software reads.

The specification shows neither the path nor the shape of this endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.text.answer import INTERRUPTION, Answer, Ending
from muybridge_protocol.emulator.text.markers import TextMarker
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.emulator.text.prompt import USER, Inline, Linked, Other, Part, Prompt, Turn
from muybridge_protocol.emulator.text.wire import TextProtocol, write
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.values import either

_ROLES = (USER, "assistant")
_FILES = ("image", "document")

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
        """Read the *body* of a request."""
        root = Node(body)
        most_tokens = root.required(_MOST_TOKENS).count()
        system = root.field("system")
        return Prompt(
            model=self.model(body),
            turns=tuple(_turn(node) for node in root.required("messages").elements()),
            system=() if system is None else system.text_or(_text),
            settings=(*root.numbers(*_SETTINGS), (_MOST_TOKENS, most_tokens)),
            most_tokens=most_tokens,
            streaming=root.is_set("stream"),
        )

    def reply(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""
        content = [{"type": "text", "text": answer.text}] if answer.text else []
        return _message(answer, content, _STOP_REASONS[answer.ending], answer.tokens)

    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""
        start = {"type": "message_start", "message": _message(answer, [], None, 0)}
        pieces = [_event(start)]
        texts = [chunk.text for chunk in answer.chunks() if chunk.text]
        if texts:
            block = {"type": "text", "text": ""}
            begin = {"type": "content_block_start", "index": 0, "content_block": block}
            pieces.append(_event(begin))
        pieces.append(_event({"type": "ping"}))
        for text in texts:
            delta = {"type": "text_delta", "text": text}
            pieces.append(_event({"type": "content_block_delta", "index": 0, "delta": delta}))
        if answer.interruption is TextMarker.STREAM_ERROR:
            pieces.append(_event(self.error(Refused(503, INTERRUPTION))))
        if answer.interruption is not None:
            return tuple(pieces)
        if texts:
            pieces.append(_event({"type": "content_block_stop", "index": 0}))
        end = {"stop_reason": _STOP_REASONS[answer.ending], "stop_sequence": None}
        usage = {"output_tokens": answer.tokens}
        pieces.append(_event({"type": "message_delta", "delta": end, "usage": usage}))
        return (*pieces, _event({"type": "message_stop"}))

    def error(self, refused: Refused) -> JsonObject:
        """Return the body of the response that refuses a request."""
        kind = _ERROR_TYPES.get(refused.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": str(refused)}}


def _turn(node: Node) -> Turn:
    role = node.required("role")
    if role.text() not in _ROLES:
        raise role.refused(f"must be {either(_ROLES)}")
    return Turn(role.text(), node.required("content").text_or(_part))


def _part(node: Node) -> Part:
    kind = node.required("type").text()
    if kind == "text":
        return _text(node)
    return _file(node.required("source")) if kind in _FILES else Other(kind)


def _text(node: Node) -> str:
    return node.required("text").text()


def _file(source: Node) -> Part:
    kind = source.required("type").text()
    if kind == "base64":
        media_type = source.required("media_type").text()
        return Inline(media_type, source.required("data").base64())
    return Linked(source.required("url").text()) if kind == "url" else Other(kind)


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
