"""The kernel: virtual time, and one actor at a time.

Everything that can happen in a world happens in one thread. Whatever runs in it, a task of an
event loop, a thread, a program, is an `Actor`: a greenlet, which goes on until it has to wait. Then
the world chooses the next one by its random numbers, among all that could go on in reality. Time
moves only when nobody can go on. So one number, the seed, tells a whole history, and tells the same
one again.

There are two ways to wait, and they differ in who may go on meanwhile:

- `pause` is an await. The other tasks of the actor's event loop go on, and a cancellation or the
  end of a time limit may strike.
- `stall` blocks: a statement of a database, a lock between threads, a sleep in blocking code. An
  event loop whose task stalls stands still. Other threads and other processes go on.

A coroutine awaits nothing that suspends it: `pause` switches greenlets below it. So the product's
coroutines, its blocking code and its threads are interleaved by one scheduler, and no library of an
event loop is involved.

A process that is killed stops where it is: its actors never go on, its locks are released, its
database connections are rolled back, as the operating system and the next reader would do.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import attrs
from greenlet import GreenletExit, getcurrent, greenlet

FOREVER: Final = math.inf
MOST_STEPS: Final = 400_000
"""Steps after which a world is taken for one that never ends."""


class Cancelled(BaseException):
    """What a cancellation raises in a task."""


class Stuck(AssertionError):
    """Nobody can ever go on, or somebody goes on for ever."""


@attrs.frozen(eq=False)
class _Late(BaseException):
    """A time limit is over."""

    limit: Limit


@attrs.define(eq=False)
class Limit:
    """A time limit of an actor.

    Args:
        until: When it is over.
    """

    until: float


@attrs.define(eq=False)
class EventLoop:
    """What runs the tasks of a process: one at a time, and none while one of them blocks."""

    stalled: Actor | None = None


@attrs.define(eq=False)
class Process:
    """A process of a world.

    Args:
        name: How stories call it.
    """

    name: str
    alive: bool = True
    resumes: float = 0.0
    """Until when it is suspended: it stands still, and holds what it holds."""
    loop: EventLoop = attrs.field(factory=EventLoop)
    on_death: list[Callable[[], object]] = attrs.field(factory=list[Callable[[], object]])
    """What the operating system does when it dies, such as releasing a lock."""


@attrs.define(eq=False)
class Actor:
    """Something that goes on by itself.

    Args:
        process: Whose it is.
        name: How stories call it.
        loop: The event loop, if it is a task.
    """

    process: Process
    name: str
    loop: EventLoop | None
    greenlet: greenlet = attrs.field(init=False)
    until: float = 0.0
    ready: Callable[[], bool] | None = None
    steps: int = 0
    """How often it has gone on."""
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    cancelling: bool = False
    """Whether somebody has cancelled it, and it has not heard of it."""
    shields: list[Callable[[], bool]] = attrs.field(factory=list[Callable[[], bool]])
    """What keeps a cancellation from striking, as long as one of them holds."""
    limits: list[Limit] = attrs.field(factory=list[Limit])
    signals: deque[Callable[[], object]] = attrs.field(factory=deque[Callable[[], object]])
    """What interrupts it where it waits. It goes on waiting unless that raises."""

    def cancel(self) -> None:
        """Cancel it at its next await that nothing shields."""
        if not self.done:
            self.cancelling = True

    @property
    def strikes(self) -> bool:
        """Whether a cancellation strikes now."""
        return self.cancelling and not any(holds() for holds in self.shields)


class World:
    """Actors, their time and their chances.

    Args:
        seed: What all chances come from.
        epoch: Unix seconds at its beginning.
    """

    def __init__(self, seed: int, *, epoch: float = 1_800_000_000.0) -> None:
        self.random = random.Random(seed)  # noqa: S311  of a world
        self.now: float = 0.0
        self.skew: float = epoch
        """The difference between the wall clock and the monotonic one. It may jump."""
        self.steps: int = 0
        self.counts: Counter[str] = Counter()
        """What has happened, by its name: a world that never does a thing proves nothing of it."""
        self.story: list[str] | None = None
        """What happened, in sentences, if somebody wants to read it."""
        self.disturb: Callable[[], None] = lambda: None
        """What happens to the world before each step: kills, cancellations, jumps of clocks."""
        self.over = False
        self._actors: list[Actor] = []
        self._hub = getcurrent()
        self._current: Actor | None = None

    @property
    def wall(self) -> float:
        """Unix seconds."""
        return self.skew + self.now

    @property
    def current(self) -> Actor | None:
        """The actor that calls, or None if the world itself does."""
        return self._current if getcurrent() is not self._hub else None

    def tell(self, sentence: str) -> None:
        """Add a sentence to the story."""
        if self.story is not None:
            who = self.current
            said = f"{who.name}: {sentence}" if who is not None else sentence
            self.story.append(f"{self.now:10.3f}  {said}")

    def count(self, what: str) -> None:
        """Note that something has happened."""
        self.counts[what] += 1

    def chance(self, probability: float) -> bool:
        """Return True as often as *probability* says."""
        return probability > 0 and self.random.random() < probability

    def start(
        self,
        process: Process,
        work: Callable[[], Any],
        name: str,
        *,
        loop: EventLoop | None = None,
    ) -> Actor:
        """Start an actor that does *work*: a task if it has a *loop*, else a thread."""
        actor = Actor(process, name, loop)

        def whole() -> None:
            try:
                actor.result = work()
            except GreenletExit:
                raise
            except BaseException as error:  # noqa: BLE001  whoever waits for it looks
                actor.error = error
            finally:
                actor.done = True

        actor.greenlet = greenlet(whole, parent=self._hub)
        actor.until = self.now
        self._actors.append(actor)
        return actor

    def pause(self, until: float = FOREVER, ready: Callable[[], bool] | None = None) -> None:
        """Await a moment, or until something is *ready*.

        Raises:
            Cancelled: The actor was cancelled.
        """
        actor = self._waiting()
        nearest = min(actor.limits, key=lambda limit: limit.until, default=None)
        self._switch(actor, min(until, nearest.until if nearest else FOREVER), ready)
        if actor.strikes:
            raise Cancelled
        if nearest is not None and nearest.until <= self.now:
            is_ready = ready is not None and ready()
            # What is ready when the time is over may be seen first, or last.
            if not (is_ready or until <= self.now) or self.chance(0.5):
                raise _Late(nearest)

    def stall(self, until: float = FOREVER, ready: Callable[[], bool] | None = None) -> None:
        """Block until a moment, or until something is *ready*."""
        actor = self._waiting()
        if actor.loop is None:
            self._switch(actor, until, ready)
            return
        actor.loop.stalled = actor
        try:
            self._switch(actor, until, ready)
        finally:
            actor.loop.stalled = None

    def breathe(self) -> None:
        """Let others go on, if the caller is an actor: a place where a process may be killed."""
        if self.current is not None and not self.over:
            self.stall(self.now)

    @contextmanager
    def within(self, seconds: float, late: str) -> Generator[None]:
        """Raise `TimeoutError` where the actor awaits anything after *seconds*."""
        actor = self._waiting()
        limit = Limit(self.now + seconds)
        actor.limits.append(limit)
        try:
            yield
        except _Late as error:
            if error.limit is not limit:
                raise
            raise TimeoutError(late) from None
        finally:
            actor.limits.remove(limit)

    def run(self, *awaited: Actor) -> None:
        """Go on until each of *awaited* is done or its process is dead.

        Raises:
            Stuck: That never happens.
        """
        while any(not actor.done and actor.process.alive for actor in awaited):
            self.step()
            self.disturb()

    def step(self) -> None:
        """Let one actor go on, at random, or else let time pass."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Stuck("it goes on for ever")
        self._actors = [one for one in self._actors if not one.done]
        living = [one for one in self._actors if one.process.alive]
        able = [one for one in living if self._can_go_on(one)]
        if not able:
            moment = min(map(self._wakes, living), default=FOREVER)
            if moment == FOREVER:
                waiting = ", ".join(one.name for one in living)
                raise Stuck(f"nobody can go on; those that wait: {waiting}")
            self.now = max(self.now, moment)
            return
        actor = self._current = self.random.choice(able)
        actor.steps += 1
        actor.greenlet.switch()
        self._current = None

    def suspend(self, process: Process, seconds: float) -> None:
        """Let a process stand still for so long, as if it were stopped or swapped out."""
        self.tell(f"{process.name} stands still for {seconds:g} s")
        self.count("a process stands still")
        process.resumes = self.now + seconds

    def kill(self, process: Process) -> None:
        """Stop a process where it is, as `kill -9` does."""
        self.tell(f"{process.name} is killed")
        self.count("kill")
        self.end(process)

    def end(self, process: Process) -> None:
        """Let a process exit: whatever goes on in it stops."""
        process.alive = False
        for each in reversed(process.on_death):
            each()

    def close(self) -> None:
        """End every actor that has not ended, once everything is judged."""
        self.over = True
        for actor in self._actors:
            if not actor.done and actor.greenlet:
                actor.greenlet.throw(GreenletExit)

    def _waiting(self) -> Actor:
        actor = self.current
        if self.over or actor is None:
            raise GreenletExit  # nobody will go on
        return actor

    def _switch(
        self,
        actor: Actor,
        until: float,
        ready: Callable[[], bool] | None,
    ) -> None:
        while True:
            actor.until, actor.ready = until, ready
            self._hub.switch()
            if not actor.signals:
                return
            while actor.signals:
                actor.signals.popleft()()
            if until <= self.now or (ready is not None and ready()):
                return

    def _is_served(self, actor: Actor) -> bool:
        """Whether its event loop, if it has one, does not stand still because of another task."""
        return actor.loop is None or actor.loop.stalled in (None, actor)

    def _wakes(self, actor: Actor) -> float:
        """Return when it goes on, unless something is ready before."""
        if actor.process.resumes > self.now:
            return actor.process.resumes
        return actor.until if self._is_served(actor) else FOREVER

    def _can_go_on(self, actor: Actor) -> bool:
        if not self._is_served(actor) or actor.process.resumes > self.now:
            return False
        if actor.signals or actor.until <= self.now or (actor.ready is not None and actor.ready()):
            return True
        stalls = actor.loop is not None and actor.loop.stalled is actor
        return not stalls and actor.loop is not None and actor.strikes
