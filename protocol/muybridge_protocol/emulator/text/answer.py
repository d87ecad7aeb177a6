"""The answer to a text request: honest, and the same for the same request."""

from __future__ import annotations

import json
from enum import Enum

import attrs

from muybridge_protocol.emulator.text import word_pieces
from muybridge_protocol.emulator.text.files import describe
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
_SHORT = 60
"""Most characters quoted of a text (above), and of a name or number."""

_MOST_LISTED = 8


class Ending(Enum):
    """Why an answer ends."""

    STOP = "it is complete"
    MAX_TOKENS = "it reached the limit of tokens"
    SAFETY = "it is withheld"
    BLOCKED = "the prompt is blocked"


@attrs.frozen
class Chunk:
    """A piece of a streamed answer.

    Args:
        text: Its text.
        tokens: Tokens of the answer so far.
        last: Whether it ends the answer.
    """

    text: str
    tokens: int
    last: bool


@attrs.frozen(kw_only=True)
class Answer:
    """The answer to a text request.

    Args:
        id: The stem of its identifier.
        created: When it was made, Unix seconds.
        prompt: The request.
        prompt_tokens: Tokens of the prompt.
        pieces: Its text in word pieces.
        ending: The reason why it ends.
        interruption: The marker that ends its stream early, or None.
    """

    id: str
    created: int
    prompt: Prompt
    prompt_tokens: int
    pieces: tuple[str, ...]
    ending: Ending
    interruption: TextMarker | None = None

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """Tokens of the text."""
        return len(self.pieces)

    def chunks(self) -> tuple[Chunk, ...]:
        """Return the chunks of its stream, at least one. An interrupted stream has half of them."""
        starts = range(0, max(1, self.tokens), CHUNK)
        chunks = [
            Chunk(
                "".join(self.pieces[start : start + CHUNK]),
                min(start + CHUNK, self.tokens),
                last=start == starts[-1] and self.interruption is None,
            )
            for start in starts
        ]
        return tuple(chunks if self.interruption is None else chunks[: -(-len(chunks) // 2)])


def answer(prompt: Prompt, marker: TextMarker | None, *, answer_id: str, now: float) -> Answer:
    """Return the answer to *prompt*.

    Args:
        prompt: The request.
        marker: The marker in the prompt, or None.
        answer_id: The stem of the answer's identifier.
        now: Unix seconds.
    """
    pieces: tuple[str, ...] = ()
    if marker is TextMarker.BLOCKED:
        ending = Ending.BLOCKED
    elif marker is TextMarker.SAFETY:
        ending = Ending.SAFETY
    else:
        whole = word_pieces.split(compose(prompt))
        pieces = whole[: prompt.most_tokens]
        ending = Ending.STOP if len(pieces) == len(whole) else Ending.MAX_TOKENS
    return Answer(
        id=answer_id,
        created=int(now),
        prompt=prompt,
        prompt_tokens=prompt.tokens(),
        pieces=pieces,
        ending=ending,
        interruption=marker if marker in (TextMarker.CUT, TextMarker.STREAM_ERROR) else None,
    )


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
