"""A create that keeps the journal: armed before it is sent, its reply kept before it is read.

What a reply or a failure means is decided by `Create` alone; here its verdict is written down.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any, Protocol

import attrs

from muybridge.batch.journal import Journal
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import JournalUnusable
from muybridge.batch.runners import UNFINISHED, KeptReply, ReplySlot
from muybridge.interrupts import raised_by_handler
from muybridge_protocol.candidates import find_id
from muybridge_protocol.codec import RAW_LIMIT, read_object
from muybridge_protocol.delivery import concerns_every_request
from muybridge_protocol.errors import CreateAmbiguous, ServiceError
from muybridge_protocol.families import MediaRequest, find_family
from muybridge_protocol.http import HttpResponse, Reason, TransportFailure
from muybridge_protocol.operations import Create, Send, Settled, Wait
from muybridge_protocol.service import Service
from muybridge_protocol.tasks import Task


class Stopped(Exception):
    """The run is to stop. What was under way goes on in the next one."""


class Record(Protocol):
    """Where a create is written down."""

    def arm(self) -> None:
        """Write down that the request is about to be sent."""
        ...

    def keep(self, response: HttpResponse) -> None:
        """Write down a reply, before it is read."""
        ...

    def conclude(self, create: Create, failure: TransportFailure | None = None) -> None:
        """Write down what a reply or a failure has led to."""
        ...


@attrs.frozen(kw_only=True)
class JournaledCreate(Create):
    """A create whose every step is on the disk before the next one.

    Args:
        record: Where it is written down.
    """

    record: Record = attrs.field(repr=False, eq=False)

    @classmethod
    def of(cls, create: Create, record: Record) -> JournaledCreate:
        """Return *create*, to be written down in *record*."""
        known = {field.name: getattr(create, field.name) for field in attrs.fields(Create)}
        return cls(**known, record=record)

    def next_action(self, now: float) -> Send | Wait | Settled[Task]:
        """Return what to do next; before a request is given out, the item is armed."""
        action = super().next_action(now)
        if isinstance(action, Send):
            self.record.arm()
        return action

    def receive(self, response: HttpResponse, now: float) -> JournaledCreate:
        """Return the operation after a whole reply, which is kept first."""
        try:
            self.record.keep(response)
        except BaseException as error:
            # What comes from outside, as a signal handler's exception does, may have kept the
            # response from the journal.
            if not isinstance(error, Exception) or raised_by_handler(error):
                self.record.keep(response)
            raise
        after = super().receive(response, now)
        self.record.conclude(after)
        return after

    def fail(self, failure: TransportFailure, now: float) -> JournaledCreate:
        """Return the operation after an exchange without a whole reply."""
        after = super().fail(failure, now)
        self.record.conclude(after, failure)
        return after


class ItemRecord:
    """Writes one item's create down in the journal, or in a side file where that fails.

    Args:
        journal: The batch's journal.
        entry: The item, claimed.
        slot: The side file.
        stopping: Set when the run is to send nothing more.
    """

    def __init__(
        self, journal: Journal, entry: Entry, slot: ReplySlot, stopping: threading.Event
    ) -> None:
        self._journal = journal
        self._stopping = stopping
        self._entry = entry
        self._slot = slot
        self._attempt = entry.attempt
        self.interrupted: bool = False
        """Whether something other than the network broke the request off."""
        self.under_way: bool = False
        """Whether the request is armed, and its response has not been written down."""

    def arm(self) -> None:
        """Write down that the request is about to be sent.

        Raises:
            JournalUnusable: That is not on the disk, so that it must not be sent.
            ClaimLost: The item is somebody else's.
            Stopped: The run is to send nothing more.
        """
        # In this order: whoever stops the run waits for what is under way.
        self.under_way = True
        if self._stopping.is_set():
            self.under_way = False
            raise Stopped
        try:
            self._move(State.CLAIMED, State.ARMED, attempt=self._attempt + 1)
        except BaseException:
            self.under_way = False
            raise
        self._attempt += 1

    def keep(self, response: HttpResponse) -> None:
        """Write down a reply, before it is read."""
        status, body = response.status, response.body[:RAW_LIMIT]
        try:
            self._move(State.ARMED, State.ARMED, reply_status=status, reply=body)
        except JournalUnusable as error:
            self._spool(status, body, error)
            raise

    def conclude(self, create: Create, failure: TransportFailure | None = None) -> None:
        """Write down what a reply or a failure has led to."""
        self.interrupted = failure is not None and failure.reason is Reason.INTERRUPTED
        after, facts = verdict(create)
        if failure is not None and after is State.AMBIGUOUS:
            facts |= {"reply_status": failure.status, "reply": failure.partial[:RAW_LIMIT]}
        try:
            self._move(State.ARMED, after, **facts)
        except JournalUnusable as error:
            # A whole response is in the journal already, and is judged by the next run.
            if failure is not None and failure.partial:
                self._spool(UNFINISHED, failure.partial[:RAW_LIMIT], error)
            raise
        finally:
            self.under_way = False

    def _spool(self, status: int, body: bytes, error: JournalUnusable) -> None:
        """Keep a response in the side file, because of the journal's *error*."""
        kept = KeptReply(number=self._entry.number, attempt=self._attempt, status=status, body=body)
        try:
            self._slot.keep(kept)
        except OSError:
            # Nothing is left to write to: the people before the screen are told.
            found = find_id(body)
            task = "" if found is None else f" (task {found})"
            error.add_note(f"The response to {self._entry.label}{task} was: {body[:1000]!r}")

    def _move(self, before: State, after: State, **facts: Any) -> None:
        self._journal.move(self._entry, before, after, by=self._entry.owner, **facts)


