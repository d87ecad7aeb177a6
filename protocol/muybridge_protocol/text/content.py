"""The content of a text request: turns made of parts, and the settings for the answer.

A plain string is a user's turn. Parts of an unknown kind, and fields that the specification does
not show, are kept in `extra`. Nothing is checked here: a value of a wrong type is kept, and the
request that contains it reports it together with all other problems.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Protocol, Self, cast

import attrs

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.media.inline import InlineMedia, is_file
from muybridge_protocol.records.convert import (
    as_it_is,
    exactly,
    structure,
    unstructure,
    wire,
    wire_names,
)
from muybridge_protocol.records.json import InvalidJson, JsonObject
from muybridge_protocol.rules.values import Problem, shown
from muybridge_protocol.suggested_names import suggesting_names
from muybridge_protocol.text.functions import CALL, RESULT, FunctionCall, FunctionResult, read_call

USER = "user"
MODEL = "model"
ROLES = (USER, MODEL)

_BASE64_FOR_URLS = bytes.maketrans(b"-_", b"+/")


def _sized(data: object) -> str:
    return f"<{len(data)} bytes>" if isinstance(data, bytes) else shown(data)


def _as_bytes(data: Any) -> Any:
    return bytes(cast("memoryview", data)) if isinstance(data, bytearray | memoryview) else data


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


@attrs.frozen
class Blob:
    """A picture, a video or another file inside a part.

    Args:
        data: Its bytes.
        mime_type: Its type, such as `image/png`.
    """

    data: bytes = attrs.field(
        converter=_as_bytes, repr=_sized, metadata=wire(write=_base64, last=True)
    )
    mime_type: str = attrs.field(metadata=wire(name="mimeType"))


def _as_blob(file: Blob | InlineMedia | None) -> Blob | None:
    return Blob(file.data, file.mime_type) if isinstance(file, InlineMedia) else file


def _read_blob(record: object, _: object) -> Blob | InlineMedia:
    if isinstance(record, InlineMedia):
        return record
    if isinstance(record, Mapping):
        fields = cast("Mapping[str, object]", record)
        mime_type = fields.get("mimeType", fields.get("mime_type"))
        data = fields.get("data")
        if len(fields) == 2 and isinstance(mime_type, str):  # noqa: PLR2004  type and data
            decoded = decode_base64(data) if isinstance(data, str) else None
            decoded = data.data if isinstance(data, InlineMedia) else decoded
            if decoded is not None:
                return Blob(decoded, mime_type)
    raise InvalidJson("it is not a file, or has other fields")  # and is kept as it came


@attrs.frozen(kw_only=True)
class Part:
    """One part of a turn (spec, "Text request and response").

    Both `inlineData` and `inline_data` are accepted.

    Args:
        text: Its text, or None.
        inline_data: A file inside it, or None. Its wire format is an assumption.
        thought: Whether a model's text is its thinking and not its answer.
        extra: Its other fields, by their wire names. A part of another kind has only these.
    """

    text: str | None = attrs.field(default=None, metadata=wire(exactly(str)))
    inline_data: Blob | None = attrs.field(
        default=None, converter=_as_blob, metadata=wire(_read_blob, name="inlineData")
    )
    thought: bool = False
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, mime_type: str) -> Self:
        """Return the part that holds a file.

        Args:
            data: Its bytes.
            mime_type: Its type, such as `image/png` or `video/mp4`.
        """
        return cls(inline_data=Blob(data, mime_type))


def decode_base64(text: str) -> bytes | None:
    """Decode base64 in either alphabet, with or without padding, or return None."""
    try:
        plain = text.encode("ascii").translate(_BASE64_FOR_URLS)
        return a2b_base64(plain + b"=" * (-len(plain) % 4), strict_mode=True)
    except (UnicodeEncodeError, NotBase64):
        return None


AnyPart = str | InlineMedia | Part | FunctionResult | Mapping[str, Any]
"""A part as a user writes it: a string is text, `load_media` makes a file, and a mapping has the
form on the wire."""


def _as_parts(parts: AnyPart | Iterable[AnyPart]) -> tuple[Part, ...]:
    return tuple(cast("Part", _as_part(part)) for part in _each(parts))


def _as_part(part: object) -> object:
    if isinstance(part, str):
        return Part(text=part)
    if isinstance(part, InlineMedia):
        return Part(inline_data=part)
    if isinstance(part, FunctionResult):
        return Part(extra={RESULT: unstructure(part)})
    if isinstance(part, Mapping):
        return structure(cast("Mapping[str, Any]", part), Part)
    return part


def _each(given: object) -> Iterable[object]:
    """Return the items of *given*, or *given* itself as the only one."""
    if isinstance(given, str | Mapping) or is_file(given):
        return (cast("Any", given),)
    return cast("Iterable[object]", given) if isinstance(given, Iterable) else (given,)


def _list(value: object, _: object) -> object:
    if not isinstance(value, list | tuple):
        raise InvalidJson("it is not a list")
    return cast("object", value)


@attrs.frozen
class Content:
    """One turn (spec, "Text request and response").

    Args:
        parts: Its parts. A string is text, `load_media` makes a file, and a mapping is a part in
            wire format.
        role: `user` or, for an earlier answer, `model`. If None, no role is sent.
        extra: Its other fields, by their wire names.
    """

    parts: tuple[Part, ...] = attrs.field(
        converter=_as_parts, metadata=wire(_list, last=True, absent=())
    )
    role: str | None = attrs.field(default=USER, metadata=wire(absent=None))
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False, kw_only=True)

    @property
    def text(self) -> str:
        """The text of its parts, without a model's thoughts, or ""."""
        return "".join([part.text for part in self.parts if part.text and not part.thought])

    @property
    def function_calls(self) -> tuple[FunctionCall, ...]:
        """The functions that the model wants to be called."""
        records = (part.extra.get(CALL) for part in self.parts)
        return tuple(read_call(record) for record in records if record is not None)


