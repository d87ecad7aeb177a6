"""Signals: when they may interrupt, and which exceptions their handlers raise.

Python runs signal handlers in the main thread, between any two instructions. So an exception that a
handler raises appears in whatever code happens to run: in ours, in a library's, within a `finally`.
Four rules follow:

1. An interruption between a paid request and its response would lose the id of a task that is
   charged. So the first Ctrl-C is held back meanwhile, and a message says why nothing happens. The
   second one stops at once: the user knows better.
2. Only handlers that do nothing but interrupt are held back: Python's own, trio's, and that of
   `asyncio.run`. A handler of the program's decides for itself.
3. What a handler raises says nothing about the code that it interrupts, whatever its class: the
   `TimeoutError` of an alarm is an `OSError`, but not a broken connection, nor a full disk. So code
   that interprets an exception writes `except genuine(OSError)`, which does not catch what a
   handler raised, nor does `ignoring_errors`. Handlers are recognized by their argument: nothing
   else is called with a frame.
4. Under `asyncio.run`, Ctrl-C does not interrupt but cancels the main task, and the next one ends
   the event loop. A cancellation waits for the response anyway. So the first Ctrl-C is passed on,
   and the second one also ends that wait (`stops_at_once`).
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from inspect import CO_VARARGS
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # for `_interrupting`, which says why

Kinds = TypeVar("Kinds", bound=type[BaseException] | tuple[type[BaseException], ...])
"""Classes of exceptions, as an `except` names them."""

_TRIO = "trio._core._ki"
_ASYNCIO = "asyncio.runners"
_ENDING: Final = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")
"""The signals by which a terminal, a supervisor, a batch system or a limit ends a command."""
_TERMINATION: Final = tuple(getattr(signal, name) for name in _ENDING if hasattr(signal, name))
_HELD: Final = (signal.SIGINT, *_TERMINATION)


class Terminated(KeyboardInterrupt):
    """A signal that ends programs arrived; the command handles it as it handles Ctrl-C.

    Args:
        number: The signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number: int = number


class HeldInterrupt:
    """Whether Ctrl-C was pressed while it was held back, and must be raised now."""

    number: int | None = None
    """The signal that arrived, or None."""

    @property
    def seen(self) -> bool:
        """Whether one arrived. That is known once the block has ended, to one holder alone."""
        return self.number is not None

    def interrupt(self) -> KeyboardInterrupt:
        """Return the exception to raise for it."""
        if self.number is None or self.number == signal.SIGINT:
            return KeyboardInterrupt()
        return Terminated(self.number)


_NOTHING_HELD: Final = nullcontext(HeldInterrupt())


def hold_interrupts(*, when: bool) -> AbstractContextManager[HeldInterrupt]:
    """Hold the first Ctrl-C back until the block ends; a second one interrupts at once.

    An interruption between a paid request and its response would lose the task's id. Python raises
    `KeyboardInterrupt` in the main thread only, and a program with its own handler decides for
    itself, so in other cases there is nothing to hold. Under trio, several blocks may be open at a
    time; the first one to end gets the interruption.

    Within `terminating_on_signals`, other signals that end programs are held back too.

    Args:
        when: Whether to do so.
    """
    return _holding() if when else _NOTHING_HELD


@contextmanager
def _holding() -> Generator[HeldInterrupt, None, None]:
    held = HeldInterrupt()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    try:
        _interrupts.hold(held)
        yield held
    finally:
        held.number = _interrupts.release(held)


_Handler = Callable[[int, FrameType | None], object]


class _Interrupts:
    """The process's Ctrl-C, and who is holding it back."""

    def __init__(self) -> None:
        self._holders: set[HeldInterrupt] = set()
        self._pressed: int | None = None
        self._usual: dict[int, _Handler] = {}
        self.stopped: object = None
        """The event loop that a second Ctrl-C has ended, or None."""

    def hold(self, holder: HeldInterrupt) -> None:
        """Hold Ctrl-C back for *holder*, unless the program handles it itself."""
        if not self._holders:
            self._usual = _interrupting()
            if not self._usual:
                return
            self._pressed = None
            self.stopped = None
            try:
                for number in self._usual:
                    _signal.signal(number, self._handle)
            except BaseException:  # from a handler that is not replaced yet
                self._restore()
                raise
        self._holders.add(holder)

    def release(self, holder: HeldInterrupt) -> int | None:
        """Stop holding it, and return which signal arrived; only one holder learns of it."""
        if holder not in self._holders:
            return None  # it was not held, or a second Ctrl-C has released every holder
        self._holders.discard(holder)
        if not self._holders:
            self._restore()
        if self._pressed is None or _main_task_of(self._usual[self._pressed]) is not None:
            return None  # the first one has been passed on
        pressed, self._pressed = self._pressed, None
        return pressed

    def _restore(self) -> None:
        for number, usual in self._usual.items():
            main_task = _main_task_of(usual)
            # `asyncio.run` could not remove its handler at its end, because ours was in place.
            is_over = main_task is not None and main_task.done()
            _signal.signal(number, signal.default_int_handler if is_over else usual)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        usual = self._usual[number]
        if self._pressed is not None:
            # Here, and not by the holders: the exception may keep them from doing it.
            self._restore()
            paid = len(self._holders)
            self._holders.clear()
            self._pressed = None
            if (main_task := _main_task_of(usual)) is not None:
                self.stopped = main_task.get_loop()
                tell(left_unread(paid))
            usual(number, frame)
            return  # trio's raises later
        self._pressed = number
        tell(waiting_for(1, number))
        if _main_task_of(usual) is not None:
            usual(number, frame)


