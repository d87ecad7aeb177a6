"""What a text request says: turns made of parts, and the settings for the answer.

A plain string is a user's turn. Parts of an unknown kind, and fields that the specification does
not show, travel in `extra` and come back in it.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

import attrs

from muybridge_protocol.codec import JsonObject

USER = "user"
MODEL = "model"
ROLES = (USER, MODEL)

_BASE64_FOR_URLS = bytes.maketrans(b"-_", b"+/")


@attrs.frozen
class Blob:
    """A picture, a video or another file inside a part.

    Args:
        data: Its bytes.
        mime_type: Its type, such as `image/png`.
    """

    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
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
    def from_bytes(cls, data: bytes, mime_type: str) -> Self:
        """Return the part that holds a file.

        Args:
            data: Its bytes.
            mime_type: Its type, such as `image/png` or `video/mp4`.
        """
        return cls(inline_data=Blob(bytes(data), mime_type))

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
        return record | dict(self.extra)


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


def _parts(parts: str | Part | Iterable[str | Part]) -> tuple[Part, ...]:
    several = (parts,) if isinstance(parts, str | Part) else tuple(parts)
    return tuple(Part(text=part) if isinstance(part, str) else part for part in several)


@attrs.frozen
class Content:
    """One turn (spec, "Text request and response").

    Args:
        parts: Its parts; a string is one of text.
        role: `user` or, for an earlier answer, `model`. None leaves it out.
        extra: Its other fields by their names on the wire.
    """

    parts: tuple[Part, ...] = attrs.field(converter=_parts)
    role: str | None = USER
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False, kw_only=True)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the turn that *record*, in its form on the wire, stands for."""
        extra = dict(record)
        role = extra.pop("role") if isinstance(record.get("role"), str) else None
        parts = record.get("parts")
        if not isinstance(parts, list):
            return cls((), role, extra=extra)
        del extra["parts"]
        several = cast("list[object]", parts)
        return cls([_part_of(part) for part in several], role, extra=extra)

    @property
    def text(self) -> str:
        """The text of its parts, without a model's thoughts, or ""."""
        return "".join([part.text for part in self.parts if part.text and not part.thought])

    def to_record(self) -> JsonObject:
        """Return the turn in its form on the wire."""
        record: JsonObject = {} if self.role is None else {"role": self.role}
        return {**record, "parts": [part.to_record() for part in self.parts], **self.extra}


def _part_of(record: object) -> Part:
    if isinstance(record, Mapping):
        return Part.from_record(cast("Mapping[str, Any]", record))
    return Part(text=record) if isinstance(record, str) else Part()


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

    def to_record(self) -> JsonObject:
        """Return the settings in their form on the wire."""
        known = {
            "temperature": self.temperature,
            "topP": self.top_p,
            "maxOutputTokens": self.max_output_tokens,
        }
        return {name: value for name, value in known.items() if value is not None} | dict(
            self.extra
        )


@attrs.frozen
class Conversation:
    """The turns of a conversation so far; each step returns the next value.

        talk = Conversation("You are terse.").say("What is a zoopraxiscope?")
        talk = talk.hear(client.generate_content(model, talk))
        talk = talk.say("Who built it?")

    Args:
        system_instruction: What the model is told about its task, or None.
        turns: What was said.
    """

    system_instruction: str | Content | None = None
    turns: tuple[Content, ...] = ()

    def say(self, turn: str | Part | Content | Iterable[str | Part]) -> Self:
        """Return the conversation after the user has said *turn*."""
        said = turn if isinstance(turn, Content) else Content(turn)
        return attrs.evolve(self, turns=(*self.turns, said))

    def hear(self, answer: Content) -> Self:
        """Return the conversation after the model's *answer*, `response.content`."""
        return attrs.evolve(self, turns=(*self.turns, answer))
