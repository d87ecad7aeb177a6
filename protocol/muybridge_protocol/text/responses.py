"""Responses with generated text: whole ones, and the chunks of a stream.

A response is the service's own JSON, and its typed values are read from it on access. Unknown
parts, reasons and fields stay in `raw`. A value of an unexpected type counts as missing, because
the answer is paid for and must not be lost over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import chain, groupby, pairwise
from typing import Any, ClassVar, overload

import attrs

from muybridge_protocol.errors import MuybridgeError
from muybridge_protocol.records.convert import ours, structure, wire
from muybridge_protocol.records.json import JsonObject, as_array, as_object, readable
from muybridge_protocol.remedies import Face, Remedy, RemedyKind, in_python, message
from muybridge_protocol.text.content import MODEL, Content, Part
from muybridge_protocol.text.events import collect_events
from muybridge_protocol.text.functions import FunctionCall
from muybridge_protocol.text.partial_calls import with_whole_calls


class FinishReason(StrEnum):
    """The reasons that the specification names; others are kept as plain strings."""

    STOP = "STOP"
    """The answer is complete."""
    MAX_TOKENS = "MAX_TOKENS"
    """It reached the limit of tokens."""


class NoText(MuybridgeError):
    """A response has no text; the message says why.

    Args:
        reason: Why, as a sentence, or as the beginning of one that the advice completes.
        response: The response.
        advice: What to do about it.
    """

    _charged = "yes"

    def __init__(
        self, reason: str, response: GenerateContentResponse, advice: tuple[Remedy, ...] = ()
    ) -> None:
        super().__init__(reason, response, advice)
        self.reason = reason
        self.response = response
        self.advice = advice

    @property
    def why(self) -> str:
        """Why there is no text, and what to do, in the words of Python."""
        return self.describe()

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to do, as data."""
        return self.advice

    def describe(self, face: Face = in_python) -> str:
        """Return why there is no text, and what to do in the words of *face*."""
        return message((self.reason, *self.advice), face)


NO_REASON = ("", "FINISH_REASON_UNSPECIFIED")
"""Placeholders in the field of the finish reason that do not mean an end."""
_GOOD_REASONS = frozenset({FinishReason.STOP, FinishReason.MAX_TOKENS})
"""The reasons with which an answer is given as far as it goes. With all others it is withheld."""
_COUNT_BITS = 64  # a longer integer is not a count
_KNOWN_REASONS: Mapping[str, FinishReason] = {reason.value: reason for reason in FinishReason}


def _string(value: object, _: object = None) -> str | None:
    return value if isinstance(value, str) else None


def _reason(value: object, _: object = None) -> FinishReason | str | None:
    if not isinstance(value, str) or value in NO_REASON:
        return None
    return _KNOWN_REASONS.get(value, value)


def _block_reason(value: object, _: object) -> str | None:
    return _string(value) or None


def _count(value: object, _: object = None) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if value.bit_length() <= _COUNT_BITS else None


def _index(value: object, _: object) -> int:
    return _count(value) or 0


@attrs.frozen(kw_only=True)
class Candidate:
    """One answer (spec, "Text request and response").

    Args:
        finish_reason: Why the generation stopped, or None if it continues.
        finish_message: The service's explanation of the reason, or None.
        index: Its number among the candidates.
        raw: The record as it came.
    """

    finish_reason: FinishReason | str | None = attrs.field(
        default=None, repr=False, metadata=wire(_reason, name="finishReason")
    )
    finish_message: str | None = attrs.field(
        default=None, repr=False, metadata=wire(_string, name="finishMessage")
    )
    index: int = attrs.field(default=0, repr=False, metadata=wire(_index))
    raw: JsonObject = attrs.field(factory=dict[str, Any], repr=False, metadata=ours())

    @property
    def content(self) -> Content:
        """Its content, which may have no parts."""
        return self._content  # pyright takes no cached property for `Spoken`

    @cached_property
    def _content(self) -> Content:
        record = as_object(self.raw.get("content"))
        if record is None:
            return Content((), MODEL)
        return structure({**record, "parts": _records(record.get("parts"))}, Content)

    @property
    def text(self) -> str:
        """Its text without the model's thoughts, or ""."""
        return _whole_characters(self.content.text)

    @property
    def function_calls(self) -> tuple[FunctionCall, ...]:
        """The calls that it asks for, in their order."""
        return self.content.function_calls


@attrs.frozen
class UsageMetadata:
    """Token counts (spec, "Text request and response"). A missing count is None.

    Args:
        prompt_token_count: Tokens in contents and system instruction.
        candidates_token_count: Tokens in the candidates.
        total_token_count: Prompt plus candidates.
        raw: The record as it came.
    """

    prompt_token_count: int | None = attrs.field(
        default=None, metadata=wire(_count, name="promptTokenCount")
    )
    candidates_token_count: int | None = attrs.field(
        default=None, metadata=wire(_count, name="candidatesTokenCount")
    )
    total_token_count: int | None = attrs.field(
        default=None, metadata=wire(_count, name="totalTokenCount")
    )
    raw: JsonObject = attrs.field(factory=dict[str, Any], repr=False, metadata=ours())


