"""Create a task once under a name: whoever repeats the call gets the same task, and pays once."""

from __future__ import annotations

from functools import partial
from typing import Final

from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.notes import PaidNotes
from muybridge.purchases.booking import Books, to_decide
from muybridge.purchases.errors import NameHeld, OnceUnderWay
from muybridge.purchases.store import Store
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.errors import CreateAmbiguous
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.operations.create import CREATE_DEADLINE
from muybridge_protocol.purchases import Purchase, State, Tags, labels_of
from muybridge_protocol.purchases.names import ACROSS_TAGS, ONCE, Dedupe, Identity
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import Remedy, RemedyKind

_ABANDONED: Final = "it may have been accepted; a person left it as it is, so it counts as spent"
_PAUSE: Final = 0.5
"""Seconds until a call looks again for one that is sending the request."""


async def create_once(
    driver: Driver,
    calls: Calls,
    books: Books,
    request: MediaRequest,
    once: str | None,
    notes: PaidNotes,
    tags: Tags,
) -> Task:
    """Create a task, unless this name has one already, and return it.

    If another caller is sending the request, wait for the outcome.

    Args:
        driver: The client's.
        calls: The client's.
        books: The client's.
        request: What to generate.
        once: The name, or None for one that identical requests share.
        notes: Where to book the outcome before another Ctrl-C can arrive.
        tags: The purchase's tags besides the client's.

    Raises:
        OnceTaken: The name belongs to another request.
        OnceUnderWay: Another caller is still sending the request.
        CreateAmbiguous: It may have been accepted, by this call or an earlier one, or the service
            gave it the task of another request.
        ServiceError: As `BaseClient.create`.
    """
    runtime = driver.runtime
    calls.create(request, now=runtime.now(), wall=runtime.wall())  # raises if it is not valid
    name, digest = name_of_identical(request, {**books.tags, **tags}, dedupe=books.dedupe)
    if once is not None:
        name = f"{ONCE} {once}"  # no two kinds of names are the same
    deadline = runtime.now() + max(CREATE_DEADLINE, calls.timeout)
    while True:
        purchase = await runtime.in_thread(partial(books.named, name, digest))
        if purchase is None:
            # A new one each time: its deadline begins when it is sent, not while it waits for
            # somebody else.
            create = calls.create(request, now=runtime.now(), wall=runtime.wall())
            try:
                booking = books.booking(create, runtime, once=name, digest=digest, tags=tags)
                task = await driver.finish(create, notes, booking)
            except NameHeld:
                continue  # somebody was faster
            if booking is not None and booking.concluded is not None:
                task_of(booking.concluded, books.store)  # raises if another request has this task
            return task
        if purchase.state is not State.ARMED:
            return task_of(purchase, books.store)
        if runtime.now() >= deadline:
            raise OnceUnderWay(
                "Another call is still sending this request, and nothing was sent again.",
                Remedy(kind=RemedyKind.REPEAT),
            )
        await runtime.sleep_until(runtime.now() + _PAUSE)


def name_of_identical(
    request: MediaRequest, tags: Tags = NO_TAGS, *, dedupe: Dedupe = True
) -> tuple[str, str]:
    """Return the name that requests like *request* share in the store, and their digest.

    Args:
        request: The request.
        tags: All of its tags.
        dedupe: Whether it joins across tags.
    """
    digest = f"{request.family.name} {request.digest()}"
    across = dedupe == ACROSS_TAGS
    identity = Identity(digest) if across else Identity.of(digest, labels_of(tags))
    return identity.name, digest


def task_of(purchase: Purchase, store: Store) -> Task:
    """Return the task of *purchase*, which is in *store* and not armed.

    Raises:
        CreateAmbiguous: It may have one, but its id is unknown.
        LocalError: The store's token cannot be read.
    """
    if purchase.token is not None:
        return Task.from_token(purchase.token)
    if purchase.state is State.ABANDONED:
        raise CreateAmbiguous(reason=_ABANDONED, candidate_id=purchase.candidate)
    raise CreateAmbiguous(
        reason=str(purchase.reason),
        candidate_id=purchase.candidate,
        advice=((to_decide(purchase.key, store),) if purchase.state is State.AMBIGUOUS else ()),
    )
