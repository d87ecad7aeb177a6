"""The content of a text request, in whichever protocol it arrived."""

from __future__ import annotations

import json
from typing import Any

import attrs

from muybridge_protocol.emulator.text import word_pieces
from muybridge_protocol.emulator.text.functions import Functions
from muybridge_protocol.emulator.text.node import Node

USER = "user"
"""The role of the user in all three protocols."""

MOST_CANDIDATES = 8
"""Most answers to one request."""

FILE_TOKENS = 258
"""The tokens of a file of any size. The specification gives no figure."""


@attrs.frozen
class Inline:
    """A file inside a request.

    Args:
        media_type: Its type, according to the request.
        data: Its bytes.
    """

    media_type: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")


@attrs.frozen
class Linked:
    """A file that a request refers to. It is not fetched.

    Args:
        address: Its URL.
    """

    address: str


@attrs.frozen
class Other:
    """A part that is neither text nor a file.

    Args:
        kind: Its kind, in the words of the request.
    """

    kind: str


@attrs.frozen
class Called(Other):
    """A function call in an earlier answer.

    Args:
        kind: Its kind.
        name: The function's name, which may be missing: "".
        id: The call's identifier, or "".
    """

    name: str = ""
    id: str = ""


@attrs.frozen
class Returned(Other):
    """The result of a function call.

    Args:
        kind: Its kind.
        name: The function's name, or "".
        id: The identifier of the call, or "".
        value: The result.
    """

    name: str = ""
    id: str = ""
    value: Any = attrs.field(default=None, repr=False)


Part = str | Inline | Linked | Other


@attrs.frozen
class Turn:
    """One turn of a conversation.

    Args:
        role: Its role, in the words of the protocol.
        parts: Its parts.
    """

    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its texts, each on lines of its own, or ""."""
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def results(self) -> tuple[Returned, ...]:
        """Its results of function calls."""
        return tuple(part for part in self.parts if isinstance(part, Returned))


@attrs.frozen(kw_only=True)
class Prompt:
    """The content of a text request.

    Args:
        model: The requested model.
        turns: The conversation.
        system: The texts of the system instruction.
        settings: Settings, with the names that the request uses.
        most_tokens: Most tokens of the answer, or None for no limit.
        streaming: Whether the answer is to be streamed.
        usage_wanted: Whether a stream is to report token counts, in protocols with a choice.
        candidates: How many answers are wanted.
        functions: The functions that an answer may call.
        json_wanted: Whether the answer is to be JSON.
        json_schema: The schema of that JSON, or None if any is right.
    """

    model: str
    turns: tuple[Turn, ...]
    system: tuple[str, ...] = ()
    settings: tuple[tuple[str, float], ...] = ()
    most_tokens: int | None = None
    streaming: bool = False
    usage_wanted: bool = False
    candidates: int = 1
    functions: Functions = attrs.field(factory=Functions)
    json_wanted: bool = False
    json_schema: Node | None = None

    @property
    def last_user_text(self) -> str:
        """The text of the user's last turn that does not only return results, or ""."""
        users = [turn for turn in self.turns if turn.role == USER]
        texts = [turn.text for turn in users if len(turn.results) < max(1, len(turn.parts))]
        return texts[-1] if texts else ""

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the functions that were called after the user's last turn without results.

        A text beside results is no new question.
        """
        turns = enumerate(self.turns)
        questions = [at for at, turn in turns if turn.role == USER and not turn.results]
        later = self.turns[questions[-1] :] if questions else self.turns
        return tuple(part.name for turn in later for part in turn.parts if isinstance(part, Called))

    @property
    def results(self) -> tuple[Returned, ...]:
        """The results of function calls, in order. Each has the name of its function, if known."""
        parts = [part for turn in self.turns for part in turn.parts]
        names = {part.id: part.name for part in parts if isinstance(part, Called) and part.id}
        results = [result for turn in self.turns for result in turn.results]
        return tuple(attrs.evolve(one, name=one.name or names.get(one.id, "")) for one in results)

    @property
    def files(self) -> tuple[Inline | Linked, ...]:
        """The files of all turns, in order."""
        return tuple(
            part for turn in self.turns for part in turn.parts if isinstance(part, Inline | Linked)
        )

    @property
    def other_parts(self) -> tuple[str, ...]:
        """The kinds of the parts that are neither text nor a file, in order."""
        return tuple(
            part.kind for turn in self.turns for part in turn.parts if isinstance(part, Other)
        )

    def tokens(self) -> int:
        """Return the tokens of the conversation and the system instruction."""
        texts = [part for turn in self.turns for part in turn.parts if isinstance(part, str)]
        texts += [json.dumps(one.value) for one in self.results if one.value is not None]
        counted = sum(word_pieces.count(text) for text in (*self.system, *texts))
        return counted + FILE_TOKENS * len(self.files)
