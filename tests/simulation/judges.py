"""The judges: what must be true of every world, whatever went wrong in it.

They compare two things only: what the service has accepted and charged, and what the users were
told, by calls, events, errors and the store. Nothing inside the product is asked.

Safety holds at every moment. Liveness holds once the faults have stopped: then everything settles,
and nothing is left in doubt without a fault that explains the doubt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from muybridge import (
    CreateAmbiguous,
    MuybridgeError,
    NotSent,
    OverBudget,
    ServiceError,
)
from muybridge.purchases import Purchase, State, StoreUnusable
from muybridge_protocol.families.imgb import IMGB

from .clients import Program, Sinks
from .network import Asked, Network
from .plan import Plan
from .service import HARMLESS, KEY, PNG, UNCERTAIN, WORDLESS, Create, SimulatedService
from .world import Actor, Cancelled, Process, World

DAY: Final = 86_400
RESULTS: Final = "/v1/result/"
"""What the path of a poll begins with."""
SETTLED: Final = 900.0
"""Seconds within which everything ends once the faults have stopped."""


class Verdict(AssertionError):
    """What a judge has found wrong.

    Args:
        judge: Whose verdict it is.
        finding: What is wrong, in a sentence.
    """

    def __init__(self, judge: str, finding: str) -> None:
        super().__init__(f"{judge}: {finding}")
        self.judge = judge
        self.finding = finding


def require(judge: str, holds: object, finding: str) -> None:
    """Raise the *judge*'s verdict unless what it asks for holds."""
    if not holds:
        raise Verdict(judge, finding)


@attrs.frozen(kw_only=True, eq=False)
class Told:
    """What a call told its user about one request.

    Args:
        program: Whose call it was.
        actor: The task that called.
        prompt: The request, or None if the call creates nothing.
        began: The world's step in which it began.
        ended: The step in which it ended.
        task: The id that it told, or None.
        error: What it raised, or None.
    """

    program: Program
    actor: Actor
    prompt: str | None
    began: int
    ended: int
    task: str | None
    error: BaseException | None

    @property
    def is_denial(self) -> bool:
        """Whether it says that nothing was accepted."""
        said = isinstance(self.error, MuybridgeError)
        return said and self.task is None and not isinstance(self.error, CreateAmbiguous)

    def sent(self, create: Create) -> bool:
        """Whether the call has sent *create*."""
        sender = create.sender
        return (
            sender is not None
            and create.prompt == self.prompt
            and self.began <= create.step <= self.ended
            and (sender is self.actor or sender.name.startswith(f"{self.actor.name}."))
        )


@attrs.define(kw_only=True, eq=False)
class Evidence:
    """What the judges look at."""

    plan: Plan
    world: World
    network: Network
    service: SimulatedService
    sinks: Sinks
    root: Path
    is_shared: bool
    """Whether the store is on a server, which sees no process."""
    programs: list[Program] = attrs.field(factory=list[Program])
    told: list[Told] = attrs.field(factory=list[Told])
    cancelled: dict[Actor, int] = attrs.field(factory=dict[Actor, int])
    """The step in which each task was cancelled that was."""
    interrupted: Counter[Actor] = attrs.field(factory=Counter[Actor])
    """How often Ctrl-C was pressed at each main thread. The second time leaves creates in doubt."""
    jumps: list[float] = attrs.field(factory=list[float])
    """When a clock has jumped, or a step has taken long."""
    released: set[Create] = attrs.field(factory=set[Create])
    """The creates that a person knows were not accepted."""
    resubmitted: set[Create] = attrs.field(factory=set[Create])
    """The creates that a person has allowed to be sent again."""
    saved: set[Path] = attrs.field(factory=set[Path])
    """The results that were said to be saved."""
    purchases: list[Purchase] = attrs.field(factory=list[Purchase])
    """What is in the store, once everything has ended."""

    @property
    def charges(self) -> list[Create]:
        """The creates that may have been accepted."""
        return [
            create
            for create in self.service.creates
            if create.fate not in HARMLESS and create not in self.released
        ]

    def twins(self, told: Told) -> list[Told]:
        """Return what one call has told about one request: a run may ask for it twice."""
        call = (told.actor, told.began, told.prompt)
        return [one for one in self.told if (one.actor, one.began, one.prompt) == call]

    def may(self, *faults: str) -> bool:
        """Whether any of these faults strikes in the plan."""
        return not self.plan.faults.isdisjoint(faults)


def paid_once(evidence: Evidence) -> None:
    """Look for a request that was sent again although it may have been accepted."""
    by_prompt: dict[str, list[Create]] = defaultdict(list)
    for create in evidence.charges:
        if create not in evidence.resubmitted:
            by_prompt[create.prompt].append(create)
    for prompt, creates in by_prompt.items():
        fates = [one.fate or "acceptance" for one in creates]
        require("paid once", len(creates) == 1, f"{prompt!r} was sent for: {', '.join(fates)}")


