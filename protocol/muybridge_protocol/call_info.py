"""Which call an event belongs to. Events have it, and so has what a driver reports itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from muybridge_protocol.arguments import NO_TAGS

CallKind = Literal[
    "create", "get", "wait", "download", "check", "delete", "call", "text", "text stream"
]
"""The kinds of calls."""


@attrs.frozen(kw_only=True)
class CallInfo:
    """Identifies the call that an event belongs to.

    Args:
        number: Identifies the call within this process, from 1.
        kind: What it does.
        task_id: The task's id, once it is known.
        family: The family, if it is known.
        model: The model that was requested or that the service named, if it is known.
        work: The position in the work of a `run_all`, from 0, or None elsewhere.
        tags: The tags of the purchase that the call makes or waits for, as far as they are known.
    """

    number: int
    kind: CallKind
    task_id: str | None = None
    family: str | None = None
    model: str | None = None
    work: int | None = None
    tags: Mapping[str, str] = attrs.field(default=NO_TAGS, hash=False)