def verdict(create: Create) -> tuple[State, dict[str, Any]]:
    """Return the state that an armed item goes to after *create*'s last step, and its facts."""
    if create.settled is None:
        return State.CLAIMED, dict(_NO_REPLY)
    match create.settled.outcome:
        case Task() as task:
            # The token holds all that is needed of the reply.
            return State.SUBMITTED, {
                **_NO_REPLY,
                "token": task.to_token(),
                "began": task.submitted_at,
                "expires": _expiry(task),
                "reason": None,
            }
        case CreateAmbiguous() as error:
            return State.AMBIGUOUS, {
                "owner": None,
                "candidate": error.candidate_id,
                "reason": error.reason,
            }
        case error if concerns_every_request(error):
            return State.QUEUED, {**_NO_REPLY, "owner": None, "reason": _what(error)}
        case error:
            return State.REFUSED, {"owner": None, "reason": _what(error)}


def judge_kept_reply(
    entry: Entry, service: Service, *, wall: float
) -> tuple[State, dict[str, Any]]:
    """Return the state that an armed item goes to, whose reply was kept and not read.

    Args:
        entry: The item.
        service: Where its task would be.
        wall: Unix seconds.
    """
    create = Create.start(request_of(entry), service, now=0.0, wall=wall, seed=0)  # never waits
    response = HttpResponse(entry.reply_status or 0, (), entry.reply or b"")
    after, facts = verdict(create.receive(response, 0.0))
    return (State.QUEUED if after is State.CLAIMED else after), {**facts, "owner": None}


def request_of(entry: Entry) -> MediaRequest:
    """Return the request of *entry*, whose warnings were told when it was journaled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_family(entry.family).parse(read_object(entry.body), keep_unknown=True)


def _what(error: ServiceError) -> str:
    return f"{error.what()} {error.next_step()}".strip()


def _expiry(task: Task) -> float | None:
    """Return when the result's link will stop working, as far as that is known beforehand."""
    return task.to_result().expires_at


_NO_REPLY: dict[str, Any] = {"reply_status": None, "reply": None}
