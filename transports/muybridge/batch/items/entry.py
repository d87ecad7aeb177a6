"""`Entry`: an item of a batch with what its last purchase says about it, to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import attrs

from muybridge.purchases.schema import OF_ITEM
from muybridge_protocol.errors import LocalError
from muybridge_protocol.purchases import Item, Stage, State
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, Task, read_result

_OF_PURCHASE: Final = {
    "token": "token",
    "candidate": "candidate",
    "response_status": "response_status",
    "response": "response",
    "bought": "state",
    "decided_at": "decided_at",
}
"""What an entry has of its purchase, and what it is called there."""
_COLUMNS: Final = (
    *(f"item.{name} AS {name}" for name in OF_ITEM),
    *(f"bought.{column} AS bought_{column}" for column in _OF_PURCHASE.values()),
)
SELECT_ENTRIES: Final = (
    f"SELECT {', '.join(_COLUMNS)} FROM muybridge_item AS item "
    "LEFT JOIN muybridge_purchases AS bought ON bought.key = item.purchase"
)


@attrs.frozen(kw_only=True)
class Entry:
    """An item of a batch.

    Args:
        number: Its place in the batch, from 1.
        name: The user's name for the item, or "".
        stem: The name of its file, without the suffix.
        family: The family of the request.
        body: The request as it is sent, as JSON.
        state: Its stage.
        owner: The process that works on it, or None.
        purchase: The key of its last purchase, or of the one that it has joined; or None.
        bought: The state of that purchase, or None.
        decided_at: When a person decided about that purchase, Unix seconds, or None.
        response_status: The status of an ambiguous response, or None.
        response: What arrived of its body, or None.
        token: The task's token, once its id is known.
        candidate: What looks like an id in an ambiguous response, or the id that a person gave; or
            None.
        result: The final result, as JSON without links, or None.
        expires: When the result's link stops working, Unix seconds, or None.
        reason: Why it is in this stage, for people, on one line, or None.
        path: The file's name within the batch's folder, or None. A completed item keeps that of a
            file that it has lost.
        size: The file's bytes, or None.
        sha256: The file's checksum, or None.
        began: When its id became known, Unix seconds, or None.
        ended: When its final status became known, Unix seconds, or None.
        next_poll_at: When its task may next be polled, Unix seconds, or None.
    """

    number: int
    name: str
    stem: str
    family: str
    body: str
    state: Stage = attrs.field(converter=Stage)
    owner: str | None = None
    purchase: str | None = None
    bought: State | None = attrs.field(
        default=None, converter=attrs.converters.optional(State)
    )  # fmt: skip
    decided_at: float | None = None
    response_status: int | None = None
    response: bytes | None = attrs.field(
        default=None, repr=False, converter=attrs.converters.optional(bytes)
    )
    token: str | None = None
    candidate: str | None = None
    result: str | None = None
    expires: float | None = None
    reason: str | None = None
    path: str | None = None
    size: int | None = None
    sha256: str | None = None
    began: float | None = None
    ended: float | None = None
    next_poll_at: float | None = None

    @classmethod
    def read(cls, row: Sequence[Any]) -> Self:
        """Return the entry in a row of `SELECT_ENTRIES`."""
        facts = dict(zip((*OF_ITEM, *_OF_PURCHASE), row, strict=True))
        for name in ("batch", "amounts"):
            del facts[name]
        return cls(state=facts.pop("stage"), **facts)

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
            task = Task.from_token(self.token)
        except LocalError:
            return None
        if self.next_poll_at is None:
            return task
        return attrs.evolve(task, next_poll_at=self.next_poll_at)

    @property
    def possible_id(self) -> str | None:
        """What looks like its task's id: its candidate, or what an ambiguous response names."""
        if self.candidate is None and self.state is Stage.AMBIGUOUS:
            return find_id(self.response or b"")
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
        if self.token is None:
            return None
        try:
            return Task.from_token(self.token).id
        except LocalError:
            return find_id(self.token.encode("utf-8", "replace"))


def label_of(number: int, name: str) -> str:
    """Return what messages call the item *number*, whose *name* may be empty."""
    return f"item {number} ({name})" if name else f"item {number}"


def label_of_item(item: Item) -> str:
    """Return what messages call *item*."""
    return label_of(item.number, item.name)
