"""Distinguishes network errors from everything else that may be raised during an exchange.

A signal handler may raise at any moment, and code has defects. If either were taken for a network
error, it would vanish, and the request might be sent again. So a transport turns only what sockets,
TLS and HTTP libraries raise into a `TransportError`; everything else propagates unchanged.

The class of an exception decides, by its package. A transport of somebody else's may use any
library, so exceptions of every installed package count there. Two kinds never do. The standard
library has no exceptions for a broken connection except those listed here: `InvalidStateError` or
`JSONDecodeError` is a mistake in the transport's own code. And a library may derive its classes
from `AttributeError` and the like, but no server causes these.
"""

from __future__ import annotations

import sys
from types import TracebackType

from muybridge.signals import raised_by_handler

_LIBRARIES = frozenset(
    {
        *("socket", "ssl", "http", "email", "zlib"),
        *("requests", "urllib3", "trio", "httpcore2", "muybridge"),
    }
)
"""The packages whose exceptions are about the network or about what arrived from it."""
_NETWORK = (OSError, EOFError, UnicodeError)
"""Built-in exceptions that are network errors, and so are built-in classes derived from them."""
_READING = (ValueError, LookupError)
"""Built-in exceptions that libraries raise for data that they cannot read."""
_READERS = _LIBRARIES - {"muybridge"}
_DEFECTS = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, ImportError, NameError),
    *(ReferenceError, SyntaxError, TypeError, NotImplementedError, RecursionError),
)
"""Built-in exceptions that are mistakes in code, and so are all classes derived from them."""


def network_error(
    error: BaseException, handled: BaseException | None, *, any_library: bool = False
) -> Exception:
    """Return *error* if it is a network error, and raise it if not.

    Args:
        error: What ended an exchange.
        handled: The exception that the caller was handling when the exchange began. It is
            unrelated, but Python chains it to *error*.
        any_library: Whether exceptions of unknown libraries count as network errors.

    Raises:
        BaseException: *error* is not a network error. If a library wrapped the exception of a
            signal handler, that one is raised.
    """
    if not isinstance(error, Exception):
        # A cancellation wraps nothing: Python chains it to whatever ended the event loop, say.
        raise error from error.__cause__
    by_handler = [one for one in _chain(error, handled) if raised_by_handler(one)]
    if by_handler:
        # urllib3 gives its own exception the traceback of the one that it wraps.
        raised = min(by_handler, key=lambda one: _package_of(one) in _READERS)
        raise raised from raised.__cause__
    if _is_of_the_network(error, any_library=any_library):
        return error
    raise error from error.__cause__


def _is_of_the_network(error: Exception, *, any_library: bool) -> bool:
    package = _package_of(error)
    if isinstance(error, _DEFECTS):
        return False
    if package == "builtins":
        read = isinstance(error, _READING) and _package_below(error.__traceback__) in _READERS
        return isinstance(error, _NETWORK) or read
    if package in sys.stdlib_module_names:
        return isinstance(error, _NETWORK) or package in _LIBRARIES
    return any_library or package in _LIBRARIES


def _package_of(error: BaseException) -> str:
    """Return the package whose exception *error* is."""
    return type(error).__module__.partition(".")[0]


def _package_below(traceback: TracebackType | None) -> str:
    """Return the package whose code raised the exception."""
    name = ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__"))
        traceback = traceback.tb_next
    return name.partition(".")[0]


def _chain(error: BaseException, end: BaseException | None) -> list[BaseException]:
    """Return *error* and the exceptions that it was raised from or wraps, up to *end*."""
    chain: list[BaseException] = []
    left = [error]
    while left:
        one = left.pop()
        if one is end or any(one is earlier for earlier in chain):
            continue
        chain.append(one)
        wrapped = (one.__cause__, one.__context__, *one.args)
        left += [inner for inner in wrapped if isinstance(inner, BaseException)]
    return chain
