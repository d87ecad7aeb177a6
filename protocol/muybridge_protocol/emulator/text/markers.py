"""Markers in the user's last turn that determine how a text request ends.

| marker | effect |
|---|---|
| `[text:blocked]` | the prompt is blocked: there is no candidate |
| `[text:safety]` | the answer is withheld for safety: it has no text |
| `[text:error]` | HTTP 500 |
| `[text:throttled]` | HTTP 429 with `Retry-After` |
| `[text:cut]` | a stream ends halfway, without notice |
| `[text:stream-error]` | a stream ends halfway with an error |

They may appear anywhere in the turn; of several, the first one counts. Responses that are not
streamed ignore the last two. Chat completions and messages have no blocked prompts: there the
answer is withheld instead.
"""

from __future__ import annotations

from enum import StrEnum


class TextMarker(StrEnum):
    """How a text request ends, by the marker in it."""

    BLOCKED = "[text:blocked]"
    SAFETY = "[text:safety]"
    ERROR = "[text:error]"
    THROTTLED = "[text:throttled]"
    CUT = "[text:cut]"
    STREAM_ERROR = "[text:stream-error]"


def read_marker(text: str) -> TextMarker | None:
    """Return the first marker in *text*, or None."""
    markers = [marker for marker in TextMarker if marker in text]
    return min(markers, key=text.index, default=None)