def within_budget(evidence: Evidence) -> None:
    """Look for more accepted creates than the budget permits."""
    plan = evidence.plan
    if plan.budget is None or plan.per is not None:
        return
    charged = len(evidence.charges)
    require(
        "within budget",
        charged <= plan.budget,
        f"{charged} creates may be charged, and the budget is {plan.budget}",
    )


def within_days(evidence: Evidence) -> None:
    """Look for a day on which more was spent than its budget permits."""
    plan = evidence.plan
    if plan.budget is None or plan.per is None:
        return
    days = Counter(one.armed_at // DAY for one in evidence.purchases if one.is_spent)
    require(
        "within budget",
        max(days.values(), default=0) <= plan.budget,
        f"spent by day: {days}, and the budget is {plan.budget}",
    )


def ids_told(evidence: Evidence) -> None:
    """Look for an id that a living process has read, and that its user was not told."""
    owners = {actor: each for each in evidence.programs for actor in each.actors}
    for create in evidence.service.creates:
        if create.task is None or create.fate in WORDLESS or not create.is_read():
            continue
        sender = create.sender
        if sender is None or not sender.process.alive:
            continue
        if evidence.interrupted[sender] > 1 and _is_doubted(sender.error, create):
            continue
        who = owners.get(sender)
        everybody = [who] if who else evidence.programs
        require(
            "ids told",
            any(create.task in each.tasks for each in everybody),
            f"{create.task} was read by {sender.name}, and nobody was told",
        )
        for told in evidence.told:
            if told.sent(create) and not isinstance(told.error, Cancelled | KeyboardInterrupt):
                require(
                    "ids told",
                    any(one.task == create.task for one in evidence.twins(told)),
                    f"{told.actor.name} asked for {create.prompt!r}, which became {create.task}, "
                    f"and was told {told.task or repr(told.error)}",
                )


def _is_doubted(error: BaseException | None, create: Create) -> bool:
    """Whether the notes of *error* say that *create* was accepted, or may have been."""
    said = " ".join(getattr(error, "__notes__", ()))
    return "may have been accepted" in said or str(create.task) in said


def ids_true(evidence: Evidence) -> None:
    """Look for an id that is not that of the request."""
    accepted = evidence.service.accepted
    for told in evidence.told:
        if told.task is not None and told.prompt is not None:
            require(
                "ids true",
                told.task in accepted[told.prompt],
                f"{told.prompt!r} became {accepted[told.prompt]}, and {told.task} was told",
            )


def nothing_denied(evidence: Evidence) -> None:
    """Look for a request that was called unsent or refused, and may be charged."""
    for told in evidence.told:
        if told.prompt is None or not all(one.is_denial for one in evidence.twins(told)):
            continue
        for create in evidence.service.creates:
            require(
                "nothing denied",
                not told.sent(create) or create.fate in HARMLESS,
                f"{told.prompt!r} was said to be {type(told.error).__name__}, and met: "
                f"{create.fate or 'acceptance'}",
            )


def doubts_explained(evidence: Evidence) -> None:
    """Look for a doubt, a failure or a refusal without a fault that explains it."""
    slow = evidence.may("stalls", "jumps") or (evidence.is_shared and evidence.may("pauses"))
    uncertain = {one.prompt for one in evidence.service.creates if one.fate in UNCERTAIN}
    harmless = {one.prompt for one in evidence.service.creates if one.fate in HARMLESS}
    broken = bool(evidence.network.broken)
    twice = any(number > 1 for number in evidence.interrupted.values())
    left = evidence.may("kills", "cuts", "disk") or slow or broken or twice
    for told in evidence.told:
        if told.prompt is None or told.task is not None:
            continue
        match told.error:
            case CreateAmbiguous():
                explained = left or told.prompt in uncertain
            case OverBudget():
                explained = evidence.plan.budget is not None
            case NotSent():
                # What takes long to be recorded is not sent any more, where others may give it up.
                explained = (
                    evidence.may("network") or slow or (evidence.is_shared and evidence.may("disk"))
                )
            case StoreUnusable():
                explained = evidence.may("disk") or slow
            case ServiceError():
                explained = told.prompt in harmless
            case _:
                continue
        require(
            "doubts explained",
            explained,
            f"{told.actor.name} was told {told.error!r} of {told.prompt!r} without a cause",
        )
    names = {one.once for one in evidence.purchases if one.state is State.AMBIGUOUS}
    for name in names - {None} - uncertain:
        require("doubts explained", left, f"{name!r} is ambiguous, and nothing explains it")


def polls_paced(evidence: Evidence) -> None:
    """Look for polls of one task that a client has sent faster than the family's pace."""
    keep_pace(evidence.network, evidence.service, evidence.jumps)


def keep_pace(network: Network, service: SimulatedService, jumps: Sequence[float]) -> None:
    """Look for polls of one task that a client has sent faster than the family's pace.

    All waits of a client share the pace, whichever of its tasks and threads they run in. A poll
    counts from when it is handed to the transport, because a slow lookup may delay it after that. A
    task that has ended may be asked for at any time.

    Args:
        network: The network, which knows what was asked.
        service: The service, which knows which tasks have ended.
        jumps: When a clock has jumped, a step has taken long, or a process has stood still.
    """
    ended: dict[str, int] = {}
    for query in service.polls:
        if query.is_last:
            ended.setdefault(query.task, query.step)
    last: dict[tuple[Process, str], Asked] = {}
    for poll in network.asked:
        if not poll.path.startswith(RESULTS):
            continue
        asked = poll.sender.process, poll.path.removeprefix(RESULTS)
        before, last[asked] = last.get(asked), poll
        if before is None or poll.step > ended.get(asked[1], poll.step):
            continue
        if any(before.at <= jump <= poll.at for jump in jumps):
            continue
        require(
            "polls paced",
            poll.at - before.at >= IMGB.pacing.shortest - 1e-3,
            f"{before.sender.name} polled {asked[1]} at {before.at:g}, and {poll.sender.name} at "
            f"{poll.at:g}",
        )


def cancellations_heard(evidence: Evidence) -> None:
    """Look for a task that goes on to send after it was cancelled."""
    for actor, step in evidence.network.opened:
        cancelled = evidence.cancelled.get(actor)
        require(
            "cancellations heard",
            cancelled is None or step <= cancelled,
            f"{actor.name} was cancelled in step {cancelled}, and opened a connection in {step}",
        )
    for told in evidence.told:
        cancelled = evidence.cancelled.get(told.actor)
        if cancelled is not None and told.began > cancelled:
            require(
                "cancellations heard",
                isinstance(told.error, Cancelled),
                f"{told.actor.name} was cancelled, and then made a call",
            )


def errors_known(evidence: Evidence) -> None:
    """Look for an error that no documentation names."""
    for each in evidence.programs:
        for actor in each.actors:
            is_known = isinstance(actor.error, Cancelled | KeyboardInterrupt)
            if actor.error is not None and not is_known:
                raise Verdict("errors known", f"{actor.name}: {actor.error!r}") from actor.error


def store_complete(evidence: Evidence) -> None:
    """Look for a create that may be charged, and that the store does not count."""
    spent = [one for one in evidence.purchases if one.is_spent]
    charges = evidence.charges
    require(
        "store complete",
        len(spent) >= len(charges),
        f"{len(charges)} creates may be charged, and the store counts {len(spent)}",
    )
    named = {one.once: one for one in spent if one.holds_name}
    tasks = {one.task for one in evidence.purchases}
    once = {told.prompt for told in evidence.told if told.prompt and told.prompt in named}
    for create in charges:
        if create in evidence.resubmitted:
            continue
        bought = named.get(create.prompt)
        if create.prompt.startswith("horse"):
            require("store complete", bought, f"{create.prompt!r} is not in the store")
        if bought is not None and create.prompt in once:
            require(
                "store complete",
                bought.state is not State.ARMED,
                f"{create.prompt!r} was sent, and its purchase is {bought.state}",
            )
            require(
                "store complete",
                bought.task in (None, create.task),
                f"{create.prompt!r} became {create.task}, and its purchase has {bought.task}",
            )
    for told in evidence.told:
        if told.task is not None and told.prompt is not None and told.program.process.alive:
            require(
                "store complete",
                told.task in tasks,
                f"{told.actor.name} was told {told.task}, and the store does not know it",
            )


def nothing_open(evidence: Evidence) -> None:
    """Look for a purchase that is still armed when everything has ended."""
    for one in evidence.purchases:
        require("nothing open", one.state is not State.ARMED, f"{one} is still armed")


def key_hidden(evidence: Evidence) -> None:
    """Look for the key in what people read, and in files."""
    require("key hidden", not evidence.sinks.has_key, "the key is in an event, log or error")
    require(
        "key hidden", KEY.encode() not in evidence.service.heard, "the key is in a target or body"
    )
    for path in evidence.root.rglob("*"):
        if path.is_file():
            require("key hidden", KEY.encode() not in path.read_bytes(), f"the key is in {path}")


def results_whole(evidence: Evidence) -> None:
    """Look for a saved result that is lost, or not what the service has."""
    for path in evidence.saved:
        require("results whole", path.exists(), f"{path.name} was saved, and is lost")
    for path in evidence.root.glob("results*/*.png"):
        require(
            "results whole",
            path.read_bytes() == PNG + path.stem.encode(),
            f"{path.name} is not what the service has",
        )


Judge = Callable[[Evidence], None]

ALWAYS: Final[Sequence[Judge]] = (paid_once, within_budget)
"""Those that look whenever the service has been asked to create something."""
AT_THE_END: Final[Sequence[Judge]] = (
    errors_known,
    paid_once,
    within_budget,
    ids_told,
    ids_true,
    nothing_denied,
    cancellations_heard,
    polls_paced,
    key_hidden,
    results_whole,
    store_complete,
    nothing_open,
    within_days,
    doubts_explained,
)
"""Those that look once everything has ended."""
