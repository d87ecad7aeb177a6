"""A typed text request, checked before anything is sent (spec, "Text request and response")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import attrs

from muybridge_protocol.codec import JsonObject, write_json
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import Unlisted
from muybridge_protocol.rules import Kind, Problem, either, shown, with_article
from muybridge_protocol.text.content import (
    MODEL,
    ROLES,
    USER,
    Blob,
    Content,
    Conversation,
    GenerationConfig,
    Part,
)
from muybridge_protocol.text.models import model_problem

Turn = str | Part | Content | Mapping[str, Any]
"""A turn, or a part of the user's turn. A mapping is a turn in its form on the wire."""
Contents = Turn | Conversation | Sequence[Turn]

_KNOWN_FIELDS = ("contents", "systemInstruction", "generationConfig")
_SETTINGS = {
    "temperature": ("temperature", Kind.NUMBER),
    "topP": ("top_p", Kind.NUMBER),
    "maxOutputTokens": ("max_output_tokens", Kind.INTEGER),
}
_MIME_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.ASCII | re.IGNORECASE)


def as_turns(contents: Contents) -> tuple[Content, ...]:
    """Return *contents* as turns: strings and parts that follow each other are one of the user.

    Raises:
        InvalidRequest: Something among them is no turn and no part.
    """
    if isinstance(contents, Conversation):
        return contents.turns
    single = isinstance(contents, str | Part | Content | Mapping)
    turns: list[Content] = []
    parts: list[str | Part] = []
    for item in (contents,) if single else cast("Sequence[object]", contents):
        if isinstance(item, str | Part):
            parts.append(item)
            continue
        if parts:
            turns.append(Content(parts))
            parts = []
        if isinstance(item, Content):
            turns.append(item)
        elif isinstance(item, Mapping):
            turns.append(Content.from_record(cast("Mapping[str, Any]", item)))
        else:
            raise InvalidRequest(
                "text",
                [
                    Problem(
                        "contents",
                        item,
                        "type",
                        f"{shown(item)} is no turn",
                        "use strings, Part and Content",
                    )
                ],
            )
    return (*turns, Content(parts)) if parts else tuple(turns)


@attrs.frozen(kw_only=True)
class GenerateContentRequest:
    """A request to generate text, in the native protocol.

    Args:
        model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
        contents: The turns so far, the last of which is answered.
        system_instruction: What the model is told about its task, or None.
        generation_config: Settings for the answer, or None.
        extra: Other fields of the request by their names on the wire, such as `safetySettings`.

    Raises:
        InvalidRequest: The service would not accept it. All problems are listed.
    """

    model: str | Unlisted
    contents: tuple[Content, ...] = attrs.field(converter=as_turns)
    system_instruction: Content | None = None
    generation_config: GenerationConfig | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False)

    @classmethod
    def build(
        cls,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | None = None,
        generation_config: GenerationConfig | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> GenerateContentRequest:
        """Return the request, given as a user writes it; see the class for its arguments.

        A `Conversation` as *contents* brings its own system instruction.

        Raises:
            InvalidRequest: The service would not accept it.
        """
        if system_instruction is None and isinstance(contents, Conversation):
            system_instruction = contents.system_instruction
        if isinstance(system_instruction, str):
            system_instruction = Content(system_instruction, None)
        return cls(
            model=model,
            contents=contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra={} if extra is None else extra,
        )

    def __attrs_post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InvalidRequest("text", problems)

    def to_body(self) -> JsonObject:
        """Return the request's JSON body: what was set, and nothing else."""
        body: JsonObject = {"contents": [content.to_record() for content in self.contents]}
        if self.system_instruction is not None:
            system = attrs.evolve(self.system_instruction, role=None)
            body["systemInstruction"] = system.to_record()
        if self.generation_config is not None:
            body["generationConfig"] = self.generation_config.to_record()
        return body | dict(self.extra)

    def _problems(self) -> Iterable[Problem]:
        if not isinstance(self.model, Unlisted):
            problem = model_problem(self.model)
            if problem is not None:
                yield problem
        if not self.contents:
            yield Problem(
                "contents", None, "required", "is required", "say something for the model to answer"
            )
        for number, content in enumerate(self.contents):
            yield from _content_problems(content, f"contents[{number}]")
            if content.role is not None and content.role not in ROLES:
                yield _unknown_role(content.role, f"contents[{number}].role")
        if self.system_instruction is not None:
            yield from _content_problems(self.system_instruction, "systemInstruction")
        if self.generation_config is not None:
            yield from _config_problems(self.generation_config)
        yield from _misplaced(self.extra, _KNOWN_FIELDS, "")
        try:
            write_json(self.to_body())
        except (ValueError, TypeError, AttributeError) as error:
            yield Problem("", None, "json", f"cannot be written: {error}", "use plain JSON values")


def _unknown_role(role: object, field: str) -> Problem:
    hint = f"use {either(ROLES)}"
    if role == "system":
        hint += ", and system_instruction for what holds throughout"
    elif role == "assistant":
        hint = f"use {MODEL} for an earlier answer, and {USER} for a user's turn"
    return Problem(field, role, "one_of", f"{shown(role)} is not a known role", hint)


def _content_problems(content: Content, field: str) -> Iterable[Problem]:
    if not content.parts:
        yield Problem(f"{field}.parts", None, "required", "is required", "use at least one part")
    for number, part in enumerate(content.parts):
        yield from _part_problems(part, f"{field}.parts[{number}]")


def _part_problems(part: object, field: str) -> Iterable[Problem]:
    if not isinstance(part, Part):
        yield Problem(field, part, "type", f"{shown(part)} is no part", "use strings and Part")
        return
    text = cast("object", part.text)  # callers are not all typed
    if text is not None and not isinstance(text, str):
        yield _wrong_type(f"{field}.text", text, Kind.STRING)
    if part.inline_data is not None:
        yield from _blob_problems(part.inline_data, f"{field}.inlineData")
    if part.text is None and part.inline_data is None and not part.extra:
        yield Problem(field, None, "required", "is empty", "use a text or a file")
    yield from _misplaced(part.extra, ("text", "inlineData"), field)


def _blob_problems(blob: Blob, field: str) -> Iterable[Problem]:
    data = cast("object", blob.data)  # callers are not all typed
    if not isinstance(data, bytes) or not data:
        yield Problem(f"{field}.data", None, "required", "is empty", "use the file's bytes")
    if not _MIME_TYPE.fullmatch(str(blob.mime_type)):
        yield Problem(
            f"{field}.mimeType",
            blob.mime_type,
            "mime_type",
            f"{shown(blob.mime_type)} is no media type",
            "use one such as image/png or video/mp4",
        )


def _config_problems(config: GenerationConfig) -> Iterable[Problem]:
    for wire, (name, kind) in _SETTINGS.items():
        value = getattr(config, name)
        if value is not None and not kind.accepts(value):
            yield _wrong_type(f"generationConfig.{wire}", value, kind)
    yield from _misplaced(config.extra, tuple(_SETTINGS), "generationConfig")


def _wrong_type(field: str, value: object, kind: Kind) -> Problem:
    return Problem(
        field,
        value,
        "type",
        f"{shown(value)} is not {with_article(kind)}",
        f"use {with_article(kind)}",
    )


def _misplaced(extra: Mapping[str, Any], known: tuple[str, ...], within: str) -> Iterable[Problem]:
    for name in extra:
        if name in known:
            field = f"{within}.{name}" if within else name
            yield Problem(
                field,
                extra[name],
                "extra",
                "is a known field and does not belong in extra",
                "set it by its own argument",
            )
