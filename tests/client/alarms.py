"""A signal handler of the program's own that raises, and the points at which it strikes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import pytest

from moments import Moment
from transport.scripted_server import Peer

posix = pytest.mark.skipif(os.name != "posix", reason="signals to a thread are posix")


class Late(Exception):
    """What a soft time limit raises."""


class LateTimeout(TimeoutError):
    """The same, derived from what sockets raise."""


class LateConnection(ConnectionResetError):
    """The same, derived from what sockets raise when a connection is lost."""


class LateAtAll(BaseException):
    """The same, derived from nothing that is caught."""


ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: Late("time is up"),
    lambda: LateTimeout("time is up"),
    lambda: LateConnection(104, "time is up"),
    lambda: LateAtAll("time is up"),
    lambda: TimeoutError("time is up"),
    lambda: ConnectionResetError(104, "time is up"),
    lambda: ValueError("time is up"),
)
"""What handlers raise, the very classes of the network among them."""
NAMES = [type(make()).__name__ for make in ERRORS]


@contextmanager
def alarm_raises(error: BaseException, number: int = signal.SIGALRM) -> Generator[None]:
    """Let a signal, SIGALRM unless said otherwise, raise *error* within the block."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise error

    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def alarm(_: Peer | None = None) -> None:
    """Send SIGALRM to the main thread, where the test and the client run."""
    _send(signal.SIGALRM)


def ctrl_c(_: Peer | None = None) -> None:
    """Interrupt the main thread, where the test, the client and its event loop run."""
    _send(signal.SIGINT)


def _send(number: int) -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, number)


def alarm_in(monkeypatch: pytest.MonkeyPatch, moment: Moment, number: int = signal.SIGALRM) -> None:
    """Let a signal arrive the next time that the client comes to *moment*."""
    left = [number]

    def strike() -> None:
        if left:
            signal.raise_signal(left.pop())

    moment.strike(strike, put=monkeypatch.setattr)


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))
