"""Threads of many processes at one store: nothing is paid for twice, and no budget is exceeded."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count, product
from pathlib import Path
from typing import Any, cast

import pytest

from muybridge.purchases import Exceeded, Store
from muybridge.verbs import spending
from muybridge_protocol.purchases import (
    EVERYTHING,
    NOTHING,
    Budget,
    Choice,
    Measure,
    Outcome,
    Stage,
    State,
    plus,
    totals,
)
from processes import Nursery

from .racer import TAGS, THREADS, Service, let_time_pass, order_of, settle, tags_of

PROCESSES = 4


@pytest.fixture(scope="module")
def nurseries() -> Iterator[list[Nursery]]:
    """What forks four processes at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(Nursery("purchases.racer")) for _ in range(PROCESSES)]


def at_once(nurseries: list[Nursery], **order: Any) -> Counter[str]:
    """Run a process in each nursery at the same time, and return what all of them counted."""

    def run(numbered: tuple[int, Nursery]) -> Any:
        seed, nursery = numbered
        return nursery.run(**order, seed=seed)

    total: Counter[str] = Counter()
    with ThreadPoolExecutor(len(nurseries)) as pool:
        for counted in pool.map(run, enumerate(nurseries)):
            assert isinstance(counted, dict), counted
            total.update(cast("dict[str, int]", counted))
    return total


def test_names(nurseries: list[Nursery], store: Store, place: str, tmp_path: Path) -> None:
    """Each name is paid for once, by whichever of 32 threads, although 429s free it three times."""
    count = 20
    at_once(nurseries, what="names", place=place, service=f"{tmp_path}/service", most=count)
    found = Service(tmp_path / "service").accepted()
    assert {prompt: len(tasks) for prompt, tasks in found.items()} == {
        f"prompt {n}": 1 for n in range(count)
    }
    for prompt, [task] in found.items():
        bought = store.named("a", f"once {prompt}")
        assert bought is not None
        assert bought.task == task


def test_a_budget(nurseries: list[Nursery], store: Store, place: str, tmp_path: Path) -> None:
    """It is used up to the last create, and not exceeded."""
    told = at_once(nurseries, what="budget", place=place, service=f"{tmp_path}/service", limit=20)
    assert told == {"refused": PROCESSES * THREADS}
    assert len(Service(tmp_path / "service").accepted()) == 20
    assert store.spent()[Measure.CREATES] == 20


@pytest.mark.parametrize("from_now", [False, True])
def test_a_budget_while_people_decide_and_prune(
    nurseries: list[Nursery], store: Store, place: str, tmp_path: Path, *, from_now: bool
) -> None:
    """What is released can be spent again, and what is removed stays counted: none beyond."""
    for _ in range(3):
        store.conclude(store.arm(order_of()).key, Outcome(state=State.AMBIGUOUS))
    limit = 30
    stored = store.limit(EVERYTHING, Budget(creates=limit), from_now=from_now)
    told = at_once(nurseries, what="decisions", place=place, service=f"{tmp_path}/service")
    assert told == {"refused": PROCESSES * THREADS, "paid": limit if from_now else limit - 3}
    assert store.spent(stored.counted_under)[Measure.CREATES] == limit
    assert store.spent()[Measure.CREATES] == told["paid"] + 3


@pytest.mark.parametrize("steps", [5, pytest.param(100, marks=pytest.mark.nightly)])
def test_everything_at_once(
    nurseries: list[Nursery], store: Store, place: str, tmp_path: Path, steps: int
) -> None:
    """Every kind of step in any order: none fails, and the sums are those of the purchases."""
    at_once(nurseries, what="mixed", place=place, service=f"{tmp_path}/service", steps=steps)
    bought = [*store.purchases()]
    for tag in ("", "a=1", "b=1", "c=1"):
        counted = NOTHING
        for one in bought:
            if one.is_spent and tag in one.counted_under:
                counted = plus(counted, one.amounts)
        assert store.spent(tag) == totals(counted), tag
    assert State.ARMED not in {one.state for one in bought}
    known = {one.key: one for one in bought}
    batch = store.begin_batch("mixed", [])
    for item in store.items(batch):
        assert item.stage is not Stage.ARMED
        if item.stage in (Stage.SUBMITTED, Stage.JOINED, Stage.AMBIGUOUS):
            state = known[str(item.purchase)].state
            assert (state is State.ACCEPTED) == (item.stage is Stage.SUBMITTED)
    tasks = [one.task for one in bought if one.task is not None]
    assert len(tasks) == len({*tasks})


