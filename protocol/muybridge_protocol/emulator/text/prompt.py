"""What a text request said, whichever protocol it came in."""

from __future__ import annotations

import attrs

from muybridge_protocol.emulator.text import word_pieces

USER = "user"
"""The role, in all three protocols, of what a person said."""

FILE_TOKENS = 258
"""What a file costs here, whatever its size; the specification gives no figure."""


@attrs.frozen
class Inline:
    """A file inside a request.

    Args:
        media_type: The type that the request gave it.
        data: Its bytes.
    """

    media_type: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")


@attrs.frozen
class Linked:
    """A file that a request refers to. It is not fetched.

    Args:
        address: Where it lies.
    """

    address: str


@attrs.frozen
class Other:
    """A part that is neither text nor a file, such as a function's result.

    Args:
        kind: What the request calls it.
    """

    kind: str


Part = str | Inline | Linked | Other


@attrs.frozen
class Turn:
    """One turn of a conversation.

    Args:
        role: Whose turn it is, in the protocol's word.
        parts: What was said.
    """

    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its texts together."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@attrs.frozen(kw_only=True)
class Prompt:
    """What a text request said.

    Args:
        model: The model that it asks for.
        turns: The conversation.
        system: The texts of the system instruction.
        settings: Settings by the names that the request gave them.
        most_tokens: Most tokens that the answer may have, or None.
        streaming: Whether the answer is to come piece by piece.
        usage_wanted: Whether a stream is to tell the tokens, where that is a choice.
    """

    model: str
    turns: tuple[Turn, ...]
    system: tuple[str, ...] = ()
    settings: tuple[tuple[str, float], ...] = ()
    most_tokens: int | None = None
    streaming: bool = False
    usage_wanted: bool = False

    @property
    def last_user_text(self) -> str:
        """The text of the last turn of the user, or ""."""
        said = [turn.text for turn in self.turns if turn.role == USER]
        return said[-1] if said else ""

    @property
    def files(self) -> tuple[Inline | Linked, ...]:
        """The files of all turns, in their order."""
        return tuple(
            part for turn in self.turns for part in turn.parts if isinstance(part, Inline | Linked)
        )

    @property
    def other_parts(self) -> tuple[str, ...]:
        """The kinds of the parts that are neither text nor a file, in their order."""
        return tuple(
            part.kind for turn in self.turns for part in turn.parts if isinstance(part, Other)
        )

    def tokens(self) -> int:
        """Return the tokens of the conversation and the system instruction."""
        texts = [part for turn in self.turns for part in turn.parts if isinstance(part, str)]
        counted = sum(word_pieces.count(text) for text in (*self.system, *texts))
        return counted + FILE_TOKENS * len(self.files)
