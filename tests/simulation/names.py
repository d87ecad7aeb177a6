"""Worlds in which several processes pay once under a name, within a budget, from one ledger."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path

import attrs

from muybridge import (
    Budget,
    CreateAmbiguous,
    ImgbRequest,
    NotSent,
    OverBudget,
    Refused,
)
from muybridge.ledger import LedgerUnusable, OnceUnderWay, State, open_ledger

from .clients import Program, program
from .machine import Machine
from .network import Network
from .plan import Plan
from .service import HARMLESS, HOST, Create, SimulatedService
from .world import Actor, Cancelled, Process, World


@attrs.define
class Told:
    """What the users were told about each name."""

    ends: defaultdict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))


def live(plan: Plan, world: World, machine: Machine, root: Path) -> None:
    """Live a world, and judge it."""
    ledger = root / "ledger.sqlite3"
    network = Network(world, plan.network)
    service = SimulatedService(world, plan.service)
    network.hosts[HOST] = (Process("service"), service.accept)
    budget = None if plan.budget is None else Budget(creates=plan.budget)
    programs = [
        program(world, network, f"program {n + 1}", ledger=ledger, budget=budget)
        for n in range(plan.programs)
    ]
    told = Told()
    actors: list[Actor] = [
        each.runtime.start(
            partial(_buy, world, each, plan, told), f"{each.process.name}, task {n + 1}"
        )
        for each in programs
        for n in range(plan.tasks)
    ]

    def disturb() -> None:
        if world.chance(plan.kills):
            living = [each.process for each in programs if each.process.alive]
            if len(living) > 1:
                world.kill(world.random.choice(living))
        if world.chance(plan.cancellations):
            actor = world.random.choice(actors)
            world.count("cancellation")
            world.tell(f"{actor.name} is cancelled")
            actor.cancel()
        _judge_always(service, plan)

    world.disturb = disturb
    world.run(*actors)
    world.disturb = lambda: None
    # Everything is well from here on.
    network.faults = service.faults = machine.faults = 0.0
    for actor in actors:
        if actor.error is not None and not isinstance(actor.error, Cancelled):
            raise actor.error
    for each in programs:
        if each.process.alive:
            world.kill(each.process)
    _judge_end(service, told, ledger)


async def _buy(world: World, who: Program, plan: Plan, told: Told) -> None:
    for _ in range(plan.calls):
        name = f"horse {world.random.randrange(plan.names)}"
        said = "cancelled"
        try:
            task = await who.client.create_once(name, ImgbRequest(model="imgb-2", prompt=name))
            said = task.id
        except CreateAmbiguous:
            said = "ambiguous"
        except OverBudget:
            said = "over budget"
        except NotSent:
            said = "not sent"
        except Refused:
            said = "refused"
        except OnceUnderWay:
            said = "under way"
        except LedgerUnusable:
            said = "ledger unusable"
        finally:
            world.count(f"told: {said.partition('-')[0]}")
            world.tell(f"{name}: {said}")
            told.ends[name].append(said)


def _judge_always(service: SimulatedService, plan: Plan) -> None:
    spent = 0
    by_name: dict[str, list[Create]] = defaultdict(list)
    for create in service.creates:
        by_name[create.prompt].append(create)
    for name, creates in by_name.items():
        *before, last = creates
        assert all(one.fate in HARMLESS for one in before), f"{name} was sent again: {creates}"
        spent += last.fate not in HARMLESS
    if plan.budget is not None:
        assert spent <= plan.budget, "more than the budget"


def _judge_end(service: SimulatedService, told: Told, ledger: Path) -> None:
    accepted = service.accepted
    for name, ends in told.ends.items():
        for said in ends:
            if said.startswith("task-"):
                assert accepted[name] == [said], f"{name}: told {said}, accepted {accepted[name]}"
    entries = (
        {entry.name: entry for entry in open_ledger(ledger).entries() if entry.name}
        if ledger.exists()
        else {}
    )
    for create in service.creates:
        entry = entries.get(create.prompt)
        if create.fate not in HARMLESS:
            assert entry is not None, f"{create.prompt} is not in the ledger"
        if create.task is None or entry is None:
            continue
        assert entry.state in (State.ACCEPTED, State.AMBIGUOUS), f"{create.prompt} is {entry.state}"
        if entry.state is State.ACCEPTED:
            assert entry.task is not None
            assert entry.task.id == create.task
