"""Where text requests go, and what they may take unless told otherwise. It is loaded by itself."""

from __future__ import annotations

from typing import Final

from muybridge_protocol.http import MEBIBYTE

CHAT_PATH: Final = "/v1/chat/completions"
MESSAGES_PATH: Final = "/v1/messages"
"""Not shown in the specification; this is the usual one."""

TEXT_TIMEOUT: Final = 600.0
"""Seconds that a text request may take. A long answer takes its time, and giving up early pays
for it all the same."""
SILENCE_LIMIT: Final = 180.0
"""Seconds that may pass without a byte of a streamed reply: models think before they speak."""
REPLY_LIMIT: Final = 32 * MEBIBYTE
"""Most bytes of a reply, whole or streamed: pictures may be inside."""
