"""`Batch`: one batch in a store, whatever database that is.

    queued -> (claimed) -> armed -> submitted -> (completed) -> downloaded
                             |          '------> failed
                             |-> refused
                             |-> joined      (it waits for the purchase of an identical request)
                             '-> ambiguous   (a person decides)

An item is work, and each create that is sent for it is a purchase with the tag `batch=NAME`. The
item follows its last purchase, in the same transaction (`muybridge_protocol.purchases`). So nothing
here knows what may be sent again. What concerns no purchase (a task has ended, a result is saved)
is a step that only the owner of the item takes, from the stage in which they have read it. It costs
nothing to lose such a step: the next run takes it again.

Where owners hold locks, a free item is armed as it is: only if two processes want the same one at
the same moment does one of them look for another. Where owners live on leases, there are many, and
each claims its items first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import attrs

from muybridge.batch.items.entry import SELECT_ENTRIES, Entry
from muybridge.batch.results.items import Outline
from muybridge.batch.results.places.file_names import stems_of
from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.items import SELECT_ITEMS, insert_items, read_item, update_items
from muybridge.purchases.rates import Permits
from muybridge.purchases.steps import SELECT, find_all, read
from muybridge.purchases.store import NewItem, Store, random_number, repeating
from muybridge_protocol.purchases import (
    NAMED,
    Amounts,
    Item,
    Purchase,
    Stage,
    Tags,
    labels_of,
    tags_in,
    written_amounts,
)
from muybridge_protocol.purchases.tags import OwnTags

LEASE: Final = 30.0
"""Seconds without a sign of life after which a worker is dead, where owners live on leases."""
SETTLED: Final = (Stage.DOWNLOADED, Stage.FAILED, Stage.REFUSED, Stage.ABANDONED)
"""The stages in which neither a run nor a person has anything to do."""
_PAGE: Final = 500
"""Items read at once."""
_LONGEST_NUMBER: Final = 19
"""Digits of a number that no item has."""
_OUTLINE: Final = "SELECT item.number, item.stage, item.path, item.size"
_OUTLINES: Final = (
    f"{_OUTLINE}, item.reason, bought.token, bought.candidate, length(bought.response), "
    "item.began, item.ended, item.result FROM muybridge_item AS item "
    "LEFT JOIN muybridge_purchases AS bought ON bought.key = item.purchase "
    "WHERE item.batch = :batch AND item.number > :last ORDER BY item.number LIMIT :most"
)
_OUTLINES_IN_STAGE: Final = (
    f"{_OUTLINE} FROM muybridge_item AS item WHERE item.batch = :batch AND item.stage = :stage "
    "AND item.owner IS NULL AND item.number > :last ORDER BY item.number LIMIT :most"
)


def tag_of(batch: str) -> str:
    """Return the tag of the purchases of the batch with this name, as a store keeps it."""
    (label,) = labels_of(OwnTags(batch=batch))
    return label


@attrs.frozen(eq=False)
class Batch:
    """A batch in a store. It is a context manager, which closes the store.

    Args:
        store: The store.
        number: Identifies the batch in the store.
        name: Its name.
        service: Where its tasks are.
        place: Where its results go, or None if each worker has its own place.
        is_new: Whether this process has just begun it.
    """

    store: Store
    number: int
    name: str
    service: str
    place: str | None
    is_new: bool = False

    @classmethod
    def find(cls, store: Store, name: str | int) -> Self | None:
        """Return the batch with a name or a number, or None if there is none.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        column = "name" if isinstance(name, str) else "number"
        with store.reading() as rows:
            matches = [] if rows is None else rows.run(
                "SELECT number, name, service, place FROM muybridge_batch "
                f"WHERE {column} = :value", value=name,
            )  # fmt: skip
        for number, its_name, service, place in matches:
            return cls(store, int(number), str(its_name), str(service), place)
        return None

    @classmethod
    def only(cls, store: Store) -> Self | None:
        """Return the batch of a store that has one batch, or None.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with store.reading() as rows:
            batches = [] if rows is None else rows.run("SELECT number FROM muybridge_batch LIMIT 2")
        match batches:
            case [(number,)]:
                return cls.find(store, int(number))
            case _:
                return None

    @classmethod
    def begin(
        cls,
        store: Store,
        name: str,
        items: Iterable[NewItem],
        *,
        service: str,
        place: str | None = None,
    ) -> Self:
        """Begin a batch, whole or not at all; or find the one with this name.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        mine = random_number()
        number = store.begin_batch(name, items, service=service, place=place, number=mine)
        batch = cls.find(store, number)
        if batch is None:
            raise StoreUnusable(f"{store.place} was replaced while a batch was begun.")
        return attrs.evolve(batch, is_new=number == mine)

    @repeating
    def forget(self) -> None:
        """Remove it, because another one was begun in its place. It must not have begun."""
        with self.store.transaction() as turn:
            for table, column in (("item", "batch"), ("batch", "number")):
                turn.rows.run(
                    f"DELETE FROM muybridge_{table} WHERE {column} = :number", number=self.number
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.store.close()

    @property
    def tags(self) -> Tags:
        """The tag of its purchases, which nobody else may set."""
        return OwnTags(batch=self.name)

    @property
    def tag(self) -> str:
        """The same as a store keeps it."""
        return tag_of(self.name)

    @property
    def owner(self) -> str:
        """Who owns what this process takes."""
        return self.store.database.owner()

    # What is in it

    def entries(self, stage: Stage | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield every item, or those in a stage, by number, reading a page at a time.

        Args:
            stage: The stage, or None for all items.
            after: The number above which they begin.
        """
        if stage is None:
            yield from self._pages("", after)
        else:
            yield from self._pages("AND item.stage = :stage ", after, stage=stage.value)

    def reasons(self) -> Iterator[Entry]:
        """Yield every item that has a reason and is not downloaded, reading a page at a time."""
        yield from self._pages("AND item.reason IS NOT NULL AND item.stage <> 'downloaded' ", 0)

    def outlines(self, stage: Stage | None = None) -> Iterator[Outline]:
        """Yield the outline of every item, or of those in a stage that nobody works on.

        They are read a page at a time, and much faster than `entries`.
        """
        last = 0
        wanted = _OUTLINES if stage is None else _OUTLINES_IN_STAGE
        values = {} if stage is None else {"stage": stage.value}
        while page := self._rows(wanted, last=last, most=_PAGE, **values):
            for number, its_stage, path, size, *facts in page:
                yield Outline(number, Stage(its_stage), path, size, repr(facts) if facts else "")
            last = page[-1][0]

    def items(self) -> Iterator[Item]:
        """Yield every item as it is kept, by number, reading a page at a time."""
        last = 0
        while page := self.store.items(self.number, after=last):
            yield from page
            last = page[-1].number

    def entry(self, number: int) -> Entry:
        """Return the item *number*.

        Raises:
            LookupError: There is none.
        """
        for entry in self._entries("AND item.number = :number", number=number):
            return entry
        raise LookupError(f"there is no item {number}")

    def item(self, number: int) -> Item:
        """Return the item *number* as it is kept.

        Raises:
            LookupError: There is none.
        """
        for item in self.store.items(self.number, after=number - 1, most=1):
            if item.number == number:
                return item
        raise LookupError(f"there is no item {number}")

    def called(self, item: str) -> list[Entry]:
        """Return the items with this name, or else the one with this number."""
        # A name comes first: an item may be called by the number of another one.
        if item and (
            entries := self._entries("AND item.name = :item ORDER BY item.number", item=item)
        ):
            return entries
        is_number = item.isascii() and item.isdigit() and len(item) < _LONGEST_NUMBER
        # A number is written in one way, so that 007 is none.
        if not is_number or str(int(item)) != item:
            return []
        return self._entries("AND item.number = :number", number=int(item))

    def counts(self) -> dict[Stage, int]:
        """Return how many items are in each stage, without empty ones."""
        counts = self.store.counts(self.number)
        return {stage: counts[stage] for stage in Stage if stage in counts}

    def is_recorded(self, path: str, *, besides: int) -> bool:
        """Whether a file *path* is recorded for an item other than *besides*."""
        stems = {f"stem{n}": stem for n, stem in enumerate(stems_of(path))}
        return bool(self._rows(  # by stem, for which there is an index
            f"SELECT 1 FROM muybridge_item WHERE batch = :batch AND stem IN (:{', :'.join(stems)}) "
            "AND path = :path AND number <> :besides LIMIT 1", path=path, besides=besides, **stems,
        ))  # fmt: skip

    def owners(self) -> list[str]:
        """Return who owns items of the batch, alive or dead."""
        owners = self._rows(  # by owner: there are few, and there may be a million items
            "SELECT owner FROM (SELECT DISTINCT owner FROM muybridge_item WHERE owner IS NOT NULL) "
            "AS owning WHERE EXISTS (SELECT 1 FROM muybridge_item AS item "
            "WHERE item.owner = owning.owner AND item.batch = :batch)"
        )
        return [str(owner) for (owner,) in owners]

    def strays(self) -> list[Purchase]:
        """Return the purchases that were paid for, and whose task no item has."""
        return self.store.strays(self.number)

    def purchases(self, number: int) -> list[Purchase]:
        """Return everything that was bought for an item, in order."""
        matches = self._rows(
            f"{SELECT} WHERE batch = :batch AND number = :number ORDER BY armed_at, key",
            number=number,
        )
        return [*map(read, matches)]

    def tags_of(self, entry: Entry) -> Tags | None:
        """Return the tags of the purchase of an item, or None if the store has none for it."""
        if entry.purchase is None:
            return None
        with suppress(LookupError):
            return tags_in(self.store.find(entry.purchase).tags)
        return None

    @property
    def has_begun(self) -> bool:
        """Whether a request may have been sent for an item."""
        if {*self.counts()} - {Stage.QUEUED}:
            return True
        # An item that was released is queued again, and what was bought for it is still there.
        return bool(self._rows("SELECT 1 FROM muybridge_purchases WHERE batch = :batch LIMIT 1"))

    @property
    def waits_for_others(self) -> bool:
        """Whether an item has joined a purchase that somebody is sending."""
        return bool(self._rows(
            "SELECT 1 FROM muybridge_item AS item "
            "JOIN muybridge_purchases AS bought ON bought.key = item.purchase "
            "WHERE item.batch = :batch AND item.stage = 'joined' AND bought.state = 'armed' LIMIT 1"
        ))  # fmt: skip

    # Changes

    @repeating
    def add(self, items: Iterable[NewItem], *, after: int) -> None:
        """Add all *items* after the last one, which is *after*, or none of them.

        Raises:
            StoreUnusable: Another process has just added items, or they cannot be recorded.
        """
        with self.store.transaction() as turn:
            # Whoever adds items holds this row.
            turn.rows.run(
                "SELECT number FROM muybridge_batch WHERE number = :batch {for_update}",
                batch=self.number,
            )
            [(last,)] = turn.rows.run(
                "SELECT max(number) FROM muybridge_item WHERE batch = :batch", batch=self.number
            )
            if (last or 0) != after:
                raise StoreUnusable(
                    f"Another process has just added items to the batch {self.name}. Run it again."
                )
            insert_items(
                turn.rows,
                (one.of(self.number, number) for number, one in enumerate(items, after + 1)),
            )

    @repeating
    def change_service(self, service: str) -> Batch:
        """Record that its tasks will be at *service*, and return it so. It must not have begun."""
        with self.store.transaction() as turn:
            turn.rows.run(
                "UPDATE muybridge_batch SET service = :service WHERE number = :batch",
                service=service, batch=self.number,
            )  # fmt: skip
        return attrs.evolve(self, service=service)

    @repeating
    def store_in(self, place: str) -> Batch:
        """Record where its results go, and return it so."""
        with self.store.transaction() as turn:
            turn.rows.run(
                "UPDATE muybridge_batch SET place = :place WHERE number = :batch",
                place=place, batch=self.number,
            )  # fmt: skip
        return attrs.evolve(self, place=place)

    @repeating
    def price(self, amounts: Callable[[Item], Amounts]) -> None:
        """Record what items consume that are not sent yet, if that is not recorded.

        Args:
            amounts: Returns what an item consumes.
        """
        with self.store.transaction() as turn:
            last = 0
            while matches := turn.rows.run(
                f"{SELECT_ITEMS} WHERE batch = :batch AND stage = 'queued' AND owner IS NULL "
                "AND amounts IS NULL AND number > :last ORDER BY number LIMIT :most {for_update}",
                batch=self.number, last=last, most=_PAGE,
            ):  # fmt: skip
                items = [*map(read_item, matches)]
                update_items(turn.rows, {
                    (one.batch, one.number): attrs.evolve(
                        one, amounts=written_amounts(amounts(one))
                    )
                    for one in items
                })  # fmt: skip
                last = items[-1].number

    @repeating
    def start_over(self) -> None:
        """Queue everything unfinished, because the service has forgotten it and charges nothing.

        This is only for embedded services.
        """
        listed = ", ".join(f"'{stage}'" for stage in SETTLED)
        named = ", ".join(f"'{state}'" for state in NAMED)
        with self.store.transaction() as turn:
            turn.rows.run(
                "UPDATE muybridge_purchases SET state = 'released', token = NULL, task = NULL "
                f"WHERE batch = :batch AND state IN ({named}) AND EXISTS (SELECT 1 FROM "
                "muybridge_item AS item WHERE item.batch = muybridge_purchases.batch "
                "AND item.number = muybridge_purchases.number "
                f"AND item.stage NOT IN ({listed}))", batch=self.number,
            )  # fmt: skip
            turn.rows.run(
                "UPDATE muybridge_item SET stage = 'queued', owner = NULL, purchase = NULL, "
                "result = NULL, reason = NULL, path = NULL, size = NULL, sha256 = NULL, "
                f"next_poll_at = NULL WHERE batch = :batch AND stage NOT IN ({listed})",
                batch=self.number,
            )  # fmt: skip

    # Work

    def take(
        self, most: int, *, creates: int, after: int = 0, besides: Iterable[int] = ()
    ) -> list[tuple[Item, Purchase | None]]:
        """Return free items to work on, the most urgent first, each with its purchase.

        Results come first, soonest expiry first, then tasks, then what is to be created. What is
        created already is this process's from now on; so is what is to be created, where owners
        live on leases.

        Args:
            most: Maximum number of items.
            creates: Most of them that are to be created.
            after: The number of an item: of those to be created, only later ones.
            besides: Numbers of items to skip.

        Raises:
            Lost: This process was declared dead.
            StoreUnusable: The store cannot be used.
        """
        skipped = set(besides)
        unfinished = self._free((Stage.COMPLETED, Stage.SUBMITTED), most, 0, skipped)
        creating = min(creates, most - len(unfinished))
        queued = self._free((Stage.QUEUED,), creating, after, skipped) if creating > 0 else []
        return [*self._claim(unfinished), *self._claim_to_create(queued)]

    def _free(
        self, stages: Iterable[Stage], most: int, after: int, skipped: set[int]
    ) -> list[Item]:
        items: list[Item] = []
        for stage in stages:
            # The queue can be very long; this is the order of its index.
            order = "number" if stage is Stage.QUEUED else "expires IS NULL, expires, number"
            rows = self._rows(
                f"{SELECT_ITEMS} WHERE batch = :batch AND stage = :stage AND owner IS NULL "
                f"AND number > :after ORDER BY {order} LIMIT :most",
                # Those to be skipped may be the first ones.
                stage=stage.value, after=after, most=most + len(skipped),
            )  # fmt: skip
            free = [item for item in map(read_item, rows) if item.number not in skipped]
            items += free[: most - len(items)]
        return items

    def _claim_to_create(self, items: list[Item]) -> list[tuple[Item, Purchase | None]]:
        if self.store.database.leases:
            return self._claim(items)
        return [(item, None) for item in items]

    @repeating
    def _claim(self, items: list[Item]) -> list[tuple[Item, Purchase | None]]:
        """Take those of *items* that nobody else has taken meanwhile."""
        if not items:
            return []
        owner = self.owner
        values = {f"number{n}": item.number for n, item in enumerate(items)}
        with self.store.transaction() as turn:
            matches = turn.rows.run(
                f"{SELECT_ITEMS} WHERE batch = :batch AND owner IS NULL "
                f"AND number IN (:{', :'.join(values)}) ORDER BY number {{skip_locked}}",
                batch=self.number, **values,
            )  # fmt: skip
            stages = {item.number: item.stage for item in items}
            claims = {
                item.number: attrs.evolve(
                    item,
                    owner=owner,
                    stage=Stage.CLAIMED if item.stage is Stage.QUEUED else item.stage,
                )
                for item in map(read_item, matches)
                # Another process may have taken it meanwhile, done something for it, and let go of
                # it.
                if item.stage is stages[item.number]
            }
            update_items(turn.rows, {(it.batch, it.number): it for it in claims.values()})
            turn.check_alive(owner, leases=self.store.database.leases)
            keys = {item.purchase for item in claims.values() if item.purchase is not None}
            bought = find_all(turn.rows, keys)
        mine = (claims[item.number] for item in items if item.number in claims)
        return [(item, bought.get(str(item.purchase))) for item in mine]

    def move(self, item: Item, after: Stage, **facts: Any) -> Item:
        """Take a step of an item of this process's that concerns no purchase.

        Raises:
            Lost: It is in another stage, or another process's.
            StoreUnusable: It cannot be recorded.
        """
        return self.store.move(item, after, **facts)

    def release(self, items: Iterable[tuple[Item, Stage, Mapping[str, Any]]]) -> None:
        """Give items back, each in its stage. What another process has meanwhile stays as it is.

        If that cannot be recorded, the next use of the store does so.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        freed = [(item, after, {**facts, "owner": None}) for item, after, facts in items]
        self.store.move_all(freed, late=True)

    def recover(self) -> list[Entry]:
        """Let the items of dead processes be free, and return those that are ambiguous now.

        Raises:
            StoreUnusable: The store cannot be read or written.
        """
        before = self._ambiguous()
        self.store.sweep()
        self.store.free_items()
        return [self.entry(number) for number in sorted(self._ambiguous() - before)]

    def _ambiguous(self) -> set[int]:
        numbers = self._rows(
            "SELECT number FROM muybridge_item WHERE batch = :batch AND stage = 'ambiguous'"
        )
        return {int(number) for (number,) in numbers}

    # The request rate

    def limit_rate(self, rate: float) -> None:
        """Limit the requests of all batches of the store at its service; see `Store.limit_rate`."""
        self.store.limit_rate(self.service, rate)

    @property
    def has_rate(self) -> bool:
        """Whether these requests are limited."""
        return self.store.has_rate(self.service)

    def acquire_permits(self, wanted: int) -> Permits:
        """Return permits for requests, which nobody else gets."""
        return self.store.acquire_permits(self.service, wanted)

    def throttle(self, seconds: float) -> None:
        """Give nobody permits for *seconds*, because the service has asked to slow down."""
        self.store.throttle(self.service, seconds)

    # Rows

    def _rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        with self.store.reading() as rows:
            return [] if rows is None else rows.run(statement, batch=self.number, **values)

    def _pages(self, which: str, last: int, **values: Any) -> Iterator[Entry]:
        while page := self._entries(
            f"{which}AND item.number > :last ORDER BY item.number LIMIT :most",
            last=last, most=_PAGE, **values,
        ):  # fmt: skip
            yield from page
            last = page[-1].number

    def _entries(self, rest: str, **values: Any) -> list[Entry]:
        rows = self._rows(f"{SELECT_ENTRIES} WHERE item.batch = :batch {rest}", **values)
        return [*map(Entry.read, rows)]