@attrs.frozen(kw_only=True)
class PromptFeedback:
    """What the service reports about the prompt.

    Args:
        block_reason: Why the prompt was blocked, or None.
        block_reason_message: The same in words, or None.
        raw: The record as it came.
    """

    block_reason: str | None = attrs.field(
        default=None, metadata=wire(_block_reason, name="blockReason")
    )
    block_reason_message: str | None = attrs.field(
        default=None, metadata=wire(_string, name="blockReasonMessage")
    )
    raw: JsonObject = attrs.field(factory=dict[str, Any], metadata=ours())


@attrs.frozen(repr=False)
class GenerateContentResponse:
    """The response to a text request (spec, "Text request and response").

    Args:
        raw: The response's JSON.
    """

    raw: JsonObject = attrs.field(repr=False)

    is_whole: ClassVar[bool] = True
    """Whether it is a whole answer, and not a piece of one."""

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The answers. If the prompt was blocked, there are none."""
        records = _records(self.raw.get("candidates"))
        return tuple(structure(record, Candidate, raw=record) for record in records)

    @cached_property
    def usage_metadata(self) -> UsageMetadata | None:
        """The token counts, or None."""
        record = as_object(self.raw.get("usageMetadata"))
        return None if record is None else structure(record, UsageMetadata, raw=record)

    @property
    def prompt_feedback(self) -> PromptFeedback | None:
        """What the service reports about the prompt, or None."""
        record = as_object(self.raw.get("promptFeedback"))
        return None if record is None else structure(record, PromptFeedback, raw=record)

    @property
    def content(self) -> Content:
        """The first answer as a turn, to continue the conversation with.

        Raises:
            NoText: There is no answer.
        """
        if not self.candidates:
            raise self._no_text()
        return self.candidates[0].content

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the first answer, empty if there is no answer."""
        return self.candidates[0].content.parts if self.candidates else ()

    @property
    def function_calls(self) -> tuple[FunctionCall, ...]:
        """The functions that the first answer calls, empty if there is no answer."""
        return self.candidates[0].function_calls if self.candidates else ()

    @property
    def finish_reason(self) -> FinishReason | str | None:
        """Why the first answer stopped, or None."""
        return self.candidates[0].finish_reason if self.candidates else None

    @property
    def text(self) -> str:
        """The text of the first answer, without the model's thoughts.

        Raises:
            NoText: It has none; the error says why.
        """
        text = _whole_characters(_text_of(self.raw))
        if not text:
            raise self._no_text()
        return text

    def __repr__(self) -> str:
        reason = readable(self.finish_reason or "unfinished", 40)
        return f"<{type(self).__name__} {reason} {readable(_text_of(self.raw), 60)!r}>"

    def _no_text(self) -> NoText:
        """Return the error that there is no text."""
        feedback = self.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            explanation = _explanation(feedback.block_reason, feedback.block_reason_message)
            return NoText(f"The prompt was blocked ({explanation}).", self)
        if not self.candidates:
            return NoText("The response has no candidate, and does not say why.", self)
        candidate = self.candidates[0]
        reason = candidate.finish_reason
        if reason == FinishReason.MAX_TOKENS:
            more = Remedy(kind=RemedyKind.RAISE, option="max_output_tokens")
            return NoText("The limit of output tokens was reached before any text;", self, (more,))
        if reason is not None and reason not in _GOOD_REASONS:
            explanation = _explanation(reason, candidate.finish_message)
            return NoText(f"The model stopped early ({explanation}).", self)
        kinds = sorted(_kinds(candidate.content.parts))
        if not kinds:
            return NoText("The answer is empty.", self)
        explanation = (
            f"The answer has no text; its parts contain {readable(', '.join(kinds), 200)}."
        )
        calls = Remedy(kind=RemedyKind.READ_CALLS, attribute="function_calls")
        return NoText(explanation, self, (calls,) if "functionCall" in kinds else ())


@attrs.frozen(repr=False)
class GenerateContentChunk(GenerateContentResponse):
    """A piece of a streamed response, which more pieces may follow."""

    is_whole: ClassVar[bool] = False

    @property
    def text(self) -> str:
        """The text of this piece, or "".

        Raises:
            NoText: The prompt was blocked, or the model stopped early for a reason other than the
                token limit; the error says why.
        """
        text = _text_of(self.raw)
        if not text.isascii():  # Python knows that without looking
            text = _whole_characters(text)
        if not text and self._ends_badly():
            raise self._no_text()
        return text

    def _ends_badly(self) -> bool:
        reason = self.finish_reason
        if reason is not None:
            return reason not in _GOOD_REASONS
        feedback = self.prompt_feedback
        return feedback is not None and feedback.block_reason is not None


