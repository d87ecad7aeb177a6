"""What text calls need before one is made, importable without the rest of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muybridge_protocol.http import MEBIBYTE

CHAT_PATH: Final = "/v1/chat/completions"
MESSAGES_PATH: Final = "/v1/messages"
"""Not shown in the specification; this is the usual one."""
NO_BODY: Final[Mapping[str, Any]] = {}
"""Refused. With a default, a call that gives the body's fields as arguments begins, and says so."""

TEXT_TIMEOUT: Final = 600.0
"""Seconds that a text request may take. Long answers take a while, and an answer that is abandoned
is still charged."""
SILENCE_LIMIT: Final = 180.0
"""Seconds without a byte of a streamed response: models think before they answer."""
RESPONSE_LIMIT: Final = 32 * MEBIBYTE
"""Most bytes of a response, whole or streamed. It may contain pictures."""
