"""Worlds in which several processes pay once under a name, within a budget, from one store.

Programs start one after another, and again after a kill. Their tasks create: once under a name that
all of them share, once for identical requests, or plainly, alone or many in one run. Some wait for
the result and save it. Meanwhile whatever the plan has in store happens: the network and the
service fail, statements fail, processes are killed, tasks are cancelled, Ctrl-C is pressed, clocks
jump and the machine is busy.

Then the faults stop. What was under way has to end in time, a new program has to find everything
in order, and a person decides truthfully about what is ambiguous.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from muybridge import (
    Budget,
    CreateAmbiguous,
    ImgbRequest,
    MuybridgeError,
    OverBudget,
    Result,
    ServiceError,
    Task,
)
from muybridge.purchases import Choice, Purchase, State, Store, open_store

from .clients import Program, Sinks, program
from .judges import ALWAYS, AT_THE_END, SETTLED, Evidence, Told, require
from .machine import Machine
from .network import Network
from .plan import Plan
from .server import ModelDatabase, Server
from .service import HOST, SimulatedService
from .world import Actor, Cancelled, Process, World

_MOST_PROGRAMS: Final = 6
_LATER: Final = 300.0
"""Seconds after which a person looks at the account."""


def live(plan: Plan, world: World, machine: Machine, root: Path) -> None:
    """Live a world, and judge it."""
    _History(plan, world, machine, root).live()


def live_on_server(plan: Plan, world: World, machine: Machine, root: Path) -> None:
    """Live a world whose store is on a server, and judge it."""
    server = Server(world, root / "server.sqlite3", lambda: machine.faults)
    _History(plan, world, machine, root, server).live()


class _History:
    """One world, from the first program to the verdict."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        machine: Machine,
        root: Path,
        server: Server | None = None,
    ) -> None:
        self.plan = plan
        self.world = world
        self.machine = machine
        self.root = root
        self.server = server
        self.place = root / "store.sqlite3"
        self.network = Network(world, plan.network)
        self.service = SimulatedService(world, plan.service)
        self.network.hosts[HOST] = (Process("service"), self.service.accept)
        self.evidence = Evidence(
            plan=plan,
            world=world,
            network=self.network,
            service=self.service,
            sinks=Sinks(),
            root=root,
            is_shared=server is not None,
        )
        self.budget = None if plan.budget is None else Budget(creates=plan.budget, per=plan.per)
        self.is_calm = False
        self.calm_from = world.random.choice((50.0, 300.0, 2000.0))
        self.awaited: list[Actor] = []
        self.judged = 0

    def live(self) -> None:
        """Live it, and judge it."""
        world = self.world
        for _ in range(self.plan.programs):
            self.begin()
        world.disturb = self.disturb
        self.wait()
        self.calm()
        world.disturb = self.judge_always
        require(
            "settled in time",
            world.now <= self.calm_from + SETTLED,
            f"the faults stopped at {self.calm_from:g}, and it took until {world.now:g}",
        )
        self.look_after()
        self.evidence.purchases = self.purchases()
        for judge in AT_THE_END:
            judge(self.evidence)
        self.decide()

    def begin(self) -> None:
        """Start a program."""
        programs = self.evidence.programs
        each = self.program(f"program {len(programs) + 1}", dedupe=self.world.chance(0.3))
        self.world.tell(f"{each.process.name} starts")
        for number in range(self.plan.tasks):
            name = f"{each.process.name}, task {number + 1}"
            each.actors.append(each.runtime.start(partial(self.work, each, name), name))
        if each.actors[0].loop is None:
            self.machine.threads.sit_at_terminal(each.actors[0])
        self.awaited += each.actors

    def program(self, name: str, *, dedupe: bool = False) -> Program:
        """Return a new program without tasks."""
        process = Process(name)
        made = program(
            self.world,
            self.network,
            process,
            store=self.place if self.server is None else self.store(process),
            budget=self.budget,
            dedupe=dedupe,
            sinks=self.evidence.sinks,
        )
        self.evidence.programs.append(made)
        return made

    def wait(self) -> None:
        """Let the world go on until every task has ended, those of restarted programs, too."""
        while pending := [one for one in self.awaited if not one.done and one.process.alive]:
            self.world.run(*pending)

    # What the programs do.

    async def work(self, who: Program, name: str) -> None:
        """Make the calls of one task."""
        world = self.world
        await who.runtime.sleep_until(world.now + world.random.choice((0.0, 0.0, 1.0, 30.0)))
        for number in range(self.plan.calls):
            await world.random.choice((self.once, self.once, self.alone, self.run, self.many))(
                who, f"{name}, call {number + 1}"
            )

    async def once(self, who: Program, _: str) -> None:
        """Create once under a name."""
        task = await self.ask(who, self.name("horse"))
        if task is not None and self.world.chance(0.3):
            await self.save(who, task)

    async def ask(self, who: Program, name: str) -> Task | Result | None:
        """Create once under a given name."""
        return await self.told(who, name, who.client.create_once(name, _request(name)))

    async def alone(self, who: Program, call: str) -> None:
        """Create alone, or together with those who ask for the same."""
        prompt = self.name("pair") if who.dedupe else call
        await self.told(who, prompt, who.client.create(_request(prompt)))

    async def run(self, who: Program, call: str) -> None:
        """Create and wait."""
        result = await self.told(who, call, who.client.run(_request(call), timeout=600))
        if result is not None and self.world.chance(0.5):
            await self.save(who, result)

    async def many(self, who: Program, call: str) -> None:
        """Create several and wait for all of them."""
        world, dedupe = self.world, self.world.chance(0.3)
        prompts = [
            self.name("pair") if dedupe else f"{call}, {number + 1}"
            for number in range(world.random.choice((1, 2, 3)))
        ]
        began, left = world.steps, dict(enumerate(prompts))
        world.tell(f"asks for {', '.join(prompts)}")
        outcomes = who.client.run_all(
            [_request(prompt) for prompt in prompts],
            concurrency=world.random.choice((1, 2, 5)),
            timeout=600,
            dedupe=dedupe,
        )
        try:
            async with outcomes:
                async for outcome in outcomes:
                    task = outcome.task.id if outcome.task is not None else None
                    self.note(who, left.pop(outcome.key), began, task, outcome.error)
        except MuybridgeError as error:  # about one of them, and it does not say which
            self.note(who, None, began, None, error)
        except BaseException as error:
            for prompt in left.values():
                self.note(who, prompt, began, None, error)
            raise

    async def save(self, who: Program, what: Task | Result) -> None:
        """Wait for a task, and save its result."""
        folder = self.root / f"results of {who.process.name}"
        result = await self.told(who, None, who.client.wait(what, timeout=600))
        if result is None:
            return
        began = self.world.steps
        try:
            saved = await who.client.download(result, folder / f"{result.id}.png")
        except MuybridgeError as error:
            self.note(who, None, began, None, error)
        except BaseException as error:
            self.note(who, None, began, None, error)
            raise
        else:
            self.world.count("a result is saved")
            self.evidence.saved.add(saved)

    async def told(
        self, who: Program, prompt: str | None, call: Awaitable[Task | Result]
    ) -> Task | Result | None:
        """Make a call, and note what it tells."""
        began = self.world.steps
        self.world.tell(f"asks for {prompt}" if prompt is not None else "waits for a result")
        try:
            got = await call
        except MuybridgeError as error:
            self.note(who, prompt, began, None, error)
            return None
        except BaseException as error:
            self.note(who, prompt, began, None, error)
            raise
        self.note(who, prompt, began, got.id, None)
        return got

    def note(
        self,
        who: Program,
        prompt: str | None,
        began: int,
        task: str | None,
        error: BaseException | None,
    ) -> None:
        """Note what a call has told."""
        actor = self.world.current
        if actor is None or self.world.over:
            return
        if isinstance(error, ServiceError) and error.task is not None:
            task = error.task.id
        said = task or type(error).__name__
        kind = "create" if prompt is not None else "wait"
        self.world.count(f"{kind} told: {'a task' if task else said}")
        self.world.tell(f"is told, of {prompt or 'a result'}: {said}")
        if error is not None and not isinstance(error, Cancelled):
            self.evidence.sinks.error(error)
        self.evidence.told.append(
            Told(
                program=who,
                actor=actor,
                prompt=prompt,
                began=began,
                ended=self.world.steps,
                task=task,
                error=error,
            )
        )

    def name(self, kind: str) -> str:
        """Return one of the names that all programs share."""
        return f"{kind} {self.world.random.randrange(self.plan.names) + 1}"

    # What happens to them.

    def disturb(self) -> None:
        """Let happen what the plan has in store, once a step."""
        world, plan = self.world, self.plan
        self.judge_always()
        if self.is_calm:
            return
        if world.now >= self.calm_from:
            self.calm()
            return
        if world.chance(plan.cuts):
            self.cut_power()
        if world.chance(plan.kills):
            self.kill()
        if world.chance(plan.cancellations):
            world.count("cancellation")
            self.cancel(world.random.choice(self.awaited))
        if world.chance(plan.interrupts):
            self.interrupt()
        if world.chance(plan.jumps):
            self.time(self.machine.jump)
        if world.chance(plan.stalls):
            self.time(self.machine.be_busy)
        if self.server is not None and world.chance(plan.pauses):
            self.suspend()

    def suspend(self) -> None:
        """Let a process stand still, perhaps for so long that others take it for dead."""
        world = self.world
        seconds = world.random.choice((1.0, 7.0, 90.0, 400.0))
        world.suspend(world.random.choice(self.evidence.programs).process, seconds)
        self.evidence.jumps += (world.now, world.now + seconds)

    def time(self, delay: Callable[[], None]) -> None:
        """Delay the machine, and note when."""
        self.evidence.jumps.append(self.world.now)
        delay()
        self.evidence.jumps.append(self.world.now)

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        if not self.is_calm:
            self.is_calm = True
            self.calm_from = self.world.now
            self.world.tell("the faults stop")
            self.network.faults = self.service.faults = self.machine.faults = 0.0
            if self.server is not None:
                self.server.recover()
            for each in self.evidence.programs:
                each.process.resumes = self.world.now

    def kill(self) -> None:
        """Kill a program, and perhaps start another one later."""
        world = self.world
        living = [each for each in self.evidence.programs if each.process.alive]
        if not living:
            return
        world.kill(world.random.choice(living).process)
        self.perhaps_restart()

    def cut_power(self) -> None:
        """Let all programs die, and the disk lose what is not synced."""
        world = self.world
        world.count("power cut")
        world.tell("the power is cut")
        for each in self.evidence.programs:
            if each.process.alive:
                world.end(each.process)
        self.machine.disk.cut()
        self.perhaps_restart()

    def perhaps_restart(self) -> None:
        """Start another program later, or not."""
        world = self.world
        if len(self.evidence.programs) < _MOST_PROGRAMS and world.chance(0.7):
            world.count("a program is started again")
            later = world.now + world.random.choice((0.0, 1.0, 20.0))
            machine = Process("the machine")

            def restart() -> None:
                world.stall(later)
                self.begin()

            self.awaited.append(world.start(machine, restart, machine.name))

    def cancel(self, actor: Actor) -> None:
        """Cancel a task."""
        if actor.loop is None or actor.done or not actor.process.alive:
            return
        self.world.tell(f"{actor.name} is cancelled")
        self.evidence.cancelled.setdefault(actor, self.world.steps)
        actor.cancel()

    def interrupt(self) -> None:
        """Press Ctrl-C: it interrupts the main thread, or cancels the main task and all others."""
        main = self.machine.threads.main
        if main is not None and self.world.chance(0.7) and self.machine.threads.press_ctrl_c():
            self.evidence.interrupted[main] += 1
            return
        who = self.world.random.choice(self.evidence.programs)
        if who.process.alive and not who.has_ended:
            self.world.count("Ctrl-C")
            for actor in who.actors:
                self.cancel(actor)

    def judge_always(self) -> None:
        """Have the judges look whenever the service has heard of another create."""
        creates = len(self.service.creates)
        if creates > self.judged:
            self.judged = creates
            for judge in ALWAYS:
                judge(self.evidence)

    # What is found when nothing goes wrong any more.

    def look_after(self) -> None:
        """Let each living program use its store, and a new one look at every name."""
        living = [each for each in self.evidence.programs if each.process.alive]
        for each in living:
            self.do(each, partial(self.once, each, ""))
        auditor = self.program("auditor")
        began = len(self.evidence.told)
        for number in range(self.plan.names):
            self.do(auditor, partial(self.ask, auditor, f"horse {number + 1}"))
        for told in self.evidence.told[began:]:
            require(
                "settled in time",
                told.task is not None or _is_settled(told.error),
                f"{told.prompt!r} is still {told.error!r}",
            )
        tasks = sorted({task for each in self.evidence.programs for task in each.tasks})
        for task in tasks[:2]:
            self.do(auditor, partial(self.fetch, auditor, task))
        # What a killed process or an interrupted run has sent may still arrive.
        self.do(auditor, partial(auditor.runtime.sleep_until, self.world.now + _LATER))

    async def fetch(self, who: Program, task: str) -> None:
        """Wait for a task and save its result, which cannot fail now."""
        folder = self.root / f"results of {who.process.name}"
        await who.client.download(await who.client.wait(task), folder / f"{task}.png")

    def do(self, who: Program, work: Callable[[], Awaitable[object]]) -> None:
        """Let a program do something to its end."""

        async def whole() -> None:
            await work()

        actor = who.runtime.start(whole, f"{who.process.name}, afterwards")
        who.actors.append(actor)
        self.world.run(actor)

    def purchases(self) -> list[Purchase]:
        """Return what is in the store."""
        store = self.store()
        store.sweep()
        return [*store.purchases()]

    def store(self, process: Process | None = None) -> Store:
        """Return the store as a process uses it, or as whoever judges the world does."""
        if self.server is None:
            return open_store(self.place)
        return Store(ModelDatabase(self.server, process))

    def decide(self) -> None:
        """Let a person decide about what is ambiguous, and look whether the decision holds."""
        store, evidence = self.store(), self.evidence
        if self.server is not None:  # until both clocks say so, a request may be under way
            self.world.skew += max(0.0, self.server.now - self.world.wall)
        person = self.program("person")
        for bought in evidence.purchases:
            self.world.count(f"a purchase is {bought.state}")
            if bought.state is not State.AMBIGUOUS or bought.once is None:
                continue
            creates = [one for one in self.service.creates if one.prompt == bought.once]
            charged = [one for one in creates if one in evidence.charges]
            if charged and charged[0].task is not None:
                choice = self.world.random.choice((Choice.ADOPT, Choice.ABANDON, Choice.RESUBMIT))
            else:
                choice = self.world.random.choice((Choice.RELEASE, Choice.RESUBMIT))
            self.world.count(f"a person chooses to {choice}")
            self.world.tell(f"a person chooses to {choice} {bought.once}")
            if choice is Choice.RELEASE:
                evidence.released.update(charged)
            elif choice is Choice.RESUBMIT:
                evidence.resubmitted.update(charged)
            store.decide(bought.key, choice, charged[0].task if choice is Choice.ADOPT else None)
            self.do(person, partial(self.ask, person, bought.once))
            told = evidence.told[-1]
            if choice is Choice.ADOPT:
                require("decisions kept", told.task == charged[0].task, f"{told.error!r}")
            elif choice is Choice.ABANDON:
                require("decisions kept", told.task is None, f"{told.task} was told")
        evidence.purchases = self.purchases()
        for judge in AT_THE_END:
            judge(evidence)


def _request(prompt: str) -> ImgbRequest:
    return ImgbRequest(model="imgb-2", prompt=prompt)


def _is_settled(error: BaseException | None) -> bool:
    return isinstance(error, CreateAmbiguous | OverBudget)
