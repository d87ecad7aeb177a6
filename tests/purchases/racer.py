"""A process whose threads buy from a paid service, with one store for all of them."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from muybridge.purchases import Exceeded, Lost, NameHeld, Store, open_store
from muybridge.purchases.store import NewItem
from muybridge_protocol.purchases import (
    EVERYTHING,
    Amounts,
    Budget,
    CannotDecide,
    Choice,
    Measure,
    Order,
    Outcome,
    Stage,
    State,
)
from muybridge_protocol.records.tasks import Task
from processes import serve

ONE: Amounts = {it: Decimal(1 if it is Measure.CREATES else 0) for it in Measure}
THREADS = 8
REFUSALS = 3
"""How often the service answers 429 to each prompt before it accepts it."""


def order_of(name: str | None = None, *tags: str, amounts: Amounts = ONE) -> Order:
    """Return an order of one create."""
    return Order(account="a", amounts=amounts, name=name, digest=name, tags=tags)


class Service:
    """A paid service whose books are a file. It survives its clients.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def post(self, prompt: str, key: str = "") -> str | None:
        """Return a task's id, or None for a 429. The *key* is noted."""
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            before = [json.loads(line) for line in file]
            tries = sum(line["prompt"] == prompt for line in before)
            task = None if tries < REFUSALS else f"T{len(before)}"
            file.write(json.dumps({"prompt": prompt, "task": task, "key": key}) + "\n")
        return task

    def task_of(self, key: str) -> str | None:
        """Return the task of the POST of a purchase, or None if it created none."""
        told = map(json.loads, self._path.read_text().splitlines())
        return next((line["task"] for line in told if line["key"] == key), None)

    def accepted(self) -> dict[str, list[str]]:
        """Return the tasks of each prompt."""
        found: dict[str, list[str]] = {}
        for line in map(json.loads, self._path.read_text().splitlines()):
            if line["task"] is not None:
                found.setdefault(line["prompt"], []).append(line["task"])
        return found


def create(
    store: Store, service: Service, prompt: str, *budgets: Budget, name: str | None = None
) -> str | None:
    """Do what `create_once` and `create` do: arm, send, conclude, and again after a 429."""
    order = Order(account="a", amounts=ONE, name=name, digest=name)
    while True:
        try:
            bought = store.arm(order, budgets=budgets)
        except NameHeld as held:
            known = held.purchase
            if known.state is not State.ARMED:
                return known.task
            store.named("a", str(name))  # which looks whether its sender lives
            continue
        task = service.post(prompt)
        seen = store.find(bought.key).state
        assert seen is State.ARMED, f"in flight, and {seen}"
        if task is None:
            store.conclude(bought.key, Outcome(state=State.RELEASED, reason="429"))
        else:
            store.conclude(bought.key, Outcome(state=State.ACCEPTED, task=Task(id=task)))
            return task


def race(
    what: str, place: str, service: str, seed: int, dies: tuple[str, int] | None = None,
    **options: Any,
) -> dict[str, int]:  # fmt: skip
    """Let the threads of this process do one thing, and return what they counted.

    Args:
        what: What they do.
        place: The store.
        service: The service's books.
        seed: In which order they do it.
        dies: At which moment the process kills itself, and at which time of it; or None.
        **options: How much they do.
    """
    counted: Counter[str] = Counter()
    broken: list[BaseException] = []
    acts = {
        "names": names,
        "budget": budget,
        "decisions": decisions,
        "mixed": mixed,
        "market": market,
        "tagged": tagged,
    }
    act = acts[what]

    def work(thread: int) -> None:
        chance = random.Random(f"{seed} {thread}")  # noqa: S311  order, not secrets
        try:
            act(store, Service(Path(service)), chance, counted, **options)
        except BaseException as error:
            broken.append(error)
            raise

    with open_store(place) as store:
        if what == "mixed":
            store.register(600)
        if dies is not None:
            die_at(store, *dies)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if broken:
        raise broken[0]
    return counted


