"""Ctrl-C at every step of a call: at each line, or each opcode, of the library's own code.

The signal is really raised, in the main thread, so that whoever has a handler for it is asked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dis import opmap
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import muybridge
import muybridge_protocol
from client.in_process import World
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpRequest, HttpResponse

_LIBRARY = tuple(
    str(Path(str(module.__file__)).parent) + os.sep for module in (muybridge, muybridge_protocol)
)
# A context manager of the library's is left by way of this file.
_WATCHED = (*_LIBRARY, str(contextlib.__file__))
# This one uses it, too, where the event loop reports an error that nobody has asked for. Python
# drops whatever is raised there.
_REPORTS = str(traceback.__file__)
# The interpreter looks for no signal before a call has returned to its caller.
_UNSEEN = opmap["RETURN_VALUE"]
_BEGINS = opmap["RETURN_GENERATOR"]


class Interruption:
    """Raises SIGINT at the *step*-th step of the library's code within the context.

    Args:
        step: Which step, from 1.
        opcodes: Whether each opcode is a step, and not each line and call alone.
        calls: Whether each call alone is a step. A line may begin where the interpreter looks for
            no signal, which matters where a lock is about to be let go.
    """

    def __init__(self, step: int, *, opcodes: bool = False, calls: bool = False) -> None:
        self._step = step
        self._opcodes = opcodes
        self._events = ("call",) if calls else ("call", "line", "opcode")
        self.steps: int = 0
        """How many have been taken."""
        self.place: str | None = None
        """Where the signal was raised, or None where the call has so few steps."""

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        is_report = frame.f_back is not None and frame.f_back.f_code.co_filename == _REPORTS
        is_watched = code.co_filename.startswith(_WATCHED) and not is_report
        if self.place is not None or not is_watched:
            # The other lines of this frame are no steps: Python need not ask for them.
            frame.f_trace = None
            return None
        last = frame.f_lasti
        # Nor where an `await` goes on: what was raised there would pass its handlers by.
        goes_on = event == "call" and last >= 0 and code.co_code[last] != _BEGINS
        if goes_on or event not in self._events:
            return self._trace
        if self._opcodes:
            frame.f_trace_opcodes = True
            unseen = code.co_code[frame.f_lasti] == _UNSEEN
            # Nor in what the compiler adds around handlers, which stands in no line.
            if event == "opcode" and (unseen or frame.f_lineno is None):
                return self._trace
        self.steps += 1
        if self.steps == self._step:
            name = Path(code.co_filename).name
            self.place = f"{name}:{frame.f_lineno} {code.co_name} ({event})"
            signal.raise_signal(signal.SIGINT)
        return self._trace


class BookingWorld(World):
    """A service that books the paid requests, and whose own steps are none of the client's.

    Args:
        interruption: Whose steps are counted.
        pressed: Whether Ctrl-C is pressed each time that a paid request is here.
    """

    def __init__(self, interruption: Interruption, *, pressed: bool = False) -> None:
        super().__init__()
        self._interruption = interruption
        self._pressed = pressed
        self.arrived: int = 0
        """How many paid requests have arrived."""
        self.began: int = 0
        """How many steps the client had taken before the first one."""

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        """Answer *request*."""
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            return self._answer(request, authorization)
        finally:
            sys.settrace(trace)

    def _answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        self.arrived += request.paid
        self.began = self.began or self._interruption.steps
        if self._pressed and request.paid:
            signal.raise_signal(signal.SIGINT)
        try:
            return super().answer(request, authorization)
        except TransportError as error:
            self.arrived -= request.paid and not error.failure.sent
            raise


def said(error: BaseException) -> str:
    """Return all that a traceback of *error* says."""
    return "\n".join(_said(error))


def _said(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield str(error)
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__
