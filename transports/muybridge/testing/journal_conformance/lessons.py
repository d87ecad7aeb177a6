"""What each check of a journal teaches on failure."""

from __future__ import annotations

from muybridge.testing.conformance.lessons import Lesson

FIRST = Lesson(
    "of two workers that both believe they have an item, both send it, and it is paid for twice",
    "`take` and `move`: one conditional update that names the state before and the owner, and "
    "whose count of rows is checked",
)
FENCE = Lesson(
    "a worker that was paused is declared dead, and another one has its items; if it then "
    "continues where it was, its item is paid for twice",
    "`take` and `arm`: they check that the worker is not buried and that its lease holds, by one "
    "clock for all, in the statement that writes",
)
LATE = Lesson(
    "the id of a paid task is lost, because the worker that received it was declared dead before",
    "`report_late`: ambiguous because of this very attempt, or else a stray that is kept",
)
JUDGED = Lesson(
    "a response that arrives between reading an item and judging it is never read: its id, which "
    "is paid for, is lost",
    "`move` with `judged`: the update compares what `journal_entries.JUDGED` lists, too",
)
ONE_ITEM = Lesson(
    "two items have one task, so that one of them never gets what was paid for it",
    "`move` and `report_late`: a unique index on the task, or a check within the transaction that "
    "sets the token",
)
TOGETHER = Lesson(
    "a table of decisions is recorded in part, though its user is told that nothing was",
    "`transaction`: its steps are committed at its end, and rolled back if it raises",
)
WHOLE = Lesson(
    "what the journal has changed on the way is not what was paid for",
    "the types of the columns, and how values are written and read; "
    "`muybridge.batch.storable_values` makes values storable",
)
ORDER = Lesson(
    "links of results expire while other work is done, and what was paid for is lost",
    "the order in which `take` looks: completed by expiry, then submitted by expiry, then queued",
)
FRESH = Lesson(
    "an older copy of the journal goes unnoticed: it does not know what was sent since, so that is "
    "sent and paid for again",
    "a count of the writes of each worker, kept in the transaction of the write: `register` tells "
    "it, `has_written` compares it, and `forget` removes it only if the worker owns no items",
)
SEEN = Lesson(
    "what one worker has armed, another one sends",
    "every method: the change is committed, durably, when it returns",
)
RATE = Lesson(
    "the workers together send faster than the account allows, and the service refuses requests",
    "`acquire_permits`, `throttle`: one transaction that reads and writes the rate; "
    "`muybridge.batch.limits.rate` has the arithmetic",
)
BUDGET = Lesson(
    "a batch costs more than its user allowed",
    "`arm`: reserve what the item needs in the transaction that arms it; `move` and `report_late`: "
    "release it only if the create certainly did nothing",
)
