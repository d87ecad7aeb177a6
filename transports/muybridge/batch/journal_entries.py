"""The items of a batch's journal, the steps that an item may take, and what may be stored of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, get_args

import attrs

from muybridge.batch.journal_errors import Unstorable
from muybridge.batch.storable_values import Kind, one_line, storable
from muybridge_protocol.errors import InvalidToken
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.convert import unstructure, wire, wire_names
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, Task, read_result


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
    State.QUEUED: frozenset({State.CLAIMED, State.ABANDONED}),
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
    State.DOWNLOADED: frozenset({State.COMPLETED}),  # its file is gone, and is downloaded again
}
"""The steps that an item may take."""


@attrs.frozen(kw_only=True)
class NewItem:
    """An item for the journal.

    Args:
        name: The user's name for the item, or "".
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
        name: The user's name for the item, or "".
        stem: The name of its file, without the suffix.
        family: The family of the request.
        body: The request as it is sent, as JSON.
        state: Its progress.
        owner: The runner that works on it, or None.
        attempt: How many creates were started for it.
        reply_status: The status of a response that was not, or cannot be, processed, or None.
        reply: The body of that response, or as much as had arrived.
        token: The task's token, once its id is known.
        candidate: What looks like an id in an ambiguous response, or the id that a person gave; or
            None.
        result: The final result, as JSON without links, or None.
        expires: When the result's link stops working, Unix seconds, or None.
        reason: Why it is in this state, for people, on one line, or None.
        path: The file's name within the batch's folder, or None. A completed item keeps that of a
            file that it has lost.
        size: The file's bytes, or None.
        sha256: The file's checksum, or None.
        began: When its id became known, Unix seconds, or None.
        ended: When its final status became known, Unix seconds, or None.
        store: Where the store with its last purchase is, or None.
        purchase: The key of that purchase, or None.
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
    store: str | None = None
    purchase: str | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return label_of(self.number, self.name)

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
    def possible_id(self) -> str | None:
        """What looks like its task's id: its candidate, or what an ambiguous response names."""
        if self.candidate is None and self.state is State.AMBIGUOUS:
            return find_id(self.reply or b"")
        return self.candidate

    @property
    def task_result(self) -> Result | None:
        """The final result; None before the task has ended, or if it cannot be read.

        It has no link: query the task for one.
        """
        task_id = self.task_id
        if self.result is None or task_id is None:
            return None
        try:
            return read_result({"id": task_id, **read_object(self.result)}, family=self.family)
        except InvalidJson:
            return None

    @property
    def task_id(self) -> str | None:
        """The task's id, or None while it is unknown. Even an unreadable token may contain it."""
        return task_id_in(self.token)


def task_id_in(token: str | None) -> str | None:
    """Return the id in *token*. Even one that cannot be read may contain it."""
    if token is None:
        return None
    try:
        return Task.from_token(token).id
    except InvalidToken:
        return find_id(token.encode("utf-8", "replace"))


def label_of(number: int, name: str) -> str:
    """Return what messages call the item *number*, whose *name* may be empty."""
    return f"item {number} ({name})" if name else f"item {number}"


FACTS: Final[Mapping[str, Kind]] = {
    field.name: (get_args(field.type) or (field.type,))[0]  # without the None of optional ones
    for field in attrs.fields(attrs.resolve_types(Entry))
    if field.name not in {"number", "state", *wire_names(NewItem)}
}
"""The columns that a step may set, with their types."""


JUDGED: Final = ("attempt", "reply_status", "reply", "token", "candidate")
"""What is read of an item to judge what has become of its create."""

_LATE: Final = frozenset(
    {State.ARMED, State.AMBIGUOUS, State.CLAIMED, State.QUEUED, State.SUBMITTED, State.REFUSED}
)
"""What a create leads to."""


def check_step(before: State, after: State) -> None:
    """Check that an item may go from *before* to *after*, or stay.

    Raises:
        ValueError: It may not.
    """
    if after is not before and after not in TRANSITIONS[before]:
        raise ValueError(f"no item goes from {before} to {after}")


def names_task(before: State, after: State, by: str | None) -> bool:
    """Whether a step that sets a token says whose task it is: later ones only keep its pace."""
    return before is not after or by is None


def late_step(after: State, facts: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
    """Return the state and the facts of an ambiguous item whose response arrives late.

    Args:
        after: What the item would have become.
        facts: What would have been set with it.

    Raises:
        ValueError: No response leads to *after*.
    """
    if after not in _LATE:
        raise ValueError(f"no late response leads to {after}")
    reached = {State.ARMED: State.AMBIGUOUS, State.CLAIMED: State.QUEUED}.get(after, after)
    return reached, {**facts, "owner": None}


def storable_facts(facts: Mapping[str, Any]) -> dict[str, str | int | float | bytes | None]:
    """Return the columns that a step sets, as a journal stores them.

    Raises:
        Unstorable: One of them cannot be stored.
        ValueError: There is no such column.
    """
    if not FACTS.keys() >= facts.keys():
        raise ValueError(f"no such columns: {sorted(facts.keys() - FACTS.keys())}")
    shown = {
        name: one_line(value) if name == "reason" and isinstance(value, str) else value
        for name, value in facts.items()
    }
    return {name: storable(value, FACTS[name]) for name, value in shown.items()}


def stray_values(facts: Mapping[str, Any]) -> tuple[str | int | float | bytes | None, ...]:
    """Return what a stray keeps of *facts*: its token, status and reply."""
    kept = storable_facts(facts)
    return kept.get("token"), kept.get("reply_status"), kept.get("reply")


def storable_texts(item: NewItem) -> list[str | int | float | bytes | None]:
    """Return the columns of a new item, in the order of `NewItem`.

    Raises:
        Unstorable: It cannot be written as JSON.
    """
    try:
        texts: list[str] = [*unstructure(item).values()]
    except (TypeError, ValueError, RecursionError) as error:
        raise Unstorable(f"a request cannot be written as JSON: {error}") from error
    return [storable(text, str) for text in texts]
