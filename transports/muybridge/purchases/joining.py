"""Identical requests of a run or a batch join one task: each is sent only if no other one was.

The store decides, because it holds the name that identical requests share. A create looks for it
when its turn comes. If the name is free, the create is sent, and its purchase takes the name. If it
belongs to a task, the create has that task, and nothing is sent. While another create with this
name is on its way, in any process, the create goes back to its fleet and looks again later: nothing
waits but its place there. If the other one may have been accepted, a person has to decide first.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from muybridge.drivers.driver import Driver
from muybridge.drivers.notes import TWIN_UNDER_WAY
from muybridge.purchases.booking import Booking
from muybridge.purchases.once import name_of_identical, task_of
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.errors import CreateAmbiguous
from muybridge_protocol.fleet import Fleet
from muybridge_protocol.http import TransportFailure
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.purchases import State, Tags
from muybridge_protocol.purchases.names import Dedupe
from muybridge_protocol.records.tasks import Task

_PAUSE: Final = 1.0
"""Seconds until a create looks again for one that is on its way."""


async def join(
    driver: Driver, create: Operation[Any], tags: Tags = NO_TAGS, *, dedupe: Dedupe = True
) -> Booking | Task | CreateAmbiguous | TransportFailure:
    """Return what books *create*, or else the outcome that an identical request has.

    Args:
        driver: The client's, with a store.
        create: The create whose turn it is.
        tags: Its tags besides the client's.
        dedupe: Whether it joins across tags.

    Returns:
        What books it, if it is to be sent; or the task; or the error, if another one may have been
        accepted; or a failure, if another one is still on its way.

    Raises:
        StoreUnusable: The store cannot be read or written.
    """
    assert driver.books is not None  # noqa: S101  the store has the names
    assert isinstance(create, Create)  # noqa: S101  nothing else has one
    known = {**driver.books.tags, **tags}
    name, digest = name_of_identical(create.request, known, dedupe=dedupe)
    purchase = await driver.runtime.in_thread(partial(driver.books.named, name, digest))
    if purchase is None:
        booking = driver.books.booking(
            create, driver.runtime, once=name, digest=digest, if_held=TWIN_UNDER_WAY, tags=tags
        )
        assert booking is not None  # noqa: S101  a create is paid
        return booking
    if purchase.state is State.ARMED:
        return TWIN_UNDER_WAY
    try:
        return task_of(purchase, driver.books.store)
    except CreateAmbiguous as error:
        return error


def settle(
    fleet: Fleet[Any], ticket: int, outcome: Task | CreateAmbiguous | TransportFailure, now: float
) -> None:
    """End a dispatch of *fleet* whose create was not sent, because of its *outcome*."""
    if not isinstance(outcome, TransportFailure):
        fleet.settle(ticket, outcome, now)
        return
    create = fleet.operation_of(ticket)
    later = now + _PAUSE
    # Beyond its deadline, a create that only ever looked for its twin fails as one that was not
    # sent.
    if isinstance(create, Create) and later < create.deadline:
        fleet.postpone(ticket, later, now)
    else:
        fleet.fail(ticket, outcome, now)
