"""A purchase: its states, what news and people make of it, and what is bought."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Self

import attrs

from muybridge_protocol.identifiers import shown_id
from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.purchases.amounts import Amounts, Measure, countable
from muybridge_protocol.purchases.names import ONCE
from muybridge_protocol.purchases.states import (
    AFTER_CHOICE,
    AFTER_NEWS,
    NAMED,
    Choice,
    Stage,
    State,
)
from muybridge_protocol.purchases.tags import EVERYTHING, check_label, check_tag
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import Face, in_python


class CannotDecide(LocalError):
    """A choice does not apply to a purchase. Nothing was changed.

    Args:
        parts: The message: texts, and the remedies among them.
        later: Whether it may apply later: somebody may still be sending the request.
        reasons: Why not, if several choices were made together and none was recorded: by the place
            of the choice among the others, from 0.
    """

    def __init__(
        self, *parts: Any, later: bool = False, reasons: Mapping[int, Exception] | None = None
    ) -> None:
        super().__init__(*parts)
        self.later = later
        self.reasons: Mapping[int, Exception] = reasons or {}

    @classmethod
    def several(cls, reasons: Mapping[int, Exception]) -> Self:
        """Return the error of several choices, some of which do not apply for these *reasons*."""
        return cls("; ".join(map(str, reasons.values())), reasons=reasons)

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error as a JSON object, with whether the choice may apply later."""
        return {**super().to_dict(face), "later": self.later}


def _check_text(_: object, attribute: attrs.Attribute[str | None], text: str | None) -> None:
    check_label(attribute.name, text)


def _check_tags(_: object, __: object, tags: tuple[str, ...]) -> None:
    for tag in tags:
        check_tag(tag)


