"""Purchases of every kind, for tests of what people see and decide."""

from __future__ import annotations

from decimal import Decimal

from muybridge.purchases import Measure, Purchase, State, Store
from muybridge_protocol.purchases import Amounts, Order, Outcome
from muybridge_protocol.records.tasks import Task

COST = Decimal("0.25")
CUT = "the connection was cut"


def amounts_of(cost: Decimal | None = COST) -> Amounts:
    """Return what one picture consumes."""
    one = {it: Decimal(1 if it in (Measure.CREATES, Measure.PICTURES) else 0) for it in Measure}
    return {**one, Measure.COST: cost}


def buy(
    store: Store,
    *tags: str,
    task: str | None = None,
    name: str | None = None,
    cost: Decimal | None = COST,
    candidate: str | None = None,
    account: str = "a",
) -> Purchase:
    """Buy a picture: the response has a *task*, or nobody knows what has become of it."""
    named = None if name is None else f"once {name}"
    order = Order(
        account=account, family="imgb", model="imgb-2", tags=tags, name=named, digest=named,
        amounts=amounts_of(cost),
    )  # fmt: skip
    outcome = (
        Outcome(state=State.AMBIGUOUS, reason=CUT, candidate=candidate)
        if task is None
        else Outcome(state=State.ACCEPTED, task=Task(id=task))
    )
    return store.conclude(store.arm(order).key, outcome)


def refuse(store: Store) -> Purchase:
    """Order a picture, which the service refuses."""
    order = Order(account="a", family="imgb", model="imgb-2", amounts=amounts_of())
    return store.conclude(store.arm(order).key, Outcome(state=State.RELEASED, reason="429"))
