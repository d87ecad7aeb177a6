"""Record a create in the journal: armed before it is sent, its response kept before it is read.

`Create` alone decides what a response or a failure means; this module records its outcome.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from muybridge.batch.journal_entries import Entry, State, task_id_in
from muybridge.batch.journal_errors import ClaimLost, JournalUnusable, TaskTaken
from muybridge.batch.port import Journal
from muybridge.batch.runner_files import UNFINISHED, KeptReply, ReplySlot
from muybridge_protocol.errors import CreateAmbiguous, ServiceError
from muybridge_protocol.families import MediaRequest, find_family
from muybridge_protocol.families.request import parse
from muybridge_protocol.http import HttpResponse, TransportFailure
from muybridge_protocol.operations import Create
from muybridge_protocol.purchases import Stage, judged
from muybridge_protocol.purchases import State as Known
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.json import RAW_LIMIT, read_object
from muybridge_protocol.records.tasks import Task, retained_until
from muybridge_protocol.service import Service, shown_id

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking

Created = Task | ServiceError | None
"""The outcome of a create: the task, why there is none, or None if it is retried."""


class ItemRecord:
    """Records one item's create in the journal, or in a side file if that fails.

    Args:
        journal: The batch's journal.
        entry: The item, claimed.
        slot: The side file.
    """

    def __init__(self, journal: Journal, entry: Entry, slot: ReplySlot) -> None:
        self._journal = journal
        self._entry = entry
        self._slot = slot
        self._owner = entry.owner or ""
        self._attempt = entry.attempt
        self._booked = (entry.store, entry.purchase)

    def arm(self, lasts: float, booking: Booking | None = None) -> None:
        """Record that the request is about to be sent.

        Args:
            lasts: Seconds after which the exchange has certainly ended.
            booking: Books it in the store, or None.

        Raises:
            JournalUnusable: It could not be recorded, so the request must not be sent.
            ClaimLost: The item belongs to another runner.
        """
        place = (None, None) if booking is None else (booking.place, booking.key)
        if place != self._booked:
            # Before it is armed: if it becomes ambiguous, the decision about it needs the purchase.
            store, purchase = self._booked = place
            facts: dict[str, Any] = {"store": store, "purchase": purchase}
            self._journal.move(self._entry, State.CLAIMED, State.CLAIMED, by=self._owner, **facts)
        self._journal.arm(self._entry, self._attempt + 1, by=self._owner, lasts=lasts)
        self._attempt += 1

    def hold(self, came: HttpResponse | TransportFailure) -> None:
        """Hold what has arrived of a response in the side file, until the journal has taken it.

        It neither uses the journal nor waits for it. A database that falls silent is only given up
        after a while, in which this process may be killed.
        """
        if isinstance(came, HttpResponse):
            reply = self._reply(came.status, came.body)
        elif came.partial:
            reply = self._reply(UNFINISHED, came.partial)
        else:
            return
        with suppress(OSError):
            self._slot.hold(reply)

    def keep(self, response: HttpResponse) -> None:
        """Record a response, before it is read.

        If the item was taken away in the meantime, the response is recorded all the same, and
        `conclude` raises.
        """
        reply = self._reply(response.status, response.body)
        with self._recording(reply), suppress(ClaimLost):
            self._move(State.ARMED, reply_status=reply.status, reply=reply.body)

    def conclude(
        self, outcome: Created, failure: TransportFailure | None = None, *, shares: bool = False
    ) -> Created:
        """Record the outcome of a response or a failure, and return it as it was recorded.

        A task that belongs to another item cannot be this one's, too. Nobody knows what this create
        has led to, so it is ambiguous, and the id is kept as its candidate.

        Args:
            outcome: What the response or the failure means.
            failure: The failure, or None.
            shares: Whether other items may have the same task.

        Raises:
            ClaimLost: The item was taken away in the meantime. The outcome is recorded all the
                same, for whoever continues with the item.
        """
        after, facts = verdict(outcome)
        partial = b"" if failure is None else failure.partial[:RAW_LIMIT]
        if failure is not None and after is State.AMBIGUOUS:
            facts |= {"reply_status": failure.status, "reply": partial}
        # A whole response is in the journal already; the next run judges it.
        with self._recording(self._reply(UNFINISHED, partial)) if partial else nullcontext():
            try:
                self._move(after, shares=shares, **facts)
            except TaskTaken:
                assert isinstance(outcome, Task)  # noqa: S101  nothing else sets a token
                outcome = taken_task(self._journal, outcome.id)
                after, facts = verdict(outcome)
                self._move(after, **facts)
        return outcome

    def _reply(self, status: int, body: bytes) -> KeptReply:
        number, attempt = self._entry.number, self._attempt
        return KeptReply(number=number, attempt=attempt, status=status, body=body[:RAW_LIMIT])

    @contextmanager
    def _recording(self, reply: KeptReply) -> Generator[None, None, None]:
        """Keep *reply* in the side file if the block cannot record it in the journal."""
        try:
            yield
        except JournalUnusable as error:
            try:
                self._slot.keep(reply)
            except OSError:
                # Nothing is left to write to, so the error shows it.
                found = find_id(reply.body)
                task = "" if found is None else f" (task {found})"
                shown = f"The response to {self._entry.label}{task} was: {reply.body[:1000]!r}"
                error.add_note(shown)
            raise
        except ClaimLost:  # it was reported late
            self._slot.clear()
            raise
        self._slot.clear()

    def _move(self, after: State, *, shares: bool = False, **facts: Any) -> None:
        """Move the armed item to *after*, or report that late if another worker has it."""
        step = (self._entry, State.ARMED, after)
        try:
            self._journal.move(*step, by=self._owner, shares=shares, **facts)
        except ClaimLost:
            number, attempt = self._entry.number, self._attempt
            if after is State.ARMED:  # nobody may be there to read it
                facts["candidate"] = find_id(facts["reply"])
            self._journal.report_late(number, attempt, after, by=self._owner, **facts)
            raise


def taken_task(journal: Journal, task_id: str) -> CreateAmbiguous:
    """Return the outcome of a create whose response names the task of another item."""
    label = journal.label_of_task(task_id) or "another item"
    reason = f"the service named task {shown_id(task_id)}, which belongs to {label}"
    return CreateAmbiguous(reason=reason, candidate_id=task_id)


def verdict(outcome: Created) -> tuple[State, dict[str, Any]]:
    """Return the state that an armed item goes to after *outcome*, and its facts."""
    known = judged(outcome)
    if known.task is not None:
        # The token holds all that is needed from the response.
        return State.SUBMITTED, {
            **_NO_REPLY,
            "token": known.task.to_token(),
            "began": known.task.submitted_at,
            "expires": retained_until(known.task),
            "reason": None,
        }
    facts = {"owner": None, "reason": known.reason}
    if known.state is Known.AMBIGUOUS:
        return State.AMBIGUOUS, {**facts, "candidate": known.candidate}
    match known.leads_to:
        case Stage.CLAIMED:
            return State.CLAIMED, dict(_NO_REPLY)
        case Stage.QUEUED:
            return State.QUEUED, {**_NO_REPLY, **facts}
        case _:
            return State.REFUSED, facts


def judge_kept_reply(
    entry: Entry, service: Service, *, wall: float
) -> tuple[State, dict[str, Any]]:
    """Return the next state of an armed item whose response was kept but not read.

    Args:
        entry: The item.
        service: Where its task would be.
        wall: Unix seconds.
    """
    create = Create.start(request_of(entry), service, now=0.0, wall=wall, seed=0)  # never waits
    response = HttpResponse(entry.reply_status or 0, (), entry.reply or b"")
    settled = create.receive(response, 0.0).settled
    after, facts = verdict(None if settled is None else settled.outcome)
    return (State.QUEUED if after is State.CLAIMED else after), {**facts, "owner": None}


def named_task(entry: Entry) -> str | None:
    """Return the id of the task that the whole response of *entry* names, or None."""
    if entry.reply_status in (None, UNFINISHED):
        return None
    try:
        _, facts = judge_kept_reply(entry, _ANY, wall=0.0)
    except Exception:  # noqa: BLE001  then nobody can judge it
        return None
    return task_id_in(facts.get("token"))


def request_of(entry: Entry) -> MediaRequest:
    """Return the request of *entry*, whose warnings were shown when it was journaled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse(find_family(entry.family), read_object(entry.body), keep_unknown=True)


_ANY: Final = Service(base_url="https://service.invalid")
"""A service, for a response whose meaning does not depend on it."""
_NO_REPLY: dict[str, Any] = {"reply_status": None, "reply": None}