def die_at(store: Store, moment: str, nth: int) -> None:
    """Let this process kill itself at the *nth* end of a transaction."""
    left = count(nth, -1)
    database: Any = store.database
    whole = database.transaction

    @contextmanager
    def dying(**options: Any) -> Generator[Any]:
        with whole(**options) as rows:
            yield rows
            if moment == "before the commit" and next(left) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        if moment == "after the commit" and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    database.transaction = dying


def names(
    store: Store, service: Service, chance: random.Random, counted: Counter[str], *, most: int
) -> None:
    """Create each of so many prompts once, in any order."""
    for n in chance.sample(range(most), most):
        task = create(store, service, f"prompt {n}", name=f"once prompt {n}")
        counted["tasks"] += task is not None


def budget(
    store: Store, service: Service, chance: random.Random, counted: Counter[str], *, limit: int
) -> None:
    """Create until the budget is used up."""
    while True:
        try:
            create(store, service, f"{chance.random()}", Budget(creates=limit))
        except Exceeded:
            counted["refused"] += 1
            return


def decisions(store: Store, service: Service, chance: random.Random, counted: Counter[str]) -> None:
    """Buy until the stored budget is used up, while everybody decides, prunes and limits."""
    del service
    while True:
        try:
            bought = store.arm(order_of())
        except Exceeded:
            counted["refused"] += 1
            return
        store.conclude(bought.key, Outcome(state=State.AMBIGUOUS))
        choice = chance.choice((*Choice,))
        task = f"T {bought.key}" if choice is Choice.ADOPT else None
        after = store.decide(bought.key, choice, task)
        counted["paid"] += after.is_spent
        if chance.random() < 0.2:
            store.prune(float("inf"))
        if chance.random() < 0.2:
            store.limit(EVERYTHING, Budget(pictures=10**6))


def mixed(
    store: Store, service: Service, chance: random.Random, counted: Counter[str], *, steps: int
) -> None:
    """Take every kind of step, under tags in any order."""
    del service
    batch = store.begin_batch(
        "mixed", [NewItem(stem=f"{n}", family="", body="") for n in range(500)]
    )
    for _ in range(steps):
        item = next(iter(store.take(batch, Stage.QUEUED)), (None, None))[0]
        place = None if item is None else (item.batch, item.number)
        tags = tuple(chance.sample(("a=1", "b=1", "c=1"), chance.randint(0, 3)))
        cost = chance.choice((None, Decimal(chance.randint(0, 10**6)).scaleb(-4)))
        name = chance.choice((None, f"once {chance.randint(0, 20)}"))
        order = Order(
            account="a", amounts={**ONE, Measure.COST: cost}, tags=tags, name=name, digest=name
        )
        try:
            bought = store.arm(
                order, budgets=[Budget(creates=10**6)] * chance.randint(0, 1), item=place
            )
        except NameHeld as held:
            counted["held"] += 1
            with suppress(Lost):  # the name is free again
                if item is not None:
                    store.join(item, held.purchase.key)
            continue
        if chance.random() < 0.1:
            store.withdraw(bought.key)
            continue
        state = chance.choice((State.ACCEPTED, State.RELEASED, State.AMBIGUOUS))
        accepted = Outcome(state=State.ACCEPTED, task=Task(id=f"T{chance.randint(0, 10**4)}"))
        store.conclude(bought.key, accepted if state is State.ACCEPTED else Outcome(state=state))
        if state is State.AMBIGUOUS:
            _decide(store, bought.key, chance)
            store.conclude(bought.key, accepted)
        if chance.random() < 0.1:
            store.price(bought.key, {Measure.COST: Decimal("0.25")})
        if chance.random() < 0.05:
            store.limit(chance.choice(("a=1", "")), Budget(creates=10**6))
            store.sweep()
        counted["steps"] += 1


TAGS = ("red=1", "green=1", "blue=1")


def tags_of(number: int) -> tuple[str, ...]:
    """Return the tags of a prompt: every combination comes up."""
    return tuple(tag for bit, tag in enumerate(TAGS) if number >> bit & 1)


