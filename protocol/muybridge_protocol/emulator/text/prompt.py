"""The content of a text request, in whichever protocol it arrived."""

from __future__ import annotations

import attrs

from muybridge_protocol.emulator.text import word_pieces

USER = "user"
"""The role of the user in all three protocols."""

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
    """A part that is neither text nor a file, such as a function's result.

    Args:
        kind: Its kind, in the words of the request.
    """

    kind: str


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
        """Its texts, joined."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


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
        counted = sum(word_pieces.count(text) for text in (*self.system, *texts))
        return counted + FILE_TOKENS * len(self.files)
