"""The items of a batch's journal, and the steps that an item may take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, get_args

import attrs

from muybridge.batch.sqlite_values import Kind, one_line
from muybridge_protocol.errors import InvalidToken
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.convert import wire, wire_names
from muybridge_protocol.records.tasks import Task


class State(StrEnum):
    """The progress of an item."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    ARMED = "armed"
    SUBMITTED = "submitted"
    REFUSED = "refused"
    AMBIGUOUS = "ambiguous"
    ABANDONED = "abandoned"
    COMPLETED = "completed"
    FAILED = "failed"
    DOWNLOADED = "downloaded"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.CLAIMED}),
    State.CLAIMED: frozenset({State.ARMED, State.QUEUED}),
    State.ARMED: frozenset(
        {
            State.CLAIMED,  # it certainly did nothing, and is retried after a while
            State.QUEUED,  # it certainly did nothing, and is left to a later run
            State.SUBMITTED,
            State.REFUSED,
            State.AMBIGUOUS,
        }
    ),
    State.SUBMITTED: frozenset({State.COMPLETED, State.FAILED, State.ABANDONED}),
    State.COMPLETED: frozenset({State.DOWNLOADED}),
    # A person decides about these.
    State.AMBIGUOUS: frozenset({State.SUBMITTED, State.ABANDONED, State.QUEUED}),
    State.REFUSED: frozenset({State.QUEUED}),
    State.ABANDONED: frozenset(),
    State.FAILED: frozenset(),
    State.DOWNLOADED: frozenset(),
}
"""The steps that an item may take."""


@attrs.frozen(kw_only=True)
class NewItem:
    """An item for the journal.

    Args:
        name: What the user calls it, or "".
        stem: The name of its file, without the suffix; unique in the batch, ignoring case.
        family: The family of the request.
        body: The request as it is sent.
    """

    name: str
    stem: str
    family: str
    body: Mapping[str, object] = attrs.field(metadata=wire(write=json.dumps))


def _shown(reason: str | None) -> str | None:
    return None if reason is None else one_line(reason)


@attrs.frozen(kw_only=True)
class Entry:
    """An item of the journal.

    Args:
        number: Its place in the batch, from 1.
        name: What the user calls it, or "".
        stem: The name of its file, without the suffix.
        family: The family of the request.
        body: The request as it is sent, as JSON.
        state: Its progress.
        owner: The runner that works on it, or None.
        attempt: How often it was armed.
        reply_status: The status of a response that was not, or cannot be, processed, or None.
        reply: The body of that response, or as much as had arrived.
        token: The task's token, once its id is known.
        candidate: What looks like an id in an ambiguous response, or the id that a person gave; or
            None.
        result: What the service said at the end, as JSON, without links; or None.
        expires: When the result's link stops working, Unix seconds, or None.
        reason: Why it is in this state, for people, on one line, or None.
        path: The file's name within the batch's folder, or None.
        size: The file's bytes, or None.
        sha256: The file's checksum, or None.
        began: When its id became known, Unix seconds, or None.
        ended: When its end became known, Unix seconds, or None.
    """

    number: int
    name: str
    stem: str
    family: str
    body: str
    state: State = attrs.field(converter=State)
    owner: str | None
    attempt: int
    reply_status: int | None
    reply: bytes | None = attrs.field(repr=False)
    token: str | None
    candidate: str | None
    result: str | None
    expires: float | None
    reason: str | None = attrs.field(converter=_shown)
    path: str | None
    size: int | None
    sha256: str | None
    began: float | None
    ended: float | None

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"item {self.number} ({self.name})" if self.name else f"item {self.number}"

    @property
    def task(self) -> Task | None:
        """The task, or None while its id is unknown or if its token cannot be read."""
        if self.token is None:
            return None
        try:
            return Task.from_token(self.token)
        except InvalidToken:
            return None

    @property
    def task_id(self) -> str | None:
        """The task's id, or None while it is unknown. Even an unreadable token may contain it."""
        if self.token is None:
            return None
        task = self.task
        return find_id(self.token.encode("utf-8", "replace")) if task is None else task.id


FACTS: Final[Mapping[str, Kind]] = {
    field.name: (get_args(field.type) or (field.type,))[0]  # without the None of optional ones
    for field in attrs.fields(attrs.resolve_types(Entry))
    if field.name not in {"number", "state", *wire_names(NewItem)}
}
"""The columns that a step may set, with their types."""