CUSTOMERS = ("customer=acme", "customer=duck", "customer=")
"""The last stands for no such tag."""


def tagged(
    store: Store, service: Service, chance: random.Random, counted: Counter[str], *, most: int
) -> None:
    """Create so often under any tags, and again after a 429. The prompt says which tags."""
    for _ in range(most):
        tags = [one for one in (chance.choice(CUSTOMERS), f"shot={chance.randrange(9)}")
                if not one.endswith("=")]  # fmt: skip
        tags += ["team=film"] * chance.randint(0, 1)
        prompt = " ".join((f"{chance.random()}", *tags))
        task = None
        while task is None:
            try:
                bought = store.arm(order_of(None, *tags))
            except Exceeded as error:
                counted["lacking" if error.remedies else "refused"] += 1
                break
            task = service.post(prompt, bought.key)
            outcome = Outcome(state=State.RELEASED, reason="429")
            if task is not None:
                outcome = Outcome(state=State.ACCEPTED, task=Task(id=task))
            store.conclude(bought.key, outcome)
        counted["paid"] += task is not None


def market(
    store: Store, service: Service, chance: random.Random, counted: Counter[str], *, most: int
) -> None:
    """Create each of so many prompts once, within budgets, while responses are lost.

    In between, people decide, and the store is swept and pruned.
    """
    for n in chance.sample(range(most), most):
        with suppress(Exceeded):
            _create_or_lose(store, service, chance, n, Budget(creates=most))
        if chance.random() < 0.2:
            store.sweep()
        if chance.random() < 0.2:
            counted["pruned"] += sum(store.prune(time.time()).removed.values())
        if chance.random() < 0.3:
            counted["decided"] += settle(store, service, chance)


def _create_or_lose(
    store: Store, service: Service, chance: random.Random, number: int, budget: Budget
) -> None:
    """Arm, send and conclude; again after a 429, whose response may be lost as well."""
    prompt = name = f"prompt {number}"
    order = order_of(name, *tags_of(number))
    while True:
        try:
            bought = store.arm(order, budgets=[budget] * chance.randint(0, 1))
        except NameHeld:
            return
        task = service.post(prompt, bought.key)
        outcome = Outcome(state=State.RELEASED, reason="429")
        if task is not None:
            outcome = Outcome(state=State.ACCEPTED, task=Task(id=task))
        if chance.random() < 0.2:
            store.conclude(bought.key, Outcome(state=State.AMBIGUOUS, reason="lost"))
            if chance.random() < 0.5:  # a person may have decided
                with suppress(LookupError):  # and it may have been pruned
                    store.conclude(bought.key, outcome)
            return
        store.conclude(bought.key, outcome)
        if task is not None:
            return


def settle(store: Store, service: Service, chance: random.Random | None = None) -> int:
    """Decide about what is ambiguous, as the service's books say, and return how often."""
    count = 0
    for one in store.purchases(State.AMBIGUOUS):
        task = service.task_of(one.key)
        choices = [Choice.RELEASE] if task is None else [Choice.ADOPT, Choice.ABANDON]
        choice = choices[-1] if chance is None else chance.choice(choices)
        with suppress(CannotDecide, LookupError):  # somebody else has decided, and has pruned it
            store.decide(one.key, choice, task if choice is Choice.ADOPT else None)
            count += 1
    return count


def _decide(store: Store, key: str, chance: random.Random) -> None:
    choice = chance.choice((*Choice,))
    task = f"P{chance.randint(0, 10**4)}" if choice is Choice.ADOPT else None
    with suppress(CannotDecide):  # another purchase has the task
        store.decide(key, choice, task)


def let_time_pass(store: Store) -> None:
    """Let it be certain that nobody is sending any more, where only time can tell."""
    if store.database.leases and store.database.exists():
        with store.database.transaction() as rows:
            rows.run("UPDATE muybridge_purchases SET sending_until = 0 WHERE sending_until > 0")


if __name__ == "__main__":
    serve(race, "muybridge.purchases.sqlite")
