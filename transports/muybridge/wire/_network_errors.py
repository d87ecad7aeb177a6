"""Telling a failure of the network from what somebody else raised during an exchange.

A signal handler may raise at any moment, and code has defects. If either were taken for a failure
of the network, it would vanish, and the request might be sent again. So a transport reports as
`TransportError` only what sockets, TLS and HTTP libraries raise; all else comes out as itself.
"""

from __future__ import annotations

from types import TracebackType

from muybridge.drivers.interrupts import raised_by_handler

_LIBRARIES = frozenset(
    {
        *("socket", "ssl", "http", "email", "encodings", "zlib"),
        *("requests", "urllib3", "trio", "httptools", "httpcore2", "muybridge"),
    }
)
"""The packages whose exceptions are about the network or about what came from it."""
_NETWORK = (OSError, EOFError, UnicodeError)
"""Built-in classes that are, together with those derived from them that are built in as well."""
_READING = (ValueError, LookupError)
"""Built-in classes that libraries raise over what they cannot read."""
_READERS = _LIBRARIES - {"muybridge"}


def network_error(
    error: BaseException, handled: BaseException | None, *, any_library: bool = False
) -> Exception:
    """Return *error* if it came from the network, and raise what did not.

    Args:
        error: What broke an exchange off.
        handled: What the caller was handling as the exchange began. It has nothing to do with it,
            but Python chains it to *error*.
        any_library: Whether exceptions of libraries that are not known here count as the
            network's.

    Raises:
        BaseException: It did not come from the network: *error*, or what a library has wrapped in
            it.
    """
    by_handler = [one for one in _chain(error, handled) if raised_by_handler(one)]
    if by_handler:
        # urllib3 gives its own exception the traceback of the one that it wraps.
        raised = min(by_handler, key=_is_of_a_library)
        raise raised from raised.__cause__
    if isinstance(error, Exception) and _is_of_the_network(error, any_library=any_library):
        return error
    raise error from error.__cause__


def _is_of_the_network(error: Exception, *, any_library: bool) -> bool:
    kind = type(error)
    if kind.__module__ == "builtins":
        read = isinstance(error, _READING) and _package_below(error.__traceback__) in _READERS
        return isinstance(error, _NETWORK) or read
    return any_library or _is_of_a_library(error)


def _is_of_a_library(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _LIBRARIES


def _package_below(traceback: TracebackType | None) -> str:
    """Return the package whose code raised."""
    name = ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__"))
        traceback = traceback.tb_next
    return name.partition(".")[0]


def _chain(error: BaseException, end: BaseException | None) -> list[BaseException]:
    """Return *error* and what it was raised from or wraps, but nothing from *end* on."""
    found: list[BaseException] = []
    left = [error]
    while left:
        one = left.pop()
        if one is end or any(one is known for known in found):
            continue
        found.append(one)
        wrapped = (one.__cause__, one.__context__, *one.args)
        left += [inner for inner in wrapped if isinstance(inner, BaseException)]
    return found
