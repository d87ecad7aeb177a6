"""The product's clients in a world: the real driver, store and HTTP on simulated ports."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from muybridge import Budget, Client, Task
from muybridge.base_client import DrivenClient
from muybridge.configuration import hidden, read_books, read_service
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.listeners import Listeners
from muybridge.purchases import Store
from muybridge.wire.http1.response import Response
from muybridge.wire.http1.transport import Http1Transport
from muybridge_protocol.http import HttpRequest

from .network import Asked, Network, SimulatedLoop
from .runtime import SimulatedRuntime
from .service import KEY, URL
from .user_threads import AwaitableClient, BlockingTransport, ThreadRuntime
from .world import Actor, Process, World


@attrs.define(eq=False)
class Program:
    """A process that uses one client.

    Args:
        process: The process.
        client: The client.
        runtime: What it waits with.
        dedupe: Whether identical requests share a task.
        tasks: The ids that the user was told.
        actors: Its tasks.
    """

    process: Process
    client: DrivenClient | AwaitableClient
    runtime: SimulatedRuntime | ThreadRuntime
    dedupe: bool
    tasks: set[str]
    actors: list[Actor] = attrs.field(factory=list[Actor])

    @property
    def has_ended(self) -> bool:
        """Whether all of its tasks have ended."""
        return all(actor.done for actor in self.actors)


class Sinks(logging.Handler):
    """Every place where people read what the client shows: events, log records and errors."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def createLock(self) -> None:  # noqa: N802  logging's name
        """Have none: only one actor goes on at a time."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take a log record."""
        self.lines.append(f"{record.getMessage()} {record.__dict__!r}")

    def event(self, event: object) -> None:
        """Take an event."""
        self.lines.append(repr(event))

    def error(self, error: BaseException) -> None:
        """Take an error that a call has raised, with its notes and causes."""
        self.lines += (repr(error), *traceback.format_exception(error))

    @property
    def has_key(self) -> bool:
        """Whether the key is in any of them."""
        return any(KEY in line for line in self.lines)


def program(
    world: World,
    network: Network,
    process: Process,
    *,
    store: Store | Path | None = None,
    budget: Budget | None = None,
    dedupe: bool = False,
    timeout: float = 60.0,
    sinks: Sinks | None = None,
    threads: bool | None = None,
) -> Program:
    """Return a process with a client: a blocking one in threads, or one in an event loop.

    Args:
        world: The world.
        network: Its network.
        process: The process.
        store: The store, or its file, or None for none.
        budget: The budget, or None.
        dedupe: Whether identical requests share a task.
        timeout: Seconds that an exchange may take.
        sinks: Where the client's events go, or None.
        threads: Whether the client is a blocking one, or None to let chance decide.
    """
    service, credentials = read_service(
        hidden(KEY), URL, None, allow_plain_http=True, allow_insecure_downloads=True, account=None
    )
    tasks: set[str] = set()

    def tell(task: Task) -> None:
        tasks.add(task.id)
        world.tell(f"is told of {task.id}")

    on_event = None if sinks is None else sinks.event
    transport = _transport(world, network)
    if world.chance(0.3) if threads is None else threads:
        world.count("a program has threads")
        blocking_client = Client(
            KEY,
            URL,
            allow_plain_http=True,
            allow_insecure_downloads=True,
            timeout=timeout,
            on_submitted=tell,
            on_event=on_event,
            budget=budget,
            store=store,
            dedupe=dedupe,
            transport=BlockingTransport(transport),
        )
        client = AwaitableClient(blocking_client)
        return Program(process, client, ThreadRuntime(world, process), dedupe, tasks)
    calls = Calls(service=service, timeout=timeout, poll_interval=None)
    books = read_books(budget, store, credentials, prices=None, dedupe=dedupe)
    runtime = SimulatedRuntime(world, process, once=world.chance(0.5))
    listeners = Listeners(tell, on_event)
    driver = Driver(transport, credentials, listeners, runtime, calls.next_polls, books)
    driven = DrivenClient(calls, driver, owns_transport=True)
    return Program(process, driven, runtime, dedupe, tasks)


def _transport(world: World, network: Network) -> Http1Transport:
    class SimulatedTransport(Http1Transport):
        event_loop = SimulatedLoop(world, network)

        def stream(
            self, request: HttpRequest, *, timeout: float, authorization: str | None = None
        ) -> Response:
            assert world.current is not None
            asked = Asked(world.current, urlsplit(request.url).path, world.now, world.steps)
            network.asked.append(asked)
            return super().stream(request, timeout=timeout, authorization=authorization)

    return SimulatedTransport()
