"""Whether transactions, statements and values are what the store relies on."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Final

from muybridge.purchases import Conflict, Store, StoreUnusable
from muybridge.purchases.store import NewItem
from muybridge.testing.conformance.lessons import promises
from muybridge.testing.store_conformance.checks import ONE, StoreChecks, accepted, order
from muybridge.testing.store_conformance.lessons import (
    BYTES,
    CLOCK,
    CONFLICT,
    COUNTED,
    FORKED,
    ONE_STORE,
    UNDONE,
    UNUSABLE,
    WHOLE,
    StoreCapabilities,
)
from muybridge_protocol.purchases import Measure, Order, Outcome, State

_LONG: Final = 100_000
_LONGEST_ID: Final = 1024
_SIMILAR: Final = ("Ä", "ä", "A\u0308", "Ä ", "A", "a", "ß", "ss", "Ä.")
"""Texts that collations of many languages take for equal, or pad. All are printable."""
_TURNS: Final = 100_000
"""Statements in a transaction after which its clock must have gone on."""


class Statements(StoreChecks):
    """Checks of one transaction after the other."""

    def test_a_purchase_is_read_as_it_was_written(self) -> None:
        """Texts of every language, bytes, numbers with all their digits, and what is missing."""
        database, store = self._made()
        amounts = {**ONE, Measure.COST: Decimal("0.1234567890123456789"), Measure.SECONDS: None}
        ordered = Order(account="a", family="f", model="Ünï ☃ 馬", amounts=amounts, name="Ä" * 500,
                        digest="d", tags=("x=1", "ä=☃", f"x={'🐎' * 498}"))  # fmt: skip
        bought = store.arm(ordered)
        again = self._reopened(database).find(bought.key)
        WHOLE.equal(again, bought)
        response = bytes(range(256)) * (_LONG // 256)
        lost = Outcome(state=State.AMBIGUOUS, reason="r" * 2000, candidate="C", response=response)
        concluded = store.conclude(bought.key, lost)
        again = self._reopened(database).find(bought.key)
        WHOLE.require(
            again == concluded, "the same purchase, with its response of 100,000 bytes", again
        )

    def test_the_longest_id_is_kept(self) -> None:
        """An id of 1,024 characters of any language can be recorded, and is found again."""
        database, store = self._made()
        chance = Random("ids")  # noqa: S311  not a secret; and nothing that compresses
        task = "".join(chr(chance.randrange(0x20000, 0x2A000)) for _ in range(_LONGEST_ID))
        try:
            store.conclude(store.arm(order("once x")).key, accepted(task))
        except StoreUnusable as error:
            WHOLE.refuse("the id is recorded", error)
        found = self._reopened(database).named("a", "once x")
        WHOLE.require(found and found.task == task, "the whole id", found and found.task)

    def test_an_item_is_read_as_it_was_written(self) -> None:
        """A request of 100,000 characters, with line breaks, quotes and backslashes."""
        database, store = self._made()
        body = '{"prompt": "\\\\ \\" %s :name {now} \n 馬"}' + "☃" * _LONG
        batch = store.begin_batch("b", [NewItem(stem="1", family="f", body=body)])
        [item] = self._reopened(database).items(batch)
        WHOLE.require(item.body == body, "the same request", f"{item.body[:60]}...")

    def test_texts_are_compared_byte_by_byte(self) -> None:
        """Names and tags that look alike are different ones."""
        database, store = self._made()
        for text in _SIMILAR:
            try:
                store.arm(order(text, f"x={text}"))
            except Exception as error:  # noqa: BLE001  whatever the database makes of it
                BYTES.refuse(f"{text!r} to be armed after {_SIMILAR}, in this order", repr(error))
        other = self._reopened(database)
        for text in _SIMILAR:
            spent = other.spent(f"x={text}")[Measure.CREATES]
            BYTES.require(spent == 1, f"1 spent under {text!r}", spent)

    def test_a_transaction_that_fails_changes_nothing(self) -> None:
        """Nothing of what its block has done."""
        database, store = self._made()
        bought = store.arm(order())
        with suppress(ZeroDivisionError), database.transaction() as rows:
            rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=bought.key)
            _ = 1 / 0
        try:
            found = [one.key for one in self._reopened(database).purchases()]
        except StoreUnusable as error:
            UNDONE.refuse("the purchase", error)
        UNDONE.equal(found, [bought.key])

    @promises("undoes_tables", of=StoreCapabilities)
    def test_a_transaction_that_fails_creates_no_table(self) -> None:
        """An upgrade changes all tables or none."""
        database, store = self._made()
        store.arm(order())
        create = "CREATE TABLE muybridge_check (number bigint NOT NULL)"
        with suppress(ZeroDivisionError), database.transaction() as rows:
            rows.run(create)
            _ = 1 / 0
        try:
            with self.reopen(database).transaction() as rows:
                rows.run(create)
        except StoreUnusable as error:
            UNDONE.refuse("no table", error)

    def test_what_violates_a_unique_index_is_a_conflict(self) -> None:
        """The store then reads again, and says who has the name or the task."""
        database, store = self._made()
        first, second = store.arm(order("once x")), store.arm(order())
        store.conclude(first.key, accepted("T"))
        taken = {"task": "T", "name": "once x"}
        for column, value in taken.items():
            error: Exception | None = None
            try:
                with database.transaction() as rows:
                    rows.run(
                        f"UPDATE muybridge_purchases SET {column} = :value WHERE key = :key",  # noqa: S608  ours
                        value=value, key=second.key,
                    )  # fmt: skip
            except Exception as raised:  # noqa: BLE001  it is what is checked
                error = raised
            CONFLICT.require(
                isinstance(error, Conflict), f"Conflict: {column} is taken", repr(error)
            )

    def test_any_other_error_is_store_unusable(self) -> None:
        """In a transaction and while reading."""
        database, store = self._made()
        store.arm(order())
        for begin in (database.transaction, database.reading):
            error: Exception | None = None
            try:
                with begin() as rows:
                    rows.run("SELECT nothing FROM muybridge_nowhere")
            except Exception as raised:  # noqa: BLE001  it is what is checked
                error = raised
            UNUSABLE.require(isinstance(error, StoreUnusable), "StoreUnusable", repr(error))

    def test_rows_that_change_are_counted(self) -> None:
        """What is withdrawn was perhaps never written: a purchase that exists is not a new one."""
        database, store = self._made()
        bought = store.arm(order("once x"))
        store.conclude(bought.key, accepted("T"))
        other = self._reopened(database)
        try:
            other.withdraw(bought.key)
            other.withdraw("nobody")
            found = [(one.key, one.task) for one in store.purchases()]
        except StoreUnusable as error:
            COUNTED.refuse("the purchase, which is accepted", error)
        COUNTED.equal(found, [(bought.key, "T")])
        with database.transaction() as rows:
            where = "WHERE key = :key"
            counted = [
                rows.change(f"UPDATE muybridge_purchases SET model = :model {where}", **values)  # noqa: S608  ours
                for values in ({"key": bought.key, "model": "m"}, {"key": "nobody", "model": "m"})
            ]
        COUNTED.equal(counted, [1, 0])

    def test_the_clock_goes_on_within_a_transaction(self) -> None:
        """A transaction that has waited for a lock knows how long."""
        database, store = self._made()
        store.arm(order())
        with database.transaction() as rows:
            first = float(rows.run("SELECT {now} FROM muybridge_store")[0][0])
            later = (
                float(rows.run("SELECT {now} FROM muybridge_store")[0][0]) for _ in range(_TURNS)
            )
            CLOCK.require(any(first < it < first + 1 for it in later), "a later time", first)

    def test_it_is_created_once(self) -> None:
        """Processes that begin at the same moment have one store."""
        database = self.make_database()
        salts = {*self._race(database, _salt_of, is_created=False)}
        ONE_STORE.require(len(salts) == 1, "one salt", salts)

    def test_a_forked_child_is_another_owner(self) -> None:
        """And both can go on."""
        database, store = self._made()
        mine = store.arm(order())

        def act() -> None:
            if store.arm(order()).owner == mine.owner:
                FORKED.refuse("another owner in a forked child", mine.owner)

        try:
            self._killed_after(act)
        except AssertionError as error:
            FORKED.refuse("a child that arms as another owner", error)
        store.conclude(mine.key, accepted("T"))
        found = self._reopened(database).spent()[Measure.CREATES]
        FORKED.require(found == 2, "2 spent", found)  # noqa: PLR2004  one of each


def _salt_of(store: Store, _: Random) -> str:
    return store.account(bytes.decode)
