"""The byte-stream port on a simulated network: every byte arrives when chance wants, or never.

A connection is two pipes. What is sent enters a pipe at once, in pieces of any size, and arrives
later. A fault of the network breaks a pipe at some byte: those before it arrive, and then the
reader hears that the connection was reset, or closed, or nothing any more.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import attrs

from muybridge.wire.http1.byte_streams import Address

from .runtime import shielded
from .world import FOREVER, Actor, Process, World

T = TypeVar("T")


@attrs.define(eq=False)
class Pipe:
    """Bytes on their way in one direction.

    Args:
        world: The world.
        latency: Returns the seconds that a piece takes.
    """

    world: World
    latency: Callable[[], float]
    _pieces: deque[tuple[float, bytes]] = attrs.field(factory=deque[tuple[float, bytes]])
    _arrives: float = 0.0
    is_shut: bool = False
    """Whether nothing more is sent."""
    broken: OSError | None = None
    """Why the reader gets nothing more, or None."""
    taken: int = 0
    """How many bytes the reader has taken."""
    sent: int = 0
    """How many bytes were sent."""
    sender: Actor | None = None
    """Who sent the last of them."""
    step: int = 0
    """The world's step in which the last of them was sent."""
    reader: Actor | None = None
    """Who waits for the next piece."""
    room: float = FOREVER
    """How many more bytes get through before the connection breaks."""

    def send(self, data: bytes) -> None:
        """Send *data*, which arrives after everything sent before."""
        self.sender, self.step = self.world.current, self.world.steps
        self.sent += len(data)
        if len(data) > self.room:
            data = data[: int(self.room)]
        self.room -= len(data)
        if data:
            self._arrives = max(self._arrives, self.world.now + self.latency())
            self._pieces.append((self._arrives, data))
            self._wake()

    def shut(self) -> None:
        """Send nothing more. The reader hears of the end later, as of all that is sent."""
        if not self.is_shut:
            self._arrives = max(self._arrives, self.world.now + self.latency())
            self.is_shut = True
            self._wake()

    @property
    def next(self) -> float:
        """When the next piece arrives, or the end."""
        if self._pieces:
            return self._pieces[0][0]
        return self._arrives if self.is_shut else FOREVER

    @property
    def is_ready(self) -> bool:
        """Whether the reader need not wait."""
        return self.next <= self.world.now or (not self._pieces and self.broken is not None)

    def take(self, size: int) -> bytes:
        """Return up to *size* bytes that have arrived, or none at the end.

        Raises:
            BlockingIOError: Nothing has arrived.
            OSError: The connection broke.
        """
        if not self.is_ready:
            raise BlockingIOError
        if not self._pieces:
            if self.broken is not None:
                raise self.broken
            return b""
        _, piece = self._pieces.popleft()
        size = min(size, len(piece), self.world.random.choice((1, 7, 100, 65_536)))
        if rest := piece[size:]:
            self._pieces.appendleft((self.world.now, rest))
        self.taken += size
        return piece[:size]

    def _wake(self) -> None:
        """Have the reader look as soon as the next piece arrives."""
        if self.reader is not None:
            self.reader.until = min(self.reader.until, self.next)


@attrs.define(eq=False)
class SimulatedStream:
    """One end of a connection.

    Args:
        world: The world.
        incoming: What this end reads.
        outgoing: What it writes.
    """

    world: World
    incoming: Pipe
    outgoing: Pipe

    async def send(self, data: memoryview) -> int:
        """Send some of *data*."""
        self.world.pause(self.world.now)
        if self.incoming.broken is not None and not self.incoming.next < FOREVER:
            raise ConnectionResetError(104, "Connection reset by peer")
        size = min(len(data), self.world.random.choice((1, 50, 100_000, 100_000)))
        self.outgoing.send(bytes(data[:size]))
        if self.outgoing.room <= 0:
            self.incoming.broken = ConnectionResetError(104, "Connection reset by peer")
        return size

    async def receive(self, size: int) -> bytes:
        """Wait for bytes."""
        while True:
            # Also what is there already takes a checkpoint, at which others go on.
            self.incoming.reader = self.world.current
            try:
                self.world.pause(self.incoming.next, lambda: self.incoming.is_ready)
                return self.incoming.take(size)
            except BlockingIOError:
                continue
            finally:
                self.incoming.reader = None

    def receive_nowait(self, size: int) -> bytes:
        """Return bytes that have already arrived."""
        return self.incoming.take(size)

    def close(self) -> None:
        """Close it."""
        self.outgoing.shut()


