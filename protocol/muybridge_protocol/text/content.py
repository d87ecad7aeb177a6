"""What a text request says: turns made of parts, and the settings for the answer.

A plain string is a user's turn. Parts of an unknown kind, and fields that the specification does
not show, travel in `extra` and come back in it. Nothing is checked here: a value of a wrong type
stays as it is, and the request that it goes into names it together with all other problems.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Self, cast

import attrs

from muybridge_protocol.codec import JsonObject
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.rules import Problem, shown

USER = "user"
MODEL = "model"
ROLES = (USER, MODEL)

_BASE64_FOR_URLS = bytes.maketrans(b"-_", b"+/")


def _sized(data: object) -> str:
    return f"<{len(data)} bytes>" if isinstance(data, bytes) else shown(data)


def _as_bytes(data: Any) -> Any:
    return bytes(cast("memoryview", data)) if isinstance(data, bytearray | memoryview) else data


@attrs.frozen
class Blob:
    """A picture, a video or another file inside a part.

    Args:
        data: Its bytes.
        mime_type: Its type, such as `image/png`.
    """

    data: bytes = attrs.field(converter=_as_bytes, repr=_sized)
    mime_type: str


@attrs.frozen(kw_only=True)
class Part:
    """One part of a turn (spec, "Text request and response").

    Args:
        text: Its text, or None.
        inline_data: A file inside it, or None. Its shape on the wire is an assumption.
        thought: Whether a model's text is its thinking and not its answer.
        extra: Its other fields by their names on the wire: a part of another kind is these alone.
    """

    text: str | None = None
    inline_data: Blob | None = None
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

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the part that *record*, in its form on the wire, stands for.

        Both `inlineData` and `inline_data` are understood. What is of an unexpected type stays
        in `extra`.
        """
        extra = dict(record)
        text = extra.pop("text") if isinstance(record.get("text"), str) else None
        thought = extra.pop("thought") if isinstance(record.get("thought"), bool) else False
        blob = None
        for name in ("inlineData", "inline_data"):
            blob = _read_blob(record.get(name))
            if blob is not None:
                del extra[name]
                break
        return cls(text=text, inline_data=blob, thought=thought, extra=extra)

    def to_record(self) -> JsonObject:
        """Return the part in its form on the wire."""
        record: JsonObject = {}
        if self.text is not None:
            record["text"] = self.text
        if self.inline_data is not None:
            record["inlineData"] = {
                "mimeType": self.inline_data.mime_type,
                "data": b64encode(self.inline_data.data).decode("ascii"),
            }
        if self.thought:
            record["thought"] = True
        return {**record, **self.extra}


def _read_blob(record: object) -> Blob | None:
    if not isinstance(record, Mapping):
        return None
    fields = cast("Mapping[str, object]", record)
    mime_type = fields.get("mimeType", fields.get("mime_type"))
    data = fields.get("data")
    if len(fields) != 2 or not isinstance(mime_type, str) or not isinstance(data, str):  # noqa: PLR2004  type and data
        return None  # with more or less in it, it is kept as it came
    decoded = decode_base64(data)
    return None if decoded is None else Blob(decoded, mime_type)


def decode_base64(text: str) -> bytes | None:
    """Return what *text* is the base64 of, with or without padding, for URLs or not, or None."""
    try:
        plain = text.encode("ascii").translate(_BASE64_FOR_URLS)
        return a2b_base64(plain + b"=" * (-len(plain) % 4), strict_mode=True)
    except (UnicodeEncodeError, NotBase64):
        return None


AnyPart = str | Part | Mapping[str, Any]
"""A part as a user writes it. A string is one of text, a mapping is in its form on the wire."""


def _as_parts(parts: AnyPart | Iterable[AnyPart]) -> tuple[Part, ...]:
    return tuple(cast("Part", _as_part(part)) for part in _each(parts))


def _as_part(part: object) -> object:
    if isinstance(part, str):
        return Part(text=part)
    return Part.from_record(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else part


def _each(given: object) -> Iterable[object]:
    """Return the items of *given*, or *given* itself as the only one."""
    if isinstance(given, str | bytes | bytearray | memoryview | Mapping):
        return (cast("object", given),)
    return cast("Iterable[object]", given) if isinstance(given, Iterable) else (given,)


@attrs.frozen
class Content:
    """One turn (spec, "Text request and response").

    Args:
        parts: Its parts. A string is one of text, a mapping is one in its form on the wire.
        role: `user` or, for an earlier answer, `model`. None leaves it out.
        extra: Its other fields by their names on the wire.
    """

    parts: tuple[Part, ...] = attrs.field(converter=_as_parts)
    role: str | None = USER
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False, kw_only=True)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the turn that *record*, in its form on the wire, stands for.

        What is of an unexpected type stays in `extra`.
        """
        extra = dict(record)
        role = extra.pop("role", None) if isinstance(record.get("role"), str | None) else None
        parts = extra.pop("parts") if isinstance(record.get("parts"), list | tuple) else ()
        return cls(parts, role, extra=extra)

    @property
    def text(self) -> str:
        """The text of its parts, without a model's thoughts, or ""."""
        return "".join([part.text for part in self.parts if part.text and not part.thought])

    def to_record(self) -> JsonObject:
        """Return the turn in its form on the wire."""
        record: JsonObject = {} if self.role is None else {"role": self.role}
        return {**record, "parts": [part.to_record() for part in self.parts], **self.extra}


