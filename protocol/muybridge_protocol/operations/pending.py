"""A poll at rest, in a fraction of its memory.

A million polls wait while a few of them talk. One that waits is kept as its `Kind`, shared with
every poll like it, and its facts, packed into bytes; `unpack` makes the `Poll` again. All policy
stays in `Poll`: nothing here decides anything.

What is not kept is the record of the task as it came.
"""

from __future__ import annotations

import struct
from math import isnan
from typing import Final

import attrs

from muybridge_protocol.families import FAMILIES, Pacing
from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.service import Service
from muybridge_protocol.tasks import Status, Task

_FACTS: Final = struct.Struct("<dd9sddddddQIBB")
_TASK: Final = struct.Struct("<dd9s")
_BORN: Final = struct.Struct("<d")
_NONE: Final = float("nan")
_NEVER: Final = b"\xff" * 8 + b"\x7f"
"""Stands for no `created`: beyond every number of 64 bits."""
_KINDS_KEPT: Final = 4096
"""Kinds that are shared. A service that calls its model differently each time makes more."""


@attrs.frozen(kw_only=True, cache_hash=True)
class Kind:
    """What many pending polls have in common: see the fields of `Poll` and `Task`.

    Args:
        service: Where the service is.
        timeout: Seconds that one exchange may take.
        once: Whether the first valid reply is the outcome.
        pacing: How often to ask.
        family: The task's family.
        model: The task's model.
        requested_model: The model that was asked for.
        status: The task's status at creation.
        object: The task record's `object`.
        error: The task record's `error`.
        seen: The status of the last result, or None before the first one.
    """

    service: Service
    timeout: float
    once: bool
    pacing: Pacing
    family: str | None
    model: str | None
    requested_model: str | None
    status: Status | str | None
    object: str | None
    error: str | None
    seen: Status | str | None
    is_finished: bool = attrs.field(init=False, eq=False)
    """Whether the task is known to be completed, and only its result is to be fetched."""
    retention: float | None = attrs.field(init=False, eq=False)
    """Seconds that the result lives from the task's creation, or None where not specified."""

    def __attrs_post_init__(self) -> None:
        family = FAMILIES.get(self.family or "")
        retention = None if family is None else family.retention.seconds
        # Frozen against everybody else: these two complete the value.
        object.__setattr__(self, "is_finished", Status.COMPLETED in (self.seen, self.status))
        object.__setattr__(self, "retention", retention)

    @classmethod
    def of(cls, poll: Poll) -> Kind:
        """Return the kind of *poll*."""
        task = poll.task
        return cls(
            service=poll.service,
            timeout=poll.timeout,
            once=poll.once,
            pacing=poll.pacing,
            family=task.family,
            model=task.model,
            requested_model=task.requested_model,
            status=task.status,
            object=task.object,
            error=task.error,
            seen=poll.seen,
        )


class Kinds:
    """Gives every poll like another one the same `Kind`."""

    def __init__(self) -> None:
        self._shared: dict[Kind, Kind] = {}
        self._seen: dict[tuple[Kind, Status | str | None], Kind] = {}  # from kind to kind

    def of(self, poll: Poll, *, before: Kind | None = None) -> Kind:
        """Return the kind of *poll*.

        Args:
            poll: A pending poll.
            before: Its kind when it was last at rest. Of a poll's kind only `seen` changes, once
                the family is known.
        """
        if before is None or before.family != poll.task.family:
            return self._share(Kind.of(poll))
        seen = poll.seen
        if seen == before.seen:
            return before
        kind = self._seen.get((before, seen))
        if kind is None:
            kind = self._share(attrs.evolve(before, seen=seen))
            self._seen[before, seen] = kind
        return kind

    def _share(self, kind: Kind) -> Kind:
        if len(self._shared) + len(self._seen) >= _KINDS_KEPT:
            self._shared.clear()
            self._seen.clear()
        return self._shared.setdefault(kind, kind)


def without_records(poll: Poll) -> Poll:
    """Return a pending *poll* as `unpack` makes it of what is kept of it.

    It is bounded then: a record may have megabytes.
    """
    task = poll.task
    return attrs.evolve(poll, events=(), task=attrs.evolve(task, raw={}) if task.raw else task)


def pack(poll: Poll) -> bytes:
    """Return the facts of a pending *poll* that its kind does not hold.

    Args:
        poll: A poll that is not settled, whose seed has at most 64 bits.
    """
    task = poll.task
    facts = _FACTS.pack(
        _NONE if poll.born is None else poll.born,
        _NONE if task.submitted_at is None else task.submitted_at,
        _NEVER if task.created is None else task.created.to_bytes(9, "little", signed=True),
        _NONE if poll.deadline is None else poll.deadline,
        poll.due,
        poll.started,
        poll.wall_offset,
        poll.interval,
        poll.heard,
        poll.seed,
        poll.failures,
        poll.unreadable,
        poll.incomplete,
    )
    return facts + task.id.encode("utf-8", "surrogatepass")


def unpack(kind: Kind, facts: bytes) -> Poll:
    """Return the poll that *kind* and *facts* stand for."""
    (
        born,
        submitted_at,
        created,
        deadline,
        due,
        started,
        wall_offset,
        interval,
        heard,
        seed,
        failures,
        unreadable,
        incomplete,
    ) = _FACTS.unpack_from(facts)
    return Poll(
        service=kind.service,
        seed=seed,
        timeout=kind.timeout,
        due=due,
        task=_task(kind, facts, submitted_at, created),
        once=kind.once,
        pacing=kind.pacing,
        started=started,
        wall_offset=wall_offset,
        deadline=None if isnan(deadline) else deadline,
        born=None if isnan(born) else born,
        interval=interval,
        heard=heard,
        seen=kind.seen,
        failures=failures,
        unreadable=unreadable,
        incomplete=incomplete,
    )


def unpack_task(kind: Kind, facts: bytes) -> Task:
    """Return the task that *kind* and *facts* are about."""
    _, submitted_at, created = _TASK.unpack_from(facts)
    return _task(kind, facts, submitted_at, created)


def unpack_born(facts: bytes) -> float | None:
    """Return when the task was created, on the driver's clock, or None where not known."""
    born: float = _BORN.unpack_from(facts)[0]
    return None if isnan(born) else born


def _task(kind: Kind, facts: bytes, submitted_at: float, created: bytes) -> Task:
    return Task(
        id=facts[_FACTS.size :].decode("utf-8", "surrogatepass"),
        family=kind.family,
        model=kind.model,
        requested_model=kind.requested_model,
        status=kind.status,
        object=kind.object,
        created=None if created == _NEVER else int.from_bytes(created, "little", signed=True),
        error=kind.error,
        submitted_at=None if isnan(submitted_at) else submitted_at,
        raw={},
    )
