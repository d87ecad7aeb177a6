"""The async transport on asyncio: binds the port of `http1.byte_streams` to asyncio.

A shielded exchange absorbs a cancellation where it waits, waits again, and is cancelled afterwards.
`asyncio_shields` says why nothing less holds. So each wait for the network goes through `shielded`.
A timeout is a cancellation, too, but not one that is absorbed. `asyncio.timeout` tells the two
apart by counting, so what is cancelled again must not be counted again.

The event loop's own streams are not used. They take bytes into a buffer without saying when the
operating system takes them, and read ahead, so that what arrived before a request cannot be told
from its response. So the event loop only watches the socket here, and this module reads and writes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, ClassVar, TypeVar

from muybridge.wire.asyncio_shields import SHIELDS, Shield, cancel_again, shielded, unbroken
from muybridge.wire.exchange import Exchange
from muybridge.wire.http1.byte_streams import Address, EventLoop
from muybridge.wire.http1.socket_stream import SocketStream
from muybridge.wire.http1.transport import Http1Transport

T = TypeVar("T")


class AsyncioStream(SocketStream):
    """A TCP connection under asyncio.

    The event loop watches the socket from the first wait on, and not only while a task waits:
    adding and removing a reader for each wait took a twentieth of a lifecycle. It stops if
    something arrives that nobody waits for.
    """

    __slots__ = ("_arrival", "_is_reported_again", "_watched_by", "_writable")

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._watched_by: asyncio.AbstractEventLoop | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._is_reported_again = False
        self._writable: asyncio.Future[None] | None = None

    def wait_readable(self) -> Awaitable[object]:
        """Wait until something has arrived."""
        loop = asyncio.get_running_loop()
        self._refuse_second_task()
        if not isinstance(loop, asyncio.SelectorEventLoop):
            self._unwatch()  # libuv stops watching a socket that was reset
        if not self._watch(loop):
            # Receiving no bytes completes when there are some.
            return shielded(loop.sock_recv(self.sock, 0))
        self._arrival = loop.create_future()
        return shielded(self._arrival)

    async def wait_writable(self) -> None:
        """Wait until bytes can be sent."""
        loop = asyncio.get_running_loop()
        self._refuse_second_task()
        # Not the socket itself: selectors ask for its addresses, to describe it as a new one.
        number = self.sock.fileno()
        ready = loop.create_future()
        try:
            loop.add_writer(number, _complete, ready)
        except NotImplementedError:
            # Windows' proactor cannot say when, so the caller tries again in a moment.
            await shielded(asyncio.sleep(0.01))
            return
        self._writable = ready
        try:
            await shielded(ready)
        finally:
            self._writable = None
            if self.sock.fileno() == number:  # else it is closed, and another one has its number
                loop.remove_writer(number)

    def close(self) -> None:
        """Close it at once. A task that waits for it wakes up, and finds it closed."""
        self._unwatch()
        if self._writable is not None:
            self._writable.get_loop().remove_writer(self.sock.fileno())
        for waiting in (self._arrival, self._writable):
            if waiting is not None and not waiting.get_loop().is_closed():
                _complete(waiting)
        super().close()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Have *loop* report what arrives, unless it cannot, as Windows' proactor."""
        if self._watched_by is not loop:
            self._unwatch()
            try:
                loop.add_reader(self.sock.fileno(), self._arrived)
            except NotImplementedError:
                return False
            self._watched_by = loop
        return True

    def _unwatch(self) -> None:
        loop, self._watched_by = self._watched_by, None
        self._is_reported_again = False
        if loop is not None:
            loop.remove_reader(self.sock.fileno())

    def _arrived(self) -> None:
        if self._arrival is None or self._arrival.done():
            self._unwatch()  # the event loop would report it at each of its turns
        elif self._is_reported_again:
            # The event loop looked before the task had its turn to read. Should something else
            # have arrived, the next turn reports it.
            self._is_reported_again = False
        else:
            self._arrival.set_result(None)
            self._is_reported_again = True

    def _refuse_second_task(self) -> None:
        is_reading = self._arrival is not None and not self._arrival.done()
        if is_reading or self._writable is not None:
            # The event loop would forget the other task: it calls one function for each socket.
            raise RuntimeError("another task is already waiting for this connection")


class AsyncioLoop:
    """asyncio's event loop, or one that takes its place, such as uvloop's."""

    @staticmethod
    def now() -> float:
        """Return the event loop's time."""
        return asyncio.get_running_loop().time()

    async def checkpoint(self) -> None:
        """Raise the caller's cancellation, if there is one."""
        await asyncio.sleep(0)

    async def within(
        self, seconds: float, late: str, work: Awaitable[T], *, shielded: bool = False
    ) -> T:
        """Return what *work* returns, within so many *seconds*."""
        limit = asyncio.timeout(seconds)
        shield = Shield.put_up(limit) if shielded else None
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        except asyncio.CancelledError as error:
            if shield is None or not limit.expired():
                raise
            shield.absorbed = error.args  # it came together with the timeout
        finally:
            # Not in a function: a signal handler's exception may strike where one is entered, and
            # the shield would stay.
            if shield is not None:
                if shield.outer is None:
                    del SHIELDS[shield.task]
                else:
                    SHIELDS[shield.task] = shield.outer
                if shield.absorbed is not None:
                    shield.task.get_loop().call_soon(cancel_again, shield.task, shield.absorbed)
        raise TimeoutError(late)

    async def unbroken(self, work: Coroutine[Any, Any, T], exchange: Exchange) -> T:
        """Return what *work* returns; once any of *exchange* is sent, a cancellation waits."""
        return await unbroken(work, lambda: exchange.sent)

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*, looked up in a thread of the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Address, seconds: float, late: str) -> AsyncioStream:
        """Open a connection to *address*, which reports how many bytes it has sent."""
        return await AsyncioStream.connect(self, address, seconds, late)


class AsyncioTransport(Http1Transport):
    """An `AsyncTransport` on asyncio or uvloop, for any number of tasks of one event loop.

    It works as `TrioTransport` does: timeouts, proxies, certificates and the addresses that are
    checked are the same. Names are looked up in the threads of the event loop. A lookup that
    outlasts its exchange keeps a thread busy until the operating system gives up.

    A shielded exchange (`HttpRequest.shielded`) cannot be cancelled, within its timeout, from the
    first byte of the request to the last byte of the response: not by `Task.cancel`, nor
    by the shutdown of the event loop. The task is cancelled at its next suspension after the
    exchange. An exchange can be cancelled before its first byte; the last suspension comes right
    before it. The second Ctrl-C under `asyncio.run` ends the paid exchanges of clients, too.

    Args:
        ssl_context: The context for TLS connections, used unchanged: ALPN, too, is up to you, and
            must not offer HTTP/2. By default, one that offers http/1.1 is made from the CA
            certificates that the environment names, or certifi's.
        connect_timeout: Seconds for a name lookup, and to try each address of a host.
        pool_size: The most idle connections to keep for one host. It does not limit how many may
            be in use.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    event_loop: ClassVar[EventLoop] = AsyncioLoop()


def _complete(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
