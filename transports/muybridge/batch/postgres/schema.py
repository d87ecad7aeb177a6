"""The tables of shared batches, and the statements whose conditions decide about money.

All batches of a database stand in the same tables. Their names begin with `muybridge_`, and they
are in the first schema of the connection's search path. All leases are measured by the clock of the
database (`clock_timestamp()`), because the clocks of two machines differ.

There may be millions of items, so nothing counts them by reading them. Triggers keep how many are
in each state, in the statement that moves an item. Each count is spread over 128 rows, so that
workers seldom wait for each other; their sum is the count.
"""

from __future__ import annotations

from typing import Final

from muybridge.batch.journal_entries import JUDGED

VERSION: Final = 4
"""The version of these tables: whoever changes them, even by a column, increases it."""

TABLES: Final = f"""
CREATE TABLE muybridge_schema (version bigint NOT NULL);
CREATE TABLE muybridge_batches (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid text NOT NULL,
    name text NOT NULL UNIQUE,
    service text NOT NULL,
    out text,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE muybridge_workers (
    id text PRIMARY KEY,
    batch bigint NOT NULL REFERENCES muybridge_batches,
    host text NOT NULL,
    pid bigint NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease float8 NOT NULL,
    lease_until timestamptz NOT NULL,
    writes bigint NOT NULL DEFAULT 0,
    buried_at timestamptz
);
CREATE TABLE muybridge_items (
    batch bigint NOT NULL REFERENCES muybridge_batches,
    number bigint NOT NULL,
    name text NOT NULL,
    stem text NOT NULL,
    family text NOT NULL,
    body text NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    owner text,
    attempt bigint NOT NULL DEFAULT 0,
    armed_by text,
    sending_until timestamptz,
    reply_status bigint,
    reply bytea,
    token text,
    task text,
    service bigint,
    candidate text,
    result text,
    expires float8,
    reason text,
    path text,
    size bigint,
    sha256 text,
    began float8,
    ended float8,
    store text,
    purchase text,
    needs text,
    PRIMARY KEY (batch, number),
    UNIQUE (batch, stem)
) WITH (fillfactor = 70);
CREATE INDEX muybridge_free_items ON muybridge_items (batch, state, expires, number)
    WHERE owner IS NULL AND state IN ('queued', 'submitted', 'completed');
CREATE INDEX muybridge_owned_items ON muybridge_items (batch, owner) WHERE owner IS NOT NULL;
CREATE INDEX muybridge_ambiguous_items ON muybridge_items (batch, number)
    WHERE state = 'ambiguous';
CREATE INDEX muybridge_named_items ON muybridge_items (batch, name) WHERE name <> '';
-- A task of a service belongs to one item. The service is told by the number of its first batch.
CREATE UNIQUE INDEX muybridge_tasks ON muybridge_items (task, service) WHERE task IS NOT NULL;
CREATE TABLE muybridge_strays (
    batch bigint NOT NULL REFERENCES muybridge_batches,
    number bigint NOT NULL,
    attempt bigint NOT NULL,
    worker text NOT NULL,
    state text NOT NULL,
    token text,
    reply_status bigint,
    reply bytea,
    arrived_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (batch, number, attempt, worker)
);
CREATE TABLE muybridge_budgets (
    batch bigint PRIMARY KEY REFERENCES muybridge_batches,
    limits text NOT NULL,
    spent text NOT NULL
);
CREATE TABLE muybridge_rates (
    service text PRIMARY KEY,
    rate float8,
    next_at float8 NOT NULL DEFAULT 0,
    paused_until float8 NOT NULL DEFAULT 0,
    written_at float8 NOT NULL DEFAULT 0
);
CREATE TABLE muybridge_counts (
    batch bigint NOT NULL REFERENCES muybridge_batches,
    part integer NOT NULL,
    state text NOT NULL,
    items bigint NOT NULL,
    PRIMARY KEY (batch, part, state)
);
CREATE FUNCTION muybridge_count_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO muybridge_counts AS known (batch, part, state, items)
        SELECT batch, pg_backend_pid() % 128, state, count(*) FROM new_items
        GROUP BY batch, state ORDER BY batch, state
        ON CONFLICT (batch, part, state) DO UPDATE SET items = known.items + excluded.items;
    ELSE
        INSERT INTO muybridge_counts AS known (batch, part, state, items)
        SELECT NEW.batch, pg_backend_pid() % 128, state, change
        FROM (VALUES (OLD.state, -1), (NEW.state, 1)) AS changes (state, change) ORDER BY state
        ON CONFLICT (batch, part, state) DO UPDATE SET items = known.items + excluded.items;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER muybridge_added_items AFTER INSERT ON muybridge_items
    REFERENCING NEW TABLE AS new_items
    FOR EACH STATEMENT EXECUTE FUNCTION muybridge_count_items();
CREATE TRIGGER muybridge_moved_items AFTER UPDATE OF state ON muybridge_items
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION muybridge_count_items();
INSERT INTO muybridge_schema VALUES ({VERSION});
"""  # noqa: S608  our own names

