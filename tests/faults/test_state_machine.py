"""The whole client against a model of the bill: whatever happens in whatever order.

Hypothesis chooses calls and the fate of each request of theirs; `BilledWorld` keeps the books.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import muybridge
from client.drivers import DRIVERS
from client.in_process import KEY, InProcessTransport
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event
from muybridge_protocol.records.tasks import Result, Task
from sampling import examples

from .billed_world import BilledWorld, Fate
from .interruptions import said

FATES = st.just([]) | st.lists(st.sampled_from(Fate), min_size=1, max_size=4)
MOMENTS = st.sampled_from([0.0, 0.5, 3.0, 60.0, 3600.0, 90_000.0])
TIMEOUTS = st.sampled_from([0.0, 1.0, 3.0, 10.0, 700.0, None])
TASKS = Bundle("tasks")


class CallerOfTheService(RuleBasedStateMachine):
    """Somebody who calls the service through one client after another, and keeps no book."""

    driver = "requests"

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        self.world = BilledWorld()
        self.known: dict[str, str] = {}
        """The prompt of each id that the caller was told."""
        self.unsure: set[str] = set()
        """The prompts that were reported as ambiguous."""
        self.ended: dict[str, str] = {}
        """The terminal status of each task that was reported as ended."""
        self.told: list[Task] = []
        self.shown: list[str] = []
        self.prompts = 0
        self.assets = set(self.world.emulator.assets)
        self.renew()

    def teardown(self) -> None:
        self.closing.close()

    @initialize(target=TASKS)
    def begin(self) -> object:
        """Begin with one task, so that there is something to ask for."""
        return self.create_task([], "")

    @rule()
    def renew(self) -> None:
        """Go on with a new client, as in a new process."""
        self.client = DRIVERS[self.driver](self.closing)(
            self.world,
            transport=InProcessTransport(self.world),
            on_submitted=self.told.append,
            on_event=self.show_event,
        )
        self.shown.append(repr(self.client))

    @rule(seconds=MOMENTS)
    def let_time_pass(self, seconds: float) -> None:
        self.world.clock.sleep(seconds)

    @rule(target=TASKS, fates=FATES, ending=st.sampled_from(["", "[fail:content-policy]"]))
    def create(self, fates: list[Fate], ending: str) -> object:
        """Create one more."""
        return self.create_task(fates, ending)

    def create_task(self, fates: list[Fate], ending: str) -> object:
        """Create a task: its id is known, or it was certainly not accepted, or it is ambiguous."""
        self.prompts += 1
        prompt = f"horse {self.prompts} {ending}"
        request = muybridge.ImgaRequest(model="imga", prompt=prompt)
        before = len(self.told)
        outcome = self.outcome(lambda: self.client.create(request), fates)
        booked = self.world.booked[prompt]
        match outcome:
            case Task():
                assert booked == [outcome.id]
                assert self.told[before:] == [outcome]
                self.known[outcome.id] = prompt
                return outcome
            case muybridge.CreateAmbiguous():
                assert prompt in self.world.open
                self.unsure.add(prompt)
                seen = [name for name in booked if f'"{name}"'.encode() in outcome.raw]
                assert outcome.candidate_id == (seen[0] if seen else None)
                return _none(*(Task(id=name) for name in seen))
            case _:
                assert isinstance(outcome, muybridge.NotSent | muybridge.Refused)
                assert prompt not in self.world.open
                assert booked == []
                return _none()

    @rule(task=TASKS, fates=FATES)
    def get(self, task: Task, fates: list[Fate]) -> None:
        """Ask for a result once: it is this task's, and an end is an end."""
        self.learn(task, self.outcome(lambda: self.client.get(task), fates))

    @rule(task=TASKS, fates=FATES, timeout=TIMEOUTS)
    def wait(self, task: Task, fates: list[Fate], timeout: float | None) -> None:
        """Wait for a task: its result is this task's, and the time is kept."""
        began = self.world.clock.elapsed
        outcome = self.outcome(lambda: self.client.wait(task, timeout=timeout), fates)
        self.learn(task, outcome)
        assert not isinstance(outcome, Result) or outcome.url is not None
        if timeout is not None:  # a reply that never comes takes 30 s
            late = 30.0 if Fate.STALLED in fates else 0.0
            assert self.world.clock.elapsed - began <= timeout + late + 1e-6

    @rule(task=TASKS, fates=FATES, count=st.integers(1, 4))
    def watch(self, task: Task, fates: list[Fate], count: int) -> None:
        """Watch a task for a while: nothing comes after its end."""

        def look() -> None:
            for result in islice(self.client.watch(task, timeout=100.0), count):
                self.learn(task, result)

        self.learn(task, self.outcome(look, fates))

    @rule(task=TASKS, fates=FATES)
    def download(self, task: Task, fates: list[Fate]) -> None:
        """Download a result: the file is this task's and whole, or as it was before."""
        target = self.folder / f"{task.id}.png"
        before = target.read_bytes() if target.exists() else None
        outcome = self.outcome(lambda: self.client.download(task, target), fates)
        if outcome == target:
            assert self.world.is_film(task.id, target.read_bytes())
            assert not list(self.folder.glob(f"{task.id}.png.*"))
        else:
            self.learn(task, outcome)
            assert (target.read_bytes() if target.exists() else None) == before

    @rule(number=st.integers(0, 60), fates=FATES)
    def delete(self, number: int, fates: list[Fate]) -> None:
        """Delete an asset: what is reported as deleted is, and what was not sent is not."""
        name = f"asset-{number}"
        existed = name in self.world.emulator.assets
        outcome = self.outcome(lambda: self.client.delete_asset(name), fates)
        exists = name in self.world.emulator.assets
        if outcome is None:
            assert existed
            assert not exists
        if isinstance(outcome, muybridge.NotSent):
            assert exists is existed

    @rule(target=TASKS, task=TASKS)
    def resume(self, task: Task) -> Task:
        """Carry a task into a new process by its token."""
        token = task.to_token()
        self.shown.append(token)
        self.renew()
        again = Task.from_token(token)
        assert again.id == task.id
        return again

    @invariant()
    def every_create_is_accounted_for(self) -> None:
        """What was accepted is known by its id, or was reported as ambiguous; and paid for once."""
        assert self.world.doubles == []
        booked = {prompt: ids for prompt, ids in self.world.booked.items() if ids}
        assert all(len(ids) == 1 for ids in booked.values())
        assert set(booked) - self.unsure == set(self.known.values())
        assert self.unsure.isdisjoint(self.known.values())
        assert self.unsure <= self.world.open
        accepted = sum(map(len, booked.values()))
        assert accepted == len(self.known) + len(self.unsure & set(booked))

    @invariant()
    def the_key_is_shown_nowhere(self) -> None:
        for text in self.shown:
            assert KEY not in text
        self.shown.clear()

    def outcome(self, call: Callable[[], object], fates: list[Fate]) -> object:
        """Return what *call*, whose requests meet *fates*, returns or fails with."""
        self.world.fates.extend(fates)
        try:
            return call()
        except ServiceError as error:
            self.show(error)
            return error
        finally:
            self.world.fates.clear()

    def learn(self, task: Task, outcome: object) -> None:
        """Record what was said about *task*: no error loses it, and an end is an end."""
        result = outcome
        if isinstance(outcome, ServiceError):
            assert outcome.task is not None
            assert outcome.task.id == task.id
            result = outcome.result if isinstance(outcome, muybridge.TaskFailed) else None
        if not isinstance(result, Result):
            return
        self.shown += [repr(result), str(result)]
        assert result.id == task.id
        if result.status in ("completed", "failed", "cancelled"):
            assert self.ended.setdefault(task.id, str(result.status)) == result.status
        else:
            assert task.id not in self.ended

    def show(self, error: BaseException) -> None:
        """Take in all that an error shows."""
        self.shown += [said(error), repr(error), repr(error.args), str(vars(error))]

    def show_event(self, event: Event) -> None:
        """Take in an event."""
        self.shown.append(repr(event))


def _none(*tasks: Task) -> Any:
    """Return what puts *tasks*, or none, into a bundle."""
    return multiple(*tasks)


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_books_are_right(driver: str) -> None:
    """Whatever is called in whatever order, and whatever happens to it, the books are right."""
    caller = type("Caller", (CallerOfTheService,), {"driver": driver})
    run_state_machine_as_test(
        caller, settings=settings(max_examples=examples(40), stateful_step_count=20)
    )
