"""What text calls need before one is made, importable without the rest of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muybridge_protocol.http import MEBIBYTE

CHAT_PATH: Final = "/v1/chat/completions"
MESSAGES_PATH: Final = "/v1/messages"
"""Not shown in the specification; this is the usual one."""

TEXT_TIMEOUT: Final = 600.0
"""Seconds that a text request may take. Long answers take a while, and an answer that is abandoned
is still charged."""
SILENCE_LIMIT: Final = 180.0
"""Seconds without a byte of a streamed response: models think before they answer."""
REPLY_LIMIT: Final = 32 * MEBIBYTE
"""Most bytes of a response, whole or streamed. It may contain pictures."""


def place_of(method: str, name: str, known: Sequence[str]) -> str:
    """Return where the argument *name* goes, which a *method* of the clients does not have."""
    from muybridge_protocol.text import arguments  # noqa: PLC0415  needed only after a mistake

    return arguments.place_of(method, name, known)