@pytest.mark.parametrize("most", [8, pytest.param(80, marks=pytest.mark.nightly)])
def test_names_and_budgets_while_responses_are_lost(
    nurseries: list[Nursery], store: Store, place: str, tmp_path: Path, most: int
) -> None:
    """Nobody sees a deadlock, and nothing is accepted twice or beyond a budget.

    Every create is armed anew after each of three 429s. People decide about lost responses, late
    ones arrive before or after that, and the store is swept and pruned all the time.
    """
    limits = {"": most - 2, TAGS[0]: most // 2 - 2, TAGS[1]: most}
    for tag, limit in limits.items():
        store.limit(tag, Budget(creates=limit))
    service = Service(tmp_path / "service")
    order = {"what": "market", "place": place, "service": f"{tmp_path}/service", "most": most}
    for _ in range(2):  # what was released by a person is wanted again
        at_once(nurseries, **order)
    assert list(store.purchases(State.ARMED)) == []
    settle(store, service)
    accepted = service.accepted()
    assert all(len(tasks) == 1 for tasks in accepted.values()), accepted
    for tag in ("", *TAGS):
        count = sum(not tag or tag in tags_of(int(one.split()[1])) for one in accepted)
        assert store.spent(tag)[Measure.CREATES] == count, tag
        assert count <= limits.get(tag, most), tag
    assert len(accepted) > most // 2


def paid(service: Service, key: str) -> Counter[str]:
    """Return how often the service has accepted something under each value of a tag's *key*."""
    found: Counter[str] = Counter()
    for prompt, tasks in service.accepted().items():
        tags = dict(one.split("=") for one in prompt.split(" ")[1:])
        found[tags.get(key, "")] += len(tasks)
    return found


@pytest.mark.parametrize("rounds", [2, pytest.param(12, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("dies", [False, True])
def test_tags_and_budgets(
    nurseries: list[Nursery], store: Store, place: str, tmp_path: Path, rounds: int, *, dies: bool
) -> None:
    """Three tags and two budgets: none is exceeded by one request, whoever is killed meanwhile.

    Where no response is lost, what was spent by each tag is what the service has counted. Where one
    was, it is so once a person has decided.
    """
    each, whole = 4 * rounds, 6 * rounds
    store.limit("customer", Budget(creates=each))
    store.limit("team=film", Budget(creates=whole), from_now=True)
    service = Service(tmp_path / "service")
    order: dict[str, Any] = {"what": "tagged", "place": place, "service": f"{tmp_path}/service"}
    chance = random.Random(f"{rounds} {dies}")  # noqa: S311  moments, not secrets
    told: Counter[str] = Counter()
    killed = 0
    for number in range(rounds):
        deaths: list[tuple[str, int] | None] = [None] * PROCESSES
        if dies:
            moments = ("before the commit", "after the commit")
            deaths = [(chance.choice(moments), chance.randint(1, 60)) for _ in deaths]
            deaths[number % PROCESSES] = None
        for seed, (nursery, dying) in enumerate(zip(nurseries, deaths, strict=True)):
            nursery.start(**order, most=2, seed=9 * number + seed, dies=dying)
        for nursery in nurseries:
            ended = nursery.wait()
            assert isinstance(ended, dict) or ended == -signal.SIGKILL, ended
            killed += ended == -signal.SIGKILL
            told.update(cast("dict[str, int]", ended) if isinstance(ended, dict) else {})
        let_time_pass(store)
    assert (killed > 0) == dies
    assert dies or told["lacking"] > 0
    customers, teams = paid(service, "customer"), paid(service, "team")
    print(  # noqa: T201  the night's figures
        f"limits {each} and {whole}, killed {killed}, {dict(told)}, {dict(customers)}, "
        f"{dict(teams)}, ambiguous {len([*store.purchases(State.AMBIGUOUS, State.ARMED)])}"
    )
    assert {*customers} <= {"acme", "duck"}
    assert 0 < max(customers.values()) <= each
    assert teams["film"] <= whole
    store.sweep()
    if dies:
        settle(store, service)
    for key in ("customer", "team", "shot"):
        assert spent_by(store, key) == paid(service, key), key
    for customer in ("acme", "duck"):  # what is left can be spent, and no more
        assert until_refused(store, f"customer={customer}") == each - customers[customer]
    assert until_refused(store, "team=film") == whole - teams["film"]


def spent_by(store: Store, key: str) -> Counter[str]:
    """Return how many creates are spent under each value of a tag's *key*, as the command says."""
    found: Counter[str] = Counter()
    for group in spending.spent(store, [key]).groups:
        assert group.state is State.ACCEPTED
        found[str(group.labels[0])] += group.purchases
    return found


def until_refused(store: Store, *tags: str) -> int:
    """Return how often something can be bought under *tags*, each time for another customer."""
    for number in count():
        customer = [] if tags[0].startswith("customer=") else [f"customer=new {number}"]
        try:
            store.arm(order_of(None, *tags, *customer))
        except Exceeded:
            return number
    raise AssertionError


def test_kills(nurseries: list[Nursery], store: Store, place: str, tmp_path: Path) -> None:
    """Killed at any commit, nothing is paid for twice, and everything paid for is known."""
    service = Service(tmp_path / "service")
    order = {"what": "names", "place": place, "service": f"{tmp_path}/service", "most": 12}
    killed = 0
    for seed, (moment, nth) in enumerate(
        product(("before the commit", "after the commit"), (1, 2, 3, 4, 6, 9))
    ):
        killed += nurseries[0].run(**order, seed=seed, dies=(moment, nth)) == -signal.SIGKILL
        let_time_pass(store)
    nurseries[0].run(**order, seed=99)
    assert killed >= 8
    found = service.accepted()
    assert all(len(tasks) == 1 for tasks in found.values()), found
    for prompt, [task] in found.items():
        bought = store.named("a", f"once {prompt}")
        assert bought is not None, f"{prompt} was paid for, and its name is free"
        if bought.state is State.AMBIGUOUS:
            bought = store.decide(bought.key, Choice.ADOPT, task)
        assert bought.task == task
    states = Counter(one.state for one in store.purchases())
    assert states[State.ARMED] == 0
    assert store.spent()[Measure.CREATES] == states[State.ACCEPTED] + states[State.AMBIGUOUS]
