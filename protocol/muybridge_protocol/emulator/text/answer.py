"""The answer to a text request: honest, and the same for the same request.

An answer has candidates, as many as were asked for. A candidate is a text or calls functions. What
it says is a `Draft`, before any limit: the emulator composes it from the request, or a script has
it. The protocols then write the candidates, whole or in chunks.

The emulator composes the first of these that applies:

1. A call of a function, if the request declares some; `functions.py` says of which.
2. JSON, if the request asks for it: a value that satisfies the schema.
3. A text that says that no model has answered, and restates the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any

import attrs

from muybridge_protocol.emulator.text import word_pieces
from muybridge_protocol.emulator.text.files import describe
from muybridge_protocol.emulator.text.functions import make_value
from muybridge_protocol.emulator.text.markers import TextMarker
from muybridge_protocol.emulator.text.prompt import Inline, Linked, Prompt
from muybridge_protocol.http import without_query
from muybridge_protocol.records.json import readable

HONESTY = "This is Muybridge's local emulator of the service: no model has answered."
"""The beginning of every text."""

INTERRUPTION = "the marker [text:stream-error] asks for this error"
"""The message of an error within a stream."""

CHUNK = 8
"""Word pieces in one piece of a stream."""

_QUOTED = 200
"""Most characters that an answer quotes of a text."""
_SHORT = 60
"""Most characters that it quotes of a name or a number."""

_MOST_LISTED = 8
"""Most files or results that an answer names; of the others it says how many there are."""


class Ending(Enum):
    """Why an answer ends."""

    STOP = "it is complete"
    MAX_TOKENS = "it reached the limit of tokens"
    SAFETY = "it is withheld"
    BLOCKED = "the prompt is blocked"


@attrs.frozen
class Call:
    """A function call.

    Args:
        name: The function's name.
        arguments: Its arguments.
    """

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def written(self) -> str:
        """The arguments as JSON."""
        return json.dumps(self.arguments)

    @property
    def pieces(self) -> list[str]:
        """The arguments as JSON in the pieces of a stream."""
        pieces = word_pieces.split(self.written)
        return ["".join(pieces[at : at + CHUNK]) for at in range(0, len(pieces), CHUNK)]

    @property
    def tokens(self) -> int:
        """Tokens of the call: of its name, and of its arguments as JSON."""
        return word_pieces.count(f"{self.name}{self.written}")


@attrs.frozen(kw_only=True)
class Draft:
    """What a candidate says, before any limit.

    Args:
        text: Its text.
        calls: The functions that it calls.
        ending: Why it ends.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    ending: Ending = Ending.STOP


@attrs.frozen
class Chunk:
    """A piece of a streamed candidate: some of its text, or one of its calls.

    Args:
        text: Its text.
        tokens: Tokens of the candidate so far.
        last: Whether it ends the candidate.
        call: The call, or None.
    """

    text: str
    tokens: int
    last: bool
    call: Call | None = None


@attrs.frozen
class Candidate:
    """One answer.

    Args:
        pieces: Its text in word pieces.
        calls: The functions that it calls.
        ending: The reason why it ends.
    """

    pieces: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    ending: Ending = Ending.STOP

    @classmethod
    def of(cls, draft: Draft, most_tokens: int | None) -> Candidate:
        """Return the candidate for *draft*, with no more than *most_tokens*, or any for None.

        A call that the limit would cut is left out.
        """
        whole = word_pieces.split(draft.text)
        pieces = whole[:most_tokens]
        tokens = len(whole) + sum(call.tokens for call in draft.calls)
        if most_tokens is not None and tokens > most_tokens:
            return cls(pieces, (), Ending.MAX_TOKENS)
        return cls(pieces, draft.calls, draft.ending)

    @property
    def text(self) -> str:
        """The text as far as its tokens reach."""
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """How many tokens its text and its calls have."""
        return len(self.pieces) + sum(call.tokens for call in self.calls)

    @property
    def ends_in_calls(self) -> bool:
        """Whether it waits for the results of calls."""
        return bool(self.calls) and self.ending is Ending.STOP

    def chunks(self) -> list[Chunk]:
        """Return the chunks of its stream, at least one."""
        chunks: list[Chunk] = []
        for start in range(0, len(self.pieces), CHUNK):
            end = min(start + CHUNK, len(self.pieces))
            chunks.append(Chunk("".join(self.pieces[start:end]), end, last=False))
        tokens = len(self.pieces)
        for call in self.calls:
            tokens += call.tokens
            chunks.append(Chunk("", tokens, last=False, call=call))
        chunks = chunks or [Chunk("", 0, last=False)]
        return [*chunks[:-1], attrs.evolve(chunks[-1], last=True)]