def _sorted(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


@attrs.frozen(kw_only=True)
class Order:
    """What is bought: a paid request before it is sent.

    Args:
        account: Whose it is.
        family: The family of the request, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        tier: The tier that the price depends on, or None.
        tags: Under which it counts, besides `EVERYTHING`.
        amounts: What it consumes.
        name: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
    """

    account: str
    family: str = ""
    model: str = ""
    tier: str | None = None
    tags: tuple[str, ...] = attrs.field(default=(), converter=_sorted, validator=_check_tags)
    amounts: Amounts
    name: str | None = attrs.field(default=None, validator=_check_text)
    digest: str | None = attrs.field(default=None, validator=_check_text)


@attrs.frozen(kw_only=True)
class Purchase:
    """One POST that costs money.

    Args:
        key: Identifies it, a random text.
        account: Whose it is.
        owner: Who armed it.
        state: Its state.
        armed_at: When it was armed, Unix seconds by the store's clock.
        sending_until: When its exchange has certainly ended, by the same clock; or None if it has
            ended, or the owner's lock tells.
        family: The family of the request, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        tier: The tier that the price depends on, or None.
        tags: Under which it counts, besides `EVERYTHING`.
        budgets: The stored budgets that count it, of those that count only from some moment on.
        amounts: What it consumes.
        name: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
        batch: The batch of its item, or None.
        number: The number of its item, or None.
        token: The task's token, once its id is known.
        task: The task's id, once it is known.
        late: The token of another task that its response named after a person had named one, or
            that belongs to another purchase; or None.
        candidate: What looks like an id in an ambiguous response, or None.
        reason: Why it is in this state, for people, on one line, or None.
        response_status: The status of an ambiguous response, or None.
        response: What arrived of its body, or None.
        decided_at: When a person decided about it, Unix seconds, or None.
    """

    key: str
    account: str
    owner: str
    state: State = attrs.field(converter=State)
    armed_at: float
    sending_until: float | None = None
    family: str = ""
    model: str = ""
    tier: str | None = None
    tags: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    amounts: Amounts
    name: str | None = None
    digest: str | None = None
    batch: int | None = None
    number: int | None = None
    token: str | None = None
    task: str | None = None
    late: str | None = None
    candidate: str | None = None
    reason: str | None = None
    response_status: int | None = None
    response: bytes | None = attrs.field(default=None, repr=False)
    decided_at: float | None = None

    @classmethod
    def of(
        cls, order: Order, key: str, owner: str, now: float, sending_until: float | None = None
    ) -> Purchase:
        """Return *order* as it is armed.

        Args:
            order: What is bought.
            key: Identifies this POST.
            owner: Who will send it.
            now: When, Unix seconds.
            sending_until: When its exchange has certainly ended, or None if the owner's lock tells.
        """
        facts = {field.name: getattr(order, field.name) for field in attrs.fields(Order)}
        return cls(
            **facts,
            key=key,
            owner=owner,
            state=State.ARMED,
            armed_at=now,
            sending_until=sending_until,
        )

    @property
    def once(self) -> str | None:
        """The name that the caller of `create_once` gave, or None."""
        kind, _, name = (self.name or "").partition(" ")
        return name if kind == ONCE else None

    @property
    def counted_under(self) -> tuple[str, ...]:
        """The tags and budgets under which it counts."""
        return (EVERYTHING, *self.tags, *self.budgets)

    @property
    def is_spent(self) -> bool:
        """Whether it counts as spent. Doubt counts: only what certainly did nothing does not."""
        return self.state is not State.RELEASED

    @property
    def holds_name(self) -> bool:
        """Whether nobody else may buy under its name."""
        return self.name is not None and self.state in NAMED


@attrs.frozen(kw_only=True)
class Outcome:
    """How a POST has ended.

    Args:
        state: Accepted, released or ambiguous.
        task: The task that it has created, if its id is known.
        candidate: What looks like an id in an ambiguous response, or None.
        reason: Why, for people, on one line, or None.
        response_status: The status of an ambiguous response, or None.
        response: What arrived of its body, or None.
        cost: What it has cost, or None if nothing more is known about that.
        leads_to: The stage of its item if it is released: claimed to be retried at once, queued for
            a later run, or refused.
    """

    state: State
    task: Task | None = None
    candidate: str | None = None
    reason: str | None = None
    response_status: int | None = None
    response: bytes | None = attrs.field(default=None, repr=False)
    cost: Decimal | None = None
    leads_to: Stage = Stage.CLAIMED


UNKNOWN_END: Final = Outcome(
    state=State.AMBIGUOUS,
    reason="the process was stopped while the request was on its way: it may have been accepted "
    "and charged",
)
"""The outcome of a POST whose sender is gone."""
_EVIDENCE: Final = ("candidate", "reason", "response_status", "response")


def concluded(purchase: Purchase, outcome: Outcome) -> Purchase:
    """Return *purchase* after *outcome*, whenever it arrives, and however often.

    The caller checks that no other purchase has the task, or else calls `contested`.
    """
    # Before the table is asked: the cost of a stream is known only at its end, when the purchase
    # has long been accepted and no other news counts.
    if outcome.cost is not None:
        amounts = {**purchase.amounts, Measure.COST: countable(outcome.cost)}
        purchase = attrs.evolve(purchase, amounts=amounts)
    after = AFTER_NEWS[purchase.state].get(outcome.state)
    if after is None:
        return _with_late(purchase, outcome.task)
    facts: dict[str, Any] = {name: getattr(outcome, name) for name in _EVIDENCE}
    # The first evidence stays, and news only fills its gaps. The reason of a sender that was
    # believed gone is no evidence but a guess, so a real one takes its place.
    if purchase.state is after is State.AMBIGUOUS:
        evidence = {name: getattr(purchase, name) for name in _EVIDENCE}
        if evidence["reason"] == UNKNOWN_END.reason:
            evidence["reason"] = None
        facts = {
            name: new if evidence[name] is None else evidence[name] for name, new in facts.items()
        }
    task = outcome.task
    return attrs.evolve(
        purchase,
        state=after,
        token=None if task is None else task.to_token(),
        task=None if task is None else task.id,
        # Whoever knows an outcome is no longer sending. Whoever only believes the sender gone may
        # be wrong, by a clock.
        sending_until=purchase.sending_until if outcome is UNKNOWN_END else None,
        **facts,
    )


def contested(purchase: Purchase, outcome: Outcome, other: Purchase) -> Purchase:
    """Return *purchase* after *outcome*, whose task is that of the purchase *other*."""
    assert outcome.task is not None  # noqa: S101  the task is what they contest
    task = outcome.task
    reason = f"the service gave it task {shown_id(task.id)}, which {called(other)} has"
    ambiguous = attrs.evolve(
        outcome, state=State.AMBIGUOUS, task=None, candidate=task.id, reason=reason
    )
    # Otherwise a person has decided, and no doubt changes that: the task is kept beside the
    # decision.
    if State.AMBIGUOUS in AFTER_NEWS[purchase.state]:
        return concluded(purchase, ambiguous)
    return _with_late(concluded(purchase, ambiguous), task)


def decided(purchase: Purchase, choice: Choice, now: float, task: Task | None = None) -> Purchase:
    """Return *purchase* after a person's decision. A task that a person has named may be corrected.

    The caller checks that nobody can be sending it, and that no other purchase has the task.

    Args:
        purchase: The purchase.
        choice: What was decided.
        now: When, Unix seconds.
        task: The task that it has created, to adopt it.

    Raises:
        CannotDecide: There is nothing to decide.
        ValueError: There is no task to adopt, or a task for another choice.
    """
    if (task is not None) != (choice is Choice.ADOPT):
        raise ValueError("name the task to adopt it, and only then")
    after = AFTER_CHOICE.get(purchase.state, {}).get(choice)
    # A person may correct a person, but not the service, which has named the task.
    if after is None or (purchase.state is State.ACCEPTED and purchase.decided_at is None):
        raise CannotDecide(
            f"{called(purchase)} is {purchase.state}: there is nothing to decide about it"
        )
    if task is not None:
        # A person may give a bare id. Its token has to name family and model, on which polling
        # depends.
        task = attrs.evolve(
            task,
            family=task.family or purchase.family or None,
            requested_model=task.requested_model or purchase.model or None,
        )
    return attrs.evolve(
        purchase,
        state=after,
        decided_at=now,
        token=None if task is None else task.to_token(),
        task=None if task is None else task.id,
        reason=purchase.reason if task is None else None,
        candidate=purchase.candidate if task is None else task.id,
        late=None if task is not None and _is_of(purchase.late, task) else purchase.late,
    )


def priced(purchase: Purchase, amounts: Mapping[Measure, Decimal]) -> Purchase:
    """Return *purchase* with the *amounts* that a person has found out."""
    counts = {one: countable(amount) for one, amount in amounts.items()}
    return attrs.evolve(purchase, amounts={**purchase.amounts, **counts})


def called(purchase: Purchase) -> str:
    """Return what messages call *purchase*: its key, and the name or the item that people know."""
    name = purchase.once
    if purchase.number is not None:
        batch = next((tag for tag in purchase.tags if tag.startswith("batch=")), "")
        name = f"item {purchase.number} of the batch {batch.removeprefix('batch=')}"
    return f"purchase {purchase.key}" + ("" if name is None else f" ({name})")


def _is_of(token: str | None, task: Task) -> bool:
    """Whether *token* belongs to *task*, whatever else the two say."""
    return token is not None and Task.from_token(token).id == task.id


def _with_late(purchase: Purchase, task: Task | None) -> Purchase:
    """Return *purchase* with the task that its response has named besides its own."""
    if task is None or task.id == purchase.task:
        return purchase
    return attrs.evolve(purchase, late=task.to_token())
