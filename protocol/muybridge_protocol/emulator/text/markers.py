"""Markers in the user's last turn that decide how a text request ends.

| marker | effect |
|---|---|
| `[text:blocked]` | the prompt is blocked: there is no candidate |
| `[text:safety]` | the answer is held back for safety: it has no text |
| `[text:error]` | HTTP 500 |
| `[text:throttled]` | HTTP 429 with `Retry-After` |
| `[text:cut]` | a stream ends halfway, without a word about it |
| `[text:stream-error]` | a stream has an error halfway, and ends |

They may stand anywhere in the turn; of several, the first one counts. A reply that is no stream
pays no heed to the last two. Chat completions and messages know no blocked prompt: there it is the
same as an answer that is held back.
"""

from __future__ import annotations

from enum import StrEnum


class TextMarker(StrEnum):
    """How a text request ends, by what stands in it."""

    BLOCKED = "[text:blocked]"
    SAFETY = "[text:safety]"
    ERROR = "[text:error]"
    THROTTLED = "[text:throttled]"
    CUT = "[text:cut]"
    STREAM_ERROR = "[text:stream-error]"


def read_marker(text: str) -> TextMarker | None:
    """Return the first marker in *text*, or None."""
    found = [marker for marker in TextMarker if marker in text]
    return min(found, key=text.index, default=None)
