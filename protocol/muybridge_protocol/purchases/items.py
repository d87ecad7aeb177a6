"""The items of a batch: work that follows its last purchase."""

from __future__ import annotations

import attrs

from muybridge_protocol.purchases.purchase import Outcome, Purchase
from muybridge_protocol.purchases.states import Stage, State
from muybridge_protocol.records.tasks import Task, retained_until


@attrs.frozen(kw_only=True)
class Item:
    """An item of a batch.

    Args:
        batch: The batch.
        number: Its place in the batch, from 1.
        name: The user's name for it, or "".
        stem: The name of its file, without the suffix.
        family: The family of the request.
        body: The request as it is sent, as JSON.
        stage: Its stage.
        owner: The worker that works on it, or None.
        purchase: The key of its last purchase, or of the one that it has joined; or None.
        result: The final result, as JSON without links, or None.
        expires: When the result's link stops working, Unix seconds, or None.
        reason: Why it is in this stage, for people, on one line, or None.
        path: The file's name within the batch's folder, or None.
        size: The file's bytes, or None.
        sha256: The file's checksum, or None.
        began: When its task's id became known, Unix seconds, or None.
        ended: When its final status became known, Unix seconds, or None.
        next_poll_at: When its task may next be polled, Unix seconds, or None.
        amounts: What it consumes, as `written_amounts` has it, if that was known when it was added;
            or None.
    """

    batch: int
    number: int
    name: str
    stem: str
    family: str
    body: str
    stage: Stage = attrs.field(converter=Stage)
    owner: str | None = None
    purchase: str | None = None
    result: str | None = None
    expires: float | None = None
    reason: str | None = None
    path: str | None = None
    size: int | None = None
    sha256: str | None = None
    began: float | None = None
    ended: float | None = None
    next_poll_at: float | None = None
    amounts: str | None = None

    def has_joined(self, purchase: Purchase) -> bool:
        """Whether *purchase* is that of an identical item, or of a request outside the batch."""
        return (self.batch, self.number) != (purchase.batch, purchase.number)


def followed(item: Item, purchase: Purchase, outcome: Outcome | None = None) -> Item:
    """Return *item* after its *purchase* has changed, or unchanged if it has moved on since.

    Args:
        item: An item. It refers to its last purchase, or to one that it has joined.
        purchase: The purchase as it is now.
        outcome: The news that has changed it, or None if a person has.
    """
    if item.purchase != purchase.key or not _waits_for(item, purchase):
        return item
    # Only the worker that has sent the request keeps its slot. One that waited has given up the
    # item.
    keep = item.owner if item.stage is Stage.ARMED else None
    match purchase.state:
        case State.ARMED:
            return item
        case State.ACCEPTED if purchase.task is not None:
            task = None if outcome is None else outcome.task
            return attrs.evolve(
                item,
                stage=Stage.SUBMITTED,
                # Correcting the task does not take the item away from the worker that polls it.
                owner=item.owner if item.stage is Stage.SUBMITTED else keep,
                reason=None,
                began=_began(purchase) if task is None else task.submitted_at,
                expires=item.expires if task is None else retained_until(task),
            )
        case State.ACCEPTED | State.AMBIGUOUS:
            # Whoever has joined it waits on: it is one question to a person, not several.
            if item.has_joined(purchase):
                reason = (
                    f"an identical request was sent before: {purchase.reason}; decide about it: "
                    f"muybridge decide {purchase.key}"
                )
                return attrs.evolve(item, stage=Stage.JOINED, owner=None, reason=reason)
            return attrs.evolve(item, stage=Stage.AMBIGUOUS, owner=None, reason=purchase.reason)
        case State.ABANDONED:
            return attrs.evolve(item, stage=Stage.ABANDONED, owner=None, reason=purchase.reason)
        case State.RESUBMITTED:
            # The first of those that have joined takes the name, and the others join it.
            return attrs.evolve(item, stage=Stage.QUEUED, owner=None, reason=None)
        case State.RELEASED if item.has_joined(purchase):
            return attrs.evolve(item, stage=Stage.QUEUED, owner=None, reason=None)
        case State.RELEASED:
            after = Stage.QUEUED if outcome is None else outcome.leads_to
            # The worker of a claimed item retries at once. If it has released the item meanwhile,
            # any worker may take it.
            if after is Stage.CLAIMED and keep is None:
                after = Stage.QUEUED
            owner = keep if after is Stage.CLAIMED else None
            return attrs.evolve(item, stage=after, owner=owner, reason=purchase.reason)


def _began(purchase: Purchase) -> float:
    """Return when the task began that a person has named: as its token says, or as it was sent."""
    began = Task.from_token(purchase.token or "").began_at
    return purchase.armed_at if began is None else began


def _waits_for(item: Item, purchase: Purchase) -> bool:
    """Whether nothing was done for *item* since that a change of *purchase* could not undo."""
    match item.stage:
        case Stage.ARMED | Stage.JOINED | Stage.AMBIGUOUS:
            return True
        case Stage.SUBMITTED:  # a person corrects the task that they have named
            return purchase.decided_at is not None
        case Stage.QUEUED | Stage.REFUSED | Stage.ABANDONED:  # its response arrived late after all
            return item.owner is None and purchase.state is State.ACCEPTED
        case _:
            return False
