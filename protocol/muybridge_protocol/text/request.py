"""A typed text request, checked before anything is sent (spec, "Text request and response")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import attrs

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import Unlisted
from muybridge_protocol.media.inline import LOAD, MIME_TYPE, is_file, load_line
from muybridge_protocol.records.convert import ours, structure, unstructure, wire, wire_names
from muybridge_protocol.records.json import JsonObject, write_json
from muybridge_protocol.rules.json_values import unwritable
from muybridge_protocol.rules.values import (
    Kind,
    Problem,
    either,
    is_array,
    shown,
    with_article,
)
from muybridge_protocol.text.content import (
    MODEL,
    ROLES,
    SETTINGS,
    USER,
    Blob,
    Content,
    Conversation,
    GenerationConfig,
    Part,
    Turn,
    as_turns,
)
from muybridge_protocol.text.files import after_answers, problems_of_texts
from muybridge_protocol.text.models import model_problem

if TYPE_CHECKING:
    from muybridge_protocol.estimates import Estimate, PriceList, Quantities

Contents = Conversation | Turn | Iterable[Turn]
"""The contents of a request, as a user writes them."""

_SETTINGS = {
    "temperature": Kind.NUMBER,
    "topP": Kind.NUMBER,
    "maxOutputTokens": Kind.INTEGER,
}
_SPELLINGS = {name.replace("_", ""): wire for name, wire in SETTINGS.items()} | {
    "maxtokens": "maxOutputTokens",
    "maxcompletiontokens": "maxOutputTokens",
}
"""Settings by their lower-case names without underscores, and by names that other services use."""
_TYPES: Mapping[str, tuple[type, str]] = {
    "role": (str, "a string"),
    "parts": (list, "an array of parts"),
    "text": (str, "a string"),
    "thought": (bool, "a boolean"),
}
"""The types of a record's fields. Values of other types are kept in `extra` until the check."""