# The row lock makes whoever declares the worker dead wait for this statement, or this statement
# find it dead. An older copy of the database has fewer writes of the worker than were confirmed.
_ALIVE: Final = """
    me AS (
        UPDATE muybridge_workers SET writes = writes + 1
        WHERE id = %(owner)s AND batch = %(batch)s AND writes >= %(writes)s
            AND buried_at IS NULL AND lease_until > clock_timestamp()
        RETURNING 1
    )
"""
_FRESH: Final = """
    me AS (
        UPDATE muybridge_workers SET writes = writes + 1
        WHERE id = %(me)s AND batch = %(batch)s AND writes >= %(writes)s
        RETURNING 1
    )
"""
_IF_FRESH: Final = "(%(me)s::text IS NULL OR EXISTS (SELECT 1 FROM me))"
"""A person who decides is no worker, and has written nothing before."""

COUNTS: Final = """
SELECT state, sum(items)::bigint FROM muybridge_counts WHERE batch = %(batch)s
GROUP BY state HAVING sum(items) > 0
"""

WITH_TASK: Final = """
SELECT number, items.name, batches.name
FROM muybridge_batches AS batches JOIN muybridge_items AS items ON items.batch = batches.id
WHERE batches.service = %(service)s AND task = %(task)s
ORDER BY batches.id <> %(batch)s LIMIT 1
"""

FORGET_WORKERS: Final = """
DELETE FROM muybridge_workers AS workers
WHERE batch = %(batch)s
    AND coalesce(buried_at, lease_until) < clock_timestamp() - interval '30 days'
    AND NOT EXISTS (
        SELECT 1 FROM muybridge_items WHERE batch = %(batch)s AND owner = workers.id
    )
"""
"""Workers that have been dead for long and own nothing. A worker that is not known is dead, too.

Others are forgotten by the next worker on their machine, which first checks what they have written.
"""

FORGET: Final = """
DELETE FROM muybridge_workers AS workers
WHERE id = %(worker)s AND batch = %(batch)s AND NOT EXISTS (
    SELECT 1 FROM muybridge_items WHERE batch = %(batch)s AND owner = workers.id
)
"""

HAS_WRITTEN: Final = """
SELECT 1 FROM muybridge_workers
WHERE id = %(worker)s AND batch = %(batch)s AND writes >= %(writes)s
"""

REGISTER: Final = """
INSERT INTO muybridge_workers (id, batch, host, pid, lease, lease_until)
VALUES (
    %(worker)s, %(batch)s, %(host)s, %(pid)s, %(lease)s,
    clock_timestamp() + make_interval(secs => %(lease)s)
)
"""

RENEW: Final = """
UPDATE muybridge_workers
SET lease_until = clock_timestamp() + make_interval(secs => %(lease)s), writes = writes + 1
WHERE id = %(worker)s AND batch = %(batch)s AND writes >= %(writes)s AND buried_at IS NULL
"""

BURY: Final = """
UPDATE muybridge_workers SET buried_at = clock_timestamp()
WHERE id = %(worker)s AND batch = %(batch)s AND buried_at IS NULL
    AND (%(ended)s OR lease_until <= clock_timestamp()
        OR lease_until > clock_timestamp() + make_interval(secs => 2 * lease))
"""
"""No lease lasts so long, unless the clock was put back: the dead would keep their items till then.

A worker that lives on under a new id loses nothing by it.
"""

IS_BURIED: Final = """
SELECT buried_at IS NOT NULL FROM muybridge_workers WHERE id = %(worker)s AND batch = %(batch)s
"""

