"""`BaseClient`: everything a client does, written once as coroutines.

`Client` runs them in blocking code, `AsyncClient` on the event loop that it is used under. Both are
thin faces without logic.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    Never,
    NoReturn,
    Self,
    TypeVar,
    overload,
)

import attrs

from muybridge.configuration import check_dedupe, read_books
from muybridge.drivers.calls import Calls, Moment, check_wait_of_create, link_of
from muybridge.drivers.driver import Drive, Driver
from muybridge.drivers.notes import InterruptedTasks, PaidNotes, note_download, note_task
from muybridge.drivers.watching import Watch
from muybridge.misplaced import missing_attribute, refuse_misplaced
from muybridge_protocol.arguments import check_callable
from muybridge_protocol.events import Polled
from muybridge_protocol.families import Unlisted, check_request
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations.defaults import (
    CHECK_TIMEOUT,
    CONCURRENCY,
    DOWNLOAD_TIMEOUT,
    READ_LIMIT,
    SIZE_LIMIT,
)
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service
from muybridge_protocol.text.defaults import (
    CHAT_PATH,
    MESSAGES_PATH,
    NO_BODY,
    RESPONSE_LIMIT,
    SILENCE_LIMIT,
    TEXT_TIMEOUT,
)

if TYPE_CHECKING:
    from muybridge.drivers.fleet_run import FleetRun, Work
    from muybridge.drivers.outcomes import AsyncOutcomes
    from muybridge.drivers.text_calls import AsyncContentStream, AsyncTextStream, Limits, TextCalls
    from muybridge.files.sidecar import Sidecar
    from muybridge.media.by_name import Fields
    from muybridge.media.checking import MediaFiles
    from muybridge.purchases.booking import Booking, Books
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.operations.operation import Operation
    from muybridge_protocol.purchases import Tags
    from muybridge_protocol.purchases.names import Dedupe
    from muybridge_protocol.rules.media import MediaReport
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import GenerateContentResponse

T = TypeVar("T")


class Parts(NamedTuple):
    """What a client works with, for code that works as the client does, such as batches.

    Attributes:
        calls: Begins operations.
        driver: Drives them.
        named_books: Returns what books requests that need a store.
    """

    calls: Calls
    driver: Driver
    named_books: Callable[[], Books]


class BaseClient:
    """Everything a client does, as coroutines. A subclass says what drives them.

    A text request costs money, so it is resent only if it certainly did not reach the service or
    was answered with 429. A cancellation aborts it at once.

    Args:
        calls: Begins operations.
        owns_transport: Whether closing the client closes the connections.
        prices: What requests cost, or None if that is not known.
    """

    _closed: bool = False
    _text_calls: TextCalls | None = None

    def __init__(
        self, calls: Calls, *, owns_transport: bool, prices: PriceList | None = None
    ) -> None:
        self._calls = calls
        self._prices = prices
        self._owns_transport = owns_transport
        self._interrupted = InterruptedTasks()
        self._books: Books | None = None
        """What the client books its paid requests with, or None."""
        self._names: Books | None = None
        """What books requests with a name or with tags, if the client books no others."""

    if not TYPE_CHECKING:
        __getattr__ = missing_attribute

    def __repr__(self) -> str:
        # A traceback that shows variables also shows a client whose constructor failed.
        calls: Calls | None = getattr(self, "_calls", None)
        return f"{type(self).__name__}({str(calls.service) if calls is not None else '?'!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a client is not pickled or copied: it holds the API key and connections")

    async def __aenter__(self) -> Self:
        self._now()  # raises if the client cannot be used here
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            try:
                self._now()
            except RuntimeError:  # the event loop is gone, and with it whatever could be awaited
                return
        if error is not None and self._driver.listeners.on_submitted is None:
            self._interrupted.tell(error)
        await self.close()

    @property
    def service(self) -> Service:
        """Where the service is."""
        return self._calls.service

    @property
    def interrupted_tasks(self) -> tuple[Task, ...]:
        """Accepted tasks whose calls ended without an error that carries them.

        A timeout of yours, a cancellation or Ctrl-C ended these calls. The tasks are paid for. Wait
        for them, or download their results: those that succeed leave this list. It holds the last
        1,000. Unless there is an `on_submitted`, an exception that leaves the client's context
        names them, too.
        """
        return self._interrupted.tasks

    @property
    def parts(self) -> Parts:
        """The client's parts, for code that sends requests as the client does, such as batches.

        Raises:
            RuntimeError: The client is closed, or cannot be used here. Nothing was sent.
        """
        return Parts(self._calls, self._open_driver(), self._named_books)

    async def close(self) -> None:
        """Close every idle connection. After that nothing can be sent."""
        self._closed = True
        try:
            if self._owns_transport:
                await self._driver.transport.close()
        finally:
            # A set, because these are mostly one and the same.
            for books in {self._books, self._names}:
                if books is not None:
                    await self._driver.runtime.finish_in_thread(books.close)

    async def create(
        self,
        request: MediaRequest | str,
        fields: Fields | None = None,
        *,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> Task:
        """Create a task and return it as soon as its id is known.

        The request is sent at most once, unless it certainly did not reach the service or the
        response was 429. If the service accepts the request but reports the task as failed at once,
        the task is returned with status `failed`.

        Args:
            request: What to generate: a request, or the name of a family.
            fields: With a name, the request's fields by their names in Python or on the wire. A
                path, bytes or an open file in place of a URL is loaded as `load_media` does.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused: `Unauthorized`, `Forbidden`, `RateLimited` or other.
            CreateAmbiguous: It may have been accepted; it was not sent again.
        """
        refuse_misplaced(self, "create", _misplaced)
        notes = PaidNotes(self._interrupted)
        try:
            checked = self._checked(tags)
            return await self._create(await self._request(request, fields), notes, checked)
        except BaseException as error:
            notes.leave_note(error)
            raise

    async def create_once(
        self,
        once: str,
        request: MediaRequest | str,
        fields: Fields | None = None,
        *,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> Task:
        """Create a task once under a name: repeating the call returns the same task.

        The store keeps the name, so it does not matter which process repeats the call, or how
        often. If another one is sending the request, this call waits for the outcome. If the
        request was certainly not accepted, the next call may send it again. A task that has failed
        is returned like any other: use another name to try again.

        Args:
            once: The name: any string of 1 to 200 printable characters, such as an order number.
                Names belong to an account (API key and base URL). With a new key, a name that was
                used before counts as unused, unless you set `account`.
            request: What to generate: a request, or the name of a family.
            fields: With a name, the request's fields by their names in Python or on the wire. A
                path, bytes or an open file in place of a URL is loaded as `load_media` does.
            tags: Tags of the purchase besides the client's. They do not belong to the name: if the
                name has a task already, that one has the tags that it was created with.

        Raises:
            OnceTaken: The name belongs to another request; nothing was sent.
            OnceUnderWay: Another call is still sending the request; nothing was sent again.
            CreateAmbiguous: It may have been accepted, by this call or an earlier one; it was not
                sent again. `muybridge decide` records a person's decision.
            StoreUnusable: The store cannot be read or written; nothing was sent.
            ServiceError: As `create`.
            ValueError: The name is empty, too long or not printable.
        """
        refuse_misplaced(self, "create_once", _misplaced)
        from muybridge.purchases.booking import check_once

        notes = PaidNotes(self._interrupted)
        try:
            once = check_once(once)
            checked = self._checked(tags)
            made = await self._request(request, fields)
            return await self._create(made, notes, checked, once, named=True)
        except BaseException as error:
            notes.leave_note(error)
            raise

    async def get(self, task: Task | Result | str, **_misplaced: Never) -> Result:
        """Query a task once and return its current result.

        The query is sent at once. If it fails, it is retried twice, at the family's poll interval.

        Args:
            task: A task, a result, a token or an id.

        Raises:
            TaskNotFound: The service does not know it.
            ServiceUnreachable: There was no valid response in three tries.
            Refused: The service refused.
            ProtocolViolation: The response violates the protocol.
        """
        refuse_misplaced(self, "get", _misplaced)
        return await self._driver.finish(self._calls.query(task, **self._moment()))

    async def wait(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None = WAIT_TIMEOUT,
        on_update: Callable[[Result], None] | None = None,
        **_misplaced: Never,
    ) -> Result:
        """Wait until a task is completed, and return its result.

        All waits of one client for the same task share its poll interval, so a short timeout in a
        loop polls no more often than a long one.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, an hour by default; None for no limit.
            on_update: Called with each valid response.

        Raises:
            TaskFailed: The task failed or was cancelled; the error carries the result.
            WaitTimeout: The task did not end in time, or the service was down all the time. Wait
                again later.
            ServiceUnreachable: Retrying cannot help: the service's certificate is invalid, for
                example.
            TaskNotFound: The service does not know it; `ResultExpired` if it has deleted the task.
            ResultIncomplete: It is completed, but its result has no URL.
            Refused: The service refused.
            ProtocolViolation: The response violates the protocol.
        """
        refuse_misplaced(self, "wait", _misplaced)
        check_callable("on_update", on_update)
        return await self._wait(task, timeout, on_update)

    async def _wait(
        self,
        task: Task | Result | str,
        timeout: float | None,
        on_update: Callable[[Result], None] | None,
        tags: Tags | None = None,
    ) -> Result:
        """Wait for a task as `wait` does. Its purchase has *tags*, if they are known."""
        poll = self._calls.wait(task, timeout=timeout, **self._moment())
        drive = Drive(self._driver, poll, tags=tags)
        try:
            while await drive.step():
                for event in drive.events:
                    if on_update is not None and isinstance(event, Polled):
                        on_update(event.result)
            result: Result = drive.outcome()
            self._interrupted.forget(poll.task)
        except BaseException as error:
            note_task(error, poll.task, self._interrupted)
            raise
        finally:
            drive.leave()
        return result

    def watch(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None = WAIT_TIMEOUT,
        **_misplaced: Never,
    ) -> AbstractAsyncContextManager[AsyncIterator[Result]]:
        """Return a context that gives the task's results, one for each change of its status.

            async with client.watch(task) as results:
                async for result in results:
                    print(result.status)

        A failed or cancelled task is given like any other, and a link that comes later than its
        status is reported as well. Both loop and context may be left at any time.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, an hour by default; None for no limit.

        Raises:
            ServiceError: On iterating, as `wait`, but for `TaskFailed`.
        """
        refuse_misplaced(self, "watch", _misplaced)
        return Watch(
            self._driver, lambda: self._calls.wait(task, timeout=timeout, **self._moment())
        )

    async def run(
        self,
        request: MediaRequest | str,
        fields: Fields | None = None,
        *,
        timeout: float | None = WAIT_TIMEOUT,
        on_update: Callable[[Result], None] | None = None,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> Result:
        """Create a task and wait until it is completed.

        Args:
            request: What to generate: a request, or the name of a family.
            fields: With a name, the request's fields by their names in Python or on the wire. A
                path, bytes or an open file in place of a URL is loaded as `load_media` does.
            timeout: Seconds to wait after the creation, an hour by default; None for no limit.
            on_update: Called with each valid response.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            ServiceError: As `create` and `wait`. An error after the creation carries the task;
                an interruption carries its id in its notes.
            ValueError: The timeout is negative or not a number. Nothing was sent.
        """
        refuse_misplaced(self, "run", _misplaced)
        check_wait_of_create(timeout)
        check_callable("on_update", on_update)
        notes = PaidNotes(self._interrupted)
        try:
            checked = self._checked(tags)
            known = {**self._driver.tags, **checked}
            task = await self._create(await self._request(request, fields), notes, checked)
            return await self._wait(task, timeout, on_update, known)
        except BaseException as error:
            notes.leave_note(error)
            raise

    def run_all(
        self,
        work: Iterable[Work],
        *,
        concurrency: int = CONCURRENCY,
        per_family: int | Mapping[str, int] | None = None,
        timeout: float | None = WAIT_TIMEOUT,
        dedupe: Dedupe = False,
        tags: Tags | Sequence[Tags | None] | None = None,
        **_misplaced: Never,
    ) -> AsyncOutcomes:
        """Return a context that creates and awaits many tasks, and gives their outcomes.

            async with client.run_all(requests) as outcomes:
                async for outcome in outcomes:
                    print(outcome.key, outcome.result or outcome.error)

        Outcomes come in the order in which they settle; `key` is the place in *work*. Nothing is
        sent before the context is entered. See `AsyncOutcomes` for what happens when it is left
        early.

        Args:
            work: Requests to create, each of them typed or a pair of a family's name and fields,
                and tasks, results, tokens or ids to wait for.
            concurrency: Maximum number of tasks in progress at once, from create to end; 32 by
                default. The next request is created when a task has ended. Tasks to wait for count
                too, but are awaited whatever the limit.
            per_family: Maximum number of them per family: one number for all families, or a mapping
                by name.
            timeout: Seconds to wait for each task, an hour by default; None for no limit.
            dedupe: Whether identical requests share one task, those that the store knows from
                earlier runs included. Each of them has its own outcome. True is for those with the
                same tags, and "across-tags" for all, whatever their tags.
            tags: Tags of what is bought, besides the client's: one mapping for all work, or a list
                with one mapping, or None, for each piece of it.

        Raises:
            LocalError: Some tags, a token or a bare id cannot be used.
            ValueError: A limit is below one, or there are not as many tags as pieces of work.
        """
        refuse_misplaced(self, "run_all", _misplaced)
        from muybridge.drivers.fleet_run import FleetRun

        check_dedupe(dedupe)
        books = self._named_books() if dedupe or tags else None
        run = FleetRun(
            self._calls,
            self._driver.listeners,
            self._driver.runtime.now,
            work,
            concurrency=concurrency,
            per_family=per_family,
            timeout=timeout,
            tags=tags,
            common=self._driver.tags,
            **self._moment(),
        )
        return self._outcomes(run, run.connections, books, dedupe=dedupe)

    @overload
    async def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
        sidecar: bool | Sidecar = ...,
    ) -> Path: ...

    @overload
    async def download(
        self,
        source: Result | Task | str,
        path: BinaryIO,
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
    ) -> None: ...

    async def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        timeout: float = DOWNLOAD_TIMEOUT,
        size_limit: int | None = SIZE_LIMIT,
        sidecar: bool | Sidecar = False,
        **_misplaced: Never,
    ) -> Path | None:
        """Save a result and return where it is.

        The file appears whole or not at all. Interrupted downloads resume. The key is not sent.
        If the link has expired and the task is known, the client queries a fresh one.

        Args:
            source: A result, a task, an id, a token or a URL.
            path: A file, or a folder in which the file is named after the task. Or a file object
                that is open for writing bytes: it gets the result once that is whole, and is not
                closed; None is returned.
            timeout: Seconds that the download may take.
            size_limit: Maximum size in bytes, or None for no limit.
            sidecar: Whether to write a JSON file beside it that says where it comes from, or a
                `Sidecar` with what else that is to say.

        Raises:
            DownloadFailed: It cannot be fetched or saved; `LinkExpired` if the link has expired,
                `NotCompleted` if the task is still in progress, and `SidecarFailed` if it
                is saved and only its sidecar is not.
            TaskFailed: The task has ended without a result.
            InvalidAddress: The URL is not one that results are downloaded from.
        """
        refuse_misplaced(self, "download", _misplaced)
        if isinstance(path, str | os.PathLike):
            return await self._download(
                source, path, timeout, size_limit, sidecar=sidecar, adds_suffix=False
            )
        from muybridge.files.downloads import check_file, copy

        check_file(path)
        if sidecar:
            raise TypeError("a sidecar is written beside a path, and a file object has none")
        await self._fetch(source, partial(copy, file=path), timeout, size_limit)
        return None

    async def read(
        self,
        source: Result | Task | str,
        *,
        timeout: float = DOWNLOAD_TIMEOUT,
        size_limit: int = READ_LIMIT,
        **_misplaced: Never,
    ) -> bytes:
        """Download a result into memory and return its bytes.

        It is a `download` without a file: interrupted downloads resume within the call, and the
        same is checked.

        Args:
            source: A result, a task, an id, a token or a URL.
            timeout: Seconds that the download may take.
            size_limit: Maximum size in bytes; 256 MiB by default.

        Raises:
            DownloadFailed: As `download`.
            TaskFailed: The task has ended without a result.
            InvalidAddress: The URL is not one that results are downloaded from.
        """
        refuse_misplaced(self, "read", _misplaced)
        from muybridge.files.downloads import read

        return await self._fetch(source, read, timeout, size_limit)

    async def save(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = DOWNLOAD_TIMEOUT,
        size_limit: int | None = SIZE_LIMIT,
        sidecar: bool | Sidecar = False,
        **_misplaced: Never,
    ) -> Path:
        """Save a result, with the right suffix if the name has none, and return where it is.

            path = client.save(client.run(request), "horse")  # horse.png

        It is a `download` that adds a missing suffix, which follows from what is in the file. If
        that leads to the name of another file, the new file gets a number, so that no file is
        replaced that *path* does not name. A name with a suffix is kept, with a warning if it is
        that of another format.

        Args:
            source: A result, a task, an id, a token or a URL.
            path: A file, or a folder in which the file is named after the task.
            timeout: Seconds that the download may take.
            size_limit: Maximum size in bytes, or None for no limit.
            sidecar: Whether to write a JSON file beside it that says where it comes from, or a
                `Sidecar` with what else that is to say.

        Raises:
            DownloadFailed: As `download`.
            InvalidAddress: The URL is not one that results are downloaded from.
        """
        refuse_misplaced(self, "save", _misplaced)
        from muybridge.files.downloads import check_path

        check_path(path)
        return await self._download(
            source, path, timeout, size_limit, sidecar=sidecar, adds_suffix=True
        )

    async def check(
        self,
        request: MediaRequest | str,
        fields: Fields | None = None,
        *,
        files: Mapping[str, MediaFiles] | None = None,
        timeout: float = CHECK_TIMEOUT,
        **_misplaced: Never,
    ) -> MediaReport:
        """Check a request's pictures, videos and sounds before paying. Nothing is created.

        Their headers are read: of a file or base64 here, and of a public URL with at most 256 KiB,
        fetched without the key under the same rules as a download. A rule that cannot be checked in
        this way is reported as undecided, with the reason, and not as a problem.

        Args:
            request: What to generate: a request, or the name of a family.
            fields: With a name, the request's fields by their names in Python or on the wire. A
                path, bytes or an open file in place of a URL is loaded as `load_media` does.
            files: Files to check in place of a field's URLs, by the field's name: paths or bytes,
                one or several.
            timeout: Seconds that fetching may take in all.

        Raises:
            OSError: A file cannot be read.
            ValueError: The family has no such field for media, or the timeout is not positive.
        """
        refuse_misplaced(self, "check", _misplaced)
        from muybridge.media.checking import check_media

        made = check_request(await self._request(request, fields), self.service)
        return await check_media(
            self._driver, self._calls, made, {} if files is None else files, timeout
        )

    async def delete_asset(self, asset_id: str, **_misplaced: Never) -> None:
        """Delete an asset for good.

        Args:
            asset_id: The asset's id, with or without `asset://`.

        Raises:
            AssetDeleteFailed: The service did not delete it.
            AssetDeleteUnknown: It is unknown whether it was deleted.
            NotSent: The service was not reached.
            Refused: The service refused.
        """
        refuse_misplaced(self, "delete_asset", _misplaced)
        operation = self._calls.delete_asset(asset_id, now=self._now())
        await self._driver.finish(operation)

    async def call(
        self,
        method: str,
        path: str,
        json: object = None,
        *,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> HttpResponse:
        """Call any endpoint of the service and return its response, whatever its status.

        For endpoints that the specification names but does not describe. Any method but GET is
        treated as paid: a request that may have been accepted is never resent.

        Args:
            method: The HTTP method, in capital letters.
            path: The path below the base URL, beginning with one slash.
            json: The JSON value to send, or None for a request without a body.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            InvalidAddress: The path leaves the service's origin.
            NotSent: The service was not reached.
            CreateAmbiguous: It may have been accepted; it was not sent again.
        """
        refuse_misplaced(self, "call", _misplaced)
        notes = PaidNotes(self._interrupted)
        try:
            checked = self._checked(tags)
            operation = self._calls.call(method, path, json, now=self._now())
            return await self._driver.finish(operation, notes, self._booking(operation, checked))
        except BaseException as error:
            notes.leave_note(error)
            raise

    async def generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> GenerateContentResponse:
        """Generate text, and return it whole.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer: a string, a part, a turn, several of them, or a
                `Conversation`.
            system_instruction: Instructions for the model, or None. A mapping is a turn in wire
                format.
            generation_config: Settings for the answer, or None. A mapping may use wire names or
                those of `GenerationConfig`.
            extra: Other fields of the request, by their wire names.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused it (`Unauthorized`, `Forbidden`, `RateLimited`, ...).
            TextAmbiguous: The request may have been answered and charged; it was not retried.
        """
        refuse_misplaced(self, "generate_content", _misplaced)
        return await self._text.generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit},
            tags,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )

    def stream_generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> AsyncContentStream:
        """Return a context manager that generates text and yields it in chunks as they arrive.

            async with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                async for chunk in chunks:
                    print(chunk.text, end="")

        Nothing is sent before the context is entered. Leaving it closes the connection.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer, as for `generate_content`.
            system_instruction: Instructions for the model, or None. A mapping is a turn in wire
                format.
            generation_config: Settings for the answer, or None. A mapping may use wire names or
                those of `GenerationConfig`.
            extra: Other fields of the request, by their wire names.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            ServiceError: On entering, as for `generate_content`.
            StreamInterrupted: On iterating, if the response ends before the answer is complete. The
                error has the chunks that arrived.
        """
        refuse_misplaced(self, "stream_generate_content", _misplaced)
        return self._text.stream_generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit, "silence": silence},
            tags,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )

    async def chat_completions(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> JsonObject:
        """Send a request to the chat completions endpoint, and return the response.

        The specification does not describe its format, so *body* is sent as given.

        Args:
            body: The JSON body.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            MuybridgeError: As for `generate_content`.
        """
        refuse_misplaced(self, "chat_completions", _misplaced)
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, CHAT_PATH, limits, tags)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> AsyncTextStream[JsonObject]:
        """Return a context manager that sends a chat completions request and yields the chunks.

        Args:
            body: The JSON body; `stream` is set in it.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            MuybridgeError: As for `stream_generate_content`.
        """
        refuse_misplaced(self, "stream_chat_completions", _misplaced)
        return self._text.stream_chat(
            body, {"timeout": timeout, "size_limit": size_limit, "silence": silence}, tags
        )

    async def messages(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> JsonObject:
        """Send a request to the messages endpoint, and return the response.

        The specification describes neither its format nor its path, so *body* is sent as given.

        Args:
            body: The JSON body.
            path: The endpoint's path below the text base URL.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            InvalidAddress: The path is outside the text base URL's origin.
            MuybridgeError: As for `generate_content`.
        """
        refuse_misplaced(self, "messages", _misplaced)
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, path, limits, tags)

    def stream_messages(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> AsyncTextStream[JsonObject]:
        """Return a context manager that sends a messages request and yields the events.

        Args:
            body: The JSON body; `stream` is set in it.
            path: The endpoint's path below the text base URL.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.
            tags: Tags of the purchase besides the client's, such as `{"customer": "acme"}`.

        Raises:
            MuybridgeError: As for `stream_generate_content`.
        """
        refuse_misplaced(self, "stream_messages", _misplaced)
        return self._text.stream_messages(
            body, path, {"timeout": timeout, "size_limit": size_limit, "silence": silence}, tags
        )

    async def _download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        seconds: float,
        size_limit: int | None,
        *,
        sidecar: bool | Sidecar,
        adds_suffix: bool,
    ) -> Path:
        """Save a result to a path, as `download` and `save` say."""
        from muybridge.files.downloads import download

        if sidecar:
            sidecar = await self._with_tags(sidecar, source)
        saving = partial(download, path=path, sidecar=sidecar, adds_suffix=adds_suffix)
        return await self._fetch(source, saving, seconds, size_limit)

    async def _with_tags(
        self, sidecar: Literal[True] | Sidecar, source: Result | Task | str
    ) -> Sidecar:
        """Return what a sidecar says, with the tags under which the store has the task."""
        from muybridge.files.sidecar import Sidecar

        about = Sidecar() if sidecar is True else sidecar
        _, task = link_of(source)
        if about.tags is not None or task is None:
            return about
        known = partial(self._named_books().tags_of, task.id)
        return attrs.evolve(about, tags=await self._driver.runtime.in_thread(known))

    async def _fetch(
        self,
        source: Result | Task | str,
        fetch: Callable[..., Coroutine[Any, Any, T]],
        seconds: float,
        size_limit: int | None,
    ) -> T:
        """Fetch a result by *fetch*, a function of `files.downloads`, and note who has its task."""
        now = self._now()
        url, task = link_of(source)
        try:
            fetched = await fetch(
                self._driver,
                self._calls,
                url,
                task,
                now=now,
                seconds=seconds,
                size_limit=size_limit,
            )
        except BaseException as error:
            if task is not None:
                note_download(error, task, self._interrupted)
            raise
        if task is not None:
            self._interrupted.forget(task)
        return fetched

    async def _request(self, request: MediaRequest | str, fields: Fields | None) -> MediaRequest:
        """Return *request*, or the one that is meant by a name and *fields*."""
        if fields is None and not isinstance(request, str):
            return request
        from muybridge.media.by_name import holds_files, request_by_name

        make = partial(request_by_name, request, {} if fields is None else fields)
        return await self._driver.runtime.in_thread(make) if holds_files(fields) else make()

    async def _create(
        self,
        request: MediaRequest,
        notes: PaidNotes,
        tags: Tags,
        once: str | None = None,
        *,
        named: bool = False,
    ) -> Task:
        """Create a task, once under a name if it is *named* or identical requests join.

        The caller leaves the *notes* if anything is raised: another Ctrl-C may strike on the way.
        """
        driver = self._open_driver()
        books = driver.books
        if not named and (books is None or not books.dedupe):
            now, wall = driver.runtime.now(), driver.runtime.wall()
            create = self._calls.create(request, now=now, wall=wall)
            return await driver.finish(create, notes, self._booking(create, tags))
        from muybridge.purchases.once import create_once

        books = self._named_books()
        return await create_once(driver, self._calls, books, request, once, notes, tags)

    def _checked(self, tags: Tags | None) -> Tags:
        """Return the tags of one call, if they can be used."""
        if tags is None:
            return {}
        from muybridge_protocol.purchases import checked_tags

        return checked_tags(tags)

    def _booking(self, operation: Operation[Any], tags: Tags) -> Booking | None:
        """Return what books *operation* under *tags*, or None for the driver's choice."""
        if not tags:
            return None
        return self._named_books().booking(operation, self._driver.runtime, tags=tags)

    def _named_books(self) -> Books:
        """Return what books a request that needs a store: the client's, or else the default one."""
        if self._names is None:
            driver = self._driver
            self._names = driver.books or read_books(
                None, None, driver.credentials, prices=self._prices, dedupe=False, always=True
            )
        assert self._names is not None  # noqa: S101  it is asked for
        return self._names

    def _outcomes(
        self, run: FleetRun, workers: int, books: Books | None, *, dedupe: Dedupe
    ) -> AsyncOutcomes:
        from muybridge.drivers.outcomes import AsyncOutcomes

        return AsyncOutcomes(run, self._driver, workers, books, dedupe=dedupe)

    @property
    def _driver(self) -> Driver:
        """Drives operations on the caller's event loop, or in blocking code.

        Raises:
            RuntimeError: The client cannot be used here. Nothing was sent.
        """
        raise NotImplementedError

    def _open_driver(self) -> Driver:
        """Return what drives a call that begins now.

        Raises:
            RuntimeError: The client is closed, or cannot be used here. Nothing was sent.
        """
        if self._closed:
            raise RuntimeError("this client is closed, and nothing was sent: make another one")
        return self._driver

    def _now(self) -> float:
        """Return the time at which a call begins."""
        return self._open_driver().runtime.now()

    @property
    def _text(self) -> TextCalls:
        """What sends text requests, as long as the client is open."""
        driver = self._open_driver()
        if self._text_calls is None:
            from muybridge.drivers.text_calls import TextCalls

            self._text_calls = TextCalls(self._calls.service, driver, self._booker)
        return self._text_calls

    def _booker(self, tags: Tags | None) -> Callable[[Operation[Any]], Booking | None]:
        """Return how text requests with *tags* are booked."""
        return partial(self._booking, tags=self._checked(tags))

    def _moment(self) -> Moment:
        runtime = self._open_driver().runtime
        return {"now": runtime.now(), "wall": runtime.wall()}


class DrivenClient(BaseClient):
    """A client on a given driver.

    Args:
        calls: Begins operations.
        driver: Drives them.
        owns_transport: Whether closing the client closes the connections.
        prices: What requests cost, or None if that is not known.
    """

    def __init__(
        self,
        calls: Calls,
        driver: Driver,
        *,
        owns_transport: bool,
        prices: PriceList | None = None,
    ) -> None:
        super().__init__(calls, owns_transport=owns_transport, prices=prices)
        self._given = driver
        self._books = driver.books

    @property
    def _driver(self) -> Driver:
        return self._given
