"""Chat completions, in the shapes that OpenAI's own software reads.

The specification shows neither the request nor the response of this endpoint.
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
        """Read the *body* of a request."""
        root = Node(body)
        limits = [root.field(name) for name in _MOST_TOKENS]
        counts = [(node.name, node.count()) for node in limits if node is not None]
        turns = [_turn(node) for node in root.required("messages").elements()]
        options = root.field("stream_options")
        return Prompt(
            model=self.model(body),
            turns=tuple(turn for turn in turns if turn.role not in _SYSTEM_ROLES),
            system=tuple(turn.text for turn in turns if turn.role in _SYSTEM_ROLES),
            settings=(*root.numbers(*_SETTINGS), *counts),
            most_tokens=min((count for _, count in counts), default=None),
            streaming=root.is_set("stream"),
            usage_wanted=options is not None and options.is_set("include_usage"),
        )

    def reply(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""
        message = {"role": "assistant", "content": answer.text or None, "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH_REASONS[answer.ending],
        }
        return {**_record(answer, "chat.completion", [choice]), "usage": _usage(answer)}

    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": chunk.text} for chunk in answer.chunks() if chunk.text]
        records = [_delta(answer, delta) for delta in deltas]
        if answer.interruption is TextMarker.STREAM_ERROR:
            records.append(self.error(Refused(503, INTERRUPTION)))
        if answer.interruption is not None:
            return tuple(_event(record) for record in records)
        records.append(_delta(answer, {}, _FINISH_REASONS[answer.ending]))
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


def _turn(node: Node) -> Turn:
    role = node.required("role")
    if role.text() not in _ROLES:
        raise role.refused(f"must be {either(_ROLES)}")
    content = node.field("content")
    if content is None:
        # A turn of the assistant that only calls functions has no content.
        if role.text() != "assistant":
            raise node.refused("must have content")
        return Turn(role.text(), ())
    return Turn(role.text(), content.text_or(_part))


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


def _delta(answer: Answer, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
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
