"""Keeps a program under test from paying.

While the guard is active, clients refuse every paid request to another machine before they connect.
The pytest plugin activates it for the whole run, collection and conftest files included, and lifts
it for each test that is marked. Three decisions follow from "when in doubt, nothing is sent":

- The guard sits between a client and its transport, so that it covers every transport. It cannot
  know what a transport does; one that never uses the network declares `offline = True`.
- It belongs to the process, not to a thread or context: a thread that a test left behind must not
  pay either.
- Processes that the tests start inherit it through the environment. They read the variable once,
  when a client is first imported, so that a program that clears its environment stays guarded.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

if TYPE_CHECKING:
    from muybridge_protocol.http import HttpRequest

MARKER = "muybridge_paid_requests"
"""The pytest mark of a test that may send paid requests."""

VARIABLE = "MUYBRIDGE_REFUSE_PAID_REQUESTS"
"""The environment variable that makes a process refuse paid requests from its start."""

AnyTransport = TypeVar("AnyTransport")


class PaidRequestBlocked(RuntimeError):
    """A test tried to send a paid request to another machine. Nothing was sent."""


class _Guard:
    """Whether paid requests are refused, or None if no guard was ever set up."""

    refuses: ClassVar[bool | None] = True if VARIABLE in os.environ else None


@contextmanager
def paid_requests(*, refused: bool) -> Generator[None]:
    """Refuse or allow paid requests to other machines until the context ends."""
    before = _Guard.refuses
    _Guard.refuses = refused
    _tell_children()
    try:
        yield
    finally:
        _Guard.refuses = before
        _tell_children()


def _tell_children() -> None:
    if _Guard.refuses:
        os.environ[VARIABLE] = "1"
    else:
        os.environ.pop(VARIABLE, None)


def guarded(transport: AnyTransport) -> AnyTransport:
    """Return *transport*, behind the guard if there is one and the transport is not offline."""
    if _Guard.refuses is None or getattr(transport, "offline", False):
        return transport
    behind: Any = _GuardedTransport(transport)
    return behind  # type: ignore[no-any-return]  # it has the same methods


class _GuardedTransport:
    """Wraps a blocking or async transport, and refuses paid requests while the guard is active."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Any:
        if request.paid and _Guard.refuses and not _stays_here(request):
            return _RefusedStream(request)
        return self._transport.stream(request, timeout=timeout, authorization=authorization)

    def close(self) -> Any:
        return self._transport.close()


class _RefusedStream:
    """An exchange that fails before it begins. `sent` tells the driver that nothing was sent."""

    sent: ClassVar[bool] = False

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __enter__(self) -> NoReturn:
        raise PaidRequestBlocked(_message(self._request))

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> NoReturn:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        pass


def _stays_here(request: HttpRequest) -> bool:
    from muybridge_protocol.hosts import is_loopback
    from muybridge_protocol.service import origin_of

    return is_loopback(origin_of(request.url)[1])


def _message(request: HttpRequest) -> str:
    from muybridge_protocol.service import origin_of

    _, host, _ = origin_of(request.url)
    return (
        f"Tests must not pay, and this one was about to send a paid request to {host}. "
        "Use the fixture muybridge_client, or a muybridge.testing.FakeTransport. To allow paid "
        f"requests in a test and its function-scoped fixtures, mark it: @pytest.mark.{MARKER}"
    )