FREE: Final = "\nUNION ALL ".join(
    f"SELECT {urgency} AS urgency, '{state}' WHERE (SELECT number FROM muybridge_items "  # noqa: S608  our own names
    f"WHERE batch = %(batch)s AND state = '{state}' AND owner IS NULL "
    "AND number <> ALL (%(besides)s::bigint[]) ORDER BY expires, number LIMIT 1) IS NOT NULL"
    for urgency, state in enumerate(("completed", "submitted", "queued"))
)
"""Which states have free items. It writes nothing, unlike a `TAKE` that finds none.

The order makes the database use the index. Otherwise, it may read all items that are done first.
"""

TAKE: Final = f"""
WITH {_ALIVE},
    picked AS MATERIALIZED (
        SELECT number FROM muybridge_items
        WHERE EXISTS (SELECT 1 FROM me) AND batch = %(batch)s AND state = %(state)s
            AND owner IS NULL AND number <> ALL (%(besides)s::bigint[])
        ORDER BY expires, number LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
UPDATE muybridge_items AS items SET state = %(after)s, owner = %(owner)s FROM picked
WHERE items.batch = %(batch)s AND items.number = picked.number
"""  # noqa: S608  our own names

ARM: Final = f"""
WITH {_ALIVE}
UPDATE muybridge_items
SET state = 'armed', attempt = %(attempt)s, armed_by = %(owner)s,
    sending_until = clock_timestamp() + make_interval(secs => %(lasts)s)
WHERE EXISTS (SELECT 1 FROM me) AND batch = %(batch)s AND number = %(number)s
    AND state = 'claimed' AND owner IS NOT DISTINCT FROM %(owner)s AND attempt = %(attempt)s - 1
"""  # noqa: S608  our own names
"""With `owner =`, the database may read all that the worker owns, in place of one item."""

MOVE: Final = f"""
WITH {_FRESH}
UPDATE muybridge_items SET state = %(after)s{{facts}}
WHERE {_IF_FRESH} AND batch = %(batch)s AND number = %(number)s AND state = %(before)s
    AND owner IS NOT DISTINCT FROM %(by)s
    AND (%(after)s <> 'queued' OR %(before)s <> 'ambiguous'
        OR sending_until IS NULL
        OR sending_until <= least(clock_timestamp(), to_timestamp(%(wall)s::float8)))
"""  # noqa: S608  our own names
"""The last condition holds up a person who resubmits while the create may be under way.

The database's clock may have been set forward meanwhile, so the person's machine must agree.
"""

AS_JUDGED: Final = "".join(
    f"    AND {name} IS NOT DISTINCT FROM %(judged_{name})s\n" for name in JUDGED
)
"""What `MOVE` says besides if the step was decided by what was read of the item."""

STILL_SENDING: Final = """
SELECT extract(epoch FROM sending_until - now_here)::float8
FROM muybridge_items, least(clock_timestamp(), to_timestamp(%(wall)s::float8)) AS now_here
WHERE batch = %(batch)s AND number = %(number)s AND state = 'ambiguous'
    AND sending_until > now_here
"""

REPORT_LATE: Final = f"""
WITH {_FRESH}
UPDATE muybridge_items SET state = %(after)s{{facts}}
WHERE {_IF_FRESH} AND batch = %(batch)s AND number = %(number)s AND state = 'ambiguous'
    AND attempt = %(attempt)s AND armed_by = %(by)s
"""  # noqa: S608  our own names

UNKNOWN_NEEDS: Final = """
SELECT number, state, family, body, needs FROM muybridge_items
WHERE batch = %(batch)s AND number > %(last)s AND needs LIKE '%%null%%'
    AND state IN ('queued', 'claimed', 'refused')
ORDER BY number LIMIT %(page)s
"""
"""The items that have reserved nothing, and of which something is unknown."""

COMPLETE_NEEDS: Final = """
UPDATE muybridge_items SET needs = %(needs)s
WHERE batch = %(batch)s AND number = %(number)s AND needs = %(before)s
    AND state IN ('queued', 'claimed', 'refused')
"""
"""What an armed or ambiguous item has reserved must stay what will be released."""

KEEP_STRAY: Final = """
INSERT INTO muybridge_strays AS known
    (batch, number, attempt, worker, state, token, reply_status, reply)
VALUES (
    %(batch)s, %(number)s, %(attempt)s, %(by)s, %(after)s, %(token)s, %(reply_status)s, %(reply)s
)
ON CONFLICT (batch, number, attempt, worker) DO UPDATE SET
    state = excluded.state,
    token = coalesce(excluded.token, known.token),
    reply_status = coalesce(excluded.reply_status, known.reply_status),
    reply = coalesce(excluded.reply, known.reply)
"""
