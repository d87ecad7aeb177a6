"""`AsyncClient`: the service for asyncio and trio."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Never

from muybridge.base_client import BaseClient
from muybridge.configuration import check_part, hidden, read_books, read_service
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.listeners import Listeners
from muybridge.misplaced import refuse_misplaced
from muybridge.payment_guard import guarded
from muybridge.wire.async_transport import AsyncTransport
from muybridge_protocol.arguments import check_callable
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.drivers.fleet_run import FleetRun
    from muybridge.drivers.outcomes import AsyncOutcomes
    from muybridge.drivers.runtime import Runtime
    from muybridge.purchases import Store
    from muybridge.purchases.booking import Books
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.observations import AnyEvent
    from muybridge_protocol.purchases import Budget, Tags
    from muybridge_protocol.purchases.names import Dedupe


class AsyncClient(BaseClient):
    """The service for programs that run under asyncio or trio, for any number of tasks at once.

    Use it as an async context manager, or await `close` at the end. It may be made anywhere, even
    as a module's global: its first call finds out which event loop it runs under. From then on it
    belongs to that event loop.

    Any call may be cancelled, by `asyncio.timeout`, `trio.move_on_after` or otherwise, and leaves
    nothing behind. Before the first byte of a paid call it is cancelled at once, and nothing was
    sent. From then on the cancellation waits, within the call's timeout, until the response has
    been read and `on_submitted` was called. Under asyncio, the call then raises it, with the
    task's id in its notes. Under trio, the call returns, without a checkpoint in between. A text
    request has no id to lose: it can be cancelled at any time, and may have been charged.
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
        budget: Budget | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        prices: PriceList | None = None,
        dedupe: Dedupe = False,
        tags: Tags | None = None,
        account: str | None = None,
        transport: AsyncTransport | None = None,
        wall: Callable[[], float] = time.time,
        **_misplaced: Never,
    ) -> None:
        """Make a client. Nothing is sent.

        Args:
            api_key: The API key, or None for `MUYBRIDGE_API_KEY`.
            base_url: The base URL of images, videos and assets, or None for `MUYBRIDGE_BASE_URL`.
                It is not needed for text alone. Pass "" to ignore the variable.
            text_base_url: The base URL of text, or None for `MUYBRIDGE_TEXT_BASE_URL`, if set.
                Pass "" to ignore the variable.
            allow_plain_http: Whether base_url may be plain http on another machine.
                The key then travels in clear text.
            allow_insecure_downloads: Whether results may come by plain http and private hosts.
                Otherwise they must be https on public hosts, except for base_url's own host.
            timeout: Seconds that one request and its response may take; 60 by default.
                Keep it generous: a create that times out may have been accepted.
            poll_interval: Seconds between result queries.
                None stands for the interval that the specification recommends.
            on_submitted: Called with each task as soon as its id is known.
            on_event: Called with each event, for progress, metrics and traces.
            budget: What may be spent, or None for no limit.
                The limits of the environment, such as `MUYBRIDGE_MAX_COST`, apply as well.
            store: Where requests that cost money are recorded: a file, or a PostgreSQL database
                ("postgresql://USER@HOST/DATABASE") that many machines share, or a `Store`.
                None stands for `MUYBRIDGE_STORE`, or else for a file in your state folder.
                Requests are recorded only if a store, a budget, tags or `dedupe` is set, here or in
                the environment. `create_once` always records.
            prices: What requests cost, for a limit on cost and for the record.
                None stands for the prices in the file `MUYBRIDGE_PRICES`, if set.
            dedupe: Whether identical requests of `create` and `run` share one task.
                They then return the task of the earlier request, as `create_once` does. True is
                for those with the same tags, and "across-tags" for all, whatever their tags.
            tags: Whom or what all purchases are for, such as `{"customer": "acme"}`. They are
                recorded, and budgets can limit each of them. They are added to those of
                `MUYBRIDGE_TAGS`, and the tags of a call to them.
            account: Your name for the key's account, or None for the key itself.
                With a name, `create_once` and `dedupe` still recognize earlier requests after you
                change the key. Set it from the start, and use it for one account only.
            transport: Sends requests, or None for `AsyncioTransport` or `TrioTransport`.
            wall: Returns Unix seconds. The other clock is the event loop's own.

        Raises:
            LocalError: There is no key, or it cannot be sent as it is; or some tags cannot be used.
            InvalidAddress: There is no base URL, or it cannot be used.
            ValueError: A limit of the environment or the account's name cannot be read.
        """
        api_key = hidden(api_key)
        refuse_misplaced(self, "", _misplaced)
        if transport is not None:
            check_part("transport", transport, ("stream",), "an async transport, or None")
        check_callable("wall", wall)
        service, self._credentials = read_service(
            api_key,
            base_url,
            text_base_url,
            allow_plain_http=allow_plain_http,
            allow_insecure_downloads=allow_insecure_downloads,
            account=account,
        )
        calls = Calls(service=service, timeout=timeout, poll_interval=poll_interval)
        super().__init__(calls, owns_transport=transport is None, prices=prices)
        self._listeners = Listeners(on_submitted, on_event)
        self._transport = transport
        self._wall = wall
        self._books = read_books(
            budget, store, self._credentials, prices=prices, dedupe=dedupe, tags=tags
        )
        self._bound: dict[str, tuple[Driver, object]] = {}

    @property
    def _driver(self) -> Driver:
        library, event_loop = self._find_event_loop()
        if not self._bound:
            # In one step, because other threads may do it too.
            self._bound.setdefault("driver", (self._bind(library), event_loop))
        driver, its_loop = self._bound["driver"]
        if event_loop is not its_loop:
            raise RuntimeError(
                f"this {type(self).__name__} belongs to the event loop that it was first used "
                "under, and this is another one. Make a client for each event loop. Nothing was "
                "sent."
            )
        return driver

    def _find_event_loop(self) -> tuple[str, object]:
        """Return the library of the event loop that runs the caller, and what identifies it."""
        # A library that is not imported runs nothing.
        trio, asyncio = sys.modules.get("trio"), sys.modules.get("asyncio")
        if trio is not None and trio.lowlevel.in_trio_task():
            return "trio", trio.lowlevel.current_trio_token()
        try:
            if asyncio is not None:
                return "asyncio", asyncio.get_running_loop()
        except RuntimeError:
            pass
        raise RuntimeError(
            "AsyncClient needs asyncio or trio, and was called outside of them. Call it from a "
            "function that asyncio.run or trio.run runs. In blocking code, use Client. Nothing was "
            "sent."
        )

    def _bind(self, library: str) -> Driver:
        """Return the driver for the event loop of *library*."""
        runtime: Runtime
        transport = self._transport
        if library == "trio":
            from muybridge.drivers.on_trio import TrioRuntime

            runtime = TrioRuntime(self._wall)
            if transport is None:
                from muybridge.wire.trio_transport import TrioTransport

                transport = TrioTransport()
        else:
            from muybridge.drivers.on_asyncio import AsyncioRuntime

            runtime = AsyncioRuntime(self._wall)
            if transport is None:
                from muybridge.wire.asyncio_transport import AsyncioTransport

                transport = AsyncioTransport()
        return Driver(
            guarded(transport),
            self._credentials,
            self._listeners,
            runtime,
            self._calls.next_polls,
            self._books,
        )

    def _outcomes(
        self, run: FleetRun, workers: int, books: Books | None, *, dedupe: Dedupe
    ) -> AsyncOutcomes:
        if self._find_event_loop()[0] == "trio":
            from muybridge.drivers.trio_outcomes import TrioOutcomes

            return TrioOutcomes(run, self._driver, workers, books, dedupe=dedupe)
        return super()._outcomes(run, workers, books, dedupe=dedupe)
