"""Which call an event belongs to. Events have it, and so has what a driver reports itself."""

from __future__ import annotations

from typing import Literal

import attrs

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
    """

    number: int
    kind: CallKind
    task_id: str | None = None
    family: str | None = None
    model: str | None = None
    work: int | None = None
