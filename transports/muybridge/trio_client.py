"""`TrioClient`: the service for programs that run under trio."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import trio

from muybridge.announcing import Changes, Ledger, Listeners, note_task
from muybridge.calls import Calls, Moment, check_wait, link_of
from muybridge.configuration import hidden, read_service
from muybridge.fleet_run import FleetRun, Work
from muybridge.interrupts import raised_by_handler
from muybridge.payment_guard import guarded
from muybridge.saving import PartFile, SaveTarget, unsaved
from muybridge.trio_driver import Driven, Driver, trio_now
from muybridge.trio_fleet import TrioOutcomes
from muybridge.trio_text import TrioTextClient
from muybridge.wire.async_transport import AsyncTransport
from muybridge_protocol.errors import TaskEnded
from muybridge_protocol.events import Polled
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet import CONCURRENCY
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Poll
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT, SIZE_LIMIT
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.service import Service
from muybridge_protocol.tasks import Result, Task

if TYPE_CHECKING:
    from muybridge_protocol.observations import AnyEvent


class TrioClient(TrioTextClient):
    """The service for programs that run under trio, for any number of tasks at once.

    Use it as an async context manager, or await `close` at the end. It belongs to one event
    loop. Any call may be cancelled, by `trio.move_on_after` or otherwise, and leaves nothing
    behind. One that costs money is shielded, within its time-out, from its first byte until its
    reply has been read and `on_submitted` was called, and then returns without a checkpoint: no
    cancelled scope loses a paid id. Before its first byte it is cancelled like any other, and
    then nothing was sent. A text request has no id to lose: it is broken off at any time, and
    may have been charged.

    Args:
        api_key: The API key, or None for `MUYBRIDGE_API_KEY`.
        base_url: Where images, videos and assets are, or None for `MUYBRIDGE_BASE_URL`, which
            need not be set where text is all that is wanted. "" is none, whatever is set.
        text_base_url: Where text is, or None for `MUYBRIDGE_TEXT_BASE_URL`, if set. "" is none.
        allow_plain_http: Whether base_url may be plain http on a host that is not this machine.
        allow_insecure_downloads: Whether results may be downloaded by plain http and from private
            hosts. Without it https on public hosts is required, but for base_url's own host.
            The key then travels in clear text.
        timeout: Seconds that one exchange with the service may take. Keep it generous: a create
            given up too early may have been accepted.
        poll_interval: Seconds between result queries, or None for the specification's pace.
        on_submitted: Called with each task the moment its id is known.
        on_event: Called with each event, for progress, metrics and traces.
        transport: What sends requests, or None for `TrioTransport`.
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
        self._calls = Calls(service=service, timeout=timeout, poll_interval=poll_interval)
        self._owns_transport = transport is None
        self._driver = Driver(
            guarded(_default_transport() if transport is None else transport),
            credentials,
            Listeners(on_submitted, on_event),
            self._calls.next_polls,
        )
        self._wall = wall

    def __repr__(self) -> str:
        # A traceback that shows variables shows even a client whose making has failed.
        calls: Calls | None = getattr(self, "_calls", None)
        return f"TrioClient({str(calls.service) if calls is not None else '?'!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a client is not pickled or copied: it holds the API key and connections")

    async def __aenter__(self) -> Self:
        trio_now()  # raises outside of trio
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def service(self) -> Service:
        """Where the service is."""
        return self._calls.service

    async def close(self) -> None:
        """Close every idle connection."""
        if self._owns_transport:
            await self._driver.transport.close()

    async def create(self, request: MediaRequest) -> Task:
        """Create a task and return it as soon as its id is known.

        The request is sent at most once, unless it certainly did not reach the service or was
        answered 429. A task that the service refuses in its record has the status `failed`.
        Cancelled before its first byte, it was not sent; after that, a cancellation waits for
        the reply and comes at the caller's next checkpoint.

        Args:
            request: What to generate.

        Raises:
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused: `Unauthorized`, `Forbidden`, `RateLimited` or other.
            CreateAmbiguous: It may have been accepted; it was not sent again.
        """
        ledger = Ledger()
        try:
            return await self._driver.finish(self._calls.create(request, **self._moment()), ledger)
        except BaseException as error:
            ledger.leave_note(error)
            raise

    async def get(self, task: Task | Result | str) -> Result:
        """Return what the service says of a task now.

        The query is sent at once. If it fails, it is repeated twice at the family's pace.

        Args:
            task: A task, a result, a token or an id.

        Raises:
            TaskNotFound: The service does not know it.
            ServiceUnreachable: There was no valid reply in three tries.
            Refused: The service refused.
            ProtocolViolation: The reply cannot be one.
        """
        return await self._driver.finish(self._calls.query(task, **self._moment()))

    async def wait(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  as `Client.wait`; it ends with the task in hand
        on_update: Callable[[Result], None] | None = None,
    ) -> Result:
        """Wait until a task is completed, and return its result.

        Waits of one client for the same task keep its pace together, so that a short timeout in a
        loop polls no more often than a long one.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, or None for no limit.
            on_update: Called with each valid reply.

        Raises:
            TaskFailed: The task failed; the error carries the result.
            TaskCancelled: The task was cancelled.
            WaitTimeout: It did not end in time, even if the service was down. It goes on; wait
                again.
            ServiceUnreachable: The service can never be reached like this: its certificate is
                invalid, for example.
            TaskNotFound: The service does not know it; `ResultExpired` if not any more.
            ResultIncomplete: It is completed, but its result has no URL.
            Refused: The service refused.
            ProtocolViolation: The reply cannot be one.
        """
        poll = self._calls.wait(task, timeout=timeout, **self._moment())
        driven = Driven(self._driver, poll)
        try:
            async for event in driven:
                if on_update is not None and isinstance(event, Polled):
                    on_update(event.result)
        except BaseException as error:
            note_task(error, poll.task)
            raise
        finally:
            driven.leave()
        return driven.outcome()

    def watch(
        self, task: Task | Result | str, *, timeout: float | None = WAIT_TIMEOUT
    ) -> AbstractAsyncContextManager[AsyncIterator[Result]]:
        """Return a context that gives the task's results, one for each change of its status.

            async with client.watch(task) as results:
                async for result in results:
                    print(result.status)

        A failed or cancelled task is given like any other, and a link that comes later than its
        status is told as well. Both loop and context may be left at any time.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, or None for no limit.

        Raises:
            ServiceError: On iterating, as `wait`, but for `TaskFailed` and `TaskCancelled`.
        """

        def begin() -> Poll:
            return self._calls.wait(task, timeout=timeout, **self._moment(), stacklevel=4)

        return _Watch(self._driver, begin)

    async def run(
        self,
        request: MediaRequest,
        *,
        timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  as `wait`
        on_update: Callable[[Result], None] | None = None,
    ) -> Result:
        """Create a task and wait until it is completed.

        Args:
            request: What to generate.
            timeout: Seconds to wait after the creation, or None for no limit.
            on_update: Called with each valid reply.

        Raises:
            ServiceError: As `create` and `wait`. An error after the creation carries the task;
                a cancellation was told the id by `on_submitted`, and carries it in its notes.
            ValueError: The timeout is not a number. Nothing was sent.
        """
        check_wait(timeout)
        ledger = Ledger()
        try:
            create = self._calls.create(request, **self._moment())
            task = await self._driver.finish(create, ledger)
            return await self.wait(task, timeout=timeout, on_update=on_update)
        except BaseException as error:
            ledger.leave_note(error)
            raise

    def run_all(
        self,
        work: Iterable[Work],
        *,
        concurrency: int = CONCURRENCY,
        per_family: int | Mapping[str, int] | None = None,
        timeout: float | None = WAIT_TIMEOUT,
    ) -> TrioOutcomes:
        """Return a context that creates and awaits many tasks, and gives their outcomes.

            async with client.run_all(requests) as outcomes:
                async for outcome in outcomes:
                    print(outcome.key, outcome.result or outcome.error)

        They come in the order in which they settle; `key` is the place in *work*. Nothing is
        sent before the context is entered. See `TrioOutcomes` for what happens when it is left
        early.

        Args:
            work: Requests to create, and tasks, results, tokens or ids to wait for.
            concurrency: Most exchanges with the service at once.
            per_family: Most of them for one family: one number for all, or by name.
            timeout: Seconds to wait for each task after its creation, or None for no limit.

        Raises:
            ValueError: A limit is below one.
            InvalidIdentifier: A bare id holds what an id does not.
            InvalidToken: A token cannot be read.
        """
        run = FleetRun(
            self._calls,
            self._driver.listeners,
            trio.current_time,
            work,
            concurrency=concurrency,
            per_family=per_family,
            timeout=timeout,
            **self._moment(),
        )
        return TrioOutcomes(run, self._driver.exchange)

    async def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = DOWNLOAD_TIMEOUT,  # noqa: ASYNC109  as `Client.download`
        size_limit: int | None = SIZE_LIMIT,
    ) -> Path:
        """Save a result and return where it is.

        The file appears whole or not at all. A download that broke off, or was cancelled, is
        gone on with. The key is not sent. Where the link has expired and the task is known, a
        fresh one is asked for.

        Args:
            source: A result, a task, an id, a token or a URL.
            path: A file, or a folder: there the name is made from the task's id and its type.
            timeout: Seconds that it may take.
            size_limit: Most bytes, or None for no limit.

        Raises:
            DownloadFailed: It cannot be fetched or saved; `LinkExpired` where the link is dead.
            InvalidAddress: The URL is not one that results are downloaded from.
        """
        now = trio_now()
        url, task = link_of(source)
        if url is not None:
            self._calls.service.check_download(url)  # before a folder is made for it
        try:
            target = SaveTarget.choose(path, url, task)
            with PartFile(target, source=task.id if task is not None else str(url)) as part:
                operation = self._calls.download(
                    url,
                    task,
                    part.found,
                    timeout=timeout,
                    size_limit=size_limit,
                    now=now,
                )
                saved = await self._driver.download(operation, part)
                # In a thread, because it waits for the disk.
                return await trio.to_thread.run_sync(part.finish, saved.content_type)
        except OSError as error:
            if raised_by_handler(error):
                raise
            raise unsaved(path, error, task) from error

    async def delete_asset(self, asset_id: str) -> None:
        """Delete an asset for good.

        Args:
            asset_id: The asset's id, with or without `asset://`.

        Raises:
            AssetDeleteFailed: The service did not delete it.
            AssetDeleteUnknown: Whether it was deleted could not be learnt.
            NotSent: The service was not reached.
            Refused: The service refused.
        """
        operation = self._calls.delete_asset(asset_id, now=trio_now())
        await self._driver.finish(operation)

    async def call(self, method: str, path: str, json: object = None) -> HttpResponse:
        """Call any endpoint of the service and return its reply, whatever its status.

        For the endpoints that the specification names but does not show. Any method but GET is
        treated as one that costs money: it is never sent twice when it may have been accepted,
        and it is shielded from cancellation as a create is.

        Args:
            method: The HTTP method, in capital letters.
            path: The path below the base URL, beginning with one slash.
            json: The JSON value to send, or None for a request without a body.

        Raises:
            InvalidAddress: The path leaves the service's origin.
            NotSent: The service was not reached.
            CreateAmbiguous: It may have been accepted; it was not sent again.
        """
        ledger = Ledger()
        try:
            operation = self._calls.call(method, path, json, now=trio_now())
            return await self._driver.finish(operation, ledger)
        except BaseException as error:
            ledger.leave_note(error)
            raise

    def _join(self, other: TrioClient) -> None:
        """Share the service, key, listeners and connections of *other*, which closes them."""
        self._calls = other._calls
        self._driver = other._driver
        self._wall = other._wall
        self._owns_transport = False

    def _moment(self) -> Moment:
        return {"now": trio_now(), "wall": self._wall()}


class _Watch:
    """The results of a task that is watched, while the context lasts."""

    def __init__(self, driver: Driver, begin: Callable[[], Poll]) -> None:
        self._driver = driver
        self._begin = begin
        self._changes = Changes()
        self._ended: Result | None = None
        self._driven: Driven[Result] | None = None

    async def __aenter__(self) -> Self:
        operation = self._begin()
        if operation.settled is not None:  # a task that ended at its creation
            self._ended = operation.task.to_result()
        self._driven = Driven(self._driver, operation)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._driven is not None:
            self._driven.leave()
        self._driven = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Result:
        driven, ended, self._ended = self._driven, self._ended, None
        if driven is None:
            raise StopAsyncIteration
        if ended is not None:
            return ended
        async for event in driven:
            news = self._changes.of(event)
            if news is not None:
                return news
        self._driven = None
        with contextlib.suppress(TaskEnded):  # its last record has been given
            driven.outcome()
        raise StopAsyncIteration


def _default_transport() -> AsyncTransport:
    from muybridge import TrioTransport  # noqa: PLC0415  an extra, whose absence it explains

    return TrioTransport()
