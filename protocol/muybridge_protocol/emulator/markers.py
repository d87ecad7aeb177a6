"""Markers in a prompt that decide how an emulated task ends.

| marker | effect |
|---|---|
| `[fail:content-policy]` | the task fails: content policy violation |
| `[fail:unreachable-reference]` | the task fails: unreachable reference image |
| `[fail:low-resolution-reference]` | the task fails: reference image resolution too low |
| `[fail:long-reference-videos]` | the task fails: reference video total duration above 15 s |
| `[cancel]` | the task ends cancelled, in family `vidsa` alone |
| `[slow:SECONDS]` | the task takes SECONDS to generate, divided by the speed like any time |

They may stand anywhere in the prompt; of several that end a task, the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from muybridge_protocol.families import VIDSA, Family
from muybridge_protocol.records.tasks import Status

FAILURES: Mapping[str, str] = {
    "[fail:content-policy]": "content policy violation",
    "[fail:unreachable-reference]": "unreachable reference image",
    "[fail:low-resolution-reference]": "reference image resolution too low",
    "[fail:long-reference-videos]": "reference video total duration above 15 s",
}
"""The reasons that the specification has seen (spec, "Errors"), by the marker of each."""

CANCEL = "[cancel]"
"""Ends a task of family `vidsa` as cancelled."""

SLOW = "[slow:{seconds}]"
"""Sets how long a task takes to generate; format it with the seconds."""

_SLOW = re.compile(r"\[slow:([0-9]{1,9}(?:\.[0-9]{1,6})?)\]", re.ASCII)


@attrs.frozen(kw_only=True)
class Fate:
    """How a task will end.

    Args:
        ending: Its terminal status.
        error: Why it fails, or None.
        processing: Seconds that it takes to generate, before the speed, or None for the usual.
    """

    ending: Status = Status.COMPLETED
    error: str | None = None
    processing: float | None = None


def read_fate(family: Family, prompt: str) -> Fate:
    """Return how a task of *family* with *prompt* will end."""
    slow = _SLOW.search(prompt)
    processing = float(slow[1]) if slow else None
    markers = [marker for marker in FAILURES if marker in prompt]
    if family is VIDSA and CANCEL in prompt:
        markers.append(CANCEL)
    if not markers:
        return Fate(processing=processing)
    first = min(markers, key=prompt.index)
    if first == CANCEL:
        return Fate(ending=Status.CANCELLED, processing=processing)
    return Fate(ending=Status.FAILED, error=FAILURES[first], processing=processing)