@attrs.frozen(kw_only=True)
class Answer:
    """The answer to a text request.

    Args:
        id: The stem of its identifier.
        created: When it was made, Unix seconds.
        prompt: The request.
        prompt_tokens: Tokens of the prompt.
        candidates: The answers, at least one.
        interruption: The marker that ends its stream early, or None.
    """

    id: str
    created: int
    prompt: Prompt
    prompt_tokens: int
    candidates: tuple[Candidate, ...]
    interruption: TextMarker | None = None

    @property
    def first(self) -> Candidate:
        """The first candidate, for a protocol that has no others."""
        return self.candidates[0]

    @property
    def tokens(self) -> int:
        """Tokens of all candidates, without those of the prompt."""
        return sum(candidate.tokens for candidate in self.candidates)

    def rounds(self) -> list[list[tuple[int, Chunk]]]:
        """Return the chunks of its stream, with the numbers of their candidates.

        A round has one chunk of each candidate that is not at its end. An interrupted stream has
        half of the rounds, and does not end.
        """
        several = zip_longest(*(candidate.chunks() for candidate in self.candidates))
        rounds = [
            [(number, chunk) for number, chunk in enumerate(chunks) if chunk is not None]
            for chunks in several
        ]
        if self.interruption is None:
            return rounds
        return [
            [(number, attrs.evolve(chunk, last=False)) for number, chunk in chunks]
            # Rounded up: something arrives before the interruption.
            for chunks in rounds[: -(-len(rounds) // 2)]
        ]


def answer(
    prompt: Prompt,
    marker: TextMarker | None,
    script: Sequence[Draft] = (),
    *,
    answer_id: str,
    now: float,
) -> Answer:
    """Return the answer to *prompt*.

    Args:
        prompt: The request.
        marker: The marker in the prompt, or None.
        script: What the candidates say, or nothing if the emulator is to compose it. If more
            candidates are wanted, they say the same again.
        answer_id: The stem of the answer's identifier.
        now: Unix seconds.

    Raises:
        Refused: No value was found for a schema of the request.
    """
    wanted = range(prompt.candidates)
    if marker in _WITHHELD:
        drafts = [Draft(ending=_WITHHELD[marker]) for _ in wanted]
    elif script:
        drafts = [script[number % len(script)] for number in wanted]
    else:
        drafts = [draft(prompt, number) for number in wanted]
    return Answer(
        id=answer_id,
        created=int(now),
        prompt=prompt,
        prompt_tokens=prompt.tokens(),
        candidates=tuple(Candidate.of(one, prompt.most_tokens) for one in drafts),
        interruption=marker if marker in (TextMarker.CUT, TextMarker.STREAM_ERROR) else None,
    )


_WITHHELD: Mapping[TextMarker | None, Ending] = {
    TextMarker.BLOCKED: Ending.BLOCKED,
    TextMarker.SAFETY: Ending.SAFETY,
}


def draft(prompt: Prompt, number: int) -> Draft:
    """Return what the candidate with *number* says to *prompt*.

    Raises:
        Refused: No value was found for a schema of the request.
    """
    function = prompt.functions.next(prompt.called)
    if function is not None:
        return Draft(calls=(Call(function.name, function.arguments()),))
    if prompt.json_schema is not None:
        return Draft(text=json.dumps(make_value(prompt.json_schema)))
    text = compose(prompt)
    if prompt.candidates > 1:
        text += f"\nCandidate: {number + 1} of {prompt.candidates}."
    return Draft(text=json.dumps({"answer": text}) if prompt.json_wanted else text)


def compose(prompt: Prompt) -> str:
    """Return the whole text of the answer to *prompt*."""
    roles = [readable(turn.role, _SHORT) for turn in prompt.turns]
    lines = [
        HONESTY,
        f"Model: {prompt.model}.",
        f"Turns: {len(roles)} ({_listed(roles)}).",
    ]
    if prompt.system:
        lines.append(f"System instruction: {_quoted(' '.join(prompt.system))}.")
    lines.append(f"Last user text: {_quoted(prompt.last_user_text)}.")
    if prompt.files:
        lines.append(f"Files: {len(prompt.files)}.")
        lines += [f"- {_described(file)}." for file in prompt.files[:_MOST_LISTED]]
    others = [readable(part, _SHORT) for part in prompt.other_parts]
    if others:
        lines.append(f"Other parts: {_listed(others)}.")
    results = [f"{result.name} {json.dumps(result.value)}".strip() for result in prompt.results]
    if results:
        lines.append(f"Function results: {_listed([readable(one, _QUOTED) for one in results])}.")
    if prompt.settings:
        settings = [f"{name} {_number(value)}" for name, value in prompt.settings]
        lines.append(f"Settings: {_listed(settings)}.")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return f'"{readable(text, _QUOTED)}"'


def _described(file: Inline | Linked) -> str:
    if isinstance(file, Linked):
        return f"{readable(without_query(file.address), _QUOTED)}, which was not fetched"
    return f"{readable(file.media_type, _SHORT)}: {describe(file.data)}"


def _number(value: float) -> str:
    return readable(json.dumps(value), _SHORT)


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
