"""The product's clients in a world: the real driver, ledger and HTTP on simulated ports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from muybridge import Budget, Task
from muybridge.base_client import DrivenClient
from muybridge.configuration import hidden, read_books, read_service
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.listeners import Listeners
from muybridge.wire.http1.transport import Http1Transport

from .network import Network, SimulatedLoop
from .runtime import SimulatedRuntime
from .service import KEY, URL
from .world import Process, World


@attrs.define(eq=False)
class Program:
    """A process that uses one client.

    Args:
        process: The process.
        client: The client.
        runtime: What it waits with.
        tasks: The ids that the user was told.
    """

    process: Process
    client: DrivenClient
    runtime: SimulatedRuntime
    tasks: set[str]


def program(
    world: World,
    network: Network,
    name: str,
    *,
    ledger: Path | None = None,
    budget: Budget | None = None,
    timeout: float = 60.0,
    on_submitted: Callable[[Task], None] | None = None,
) -> Program:
    """Return a new process with a client."""
    process = Process(name)
    runtime = SimulatedRuntime(world, process, once=world.chance(0.5))
    service, credentials = read_service(
        hidden(KEY), URL, None, allow_plain_http=True, allow_insecure_downloads=True, account=None
    )
    tasks: set[str] = set()

    def tell(task: Task) -> None:
        tasks.add(task.id)
        world.tell(f"{name} is told of {task.id}")
        if on_submitted is not None:
            on_submitted(task)

    transport = type("SimulatedTransport", (Http1Transport,), {})()
    transport.event_loop = SimulatedLoop(world, network)
    calls = Calls(service=service, timeout=timeout, poll_interval=None)
    books = read_books(budget, ledger, credentials, prices=None, dedupe=False)
    driver = Driver(transport, credentials, Listeners(tell, None), runtime, calls.next_polls, books)
    return Program(process, DrivenClient(calls, driver, owns_transport=True), runtime, tasks)
