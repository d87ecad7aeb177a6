"""The native protocol (spec, "Text request and response").

A stream is a series of server-sent events with `?alt=sse`, and a JSON array without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self
from urllib.parse import parse_qsl

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.text.answer import INTERRUPTION, Answer, Call, Ending
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
from muybridge_protocol.emulator.text.wire import EVENT_STREAM, JSON_TYPE, TextProtocol, write
from muybridge_protocol.records.convert import partial
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.values import either
from muybridge_protocol.text import content
from muybridge_protocol.text.responses import Candidate, PromptFeedback, UsageMetadata

PLAIN = "generateContent"
STREAM = "streamGenerateContent"

# The specification has the first two. Older software sends function results as the others.
_ROLES = (USER, "model", "function", "tool")

_SETTINGS = (("temperature",), ("topP", "top_p"))
_MOST_TOKENS = ("maxOutputTokens", "max_output_tokens")
_SCHEMAS = (
    "responseSchema",
    "response_schema",
    "responseJsonSchema",
    "response_json_schema",
)
_PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema")

_STATUS_NAMES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


@attrs.frozen
class Native(TextProtocol):
    """The native protocol, for one request.

    Args:
        name: The model in the path.
        method: The method in the path.
        events: Whether a stream consists of server-sent events.
    """

    name: str
    method: str
    events: bool

    @classmethod
    def at(cls, segment: str, query: str) -> Self:
        """Return the protocol for the last *segment* and the query of a path."""
        name, _, method = segment.rpartition(":")
        return cls(name, method, ("alt", "sse") in parse_qsl(query))

    @property
    def exists(self) -> bool:
        """Whether the requested path has an endpoint."""
        return self.method in (PLAIN, STREAM)

    @property
    def stream_type(self) -> str:
        """The content type of a streamed response."""
        return EVENT_STREAM if self.events else JSON_TYPE

    def model(self, body: JsonObject) -> str:  # noqa: ARG002  it is in the path
        """Return the model, which this protocol names in the path."""
        return self.name

    def read(self, body: JsonObject) -> Prompt:
        """Return what the *body* of a request asks for."""
        root = Node(body)
        config = root.field("generationConfig", "generation_config")
        settings: list[tuple[str, float]] = []
        most_tokens = schema = None
        mime_type = ""
        if config is not None:
            schema = config.field(*_SCHEMAS)
            mime_type = config.text_of("responseMimeType", "response_mime_type")
            settings = config.numbers(*_SETTINGS)
            limit = config.field(*_MOST_TOKENS)
            if limit is not None:
                most_tokens = limit.count()
                settings.append((limit.name, most_tokens))
        return Prompt(
            model=self.name,
            turns=tuple(_turn(node) for node in root.required("contents").elements()),
            system=_system(root.field("systemInstruction", "system_instruction")),
            settings=tuple(settings),
            most_tokens=most_tokens,
            streaming=self.method == STREAM,
            candidates=(
                1
                if config is None
                else config.count_of("candidateCount", "candidate_count", most=MOST_CANDIDATES)
            ),
            functions=_functions(root),
            json_wanted=mime_type == "application/json",
            json_schema=schema,
        )

    def response(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""
        written = [
            _candidate(number, candidate.text, candidate.calls, candidate.ending)
            for number, candidate in enumerate(answer.candidates)
        ]
        return _record(answer, written, answer.tokens)

    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""
        records: list[JsonObject] = []
        tokens: dict[int, int] = {}
        for chunks in answer.rounds():
            written: list[JsonObject] = []
            for number, chunk in chunks:
                calls = () if chunk.call is None else (chunk.call,)
                ending = answer.candidates[number].ending
                written.append(_candidate(number, chunk.text, calls, ending, last=chunk.last))
                tokens[number] = chunk.tokens
            records.append(_record(answer, written, sum(tokens.values())))
        if answer.interruption is TextMarker.STREAM_ERROR:
            records.append(self.error(Refused(503, INTERRUPTION)))
        encoded = [write(record) for record in records]
        if self.events:
            return tuple(b"data: " + record + b"\r\n\r\n" for record in encoded)
        pieces = [b"[" + encoded[0], *(b"\n,\r\n" + record for record in encoded[1:])]
        return (*pieces, b"\n]") if answer.interruption is not TextMarker.CUT else tuple(pieces)

    def error(self, refused: Refused) -> JsonObject:
        """Return the body of the response that refuses a request."""
        return {
            "error": {
                "code": refused.status,
                "message": str(refused),
                "status": _STATUS_NAMES[refused.status],
            }
        }


def _turn(node: Node) -> Turn:
    role = node.field("role")
    name = USER if role is None else role.text()
    if role is not None and name not in _ROLES:
        raise role.refused(f"must be {either(_ROLES[:2])}")
    return Turn(name, tuple(_part(part) for part in node.required("parts").elements()))


def _part(node: Node) -> Part:
    text = node.field("text")
    if text is not None:
        return text.text()
    inline = node.field("inlineData", "inline_data")
    if inline is not None:
        media_type = inline.required("mimeType", "mime_type").text()
        return Inline(media_type, inline.required("data").base64())
    call = node.field("functionCall", "function_call")
    if call is not None:
        return Called("functionCall", call.text_of("name"), call.text_of("id"))
    result = node.field("functionResponse", "function_response")
    if result is not None:
        name, value = result.text_of("name"), result.fields().get("response")
        return Returned("functionResponse", name, result.text_of("id"), value)
    file = node.field("fileData", "file_data")
    if file is not None:
        return Linked(file.required("fileUri", "file_uri").text())
    kinds = [name for name, value in node.fields().items() if value is not None]
    if not kinds:
        raise node.refused("must have text, inlineData or another content")
    return Other(kinds[0])


def _system(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    if isinstance(node.value, str):
        return (node.value,)
    texts = [part.field("text") for part in node.required("parts").elements()]
    return tuple(text.text() for text in texts if text is not None)


def _functions(root: Node) -> Functions:
    declared = [
        Function(one.required("name").text(), one.field(*_PARAMETERS))
        for tool in root.items_of("tools")
        for one in tool.items_of("functionDeclarations", "function_declarations")
    ]
    functions = Functions(tuple(declared))
    tool_config = root.field("toolConfig", "tool_config")
    if tool_config is None:
        return functions
    config = tool_config.field("functionCallingConfig", "function_calling_config")
    if config is None:
        return functions
    names = config.field("allowedFunctionNames", "allowed_function_names")
    if names is not None:
        functions = functions.only(names.items())
    return functions.under(config.text_of("mode").lower(), demanding="any")


def _candidate(
    number: int, text: str, calls: tuple[Call, ...], ending: Ending, *, last: bool = True
) -> JsonObject:
    candidate: JsonObject = {}
    if ending is not Ending.SAFETY:
        parts = [content.Part(text=text)] if text or not calls else []
        parts += [content.Part(extra={"functionCall": _call(call)}) for call in calls]
        candidate["content"] = partial(content.Content, parts=parts, role=content.MODEL)
    reason = {"finish_reason": ending.name} if last else {}
    return {**candidate, **partial(Candidate, **reason, index=number)}


def _call(call: Call) -> JsonObject:
    return {"name": call.name, "args": call.arguments}


def _record(answer: Answer, candidates: list[JsonObject], tokens: int) -> JsonObject:
    record: JsonObject = {}
    if answer.first.ending is Ending.BLOCKED:
        record["promptFeedback"] = partial(PromptFeedback, block_reason="SAFETY")
    else:
        record["candidates"] = candidates
    return {
        **record,
        "usageMetadata": partial(
            UsageMetadata,
            prompt_token_count=answer.prompt_tokens,
            candidates_token_count=tokens,
            total_token_count=answer.prompt_tokens + tokens,
        ),
        "modelVersion": answer.prompt.model,
        "responseId": answer.id,
    }