Turn = AnyPart | Content
"""A turn, or a part of the user's turn. A mapping is a turn in the form on the wire."""


_PARTS = (str, InlineMedia, Part, FunctionResult)


def as_turns(turns: Turn | Iterable[Turn]) -> tuple[Content, ...]:
    """Return *turns* as values. Consecutive parts, such as strings, form one user's turn."""
    contents: list[Any] = []
    for are_parts, items in groupby(_each(turns), lambda item: isinstance(item, _PARTS)):
        several: list[Any] = list(items)
        contents += [Content(several)] if are_parts else map(_as_turn, several)
    return tuple(contents)


def _as_turn(turn: object) -> object:
    if isinstance(turn, Mapping):
        return structure(cast("Mapping[str, Any]", turn), Content)
    return turn


@suggesting_names
@attrs.frozen(kw_only=True)
class GenerationConfig:
    """Settings for the answer (spec, "Text request and response"). Only what is set is sent.

    A mapping may use the wire names or those of the arguments. If a setting is given under both
    names, one of them stays in `extra`, and the request reports it.

    Args:
        temperature: Randomness; lower is more deterministic.
        top_p: Probability mass of nucleus sampling.
        max_output_tokens: Maximum number of tokens to generate.
        extra: Other settings, by their wire names, such as `candidateCount`.
    """

    temperature: float | None = attrs.field(default=None, metadata=wire(as_it_is))
    top_p: float | None = attrs.field(default=None, metadata=wire(as_it_is, name="topP"))
    max_output_tokens: int | None = attrs.field(
        default=None, metadata=wire(as_it_is, name="maxOutputTokens")
    )
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False)

    @property
    def known(self) -> JsonObject:
        """The settings that the specification describes and that are set, in wire format."""
        record: JsonObject = unstructure(attrs.evolve(self, extra={}))
        return record


SETTINGS: Mapping[str, str] = wire_names(GenerationConfig)
"""The settings that the specification shows: names on the wire, by attribute."""


