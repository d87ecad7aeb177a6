"""The items of batches, as statements. What an item does is decided by `followed`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, TypeVar

import attrs

from muybridge.purchases.port import Rows
from muybridge.purchases.schema import OF_ITEM
from muybridge_protocol.purchases import Item, Stage
from muybridge_protocol.records.json import readable

T = TypeVar("T")

Place = tuple[int, int]
"""The batch and the number of an item."""

SELECT_ITEMS: Final = f"SELECT {', '.join(OF_ITEM)} FROM muybridge_item"
_KEY: Final = ("batch", "number")
_LIMIT: Final = 2000
"""Most characters of a reason."""
_MOST_VALUES: Final = 500
"""Most values of one kind in a statement."""


def place_of(item: Item) -> Place:
    """Return where *item* stands: its batch and its number, which identify it in a store."""
    return item.batch, item.number


def read_item(row: Sequence[Any]) -> Item:
    """Return the item in a row of `SELECT_ITEMS`."""
    return Item(**dict(zip(OF_ITEM, row, strict=True)))


def written_item(item: Item) -> dict[str, Any]:
    """Return the row of *item*, with a reason that every database can keep."""
    columns = {name: getattr(item, name) for name in OF_ITEM}
    columns["stage"] = item.stage.value
    if item.reason is not None:
        columns["reason"] = readable(item.reason, _LIMIT)
    return columns


def insert_items(rows: Rows, items: Iterable[Item]) -> None:
    """Add items. If one of them exists already, the transaction raises `Conflict`."""
    rows.run_each(
        f"INSERT INTO muybridge_item ({', '.join(OF_ITEM)}) VALUES (:{', :'.join(OF_ITEM)})",
        map(written_item, items),
    )


def parts_of(keys: Iterable[T]) -> Iterator[list[T]]:
    """Yield *keys* in parts that a statement can have as values, or as conditions."""
    left = [*keys]
    for begin in range(0, len(left), _MOST_VALUES):
        yield left[begin : begin + _MOST_VALUES]


def lock_items(rows: Rows, keys: Iterable[str], places: Iterable[Place]) -> dict[Place, Item]:
    """Return the items that refer to one of the purchases *keys*, and those at *places*, locked."""
    items: dict[Place, Item] = {}
    for some, others in zip_longest(parts_of(keys), parts_of(sorted({*places})), fillvalue=()):
        items |= _lock_items(rows, some, others)
    return items


def _lock_items(rows: Rows, keys: Sequence[str], places: Sequence[Place]) -> dict[Place, Item]:
    values: dict[str, Any] = {}
    parts: list[str] = []
    for n, key in enumerate(keys):
        values[f"key{n}"] = key
    if values:
        parts.append(f"purchase IN (:{', :'.join(values)})")
    for n, (batch, number) in enumerate(places):
        values |= {f"batch{n}": batch, f"number{n}": number}
        parts.append(f"batch = :batch{n} AND number = :number{n}")
    matches = rows.run(
        f"{SELECT_ITEMS} WHERE {' OR '.join(parts)} ORDER BY batch, number {{for_update}}",
        **values,
    )
    return {(one.batch, one.number): one for one in map(read_item, matches)}


def update_items(rows: Rows, changes: Mapping[Place, Item]) -> None:
    """Write items that have changed."""
    facts = ", ".join(f"{name} = :{name}" for name in OF_ITEM if name not in _KEY)
    rows.run_each(
        f"UPDATE muybridge_item SET {facts} WHERE batch = :batch AND number = :number",
        (written_item(changes[place]) for place in sorted(changes)),
    )


def may_begin(item: Item, owner: str) -> bool:
    """Whether *owner* may begin with *item*: it is queued and free, or claimed by them."""
    is_free = item.stage is Stage.QUEUED and item.owner is None
    return is_free or (item.stage, item.owner) == (Stage.CLAIMED, owner)


def armed_item(item: Item | None, owner: str, key: str) -> Item | None:
    """Return *item* as it is armed by *owner*, or None if that may not be."""
    if item is None or not may_begin(item, owner):
        return None
    return attrs.evolve(item, stage=Stage.ARMED, owner=owner, purchase=key, reason=None)
