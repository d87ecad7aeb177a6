"""The threads of a world, what they wait for, and the signals that interrupt the main one.

They take the place of `threading`, `queue` and `signal`. A thread that waits blocks itself alone.
At every lock another thread may go on, so two threads meet in every order.

Python runs the handler of a signal in the main thread, between two steps of it or while it waits,
and goes on waiting unless the handler raises. A world has one process at a terminal, where somebody
may press Ctrl-C. All other processes have their clients in threads that no signal reaches.
"""

from __future__ import annotations

import inspect
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import attrs

from muybridge.drivers import blocking

from .world import FOREVER, Actor, World

if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # the product takes its functions from there

_current_thread: Final = threading.current_thread
_main_thread: Final = threading.main_thread


class Lock:
    """A lock between threads. One that is *reentrant* may be acquired twice by one thread."""

    def __init__(self, world: World, *, reentrant: bool = False) -> None:
        self._world = world
        self._reentrant = reentrant
        self._owner: object = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Wait for the lock."""
        me = self._world.current or self
        if self._reentrant and self._owner is me:
            self._depth += 1
            return True
        self._world.breathe()
        if self._owner is not None and me is not self and blocking:
            until = FOREVER if timeout < 0 else self._world.now + timeout
            self._world.stall(until, lambda: self._owner is None)
        if self._owner is not None:
            return False
        self._owner, self._depth = me, 1
        return True

    def release(self) -> None:
        """Release it."""
        self._depth -= 1
        if not self._depth:
            self._owner = None

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._owner is not None

    def give_up(self) -> int:
        """Release it, however often it was acquired, and return how often that was."""
        depth, self._depth, self._owner = self._depth, 0, None
        return depth

    def take_back(self, depth: int) -> None:
        """Acquire it as often as it was before `give_up`."""
        self.acquire()
        self._depth = depth

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class Condition:
    """A condition between threads, and its lock."""

    def __init__(self, world: World, lock: Lock | None = None) -> None:
        self._world = world
        self._lock = Lock(world, reentrant=True) if lock is None else lock
        self._changes = 0
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, and wait for `notify_all`."""
        seen = self._changes
        until = FOREVER if timeout is None else self._world.now + timeout
        depth = self._lock.give_up()
        try:
            self._world.stall(until, lambda: self._changes > seen)
        finally:
            self._lock.take_back(depth)
        return self._changes > seen

    def notify_all(self) -> None:
        """Let all go on that wait."""
        self._changes += 1

    notify = notify_all
    """Let one go on: whoever waits looks again in any case."""

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()


class Event:
    """An event between threads."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Let those go on that wait for it."""
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it."""
        if self._is_set and self._world.current is None:  # whoever looks from outside of the world
            return True
        until = FOREVER if timeout is None else self._world.now + timeout
        self._world.stall(until, self.is_set)
        return self._is_set


class Queue:
    """A queue between threads."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        """Add an item."""
        self._items.append(item)

    def get(self) -> Any:
        """Wait for an item."""
        self._world.stall(ready=lambda: bool(self._items))
        return self._items.popleft()


class Thread:
    """A thread of the process that starts it."""

    def __init__(
        self,
        world: World,
        target: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str = "thread",
        daemon: bool = False,  # noqa: FBT001, FBT002  as threading has it
    ) -> None:
        self._world = world
        self._work = lambda: target(*args, **(kwargs or {}))
        self.name = name
        self.daemon = daemon
        self._actor: Actor | None = None

    def start(self) -> None:
        """Start it."""
        creator = self._world.current
        assert creator is not None
        name = f"{creator.name}.{self.name}"
        self._actor = self._world.start(creator.process, self._work, name)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        until = FOREVER if timeout is None else self._world.now + timeout
        self._world.stall(until, lambda: not self.is_alive())

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self._actor is not None and not self._actor.done


@attrs.define(eq=False)
class Threads:
    """What takes the place of the standard library's threads and signals.

    Args:
        world: The world.
    """

    world: World
    main: Actor | None = None
    """The main thread of the process at the terminal."""
    _handlers: dict[int, Any] = attrs.field(
        factory=lambda: {signal.SIGINT: signal.default_int_handler}
    )

    @property
    def parts(self) -> list[tuple[object, str, object]]:
        """What takes the place of parts of the standard library."""
        world = self.world

        def condition(lock: Lock | None = None) -> Condition:
            return Condition(world, lock)

        def thread(target: Callable[..., object], **more: Any) -> Thread:
            return Thread(world, target, **more)

        return [
            (threading, "Lock", lambda: Lock(world)),
            (threading, "RLock", lambda: Lock(world, reentrant=True)),
            (threading, "Condition", condition),
            (threading, "Event", lambda: Event(world)),
            (threading, "Thread", thread),
            (threading, "current_thread", lambda: world.current or _current_thread()),
            (threading, "main_thread", lambda: self.main or _main_thread()),
            (queue, "SimpleQueue", lambda: Queue(world)),
            (blocking, "SimpleQueue", lambda: Queue(world)),
            (_signal, "signal", self._handle_with),
            (_signal, "getsignal", self._handler),
        ]

    def sit_at_terminal(self, main: Actor) -> bool:
        """Let *main* be the thread that signals interrupt, unless another one is or was killed."""
        if self.main is not None and not self.main.done:
            return False
        self.main = main
        return True

    def press_ctrl_c(self) -> bool:
        """Interrupt the main thread of the process at the terminal, if there is one."""
        main = self.main
        if main is None or main.done or not main.process.alive:
            return False
        self.world.count("Ctrl-C")
        self.world.tell(f"Ctrl-C is pressed at {main.name}")
        main.signals.append(self._interrupt)
        return True

    def _handler(self, number: int) -> Any:
        return self._handlers.get(number, signal.SIG_DFL)

    def _interrupt(self) -> None:
        self._handlers[signal.SIGINT](signal.SIGINT, inspect.currentframe())

    def _handle_with(self, number: int, handler: Any) -> Any:
        before = self._handler(number)
        self._handlers[number] = handler
        return before
