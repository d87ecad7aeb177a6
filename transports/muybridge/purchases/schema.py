"""The tables of a store, the same in every database.

Nothing is named by a row number: a copy that is put in place of the database would give the same
numbers again. Texts are compared byte by byte. Amounts are JSON with decimal numbers as strings, so
that every database keeps all digits.

A sum has a row for each tag and day, and one for all days (`EVER`), so that no budget reads many of
them. Where many machines write, each row is divided into parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from muybridge_protocol.purchases import NAMED, Item, Purchase, State

VERSION: Final = 1
"""The version of these tables: whoever changes them, even by a column, increases it."""
UPGRADES: Final[Mapping[int, Sequence[str]]] = {}
"""What makes the tables of each earlier version those of the next one.

Each begins by altering `muybridge_store` or `muybridge_purchases`, which every transaction reads:
so it waits for those that have seen the earlier version, and they have ended before anything else.
"""
EVER: Final = -1
"""In place of a day: the sum of all days."""


def listed(states: Iterable[State]) -> str:
    """Return *states* as SQL, for what follows `IN`, without the parentheses."""
    return ", ".join(f"'{state}'" for state in states)


COLUMNS: Final = tuple(field.name for field in attrs.fields(Purchase))
OF_ITEM: Final = tuple(field.name for field in attrs.fields(Item))

_OPEN_STATES: Final = frozenset({State.ARMED, State.AMBIGUOUS})
OPEN: Final = f"state IN ({listed(sorted(_OPEN_STATES))})"
"""What a statement has to say, word for word, for the index of open purchases to be used."""


def are_open(states: Iterable[State]) -> bool:
    """Whether the index of open purchases has all purchases in *states*."""
    return bool(states) and _OPEN_STATES.issuperset(states)


TABLES: Final = (
    """
CREATE TABLE muybridge_store (
    salt text NOT NULL,
    version bigint NOT NULL,
    pruned_before {real} NOT NULL
)""",
    """
CREATE TABLE muybridge_purchases (
    key text NOT NULL PRIMARY KEY,
    account text NOT NULL,
    owner text NOT NULL,
    state text NOT NULL,
    armed_at {real} NOT NULL,
    sending_until {real},
    family text NOT NULL,
    model text NOT NULL,
    tier text,
    tags text NOT NULL,
    budgets text NOT NULL,
    amounts text NOT NULL,
    name text,
    digest text,
    batch bigint,
    number bigint,
    token text,
    task text,
    late text,
    candidate text,
    reason text,
    response_status bigint,
    response {bytes},
    decided_at {real}
)""",
    """
CREATE INDEX muybridge_purchases_of_batches ON muybridge_purchases (batch, number)
    WHERE batch IS NOT NULL""",
    """
CREATE INDEX muybridge_identical ON muybridge_purchases (digest)
    WHERE digest IS NOT NULL""",
    f"""
CREATE UNIQUE INDEX muybridge_names ON muybridge_purchases (account, name)
    WHERE name IS NOT NULL AND state IN ({listed(NAMED)})""",
    """
CREATE UNIQUE INDEX muybridge_purchased_tasks ON muybridge_purchases (account, task)
    WHERE task IS NOT NULL""",
    f"""
CREATE INDEX muybridge_open_purchases ON muybridge_purchases (state, armed_at, key)
    WHERE {OPEN}""",
    "CREATE INDEX muybridge_purchases_by_time ON muybridge_purchases (armed_at, key)",
    """
CREATE TABLE muybridge_spent (
    tag text NOT NULL,
    day bigint NOT NULL,
    part bigint NOT NULL,
    sums text NOT NULL,
    PRIMARY KEY (tag, day, part)
)""",
    """
CREATE TABLE muybridge_owners (
    id text NOT NULL PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    lease {real} NOT NULL,
    lease_until {real} NOT NULL,
    buried_at {real}
)""",
    """
CREATE TABLE muybridge_batch (
    number bigint NOT NULL PRIMARY KEY,
    name text NOT NULL UNIQUE,
    service text NOT NULL,
    place text
)""",
    """
CREATE TABLE muybridge_rates (
    service text NOT NULL PRIMARY KEY,
    rate {real},
    next_at {real} NOT NULL,
    paused_until {real} NOT NULL,
    written_at {real} NOT NULL
)""",
    """
CREATE TABLE muybridge_item (
    batch bigint NOT NULL,
    number bigint NOT NULL,
    name text NOT NULL,
    stem text NOT NULL,
    family text NOT NULL,
    body text NOT NULL,
    stage text NOT NULL,
    owner text,
    purchase text,
    result text,
    expires {real},
    reason text,
    path text,
    size bigint,
    sha256 text,
    began {real},
    ended {real},
    next_poll_at {real},
    amounts text,
    PRIMARY KEY (batch, number),
    UNIQUE (batch, stem)
)""",
    """
CREATE INDEX muybridge_items_by_stage ON muybridge_item (batch, stage, number)""",
    """
CREATE INDEX muybridge_items_by_name ON muybridge_item (batch, name, number)""",
    """
CREATE INDEX muybridge_items_with_reasons ON muybridge_item (batch, number)
    WHERE reason IS NOT NULL AND stage <> 'downloaded'""",
    """
CREATE INDEX muybridge_items_of_owners ON muybridge_item (owner, batch)
    WHERE owner IS NOT NULL""",
    """
CREATE INDEX muybridge_items_of_purchases ON muybridge_item (purchase)
    WHERE purchase IS NOT NULL""",
    """
CREATE TABLE muybridge_limits (
    tag text NOT NULL,
    period text NOT NULL,
    counted_under text NOT NULL,
    since {real},
    limits text NOT NULL,
    PRIMARY KEY (tag, period)
)""",
    """
CREATE TABLE muybridge_durations (
    tasks text NOT NULL,
    place bigint NOT NULL,
    seconds {real} NOT NULL,
    PRIMARY KEY (tasks, place)
)""",
    f"INSERT INTO muybridge_store (salt, version, pruned_before) VALUES (:salt, {VERSION}, 0)",
)
"""What creates the tables. The last statement makes them a store."""