@overload
def collect(chunks: Iterable[GenerateContentResponse]) -> GenerateContentResponse: ...
@overload
def collect(chunks: Iterable[JsonObject]) -> JsonObject: ...
def collect(
    chunks: Iterable[GenerateContentResponse] | Iterable[JsonObject],
) -> GenerateContentResponse | JsonObject:
    """Combine the *chunks* of a stream into one response, in any of the protocols.

    In chat completions and messages, texts, thoughts and the arguments of calls are joined. In the
    native protocol:

    - Consecutive texts are joined into one part, and so are the pieces of a call; all other parts
      are kept as they are.
    - Other fields of a candidate, such as `citationMetadata`, may come in pieces. Objects are
      merged, field by field. Lists are joined, unless each one begins with the previous one: then
      the last is complete. Of other values, and of `safetyRatings`, the last one counts. Nulls are
      ignored.
    - Of the fields beside the candidates, such as `usageMetadata`, the last one counts.
    """
    whole: JsonObject = {}
    candidates: dict[int, _CandidatePieces] = {}
    remaining: Iterator[Any] = iter(chunks)
    for chunk in remaining:
        if isinstance(chunk, dict):
            return collect_events(chain([chunk], remaining))  # pyright: ignore[reportUnknownArgumentType]  of anything
        _update(whole, chunk.raw)
        for candidate in chunk.candidates:
            candidates.setdefault(candidate.index, _CandidatePieces()).add(candidate.raw)
    if candidates:
        whole["candidates"] = [candidates[index].joined() for index in sorted(candidates)]
    return GenerateContentResponse(whole)


def _update(record: JsonObject, later: JsonObject) -> None:
    """Update *record* with the fields of a *later* one. Nulls replace nothing."""
    record.update({k: v for k, v in later.items() if v is not None or k not in record})


class _CandidatePieces:
    """What the chunks of a stream bring of one candidate."""

    def __init__(self) -> None:
        self._fields: dict[str, list[Any]] = {}
        self._content: JsonObject = {}
        self._parts: list[Any] = []

    def add(self, piece: JsonObject) -> None:
        for name, value in piece.items():
            self._fields.setdefault(name, []).append(value)
        content = as_object(piece.get("content"))
        if content is not None:
            _update(self._content, content)
            self._parts += as_array(content.get("parts"))

    def joined(self) -> JsonObject:
        parts: list[Any] = []
        for kind, several in groupby(with_whole_calls(self._parts), _kind_of_text):
            if kind is None:
                parts += several
            else:
                first, *others = several
                text = "".join([first["text"], *(other["text"] for other in others)])
                parts.append({**first, "text": _whole_characters(text)})
        content = {**self._content, "parts": parts} if parts else self._content
        return {
            name: content if name == "content" and content else _merged(name, values)
            for name, values in self._fields.items()
        }


_POINT_IN_TIME = ("safetyRatings",)
"""Lists that are complete each time, and not pieces of a longer one."""


def _merged(name: str, values: list[Any]) -> Any:
    """Combine the *values* that the chunks have in the field *name*."""
    present = [value for value in values if value is not None]
    if len(present) <= 1 or name in _POINT_IN_TIME:
        return present[-1] if present else None
    records = _records(present)
    if len(records) == len(present):
        pieces: dict[str, list[Any]] = {}
        for record in records:
            for field, value in record.items():
                pieces.setdefault(field, []).append(value)
        return {field: _merged(field, several) for field, several in pieces.items()}
    if all(isinstance(value, list) for value in present) and not all(
        later[: len(earlier)] == earlier for earlier, later in pairwise(present)
    ):
        return [*chain.from_iterable(present)]
    return present[-1]


def _kind_of_text(part: Any) -> str | None:
    """Return what kind of text *part* is, or None if it is not a text or has other fields too."""
    record = as_object(part)
    if record is None or not isinstance(record.get("text"), str):
        return None
    if not record.keys() <= {"text", "thought"}:
        return None
    return "thought" if record.get("thought") is True else "answer"


def _text_of(raw: JsonObject) -> str:
    """Return the text of the first answer.

    It is read straight from the record, because a stream has many: by way of typed values it takes
    twenty times as long.
    """
    try:
        texts: list[str] = []
        for part in raw["candidates"][0]["content"]["parts"]:
            if part.get("thought") is not True and "text" in part:
                texts.append(part["text"])  # noqa: PERF401  a comprehension is slower here
        return "".join(texts)
    except (KeyError, IndexError, TypeError, AttributeError):  # an unusual record
        candidates = GenerateContentResponse(raw).candidates
        return candidates[0].text if candidates else ""


def _whole_characters(text: str) -> str:
    """Join surrogate halves in *text*, and put \N{REPLACEMENT CHARACTER} in place of lone ones.

    JSON can write a character as two surrogates, and a service may split a text between them. Lone
    surrogates remain in `raw`, but cannot be printed.
    """
    if text.isascii():  # Python knows that without looking
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _kinds(parts: Iterable[Part]) -> set[str]:
    """Return what *parts* contain beside the text of an answer."""
    kinds = {name for part in parts for name in part.extra}
    kinds |= {part.inline_data.mime_type for part in parts if part.inline_data is not None}
    return kinds | {"thoughts" for part in parts if part.thought}


def _explanation(reason: str, message: str | None) -> str:
    return readable(f"{reason}: {message}" if message else reason, 200)


def _records(values: Any) -> list[JsonObject]:
    return [record for record in map(as_object, as_array(values)) if record is not None]
