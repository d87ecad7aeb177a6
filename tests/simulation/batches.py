"""Worlds in which processes run one batch in one folder, at the same time and one after another.

A batch is a file of requests, and a store that says how far each of them is. Whoever runs it goes
on where the last one stopped, and several may run it at once. So a world has operators. Each starts
a run in a process of its own, waits until that has ended or was killed, decides perhaps about what
is ambiguous, and starts the next one. After some runs of each the faults stop, and one more run has
to settle everything that no person has to decide about.

In some worlds the batch is on a server, and the operators are workers on machines of their own. No
machine sees another one's processes. A worker that is killed, or paused for longer than its lease,
is declared dead, and the others take over.

The judges know three things: what the service has accepted, what the processes had read when they
were killed, and what the users were told. They compare these with the store and the files that
are left. The steps of items are only counted: every one of them is to be seen in a campaign.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from muybridge import Budget, Client, ImgbRequest, batch
from muybridge.batch import (
    BatchEvent,
    CannotDecide,
    Entry,
    PlaceUnusable,
    SharedBatch,
    Stage,
    StoreUnusable,
    What,
)
from muybridge.purchases import Store
from muybridge_protocol.emulator import MediaState

from .clients import Program, program
from .judges import keep_pace, require
from .machine import Machine
from .network import Network
from .plan import Plan
from .server import ModelDatabase, Server
from .service import HARMLESS, HOST, KEY, PNG, UNCERTAIN, WORDLESS, Create, SimulatedService
from .user_threads import AwaitableClient
from .world import Actor, Cancelled, Process, World

CALM_RUNS: Final = 2
"""Runs that settle everything once faults have stopped: the second one takes up what is late."""
CALM_SECONDS: Final = 600.0
"""The longest that such a run takes."""
_KEEPING: Final = frozenset({"disk", "jumps", "pauses", "stalls"})
"""The faults that keep a process from writing what it wants to, or for too long."""
_FAILS: Final = "[fail:content-policy]"
_OPEN: Final = frozenset({Stage.CLAIMED, Stage.ARMED, Stage.SUBMITTED, Stage.COMPLETED})
"""The states that a run does not leave an item in, unless something keeps it from its work."""


def live(plan: Plan, world: World, machine: Machine, root: Path) -> None:
    """Live a world, and judge it."""
    _Batch(plan, world, machine, root).live()


def live_on_server(plan: Plan, world: World, machine: Machine, root: Path) -> None:
    """Live a world whose batch is on a server, where workers share it, and judge it."""
    server = Server(world, root / "server.sqlite3", lambda: machine.faults)
    _Batch(plan, world, machine, root, server).live()


@attrs.frozen
class _Settings:
    """What all runs of a batch have in common.

    Args:
        requests: The requests. Some are the same.
        dedupe: Whether those share a task.
        sidecar: Whether each result has a file beside it that says where it comes from.
        limit: How many items a run sends, or None.
        budget: What may be spent, or None.
    """

    requests: list[ImgbRequest]
    dedupe: bool
    sidecar: bool
    limit: int | None
    budget: Budget | None

    @classmethod
    def drawn(cls, plan: Plan, chances: random.Random) -> _Settings:
        """Return the settings of a plan."""
        dedupe = chances.random() < 0.3
        names = [f"horse {n + 1}" for n in range(plan.names)]
        prompts = [f"{name} {_FAILS}" if chances.random() < 0.1 else name for name in names]
        if dedupe:
            prompts += chances.choices(prompts, k=chances.randrange(3))
        return cls(
            requests=[ImgbRequest(model="imgb-2", prompt=prompt) for prompt in prompts],
            dedupe=dedupe,
            sidecar=chances.random() < 0.3,
            limit=chances.choice((None, None, 1, 2)),
            budget=None if plan.budget is None else Budget(creates=plan.budget, per=plan.per),
        )


@attrs.define(eq=False)
class _Received:
    """A create whose response a process has read whole.

    Args:
        create: The create.
        reader: Who has read it.
        step: The reader's step in which it took the last byte.
    """

    create: Create
    reader: Actor
    step: int

    @property
    def had_time(self) -> bool:
        """Whether the reader has gone on since, so that the id must not be lost any more."""
        return self.reader.done or self.reader.steps > self.step


class _Batch:
    """A batch, those who run it, and what the judges know."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        machine: Machine,
        root: Path,
        server: Server | None = None,
    ) -> None:
        self._plan = plan
        self._world = world
        self._machine = machine
        self._server = server
        self._root = root
        self._folder = root / "out"
        self._store = root / "store.sqlite3"
        self._settings = _Settings.drawn(plan, world.random)
        if server is not None:
            own = self._settings.requests[: plan.names]  # none twice
            self._settings = attrs.evolve(self._settings, requests=own, dedupe=False, sidecar=False)
        self._network = Network(world, plan.network)
        self._service = SimulatedService(world, plan.service)
        self._network.hosts[HOST] = (Process("service"), self._service.accept)
        self._runs: list[Program] = []
        """All of them: nothing of a dead process may be collected before the world ends."""
        self._mains: list[Actor] = []
        """The main tasks of all processes that may die."""
        self._received: list[_Received] = []
        self._kept: list[Create] = []
        """Creates whose ids must be known from now on."""
        self._resent: Counter[str] = Counter()
        """How often a person has had a request sent again that may have been accepted."""
        self._told: dict[tuple[int, What], str | None] = {}
        """What users were told about an item, and of which task."""
        self._chaotic = plan.programs
        """How many operators still have runs in which things go wrong."""
        self._interrupted: list[Actor | None] = []
        """The main threads where Ctrl-C was pressed."""
        self._excuses: set[str] = set()
        """What besides the service may leave an outcome ambiguous."""
        self._jumps: list[float] = []
        """When a clock has jumped, a step has taken long, or a process has gone on."""

    def live(self) -> None:
        """Let the operators work until everything is settled, and judge it."""
        operators = [
            self._world.start(Process(f"operator {n}"), partial(self._operate, n), f"operator {n}")
            for n in range(1, self._plan.programs + 1)
        ]
        self._world.disturb = self._disturb
        self._world.run(*operators)
        self._world.disturb = lambda: None
        for each in operators:
            if each.error is not None:
                raise each.error
        self._settle()

    def _operate(self, number: int) -> None:
        """Run the batch again and again, as long as things go wrong."""
        world = self._world
        for run in range(1, self._plan.calls + 1):
            self._run(f"run {number}.{run}", number)
            if world.chance(0.4):
                person = f"person {number}.{run}"
                process = Process(person)
                self._await(world.start(process, partial(self._decide, process), person))
            world.stall(world.now + world.random.choice((0.0, 0.0, 5.0, 100.0)))
        self._chaotic -= 1

    def _has_kept(self) -> bool:
        """Whether a response is left in a file whose process has ended."""
        return any(path.read_bytes()[:1] == b"{" for path in self._root.rglob("response-*"))

    def _settle(self) -> None:
        """Run the batch without faults: nothing is left open then."""
        world = self._world
        world.tell("all is well from here on")
        self._network.faults = self._service.faults = self._machine.faults = 0.0
        if self._server is not None:
            self._server.recover()
        left: list[Entry] = []
        # Each machine has the responses that only it has heard.
        for run in range(1, CALM_RUNS * self._machines + 1):
            began = world.now
            number = (run - 1) % self._machines + 1
            operator = world.start(
                Process("operator"),
                partial(self._run, f"calm run {run}", number, calm=True),
                "operator",
            )
            world.run(operator)
            if operator.error is not None:
                raise operator.error
            require("settling", world.now - began <= CALM_SECONDS, f"run {run} takes too long")
            if (error := self._mains[-1].error) is not None:
                raise error
            left = [
                entry
                for entry in self._entries()
                if entry.state in _OPEN and not self._has_expired(entry)
            ]
            if not left and run >= self._machines:
                break
        require("settling", not left, f"left open: {left}")
        self._judge_end()

    def _has_expired(self, entry: Entry) -> bool:
        """Whether the service has not kept its result for so long: nobody can save it any more."""
        kept = self._service.emulator.media(str(entry.task_id), self._service.wall)
        return entry.state is Stage.COMPLETED and kept is MediaState.EXPIRED

    @property
    def _machines(self) -> int:
        """How many machines there are: where a batch is in a folder, that is one."""
        return 1 if self._server is None else self._plan.programs

    def _run(self, name: str, number: int, *, calm: bool = False) -> None:
        """Run the batch in a new process on a machine, until it has ended or is killed."""
        world, settings = self._world, self._settings
        process = Process(name)
        store = self._store_path if self._server is None else self._store_of(process)
        who = program(world, self._network, process, store=store, budget=settings.budget)
        self._runs.append(who)
        if not any(main.process.alive for main in self._mains) and self._has_kept():
            world.count("a response is found in a file")
        work = partial(self._work, who, calm=calm)
        if isinstance(store, Store):
            work = partial(self._work_on_server, who, store, self._root / f"machine {number}")
        main = who.runtime.start(work, name)
        if main.loop is None:
            self._machine.threads.sit_at_terminal(main)
        self._await(main)

    def _await(self, main: Actor) -> None:
        """Wait until a process has ended or is killed."""
        self._mains.append(main)
        self._world.stall(ready=lambda: main.done or not main.process.alive)
        if main.process.alive:
            self._note_death(main.process)
            self._world.end(main.process)
            self._note_end(main)

    @property
    def _store_path(self) -> Path | None:
        has_store = self._settings.dedupe or self._settings.budget is not None
        return self._store if has_store else None

    def _store_of(self, process: Process | None) -> Store:
        """Return the store on the server, as a process uses it, or whoever judges the world."""
        assert self._server is not None
        return Store(ModelDatabase(self._server, process))

    def _place(self, process: Process | None = None) -> Path | SharedBatch:
        """Return what to call the batch, in a process or for whoever judges the world."""
        return self._folder if self._server is None else _shared(self._store_of(process))

    async def _work_on_server(self, who: Program, store: Store, machine: Path) -> None:
        """Submit the batch, unless somebody has done so, and work on it."""
        draw, shared = self._world.random, _shared(store)
        given: dict[str, Any] = {
            "creates": draw.choice((1, 2, 4)),
            "concurrency": draw.choice((1, 2, 4)),
            "on_event": self._hear,
            "spool": machine,
        }
        client: Any = who.client  # typed for those that programs make
        if isinstance(client, AwaitableClient):
            client = client.client
        batch.submit(shared, self._settings.requests, client.service)
        if isinstance(client, Client):
            report = batch.work(client, shared, self._folder, **given)
        else:
            report = await batch.work_async(client, shared, self._folder, **given)
        self._world.tell(f"reports {dict(report.counts)} {report.stopped}")

    async def _work(self, who: Program, *, calm: bool) -> None:
        settings, draw = self._settings, self._world.random
        resumes = bool(self._told) and draw.random() < 0.2
        source = None if resumes else settings.requests
        given: dict[str, Any] = {
            "concurrency": draw.choice((1, 2, 4)),
            "on_event": self._hear,
            "limit": None if calm else settings.limit,
            "sidecar": settings.sidecar,
            "dedupe": settings.dedupe,
        }
        if isinstance(who.client, AwaitableClient):
            report = batch.run(who.client.client, source, self._folder, **given)
        else:
            client: Any = who.client  # typed for those that programs make
            report = await batch.run_async(client, source, self._folder, **given)
        self._world.tell(f"reports {dict(report.counts)} {report.stopped}")

    def _hear(self, event: BatchEvent) -> None:
        self._world.tell(f"{event.what} {event.item} {event.task or ''} {event.detail}")
        self._told[event.item, event.what] = event.task

    def _note_end(self, main: Actor) -> None:
        """Accept an error that something explains, and raise any other."""
        world, error = self._world, main.error
        world.tell(f"{main.name} ends: {error!r}")
        match error:
            case None:
                world.count("run: ended")
            case Cancelled():
                world.count("run: cancelled")
            case KeyboardInterrupt() if self._plan.interrupts:
                world.count("run: interrupted")
            case StoreUnusable() | PlaceUnusable() if self._plan.faults & _KEEPING:
                world.count(f"run: {type(error).__name__}")
            case OSError() if self._server is not None and self._plan.disk:
                world.count("run: no room for a folder")
            case _:
                raise error

    def _decide(self, process: Process) -> None:
        """Decide about items as a person who has looked at the account, or has not."""
        place = self._place(process)
        try:
            entries = self._entries(place)
        except StoreUnusable:
            return
        for entry in entries:
            if entry.state in _DECIDABLE:
                self._decide_about(entry, place)

    def _decide_about(self, entry: Entry, place: Path | SharedBatch) -> None:
        world, number, prompt = self._world, entry.number, _prompt(entry)
        theirs = self._accepted(prompt)
        choice = world.random.choice(("adopt", "abandon", "resubmit", "wait"))
        if entry.state is Stage.QUEUED and (choice != "abandon" or world.chance(0.8)):
            return
        world.tell(f"decides to {choice} item {number}, which is {entry.state}")
        try:
            match choice:
                case "adopt" if theirs:
                    batch.adopt(place, number, world.random.choice(theirs))
                    if world.chance(0.3):
                        batch.abandon(place, number)  # after all
                case "abandon":
                    batch.abandon(place, number)
                case "resubmit" if entry.state is Stage.REFUSED:
                    batch.retry(place, number)
                case "resubmit":
                    self._resent[prompt] += 1
                    batch.resubmit(place, number, i_may_pay_twice=True)
                case _:
                    return
        except CannotDecide as error:
            world.tell(f"cannot: {error}")
            self._resent[prompt] -= choice == "resubmit" and entry.state is not Stage.REFUSED
        except StoreUnusable as error:
            world.tell(f"perhaps not: {error}")
        else:
            world.count(f"decision: {choice}")

    def _entries(self, place: Path | SharedBatch | None = None) -> list[Entry]:
        place = self._place() if place is None else place
        if isinstance(place, SharedBatch):
            return list(batch.shared_status(place).entries)
        return list(batch.status(place).entries)

    def _accepted(self, prompt: str) -> list[str]:
        return [
            create.task
            for create in self._service.creates
            if create.task is not None and create.prompt == prompt
        ]

    def _disturb(self) -> None:
        self._judge_always()
        if not self._chaotic:
            return
        world, plan = self._world, self._plan
        living = [main for main in self._mains if main.process.alive and not main.done]
        if world.chance(plan.cuts):
            self._cut_power()
        elif living and world.chance(plan.kills):
            self._kill(world.random.choice(living).process)
        elif living and world.chance(plan.cancellations):
            self._cancel(world.random.choice(living))
        elif world.chance(plan.interrupts * (20 if self._interrupted else 3)):
            self._press_ctrl_c()
        elif living and world.chance(plan.pauses):
            process = world.random.choice(living).process
            seconds = world.random.choice((1.0, 40.0, 3600.0))
            world.suspend(process, seconds)
            self._jumps.append(world.now + seconds)
        if world.chance(plan.jumps):
            self._time(self._machine.jump)
        if world.chance(plan.stalls):
            self._time(self._machine.be_busy)

    def _time(self, delay: Callable[[], None]) -> None:
        """Delay the machine, and note when."""
        self._jumps.append(self._world.now)
        delay()
        self._jumps.append(self._world.now)

    def _cancel(self, main: Actor) -> None:
        """Cancel a run, as Ctrl-C does under an event loop."""
        if main.loop is not None:
            self._world.count("cancellation")
            self._world.tell(f"{main.name} is cancelled")
            main.cancel()

    def _press_ctrl_c(self) -> None:
        """Interrupt the run at the terminal. A second time may leave creates in doubt."""
        main = self._machine.threads.main
        if self._machine.threads.press_ctrl_c():
            if main in self._interrupted:
                self._excuses.add("a second Ctrl-C")
            self._interrupted.append(main)

    def _kill(self, process: Process) -> None:
        self._excuses.add("kill")
        self._note_death(process)
        self._world.kill(process)

    def _note_death(self, process: Process) -> None:
        """Note which ids a process knew when it died."""
        for received in self._received:
            if received.reader.process is process and received.had_time:
                self._kept.append(received.create)
        self._received = [one for one in self._received if one.reader.process is not process]

    def _cut_power(self) -> None:
        """Let all processes die, and their disk lose what is not synced."""
        self._world.tell("the power is cut")
        self._world.count("power cut")
        self._excuses.add("cut")
        for main in self._mains:
            if main.process.alive:
                self._world.end(main.process)
        self._machine.disk.cut()
        # What was written and not synced is not promised, unless somebody was told.
        self._received, self._kept = [], []

    def _judge_always(self) -> None:
        """Judge what must hold at every moment."""
        seen = {id(one.create) for one in self._received} | {id(one) for one in self._kept}
        for create in self._service.creates:
            reader = create.sender
            if create.task is None or id(create) in seen or reader is None:
                continue
            if create.fate not in WORDLESS and create.is_read() and reader.process.alive:
                self._received.append(_Received(create, reader, reader.steps))
        doubtful = Counter(
            create.prompt for create in self._service.creates if create.fate not in HARMLESS
        )
        for prompt, count in doubtful.items():
            permitted = 1 + self._resent[prompt]
            if not self._settings.dedupe:
                permitted *= sum(one.prompt == prompt for one in self._settings.requests)
            require(
                "once",
                count <= permitted,
                f"{prompt} was sent again, after it may have been accepted",
            )
        budget = self._plan.budget
        accepted = sum(create.task is not None for create in self._service.creates)
        require(
            "budget",
            budget is None or self._plan.per or accepted <= budget,
            f"{accepted} accepted of {budget}",
        )

    def _judge_end(self) -> None:
        keep_pace(self._network, self._service, self._jumps)
        entries = self._entries()
        self._kept += [one.create for one in self._received]
        known = {entry.task_id or entry.possible_id for entry in entries}
        for create in self._kept:
            excused = self._resent[create.prompt]
            require(
                "ids",
                excused or create.task in known,
                f"the id {create.task} was read, and is lost",
            )
        for entry in entries:
            self._judge_entry(entry)
        for path in self._folder.parent.rglob("*"):
            hides = path.is_dir() or KEY.encode() not in path.read_bytes()
            require("key hidden", hides, f"the key is in {path}")
        for (item, what), task in self._told.items():
            self._judge_told(entries[item - 1], what, task)

    def _judge_entry(self, entry: Entry) -> None:
        prompt = _prompt(entry)
        accepted = self._accepted(prompt)
        label, state = f"item {entry.number} ({prompt})", entry.state
        self._world.count(f"item: {state}")
        if state in (Stage.DOWNLOADED, Stage.FAILED):
            require(
                "truth",
                entry.task_id in accepted,
                f"{label} has task {entry.task_id}, and accepted were {accepted}",
            )
        if state is Stage.DOWNLOADED:
            require("results", entry.path, f"{label} has no file")
            path = self._folder / str(entry.path)
            content = path.read_bytes() if path.exists() else None
            require(
                "results",
                content == PNG + str(entry.task_id).encode(),
                f"{label} has the file {content!r}",
            )
            require(
                "results",
                not self._settings.sidecar or self._has_sidecar(path, entry),
                f"{label} has no sidecar",
            )
        if state in (Stage.QUEUED, Stage.REFUSED) and not self._settings.dedupe:
            require(
                "truth",
                len(accepted) <= self._resent[prompt],
                f"{label} is {state}, and accepted were {accepted}",
            )
        if state is Stage.AMBIGUOUS:
            fates = {one.fate for one in self._service.creates if one.prompt == prompt}
            excused = bool(
                self._excuses
                or self._network.broken
                or self._plan.faults & _KEEPING
                or fates & UNCERTAIN
            )
            require(
                "explanations",
                excused,
                f"{label} is ambiguous, and nothing went wrong: {entry.reason}",
            )

    def _has_sidecar(self, path: Path, entry: Entry) -> bool:
        sidecar = path.with_name(f"{path.name}.json")
        return sidecar.exists() and json.loads(sidecar.read_text())["task"] == entry.task_id

    def _judge_told(self, entry: Entry, what: What, task: str | None) -> None:
        if what is What.SUBMITTED and not self._resent[_prompt(entry)]:
            require(
                "promises",
                entry.task_id == task,
                f"users heard of {task}, and the batch has {entry.task_id}",
            )
        if what is What.DOWNLOADED:
            require(
                "promises",
                entry.state is Stage.DOWNLOADED,
                f"a result was saved, and is {entry.state}",
            )


_DECIDABLE: Final = frozenset({Stage.AMBIGUOUS, Stage.REFUSED, Stage.QUEUED, Stage.SUBMITTED})


def _shared(store: Store) -> SharedBatch:
    return SharedBatch(store, "horses")


def _prompt(entry: Entry) -> str:
    return str(json.loads(entry.body)["prompt"])
