"""Faults that are planted in the product: the judges have to find each of them.

A judge that never convicts proves nothing. So each fault here is one that a client for paid
requests may have, and most of them stood in some client. It is planted by replacing something of
the product while a world runs, and the worlds have to find it within 10,000 seeds.

This is the one place of the simulation that names what is private to the product. When something
is renamed there, this file changes and no other.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from typing import Any, Final
from unittest.mock import patch

import attrs

from muybridge.base_client import BaseClient
from muybridge.batch.running import recovery
from muybridge.batch.running.creates import ItemBooking
from muybridge.batch.running.side_files import DeadRunner, ResponseSlot
from muybridge.credentials import Credentials
from muybridge.drivers.driver import Driver
from muybridge.drivers.notes import BrokenOff
from muybridge.drivers.outcomes import AsyncOutcomes
from muybridge.files import durable, saving
from muybridge.purchases import (
    Exceeded,
    Purchase,
    State,
    Store,
    StoreUnusable,
    booking,
    items,
    steps,
)
from muybridge.purchases import store as stores
from muybridge.purchases.booking import Booking
from muybridge.purchases.owners import Owners
from muybridge.purchases.sqlite import SqliteDatabase, SqliteRows
from muybridge.wire.exchange import Exchange
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge.wire.network import Route
from muybridge_protocol.delivery import CREATE, Verdict, backoff
from muybridge_protocol.errors import CreateAmbiguous, ServiceError
from muybridge_protocol.http import HttpRequest, HttpResponse, Reason
from muybridge_protocol.operations import paid
from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.purchases import NAMED, Budget, Measure, Outcome, Stage

Patch = tuple[Any, str, Any]
"""An owner, the name of one of its parts, and what is put in its place."""


@attrs.frozen
class Fault:
    """A fault to plant.

    Args:
        name: What the product does wrong.
        patches: What is replaced.
        kind: The worlds that find it.
    """

    name: str
    patches: tuple[Patch, ...]
    kind: str = "names"

    @contextmanager
    def planted(self) -> Generator[None]:
        """Have the fault in the product until the context ends."""
        with ExitStack() as stack:
            for owner, name, part in self.patches:
                stack.enter_context(patch.object(owner, name, part))
            yield


def _judged(**verdicts: Any) -> tuple[Patch, ...]:
    """Return the patch that judges creates otherwise."""
    return ((paid, "CREATE", attrs.evolve(CREATE, **verdicts)),)


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _a_day(*_: object) -> float:
    return 86_400.0


def _unredacted(_: object, response: HttpResponse) -> HttpResponse:
    return response


# What the original does, for those that replace a part of it.

_arm: Final[Any] = Booking.arm
_attempt: Final[Any] = Driver.attempt
_again: Final[Any] = Poll._again
_conclude: Final[Any] = Store.conclude
_create: Final[Any] = BaseClient.create
_exceeded_by: Final[Any] = Budget.exceeded_by
_failure: Final[Any] = Exchange.failure
_feed_end: Final[Any] = ResponseReader._feed_end
_lives: Final[Any] = Owners.lives
_take_end: Final[Any] = AsyncOutcomes._take_end
_judged_by_books: Final[Any] = booking.judged
_store_arm: Final[Any] = Store.arm
_outcome_of_item: Final[Any] = ItemBooking.outcome_of


async def _create_until_it_works(self: Any, request: Any, *arguments: Any, **more: Any) -> Any:
    for _ in range(2):
        try:
            return await _create(self, request, *arguments, **more)
        except ServiceError:
            pass
    return await _create(self, request, *arguments, **more)


def _with_resets_unsent(self: Any, error: Exception) -> Any:
    failure = _failure(self, error)
    return attrs.evolve(failure, sent=failure.sent and failure.reason is not Reason.RESET)


def _without_doubt(outcome: object) -> Any:
    return _judged_by_books(None if isinstance(outcome, CreateAmbiguous) else outcome)


def _armed_or_not(self: Any, *arguments: Any, **more: Any) -> None:
    with suppress(StoreUnusable):
        _store_arm(self, *arguments, **more)


def _armed_for_a_moment(self: Any, *arguments: Any, **more: Any) -> Any:
    return _store_arm(self, *arguments, **{**more, "lasts": 0.0})


def _concluded_in_time(self: Any, key: str, outcome: Outcome) -> Any:
    found = self.find(key)
    return _conclude(self, key, outcome) if found.state is State.ARMED else found


@contextmanager
def _transaction_of_an_optimist(self: Any, *, waited: float = 0.0) -> Generator[SqliteRows]:
    with self._turn, self._telling(), self._opened(self._patience - waited) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield SqliteRows(db, self._texts)
            with suppress(sqlite3.OperationalError):
                db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")


def _summed_up_before(self: Any, order: Any, *, budgets: Sequence[Budget], **more: Any) -> None:
    for budget in budgets:
        exceeded = budget.exceeded_by(order.amounts, self.spent(budget=budget))
        if exceeded is not None:
            raise Exceeded(exceeded)
    _store_arm(self, order, **more)


def _one_more(self: Any, wanted: Any, spent: Any, *more: Any) -> Any:
    creates = max(Decimal(0), spent[Measure.CREATES] - 1)
    return _exceeded_by(self, wanted, {**spent, Measure.CREATES: creates}, *more)


def _concluded_now_or_never(self: Any, *arguments: Any, **facts: Any) -> Any:
    try:
        return _conclude(self, *arguments, **facts)
    except StoreUnusable:
        self._late.clear()
        raise


async def _armed_under_one_key(self: Any, deadline: float) -> Any:
    self._is_used = False
    return await _arm(self, deadline)


def _ended_whole(self: Any) -> None:
    if self.head is None:
        _feed_end(self)
    self._has_ended = True


def _any_idle(self: Any, _: HttpRequest) -> Any:
    connection = self._newest()
    while connection is not None and not connection.is_quiet():
        connection.close()
        connection = self._newest()
    return connection


async def _attempted_with_a_pause(self: Any, request: HttpRequest, *arguments: Any) -> Any:
    came = await _attempt(self, request, *arguments)
    if request.paid and isinstance(came, HttpResponse):
        await self.runtime.checkpoint()
    return came


def _again_at_once(self: Any, reason: str, now: float, **facts: Any) -> Any:
    after = _again(self, reason, now, **facts)
    return attrs.evolve(after, due=now + backoff(self.seed, after.failures))


async def _armed_in_any_case(self: Any, deadline: float) -> Any:
    withheld = await _arm(self, deadline)
    if isinstance(withheld, BrokenOff) and isinstance(withheld.error, self._runtime.cancelled):
        return await _arm(self, deadline)
    return withheld


async def _armed_beyond_the_budget(self: Any, deadline: float) -> Any:
    withheld = await _arm(self, deadline)
    if getattr(withheld, "reason", None) is Reason.OVER_BUDGET:
        return None
    return withheld


def _lives_unless_looked_at(self: Any, name: str) -> bool:
    lives: bool = _lives(self, name)
    if name != self._mine:
        self._path(name).unlink(missing_ok=True)
    return lives


def _taken_unless_left(self: Any, *outcome: Any) -> None:
    if not self._left:
        _take_end(self, *outcome)


async def _told_without_a_store(self: Any) -> None:
    self._armed = False


def _nothing(*_: object, **__: object) -> None:
    pass


def _dead_or_alive(cls: Any, place: Any, name: str) -> Any:
    return cls(place, name, None)


def _outcome_without_doubt(self: Any, end: Any, now: float) -> Any:
    outcome = _outcome_of_item(self, end, now)
    if outcome.state is State.AMBIGUOUS:
        return Outcome(state=State.RELEASED, leads_to=Stage.QUEUED)
    return outcome


class _Unsynced:
    """The module `os`, except that it syncs nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, _: int) -> None:
        """Do nothing."""