Turn = AnyPart | Content
"""A turn, or a part of the user's turn. A mapping is a turn in its form on the wire."""


def as_turns(turns: Turn | Iterable[Turn]) -> tuple[Content, ...]:
    """Return *turns* as such: strings and parts that follow each other are one of the user."""
    found: list[Any] = []
    for are_parts, items in groupby(_each(turns), lambda item: isinstance(item, str | Part)):
        several: list[Any] = list(items)
        found += [Content(several)] if are_parts else map(_as_turn, several)
    return tuple(found)


def _as_turn(turn: object) -> object:
    if isinstance(turn, Mapping):
        return Content.from_record(cast("Mapping[str, Any]", turn))
    return turn


SETTINGS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_output_tokens": "maxOutputTokens",
}
"""The names on the wire of the settings that the specification shows."""


@attrs.frozen(kw_only=True)
class GenerationConfig:
    """Settings for the answer (spec, "Text request and response"). Only what is set is sent.

    Args:
        temperature: Randomness; lower is more deterministic.
        top_p: Probability mass of nucleus sampling.
        max_output_tokens: Most tokens to generate.
        extra: Other settings by their names on the wire, such as `candidateCount`.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the settings that *record* stands for.

        Their names are those on the wire or those of the arguments. A setting that is given under
        both names keeps one of them in `extra`, for a request to refuse.
        """
        extra = dict(record)
        known = {
            name: extra.pop(next((given for given in (wire, name) if given in extra), name), None)
            for name, wire in SETTINGS.items()
        }
        return cls(**known, extra=extra)

    @property
    def known(self) -> JsonObject:
        """The settings that the specification shows and that are set, in their form on the wire."""
        values = {wire: getattr(self, name) for name, wire in SETTINGS.items()}
        return {wire: value for wire, value in values.items() if value is not None}

    def to_record(self) -> JsonObject:
        """Return the settings in their form on the wire."""
        return {**self.known, **self.extra}


@attrs.frozen
class Conversation:
    """The turns of a conversation so far; each step returns the next value.

        talk = Conversation("You are terse.").say("What is a zoopraxiscope?")
        answer = client.generate_content(model, talk)
        talk = talk.hear(answer.content).say("Who built it?")

    Args:
        system_instruction: What the model is told about its task, or None.
        turns: What was said.
    """

    system_instruction: str | Content | Mapping[str, Any] | None = attrs.field(
        default=None, hash=False
    )
    turns: tuple[Content, ...] = attrs.field(default=(), converter=as_turns)

    def say(self, turns: Turn | Iterable[Turn]) -> Self:
        """Return the conversation after *turns*: strings and parts are the user's."""
        return attrs.evolve(self, turns=(*self.turns, *as_turns(turns)))

    def hear(self, answer: Content) -> Self:
        """Return the conversation after the model's *answer*, `response.content`.

        Parts that hold nothing, and fields that are null, are left out: no request may send them.

        Raises:
            InvalidRequest: It has no parts, with which no request would be accepted.
        """
        parts = [part for part in map(_without_nulls, answer.parts) if _holds_anything(part)]
        if not parts and "parts" not in answer.extra:
            field = f"contents[{len(self.turns)}].parts"
            hint = "look at the response's finish_reason, and ask again without it"
            problem = Problem(field, None, "required", "is missing: the answer is empty", hint)
            raise InvalidRequest("text", [problem])
        extra = {name: value for name, value in answer.extra.items() if name != "role"}
        turn = attrs.evolve(answer, parts=parts, role=MODEL, extra=extra)
        return attrs.evolve(self, turns=(*self.turns, turn))


def _without_nulls(part: Part) -> Part:
    extra = {name: value for name, value in part.extra.items() if value is not None}
    return attrs.evolve(part, extra=extra)


def _holds_anything(part: Part) -> bool:
    has_file = part.inline_data is not None and part.inline_data.data != b""
    return part.text is not None or has_file or bool(part.extra)
