"""Whether the store knows who is alive: by the database's clock, or by locks of processes."""

from __future__ import annotations

from typing import Final

from muybridge.purchases import Database, Lost, Store
from muybridge.purchases.store import NewItem
from muybridge.testing.store_conformance.checks import StoreChecks, order
from muybridge.testing.store_conformance.lessons import ALIVE, APART, BURIED
from muybridge_protocol.purchases import Choice, Stage, State

_NOON: Final = 1_772_366_400.0
_LASTS: Final = 100.0
_LEASE: Final = 30.0
_NEW: Final = (NewItem(stem="1", family="f", body="{}"),)


class Owners(StoreChecks):
    """Checks of the owners of purchases and items."""

    def test_a_dead_sender_is_buried_and_a_living_one_is_not(self) -> None:
        """What a dead process was sending is ambiguous, and only that."""
        database, store = self._made()
        if database.leases:
            self._by_the_clock(database)
            return
        mine = store.arm(order())

        def arm() -> None:
            Store(self.reopen(database)).arm(order("once x"))

        with self._living(arm):
            swept = store.sweep()
            ALIVE.require(swept == 0, "nobody is buried while both live", f"{swept} purchases")
        swept = store.sweep()
        BURIED.require(swept == 1, "the purchase of the killed process is ambiguous", swept)
        state = store.find(mine.key).state
        ALIVE.require(state is State.ARMED, "that of the living one is armed", state)
        self._decide(store)

    def _by_the_clock(self, database: Database) -> None:
        sender = self._reopened(database, _NOON)
        sender.arm(order("once x"), lasts=_LASTS)
        soon = self._reopened(database, _NOON + _LASTS)
        swept = soon.sweep()
        ALIVE.require(swept == 0, "nobody is buried while it may be sending", f"{swept} purchases")
        later = self._reopened(database, _NOON + _LASTS + soon.send_within + 1)
        later.arm(order())
        swept = later.sweep()
        BURIED.require(swept == 1, "the purchase whose time is over is ambiguous", swept)
        self._decide(later)

    def _decide(self, store: Store) -> None:
        found = store.named("a", "once x")
        BURIED.require(found and found.state is State.AMBIGUOUS, "the name is ambiguous", found)
        if found is not None:
            wall = found.armed_at + 2 * _LASTS
            state = store.decide(found.key, Choice.RESUBMIT, wall=wall).state
            BURIED.require(state is State.RESUBMITTED, "a person can decide", state)

    def test_another_owner_is_one_of_its_own(self) -> None:
        """It has another name, and uses the same purchases."""
        database, store = self._made()
        with store.another() as other:
            names = (database.owner(), other.database.owner())
            APART.require(names[0] != names[1], "another owner has another name", names)
            bought = other.arm(order())
            APART.require(bought.owner == names[1], "its purchases are its own", bought.owner)
            found = store.find(bought.key)
            APART.require(found == bought, "others find its purchases", found)

    def test_the_items_of_a_dead_worker_are_free_and_those_of_a_living_one_are_not(self) -> None:
        """And a worker that was declared dead takes no step any more."""
        database, store = self._made()
        batch = store.begin_batch("b", _NEW)
        if database.leases:
            self._items_by_the_clock(database, batch)
            return

        def take() -> None:
            Store(self.reopen(database)).take(batch, Stage.QUEUED)

        with self._living(take):
            store.free_items()
            [item] = store.items(batch)
            ALIVE.require(
                item.stage is Stage.CLAIMED, "the item of a living worker is its own", item
            )
        store.free_items()
        self._free(store, batch)

    def _items_by_the_clock(self, database: Database, batch: int) -> None:
        worker = self._reopened(database, _NOON)
        worker.register(_LEASE)
        worker.take(batch, Stage.QUEUED)
        soon = self._reopened(database, _NOON + _LEASE - 1)
        soon.free_items()
        [item] = soon.items(batch)
        ALIVE.require(item.stage is Stage.CLAIMED, "the item of a living worker is its own", item)
        later = self._reopened(database, _NOON + _LEASE + 1)
        later.free_items()
        self._free(later, batch)
        for step in (worker.renew, lambda: worker.arm(order())):
            try:
                step()
            except Lost:
                continue
            ALIVE.refuse("Lost, once it was declared dead", "it goes on")

    def _free(self, store: Store, batch: int) -> None:
        [item] = store.items(batch)
        found = (item.stage, item.owner)
        BURIED.require(found == (Stage.QUEUED, None), "the item of a dead worker is free", item)