def _interrupting() -> dict[int, _Handler]:
    """Return the handlers that only interrupt, by signal number."""
    # `signal.getsignal` looks up an enum member, and if it fails, Python 3.11 formats the handler
    # for an error that nobody sees. asyncio's handler holds the main task, so this took a
    # twentieth of a lifecycle. `_signal` has the same functions without the enums.
    handlers: dict[int, _Handler] = {}
    for number in _HELD:
        usual = _signal.getsignal(number)
        if callable(usual) and _interrupts_only(usual):
            handlers[number] = usual
    return handlers


def _interrupts_only(handler: _Handler) -> bool:
    """Whether *handler* only raises KeyboardInterrupt, now or soon, or cancels the main task."""
    raises = handler in (signal.default_int_handler, _terminate) or handler.__module__ == _TRIO
    return raises or _main_task_of(handler) is not None


def _main_task_of(handler: _Handler) -> Any:
    """Return the task that *handler* cancels, if it is that of `asyncio.run`, or None."""
    if isinstance(handler, partial) and getattr(handler.func, "__module__", "") == _ASYNCIO:
        return handler.keywords.get("main_task")
    return None


def stops_at_once(event_loop: object) -> bool:
    """Whether a second Ctrl-C has ended *event_loop*, and its paid exchanges with it."""
    return event_loop is _interrupts.stopped


def waiting_for(paid: int, number: int = signal.SIGINT) -> str:
    """Return the message for the time while *paid* requests are awaited.

    Args:
        paid: How many requests.
        number: The signal that arrived.
    """
    what, whose = "the response to a paid request", "its id is"
    if paid > 1:
        what, whose = f"the responses to {paid} paid requests", "their ids are"
    again = "press Ctrl-C" if number == signal.SIGINT else f"send {signal.Signals(number).name}"
    return f"waiting for {what}, so that {whose} not lost; {again} again to stop at once"


def left_unread(paid: int) -> str:
    """Return the message for the end of a program that abandons *paid* requests."""
    what, they = "a paid request was", "it"
    if paid > 1:
        what, they = f"{paid} paid requests were", "they"
    return (
        f"the program ended while {what} under way: {they} may have been accepted. Before you "
        "send anything again, check your account for new tasks."
    )


def tell(message: str) -> None:
    """Print *message*: a user who interrupts must know why nothing happens yet."""
    # An error here would interrupt a paid request, whatever is wrong with the screen.
    with suppress(Exception):
        if sys.stderr is not None:  # print would fall back to standard output
            print(f"muybridge: {message}", file=sys.stderr)  # noqa: T201  as said


_interrupts = _Interrupts()


def _terminate(number: int, _: FrameType | None) -> None:
    raise Terminated(number)


@contextmanager
def terminating_on_signals() -> Generator[None, None, None]:
    """Within the block, signals that end programs interrupt as Ctrl-C does, with `Terminated`.

    It is for the command. An ignored signal, such as SIGHUP under nohup, stays ignored, and an
    existing handler stays in place.
    """
    numbers = [one for one in _TERMINATION if signal.getsignal(one) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def ignoring_signals() -> Generator[None, None, None]:
    """Within the block, signals are ignored if they would only interrupt.

    It is for the last lines of a command that one of them has ended.
    """
    handlers: dict[int, _Handler] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = _interrupting()
    for number in handlers:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, usual in handlers.items():
            signal.signal(number, usual)


def raised_by_handler(error: BaseException) -> bool:
    """Whether a signal handler raised *error*, rather than the code that it interrupted."""
    return _handler_traceback(error) is not None


def genuine(kinds: Kinds) -> Kinds:
    """Return *kinds*, or nothing if a signal handler raised the exception that is being handled.

    It stands in an `except`, which evaluates it once there is an exception.
    """
    error = sys.exception()
    return cast("Kinds", ()) if error is not None and raised_by_handler(error) else kinds


def _handler_traceback(error: BaseException) -> TracebackType | None:
    """Return the part of the traceback that begins in a signal handler, if there is one."""
    below = error.__traceback__
    handlers = _codes_of_handlers() if below is not None else ()
    while below is not None:
        if _was_handed_a_frame(below.tb_frame) or below.tb_frame.f_code in handlers:
            break
        below = below.tb_next
    return below


def _codes_of_handlers() -> set[CodeType]:
    """Return the code of the signal handlers, which may have deleted their frame argument."""
    codes: set[CodeType] = set()
    for number in signal.valid_signals():
        handler: object = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        for function in (handler, getattr(type(handler), "__call__", None)):  # noqa: B004  its code
            if isinstance(code := getattr(function, "__code__", None), CodeType):
                codes.add(code)
    return codes


def _was_handed_a_frame(frame: FrameType) -> bool:
    """Whether an argument is a frame: Python calls signal handlers this way, and nothing else."""
    code, values = frame.f_code, frame.f_locals
    named = code.co_argcount + code.co_kwonlyargcount
    if any(isinstance(values.get(name), FrameType) for name in code.co_varnames[:named]):
        return True
    if not code.co_flags & CO_VARARGS:
        return False
    rest: tuple[object, ...] = values.get(code.co_varnames[named], ())
    return any(isinstance(value, FrameType) for value in rest)


def hide_frames(error: BaseException) -> None:
    """Remove our frames and those of libraries, which may show the key, from the traceback.

    A signal handler's own frames stay.
    """
    error.__traceback__ = _handler_traceback(error)
    if error.__traceback__ is None:
        error.__cause__ = None
    error.__suppress_context__ = True


@contextmanager
def ignoring_errors(kind: type[Exception] = Exception) -> Generator[None, None, None]:
    """Ignore every exception of *kind* in the block, except from signal handlers."""
    try:
        yield
    except genuine(kind):
        pass