@attrs.frozen(kw_only=True)
class GenerateContentRequest:
    """A request to generate text, in the native protocol.

    Its JSON is written when it is made, so later changes to an `extra` do not change what is sent.

    Args:
        model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
        contents: The turns so far. The model answers the last one.
        system_instruction: Instructions for the model, or None.
        generation_config: Settings for the answer, or None.
        extra: Other fields of the request by their names on the wire, such as `safetySettings`.

    Raises:
        InvalidRequest: The service would not accept it. Every problem is listed.
    """

    model: str | Unlisted = attrs.field(metadata=ours())
    contents: tuple[Content, ...] = attrs.field(converter=as_turns)
    system_instruction: Content | None = attrs.field(
        default=None, metadata=wire(name="systemInstruction")
    )
    generation_config: GenerationConfig | None = attrs.field(
        default=None, metadata=wire(name="generationConfig")
    )
    extra: Mapping[str, Any] = attrs.field(factory=dict[str, Any], hash=False)
    body: bytes = attrs.field(init=False, eq=False, repr=False)
    """The request's JSON: what was set, and nothing else."""

    @classmethod
    def build(
        cls,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> GenerateContentRequest:
        """Return the request for arguments as a user writes them; the class describes them.

        A `Conversation` as *contents* brings its own system instruction, unless one is given. A
        mapping as *system_instruction* is a turn in the form on the wire. A mapping as
        *generation_config* has settings by their names on the wire or in `GenerationConfig`;
        unknown settings are sent as given, unless they look like a misspelled known one.

        Raises:
            InvalidRequest: The service would not accept it.
        """
        if isinstance(contents, Conversation):
            if system_instruction is None:
                system_instruction = contents.system_instruction
            contents = contents.turns
        if isinstance(system_instruction, str):
            system_instruction = Content(system_instruction, None)
        elif isinstance(system_instruction, Mapping):
            system_instruction = structure(system_instruction, Content)
        problems: list[Problem] = []
        if isinstance(generation_config, Mapping):
            problems += _misspelled_settings(generation_config)
            generation_config = structure(generation_config, GenerationConfig)
        # The request is made in any case, so that its own problems are reported with these.
        try:
            request = cls(
                model=model,
                contents=contents,
                system_instruction=system_instruction,
                generation_config=generation_config,
                extra={} if extra is None else extra,
            )
        except InvalidRequest as error:
            if not problems:
                raise
            problems[:0] = error.problems
        else:
            if not problems:
                return request
        raise InvalidRequest("text", problems)

    def quantities(self) -> Quantities:
        """Return what the request consumes: one call, and tokens that only the response reports."""
        from muybridge_protocol.estimates.quantities import text_quantities

        return text_quantities(str(self.model))

    def estimate(self, prices: PriceList | None = None) -> Estimate:
        """Return what the request consumes and costs, as far as that is known.

        Args:
            prices: What things cost, or None if that is not known.
        """
        from muybridge_protocol.estimates.estimate import estimate_of

        return estimate_of(self.quantities(), prices)

    def __attrs_post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InvalidRequest("text", problems)
        object.__setattr__(self, "body", write_json(self._record()))

    def _record(self) -> JsonObject:
        record: JsonObject = unstructure(self)
        if self.system_instruction is not None:
            record["systemInstruction"].pop("role", None)
        return record

    def _problems(self) -> Iterable[Problem]:
        if not isinstance(self.model, Unlisted):
            problem = model_problem(self.model)
            if problem is not None:
                yield problem
        if not self.contents:
            yield Problem(
                "contents", None, "required", "is required", "say something for the model to answer"
            )
        roles = [getattr(content, "role", None) for content in self.contents]
        new = after_answers(roles)
        for number, content in enumerate(self.contents):
            field = f"contents[{number}]"
            yield from _content_problems(content, field, ROLES)
            if isinstance(content, Content) and content.role != MODEL:  # pyright: ignore[reportUnnecessaryIsInstance]
                whole = "contents" if len(self.contents) == 1 else field
                yield from _question_problems(content, whole, is_new=number >= new)
        if self.system_instruction is not None:
            yield from _system_problems(self.system_instruction)
        if self.generation_config is not None:
            yield from _config_problems(self.generation_config)
        yield from _extra_problems(self.extra, _FIELDS, "")


_FIELDS = frozenset(chain.from_iterable(wire_names(GenerateContentRequest).items()))


# Callers are not all typed, so that these checks take anything.


def _system_problems(content: object) -> Iterable[Problem]:
    field = "systemInstruction"
    given = {field: content}
    if isinstance(content, Content):
        given = {f"{field}.parts[{number}]": part for number, part in enumerate(content.parts)}
    has_file = False
    for place, value in given.items():
        file = value.inline_data if isinstance(value, Part) else value
        if isinstance(file, Blob) or is_file(file):
            message, hint = f"{shown(file)} is not a text", f"a file goes into contents, as {LOAD}"
            yield Problem(place, file, "type", message, hint)
            has_file = True
    if not has_file:
        yield from _content_problems(content, field, None)
    if isinstance(content, Content):
        parts = [part.text for part in content.parts if isinstance(part, Part)]  # pyright: ignore[reportUnnecessaryIsInstance]
        texts = [text for text in parts if isinstance(text, str)]
        yield from problems_of_texts(texts, field, place="put it into contents, as", alone=True)


def _content_problems(
    content: object, field: str, roles: tuple[str, ...] | None
) -> Iterable[Problem]:
    """Yield what is wrong with a turn. If *roles* is not None, its role must be one of them."""
    if not isinstance(content, Content):
        hint = _how_to_say(content) if roles else "use a string or Content"
        yield Problem(field, content, "type", f"{shown(content)} is not a turn", hint)
        return
    role: object = content.role
    if roles is not None and role is not None and role not in roles:
        yield _unknown_role(role, f"{field}.role")
    extra = cast("object", content.extra)
    if not content.parts and not (isinstance(extra, Mapping) and "parts" in extra):
        hint = "use at least one part"
        if isinstance(extra, Mapping) and "content" in extra:  # as chat completions have it
            hint = "use parts in place of content, or chat_completions"
        yield Problem(f"{field}.parts", None, "required", "is required", hint)
    for number, part in enumerate(content.parts):
        yield from _part_problems(part, f"{field}.parts[{number}]")
    yield from _extra_problems(content.extra, ("role", "parts"), field)


def _how_to_say(turn: object) -> str:
    """Return what to write in place of *turn*, which is no turn."""
    if is_file(turn):
        return f"use {load_line(turn)}"
    if hasattr(turn, "finish_reason"):
        return "use talk.hear(response) for an answer"
    if is_array(turn):
        return f"a turn is one list: [text, {LOAD}]; for several turns, use Content"
    return f"say a text, {LOAD}, Part or Content"


def _question_problems(content: Content, field: str, *, is_new: bool) -> Iterable[Problem]:
    """Yield what is wrong with what a user says, which would be paid for and answered as it is."""
    parts = [part for part in content.parts if isinstance(part, Part)]  # pyright: ignore[reportUnnecessaryIsInstance]
    texts = [part.text for part in parts if isinstance(part.text, str)]
    alone = len(parts) == len(texts)
    yield from problems_of_texts(texts, field, place="use", alone=alone, is_new=is_new)
    if texts and not any(map(str.strip, texts)):
        yield Problem(field, texts[0], "required", "is blank", "ask something")


def _unknown_role(role: object, field: str) -> Problem:
    hint = f"use {either(ROLES)}"
    if role == "system":
        hint += ", and system_instruction for what holds throughout"
    elif role == "assistant":
        hint = f"use {MODEL} for an earlier answer, and {USER} for a user's turn"
    return Problem(field, role, "one_of", f"{shown(role)} is not a known role", hint)


def _part_problems(part: object, field: str) -> Iterable[Problem]:
    if not isinstance(part, Part):
        hint = f"use {load_line(part)}" if is_file(part) else "use strings and Part"
        yield Problem(field, part, "type", f"{shown(part)} is not a part", hint)
        return
    text, blob = part.text, part.inline_data
    thought = cast("object", part.thought)
    if text is not None:
        yield from _value_problems(text, Kind.STRING, f"{field}.text")
    if not isinstance(thought, bool):
        yield _wrong_type(thought, with_article(Kind.BOOLEAN), f"{field}.thought")
    if blob is not None:
        yield from _blob_problems(blob, f"{field}.inlineData")
    if text is None and blob is None and not part.extra:
        yield Problem(field, None, "required", "is empty", "use a text or a file")
    # A file with fields beside its type and data is kept and sent as it came.
    own = ("text", "thought") if blob is None else ("text", "thought", "inlineData", "inline_data")
    yield from _extra_problems(part.extra, own, field)


def _blob_problems(blob: object, field: str) -> Iterable[Problem]:
    if not isinstance(blob, Blob):
        yield Problem(field, blob, "type", f"{shown(blob)} is not a file", "use Part.from_bytes")
        return
    data, mime_type = cast("object", blob.data), cast("object", blob.mime_type)
    if not isinstance(data, bytes):
        yield _wrong_type(data, "bytes", f"{field}.data")
    elif not data:
        yield Problem(f"{field}.data", data, "required", "is empty", "use the file's bytes")
    if not isinstance(mime_type, str) or not MIME_TYPE.fullmatch(mime_type):
        yield Problem(
            f"{field}.mimeType",
            mime_type,
            "mime_type",
            f"{shown(mime_type)} is not a media type",
            "use one such as image/png or video/mp4",
        )


def _config_problems(config: object) -> Iterable[Problem]:
    field = "generationConfig"
    if not isinstance(config, GenerationConfig):
        message = f"{shown(config)} is not a GenerationConfig"
        yield Problem(field, config, "type", message, "use GenerationConfig(temperature=...)")
        return
    for name, value in config.known.items():
        yield from _value_problems(value, _SETTINGS[name], f"{field}.{name}")
    yield from _extra_problems(config.extra, {*SETTINGS, *SETTINGS.values()}, field)


def setting_named(plain: str) -> str | None:
    """Return the known setting with a name in lower case and without underscores, or None."""
    return _SPELLINGS.get(plain)


def _misspelled_settings(given: Mapping[Any, object]) -> Iterable[Problem]:
    """Yield misspelled settings: one that is ignored may be the limit of what is paid for."""
    for name, value in given.items():
        if name in SETTINGS or name in _SETTINGS or not isinstance(name, str):
            continue
        plain = name.replace("_", "").lower()[:100]  # comparing long names is slow
        for close in get_close_matches(plain, _SPELLINGS, n=1, cutoff=0.85):
            hint = f"use {_SPELLINGS[close]}; GenerationConfig(extra=...) sends another on purpose"
            message = "is not a known setting, and looks like one"
            yield Problem(f"generationConfig.{name}", value, "unknown_field", message, hint)


def _value_problems(value: object, kind: Kind, field: str) -> Iterable[Problem]:
    if not kind.accepts(value):
        yield _wrong_type(value, with_article(kind), field)
        return
    problem = unwritable(field, value)
    if problem is not None:
        yield problem


def _extra_problems(extra: object, own: Collection[str], within: str) -> Iterable[Problem]:
    """Yield what is wrong with an `extra`. The fields in *own* have arguments of their own."""
    if not isinstance(extra, Mapping):
        yield _wrong_type(extra, "a mapping of fields by name", _inside(within, "extra"))
        return
    for name, value in cast("Mapping[object, object]", extra).items():
        field = _inside(within, name) if isinstance(name, str) else name
        if not isinstance(name, str) or name not in own:
            problem = unwritable(field, value)
            if problem is not None:
                yield problem
            continue
        kind, words = _TYPES.get(name, (object, ""))
        if isinstance(value, kind):
            message = "is a known field and does not belong in extra"
            yield Problem(str(field), value, "extra", message, "set it by its own argument")
        else:
            yield _wrong_type(value, words, str(field))


def _inside(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


def _wrong_type(value: object, words: str, field: str) -> Problem:
    hint = f"use {words}"
    if words == with_article(Kind.STRING) and is_file(value):
        hint += f"; a file is a part of its own, {LOAD}"
    return Problem(field, value, "type", f"{shown(value)} is not {words}", hint)