_CERTAIN: Final = tuple(state for state in NAMED if state is not State.AMBIGUOUS)
_NAMES_WITHOUT_DOUBTS: Final = tuple(
    table.replace(", 'ambiguous'", "") if "muybridge_names" in table else table
    for table in stores.TABLES
)
_TWO_WITH_ONE_NAME: Final = tuple(
    table.replace("UNIQUE INDEX muybridge_names", "INDEX muybridge_names")
    for table in stores.TABLES
)


def _is_spent_for_sure(self: Any) -> bool:
    return self.state not in (State.RELEASED, State.AMBIGUOUS)


FAULTS: Final = (
    Fault(
        "a caller repeats whatever failed",
        ((BaseClient, "create", _create_until_it_works),),
    ),
    Fault("a create is resent after a lost response", _judged(sent=Verdict.RETRY)),
    Fault(
        "a create that was sent is called unsent",
        _judged(sent=Verdict.NOT_SENT),
    ),
    Fault(
        "a create is resent after a reset",
        ((Exchange, "failure", _with_resets_unsent),),
    ),
    Fault("a gateway's error is taken for a refusal", _judged(other=Verdict.REFUSED)),
    Fault(
        "a redirect of a create is taken for a refusal",
        _judged(redirect=Verdict.REFUSED),
    ),
    Fault(
        "a 429 is taken for an answer",
        _judged(statuses={**CREATE.statuses, 429: Verdict.ANSWER}),
    ),
    Fault(
        "an armed purchase is taken for unsent",
        ((stores, "UNKNOWN_END", Outcome(state=State.RELEASED)),),
    ),
    Fault(
        "an ambiguous create is released",
        ((booking, "judged", _without_doubt),),
    ),
    Fault(
        "an ambiguous create keeps no name",
        (
            (steps, "NAMED", _CERTAIN),
            (stores, "TABLES", _NAMES_WITHOUT_DOUBTS),
        ),
    ),
    Fault(
        "an ambiguous create is not counted",
        ((Purchase, "is_spent", property(_is_spent_for_sure)),),
    ),
    Fault(
        "a living process is taken for dead",
        ((Owners, "lives", _no),),
    ),
    Fault(
        "a process dies when another one looks at it",
        ((Owners, "lives", _lives_unless_looked_at),),
    ),
    Fault(
        "a dead process is taken for living",
        ((Owners, "lives", _yes),),
    ),
    Fault(
        "a store that cannot be written is ignored",
        ((Store, "arm", _armed_or_not),),
    ),
    Fault(
        "a commit that fails is taken for done",
        ((SqliteDatabase, "transaction", _transaction_of_an_optimist),),
    ),
    Fault(
        "a sum is read before the transaction",
        ((Store, "arm", _summed_up_before),),
    ),
    Fault(
        "a name is looked up before the transaction",
        ((stores, "TABLES", _TWO_WITH_ONE_NAME),),
    ),
    Fault("a budget permits one more", ((Budget, "exceeded_by", _one_more),)),
    Fault(
        "a budget is told of, and not kept",
        ((Booking, "arm", _armed_beyond_the_budget),),
    ),
    Fault(
        "an outcome that cannot be recorded is dropped",
        ((Store, "conclude", _concluded_now_or_never),),
    ),
    Fault(
        "an outcome is never recorded",
        ((Booking, "record", _told_without_a_store),),
    ),
    Fault(
        "an outcome reaches a later attempt",
        ((Booking, "arm", _armed_under_one_key),),
    ),
    Fault(
        "a body that is cut is taken for whole",
        ((ResponseReader, "_feed_end", _ended_whole),),
    ),
    Fault(
        "the folder of a saved file is not synced",
        ((saving, "sync_folders", _nothing),),
    ),
    Fault(
        "a parent folder is not synced",
        ((durable, "sync_folders", _nothing),),
    ),
    Fault(
        "the key is shown in an error",
        ((Credentials, "redact_response", _unredacted),),
    ),
    Fault(
        "a create is sent on a used connection",
        ((Route, "take", _any_idle),),
    ),
    Fault(
        "a cancellation comes between a response and its id",
        ((Driver, "attempt", _attempted_with_a_pause),),
    ),
    Fault(
        "an id that arrives after a second Ctrl-C is dropped",
        ((AsyncOutcomes, "_take_end", _taken_unless_left),),
    ),
    Fault(
        "a cancellation ends an exchange under way",
        ((HttpRequest, "shielded", False),),
    ),
    Fault(
        "a cancellation is swallowed",
        ((Booking, "arm", _armed_in_any_case),),
    ),
    Fault("an outage speeds up polls", ((Poll, "_again", _again_at_once),)),
    Fault(
        "a response is not kept before it is read",
        ((ResponseSlot, "keep", _nothing),),
        "batches",
    ),
    Fault(
        "a kept response is not read",
        ((recovery, "_record", _nothing),),
        "batches",
    ),
    Fault(
        "an armed item is taken for unsent",
        ((stores, "UNKNOWN_END", Outcome(state=State.RELEASED, leads_to=Stage.QUEUED)),),
        "batches",
    ),
    Fault(
        "a runner's lock is not looked at",
        ((DeadRunner, "find", classmethod(_dead_or_alive)),),
        "batches",
    ),
    Fault(
        "an ambiguous create of a batch is queued again",
        ((ItemBooking, "outcome_of", _outcome_without_doubt),),
        "batches",
    ),
    Fault(
        "a saved file is renamed before it is synced",
        ((saving, "os", _Unsynced()),),
        "batches",
    ),
    Fault(
        "a request counts as under way for too short",
        ((Store, "arm", _armed_for_a_moment),),
        "servers",
    ),
    Fault(
        "a response that arrives late is dropped",
        ((Store, "conclude", _concluded_in_time),),
        "servers",
    ),
    Fault(
        "a request is sent although the server did not answer",
        ((Store, "arm", _armed_or_not),),
        "servers",
    ),
    Fault(
        "a late outcome is never recorded on a server",
        ((Store, "record_late", _nothing),),
        "servers",
    ),
    Fault(
        "a worker whose lease has run out sends",
        (
            (steps.Transaction, "check_alive", _nothing),
            (items, "may_begin", _yes),
        ),
        "workers",
    ),
    Fault(
        "a time limit is forgotten",
        ((Exchange, "remaining", _a_day),),
    ),
)
"""All of them."""
