"""Holding Ctrl-C back while the reply to a paid request is on its way."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Final

_TRIO = "trio._core._ki"


class HeldInterrupt:
    """Whether Ctrl-C was pressed while it was held back, and is now to be raised."""

    seen = False


_NOTHING_HELD: Final = nullcontext(HeldInterrupt())


def hold_interrupts(*, when: bool) -> AbstractContextManager[HeldInterrupt]:
    """Hold the first Ctrl-C back until the block ends; a second one interrupts at once.

    Breaking off between a paid request and its reply would lose the task's id. Python raises
    `KeyboardInterrupt` in the main thread alone, and where a program has a handler of its own it
    decides itself, so that elsewhere there is nothing to hold. Under trio several blocks may be
    open at a time; the first one to end is then told.

    Args:
        when: Whether to do so.
    """
    return _holding() if when else _NOTHING_HELD


@contextmanager
def _holding() -> Generator[HeldInterrupt, None, None]:
    held = HeldInterrupt()
    if (
        threading.current_thread() is not threading.main_thread()
        or (ticket := _interrupts.hold()) is None
    ):
        yield held
        return
    try:
        yield held
    finally:
        held.seen = _interrupts.release(ticket)


class _Interrupts:
    """The process's Ctrl-C, which somebody holds back or nobody."""

    def __init__(self) -> None:
        self._holders = 0
        self._round = 0
        """Goes up when all that is held is given up."""
        self._pressed = False
        self._usual: Callable[[int, FrameType | None], object] = signal.default_int_handler

    def hold(self) -> int | None:
        """Begin to hold Ctrl-C back, and return a ticket, or None if that is not for us to do."""
        if not self._holders:
            usual = signal.getsignal(signal.SIGINT)
            if not callable(usual) or not (
                usual is signal.default_int_handler or usual.__module__ == _TRIO
            ):
                return None
            self._usual, self._pressed = usual, False
            signal.signal(signal.SIGINT, self._handle)
        self._holders += 1
        return self._round

    def release(self, ticket: int) -> bool:
        """Hold it no longer, and return whether it was pressed; only one holder is told so."""
        if ticket != self._round:
            return False
        self._holders -= 1
        if not self._holders:
            signal.signal(signal.SIGINT, self._usual)
        pressed, self._pressed = self._pressed, False
        return pressed

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            # Here, and not by the holders: what is raised may keep them from it.
            signal.signal(signal.SIGINT, self._usual)
            self._round, self._holders, self._pressed = self._round + 1, 0, False
            self._usual(number, frame)
            return  # trio's raises later
        self._pressed = True
        # An error in here would break the request off, whatever is wrong with the screen.
        with suppress(Exception):
            if sys.stderr is not None:  # print would turn to the standard output
                print(  # noqa: T201  the one who pressed it must know why nothing happens yet
                    "muybridge: waiting for the reply to a paid request, so that its id is not "
                    "lost; Ctrl-C again gives it up",
                    file=sys.stderr,
                )


_interrupts = _Interrupts()