Accept = Callable[[SimulatedStream], None]
"""Serves one connection from its first byte to its last."""


@attrs.frozen(eq=False)
class Asked:
    """A request that a client has handed to its transport.

    Args:
        sender: Who did.
        path: Its path.
        at: When that was.
        step: The world's step in which that was.
    """

    sender: Actor
    path: str
    at: float
    step: int


@attrs.define(eq=False)
class Network:
    """Hosts, and what happens on the way to them.

    Args:
        world: The world.
        faults: How often something goes wrong with a connection, from 0 to 1.
    """

    world: World
    faults: float = 0.0
    asked: list[Asked] = attrs.field(factory=list[Asked])
    """The requests that clients have handed to their transports."""
    opened: list[tuple[Actor, int]] = attrs.field(factory=list[tuple[Actor, int]])
    """Who has opened each connection, and in which step."""
    broken: list[Actor] = attrs.field(factory=list[Actor])
    """Who has opened each connection that breaks while a request is sent."""
    hosts: dict[str, tuple[Process, Accept]] = attrs.field(
        factory=dict[str, tuple[Process, Accept]]
    )

    def latency(self) -> float:
        """Return the seconds that a piece takes."""
        return self.world.random.choice((0.0, 0.01, 0.01, 0.2, 1.5))

    def fails(self, what: str) -> bool:
        """Whether *what* goes wrong now."""
        if not self.world.chance(self.faults):
            return False
        self.world.count(what)
        self.world.tell(what)
        return True

    def connection(self, host: str) -> SimulatedStream:
        """Return the client's end of a new connection to *host*."""
        process, accept = self.hosts[host]
        here, there = Pipe(self.world, self.latency), Pipe(self.world, self.latency)
        theirs = SimulatedStream(self.world, incoming=there, outgoing=here)
        opener = self.world.current
        assert opener is not None
        self.opened.append((opener, self.world.steps))
        if self.fails("a connection breaks"):
            self.broken.append(opener)
            there.room = self.world.random.choice((1, 100, 300, 600))
        self.world.start(process, lambda: accept(theirs), host, loop=process.loop)
        return SimulatedStream(self.world, incoming=here, outgoing=there)


@attrs.frozen(eq=False)
class SimulatedLoop:
    """Time, names and connections, for `Http1Transport`.

    Args:
        world: The world.
        network: Its network.
    """

    world: World
    network: Network

    def now(self) -> float:
        """Return the world's time."""
        return self.world.now

    async def checkpoint(self) -> None:
        """Raise the caller's cancellation, if there is one."""
        self.world.pause(self.world.now)

    async def within(
        self, seconds: float, late: str, work: Awaitable[T], *, shielded: bool = False
    ) -> T:
        """Return what *work* returns, within *seconds*."""
        with self.world.within(seconds, late):
            if not shielded:
                return await work
            return await self._shielded(work)

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*."""
        self.world.pause(self.world.now + self.network.latency())
        if self.network.fails("a name is not found"):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if self.network.fails("a lookup hangs"):
            self.world.pause()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, host, ("203.0.113.7", port))]

    async def connect(self, address: Address, seconds: float, late: str) -> SimulatedStream:
        """Connect to *address*."""
        with self.world.within(seconds, late):
            self.world.pause(self.world.now + self.network.latency())
            if self.network.fails("a connection is refused"):
                raise ConnectionRefusedError(111, "Connection refused")
            if self.network.fails("a connection hangs"):
                self.world.pause()
            return self.network.connection(address[3])

    async def _shielded(self, work: Awaitable[T]) -> T:
        actor = self.world.current
        assert actor is not None
        with shielded(actor):
            return await work
