"""`TrioClient`: the service for programs that run under trio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import trio

from muybridge.async_client import AsyncClient
from muybridge.configuration import hidden, read_service
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.fleet_run import FleetRun
from muybridge.drivers.listeners import Listeners
from muybridge.drivers.on_trio import TrioRuntime
from muybridge.drivers.outcomes import AsyncOutcomes
from muybridge.payment_guard import guarded
from muybridge.wire.async_transport import AsyncTransport
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.drivers.fleet_run import Work
    from muybridge_protocol.observations import AnyEvent
    from muybridge_protocol.operations.defaults import CONCURRENCY
    from muybridge_protocol.operations.poll import WAIT_TIMEOUT


class TrioOutcomes(AsyncOutcomes):
    """The outcomes of a run as they settle; it lasts as long as the context.

        async with client.run_all(requests) as outcomes:
            async for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    A failed task is an outcome like any other. If the context is left early or cancelled, nothing
    more is sent. Paid requests in flight run to their response, so that their ids are known, and an
    exception that passes through lists in its notes what is still outstanding. An exception from a
    listener of the client ends the run and is raised by the loop.
    """

    # Ctrl-C must not leave the nursery open: trio could not continue.
    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Self:
        return await super().__aenter__()

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, traceback)


class TrioClient(AsyncClient):
    """The service for programs that run under trio, for any number of tasks at once.

    Use it as an async context manager, or await `close` at the end. It belongs to one event
    loop. Any call may be cancelled, by `trio.move_on_after` or otherwise, and leaves nothing
    behind. A paid call is shielded, within its timeout, from its first byte until its response has
    been read and `on_submitted` was called. It then returns without a checkpoint, so no cancelled
    scope loses a paid id. Before its first byte it is cancelled like any other call, and nothing
    was sent. A text request has no id to lose: it can be cancelled at any time, and may have been
    charged.

    Args:
        api_key: The API key, or None for `MUYBRIDGE_API_KEY`.
        base_url: Where images, videos and assets are, or None for `MUYBRIDGE_BASE_URL`, which
            is not needed for text alone. "" means none, whatever is set.
        text_base_url: Where text is, or None for `MUYBRIDGE_TEXT_BASE_URL`, if set. "" means none.
        allow_plain_http: Whether base_url may be plain http on a host that is not this machine. The
            key then travels in clear text.
        allow_insecure_downloads: Whether results may be downloaded by plain http and from private
            hosts. Otherwise they must be https on public hosts, except for base_url's own host.
        timeout: Seconds that one exchange with the service may take. Keep it generous: a create
            that times out may have been accepted.
        poll_interval: Seconds between result queries, or None for the specification's pace.
        on_submitted: Called with each task as soon as its id is known.
        on_event: Called with each event, for progress, metrics and traces.
        transport: Sends requests, or None for `TrioTransport`.
        wall: Returns Unix seconds. The other clock is trio's own.

    Raises:
        InvalidKey: There is no key, or it cannot be sent as it is.
        InvalidAddress: There is no base URL, or it cannot be used.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        text_base_url: str | None = None,
        *,
        allow_plain_http: bool = False,
        allow_insecure_downloads: bool = False,
        timeout: float = API_TIMEOUT,
        poll_interval: float | None = None,
        on_submitted: Callable[[Task], None] | None = None,
        on_event: Callable[[AnyEvent], None] | None = None,
        transport: AsyncTransport | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        api_key = hidden(api_key)
        service, credentials = read_service(
            api_key,
            base_url,
            text_base_url,
            allow_plain_http=allow_plain_http,
            allow_insecure_downloads=allow_insecure_downloads,
        )
        calls = Calls(service=service, timeout=timeout, poll_interval=poll_interval)
        driver = Driver(
            guarded(_default_transport() if transport is None else transport),
            credentials,
            Listeners(on_submitted, on_event),
            TrioRuntime(wall),
            calls.next_polls,
        )
        super().__init__(calls, driver, owns_transport=transport is None)

    if TYPE_CHECKING:

        def run_all(  # noqa: D102  its docstring is inherited
            self,
            work: Iterable[Work],
            *,
            concurrency: int = CONCURRENCY,
            per_family: int | Mapping[str, int] | None = None,
            timeout: float | None = WAIT_TIMEOUT,
        ) -> TrioOutcomes: ...

    def _outcomes(self, run: FleetRun, workers: int) -> TrioOutcomes:
        return TrioOutcomes(run, self._driver, workers)


def _default_transport() -> AsyncTransport:
    from muybridge import TrioTransport  # noqa: PLC0415  an extra, whose absence it explains

    return TrioTransport()
