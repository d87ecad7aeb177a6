"""Which exception ends an exchange, where Python has chained several."""

from __future__ import annotations

import asyncio
import inspect
from types import FrameType

import pytest
import trio

import moments

network_error = moments.at("error of a broken exchange chosen").value


class Late(Exception):
    """What a signal handler raises."""


def by_handler() -> Late:
    """Return an exception that a signal handler has raised."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise Late

    try:
        handler(0, inspect.currentframe())
    except Late as error:
        return error
    raise AssertionError("it raises")


@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_cancellation_while_a_handlers_exception_ends_the_program(
    kind: type[BaseException],
) -> None:
    """A cancellation stays one, even if it is chained to what ends the event loop."""
    error = kind()
    error.__context__ = by_handler()
    with pytest.raises(kind) as caught:
        network_error(error, None)
    assert caught.value is error


def test_a_librarys_exception_around_a_handlers() -> None:
    """The exception of a handler comes out as itself where a library has wrapped it."""
    raised = by_handler()
    error = trio.BrokenResourceError()
    error.__cause__ = raised
    with pytest.raises(Late) as caught:
        network_error(error, None)
    assert caught.value is raised


def test_what_the_caller_handles_is_unrelated() -> None:
    """An exception that was handled before the exchange is not what ended it."""
    handled = by_handler()
    error = ConnectionResetError()
    error.__context__ = handled
    assert network_error(error, handled) is error
