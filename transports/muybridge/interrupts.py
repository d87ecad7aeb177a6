"""Holding Ctrl-C back while the reply to a paid request is on its way."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType


class HeldInterrupt:
    """Whether Ctrl-C was pressed while it was held back."""

    seen = False


@contextmanager
def hold_interrupts(*, when: bool) -> Generator[HeldInterrupt, None, None]:
    """Hold the first Ctrl-C back until the block ends; a second one interrupts at once.

    Breaking off between a paid request and its reply would lose the task's id. Python raises
    `KeyboardInterrupt` in the main thread alone, and where a program has a handler of its own it
    decides itself, so that elsewhere there is nothing to hold.

    Args:
        when: Whether to do so.
    """
    held = HeldInterrupt()
    default = signal.default_int_handler
    if (
        not when
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not default
    ):
        yield held
        return

    def hold(number: int, frame: FrameType | None) -> None:
        if held.seen:
            default(number, frame)
        held.seen = True
        # An error in here would break the request off, whatever is wrong with the screen.
        with suppress(Exception):
            if sys.stderr is not None:  # print would turn to the standard output
                print(  # noqa: T201  the one who pressed it must know why nothing happens yet
                    "muybridge: waiting for the reply to a paid request, so that its id is not "
                    "lost; Ctrl-C again gives it up",
                    file=sys.stderr,
                )

    signal.signal(signal.SIGINT, hold)
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, default)