class Spoken(Protocol):
    """A response or one of its candidates."""

    @property
    def content(self) -> Content:
        """What was said, as a turn of a conversation."""
        ...


@attrs.frozen
class Conversation:
    """A conversation so far, as an immutable value: each method returns a new one.

        talk = Conversation("You are terse.").say("What is a zoopraxiscope?")
        answer = client.generate_content(model, talk)
        talk = talk.hear(answer).say("Who built it?")

    Args:
        system_instruction: Instructions for the model, or None.
        turns: The turns so far.
    """

    system_instruction: str | Content | Mapping[str, Any] | None = attrs.field(
        default=None, hash=False
    )
    turns: tuple[Content, ...] = attrs.field(default=(), converter=as_turns)

    def say(self, turns: Turn | Iterable[Turn]) -> Self:
        """Return the conversation with *turns* added. Strings, files and parts are the user's."""
        return attrs.evolve(self, turns=(*self.turns, *as_turns(turns)))

    def hear(self, answer: Content | Spoken | Mapping[str, Any] | str) -> Self:
        """Return the conversation with the model's *answer* added.

        Empty parts and null fields are omitted, because a request may not send them.

        Args:
            answer: The response, one of its candidates, its content as a value or a record, or its
                text.

        Raises:
            InvalidRequest: The answer has no parts, so a request with it would be refused. Or it
                is not a whole answer.
            NoText: The response has no answer.
        """
        answer = self._as_content(answer)
        parts = [part for part in map(_without_nulls, answer.parts) if _holds_anything(part)]
        if not parts and "parts" not in answer.extra:
            field = f"contents[{len(self.turns)}].parts"
            hint = "look at the response's finish_reason, and ask again without it"
            problem = Problem(field, None, "required", "is missing: the answer is empty", hint)
            raise InvalidRequest("text", [problem])
        # A role that is no text is there, and would be beside that of the model.
        extra = {name: value for name, value in answer.extra.items() if name != "role"}
        turn = attrs.evolve(answer, parts=parts, role=MODEL, extra=extra)
        return attrs.evolve(self, turns=(*self.turns, turn))

    def _as_content(self, answer: Any) -> Content:
        if isinstance(answer, str):
            return Content(answer if answer.strip() else (), MODEL)
        if "parts" in _record(answer):
            return structure(_record(answer), Content)
        content = getattr(answer, "content", answer)
        if isinstance(content, Content) and getattr(answer, "is_whole", True):
            return content
        message, hint = f"{shown(answer)} is not a whole answer", _how_to_hear(answer)
        problem = Problem(f"contents[{len(self.turns)}]", answer, "type", message, hint)
        raise InvalidRequest("text", [problem])


def _record(answer: object) -> Mapping[str, Any]:
    return cast("JsonObject", answer) if isinstance(answer, Mapping) else {}


def _how_to_hear(answer: Any) -> str:
    """Return what to write to hear *answer*, which is not a whole one."""
    if hasattr(answer, "received"):
        collected = "await stream.collect()" if hasattr(answer, "__aiter__") else "stream.collect()"
        return f"use talk.hear({collected})"
    if isinstance(answer, list | tuple) or hasattr(answer, "is_whole"):
        return "use talk.hear(muybridge.collect(chunks)) with all chunks of the stream"
    if {"candidates", "promptFeedback"} & _record(answer).keys():
        return "use talk.hear(muybridge.GenerateContentResponse(record))"
    if _record(answer):
        return "use muybridge.next_messages to continue chat completions or messages"
    return "use the response of generate_content, or its text"


def _without_nulls(part: Part) -> Part:
    extra = {name: value for name, value in part.extra.items() if value is not None}
    return attrs.evolve(part, extra=extra)


def _holds_anything(part: Part) -> bool:
    has_file = part.inline_data is not None and part.inline_data.data != b""
    return part.text is not None or has_file or bool(part.extra)
