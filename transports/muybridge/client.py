"""`Client`: the service for ordinary, blocking code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Never, NoReturn, Self, TypeVar, cast, overload

from muybridge.base_client import DrivenClient, Parts
from muybridge.clock import Clock, SystemClock
from muybridge.configuration import check_part, hidden, read_books, read_service
from muybridge.drivers.blocking import (
    BlockingIterator,
    BlockingRuntime,
    BlockingTransport,
    iterate,
    run,
)
from muybridge.drivers.calls import Calls, check_entered
from muybridge.drivers.driver import Driver
from muybridge.drivers.listeners import Listeners
from muybridge.misplaced import missing_attribute, refuse_misplaced
from muybridge.payment_guard import guarded
from muybridge.wire.transport import Transport
from muybridge_protocol.families import Unlisted
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations.defaults import (
    CHECK_TIMEOUT,
    CONCURRENCY,
    DOWNLOAD_TIMEOUT,
    READ_LIMIT,
    SIZE_LIMIT,
)
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service
from muybridge_protocol.text.defaults import (
    MESSAGES_PATH,
    NO_BODY,
    RESPONSE_LIMIT,
    SILENCE_LIMIT,
    TEXT_TIMEOUT,
)

if TYPE_CHECKING:
    from muybridge.drivers.fleet_run import Outcome, Work
    from muybridge.drivers.outcomes import AsyncOutcomes
    from muybridge.drivers.text_calls import AsyncContentStream, AsyncTextStream
    from muybridge.files.sidecar import Sidecar
    from muybridge.media.by_name import Fields
    from muybridge.media.checking import MediaFiles
    from muybridge.purchases import Store
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.observations import AnyEvent
    from muybridge_protocol.purchases import Budget, Tags
    from muybridge_protocol.purchases.names import Dedupe
    from muybridge_protocol.rules.media import MediaReport
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import (
        GenerateContentChunk,  # noqa: F401  as a text, in a base class
        GenerateContentResponse,
    )

T = TypeVar("T")


class Client:
    """The service for ordinary, blocking code. Safe to use from many threads.

    Use it as a context manager, or call `close` at the end.

    A text request costs money, so it is resent only if it certainly did not reach the service or
    was answered with 429. Ctrl-C aborts it at once.
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
        transport: Transport | None = None,
        clock: Clock | None = None,
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
            transport: Sends requests, or None for `RequestsTransport`.
            clock: Tells the time, or None for this machine's.

        Raises:
            LocalError: There is no key, or it cannot be sent as it is; or some tags cannot be used.
            InvalidAddress: There is no base URL, or it cannot be used.
            ValueError: A limit of the environment or the account's name cannot be read.
        """
        api_key = hidden(api_key)
        refuse_misplaced(self, "", _misplaced)
        if transport is not None:
            check_part("transport", transport, ("stream",), "a transport, or None")
        if clock is not None:
            check_part("clock", clock, ("monotonic", "wall", "sleep"), "a clock, or None")
        service, credentials = read_service(
            api_key,
            base_url,
            text_base_url,
            allow_plain_http=allow_plain_http,
            allow_insecure_downloads=allow_insecure_downloads,
            account=account,
        )
        calls = Calls(service=service, timeout=timeout, poll_interval=poll_interval)
        driver = Driver(
            BlockingTransport(guarded(_default_transport() if transport is None else transport)),
            credentials,
            Listeners(on_submitted, on_event),
            BlockingRuntime(SystemClock() if clock is None else clock),
            calls.next_polls,
            read_books(budget, store, credentials, prices=prices, dedupe=dedupe, tags=tags),
        )
        self._calls = calls
        self._driver = driver
        self._client = DrivenClient(calls, driver, owns_transport=transport is None, prices=prices)

    if not TYPE_CHECKING:
        __getattr__ = missing_attribute

    def __repr__(self) -> str:
        # A traceback that shows variables also shows a client whose constructor failed.
        calls: Calls | None = getattr(self, "_calls", None)
        return f"Client({str(calls.service) if calls is not None else '?'!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Client is not pickled or copied: it holds the API key and connections")

    def __enter__(self) -> Self:
        run(self._client.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._client.__aexit__, kind, error, traceback)

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
        return self._client.interrupted_tasks

    @property
    def parts(self) -> Parts:
        """The client's parts, for code that sends requests as the client does, such as batches.

        Raises:
            RuntimeError: The client is closed, or cannot be used here. Nothing was sent.
        """
        return self._client.parts

    def close(self) -> None:
        """Close every idle connection. After that nothing can be sent."""
        run(self._client.close)

    def create(
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
        return run(self._client.create, request, fields, tags=tags)

    def create_once(
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
        return run(self._client.create_once, once, request, fields, tags=tags)

    def get(self, task: Task | Result | str, **_misplaced: Never) -> Result:
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
        return run(self._client.get, task)

    def wait(
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
        return run(self._client.wait, task, timeout=timeout, on_update=on_update)

    def watch(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None = WAIT_TIMEOUT,
        **_misplaced: Never,
    ) -> Iterator[Result]:
        """Yield a task's result each time its status changes, and at last when it has ended.

        A failed or cancelled task is yielded like any other, and a link that comes later than
        its status is reported as well. The iterator may be left at any time.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, an hour by default; None for no limit.

        Raises:
            ServiceError: As `wait`, but for `TaskFailed`.
        """
        refuse_misplaced(self, "watch", _misplaced)
        return iterate(self._client.watch(task, timeout=timeout))

    def run(
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
        return run(
            self._client.run, request, fields, timeout=timeout, on_update=on_update, tags=tags
        )

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
    ) -> Outcomes:
        """Return a context that creates and awaits many tasks, and gives their outcomes.

            with client.run_all(requests) as outcomes:
                for outcome in outcomes:
                    print(outcome.key, outcome.result or outcome.error)

        Outcomes come in the order in which they settle; `key` is the place in *work*. Nothing is
        sent before the context is entered. See `Outcomes` for what happens when it is left
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
        return Outcomes(
            self._client.run_all(
                work,
                concurrency=concurrency,
                per_family=per_family,
                timeout=timeout,
                dedupe=dedupe,
                tags=tags,
            )
        )

    @overload
    def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
        sidecar: bool | Sidecar = ...,
    ) -> Path: ...

    @overload
    def download(
        self,
        source: Result | Task | str,
        path: BinaryIO,
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
    ) -> None: ...

    def download(
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
        return run(
            self._client.download,
            source,
            cast("Any", path),  # its overloads are the same
            timeout=timeout,
            size_limit=size_limit,
            sidecar=sidecar,
        )

    def read(
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
        return run(self._client.read, source, timeout=timeout, size_limit=size_limit)

    def save(
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
        return run(
            self._client.save,
            source,
            path,
            timeout=timeout,
            size_limit=size_limit,
            sidecar=sidecar,
        )

    def check(
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
        return run(self._client.check, request, fields, files=files, timeout=timeout)

    def delete_asset(self, asset_id: str, **_misplaced: Never) -> None:
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
        run(self._client.delete_asset, asset_id)

    def call(
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
        return run(self._client.call, method, path, json, tags=tags)

    def generate_content(
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
        return run(
            self._client.generate_content,
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
            timeout=timeout,
            size_limit=size_limit,
            tags=tags,
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
    ) -> ContentStream:
        """Return a context manager that generates text and yields it in chunks as they arrive.

            with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                for chunk in chunks:
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
        return ContentStream(
            self._client.stream_generate_content(
                model,
                contents,
                system_instruction=system_instruction,
                generation_config=generation_config,
                extra=extra,
                timeout=timeout,
                size_limit=size_limit,
                silence=silence,
                tags=tags,
            )
        )

    def chat_completions(
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
        return run(
            self._client.chat_completions, body, timeout=timeout, size_limit=size_limit, tags=tags
        )

    def stream_chat_completions(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = RESPONSE_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        tags: Tags | None = None,
        **_misplaced: Never,
    ) -> TextStream[JsonObject]:
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
        return TextStream(
            self._client.stream_chat_completions(
                body, timeout=timeout, size_limit=size_limit, silence=silence, tags=tags
            )
        )

    def messages(
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
        return run(
            self._client.messages,
            body,
            path=path,
            timeout=timeout,
            size_limit=size_limit,
            tags=tags,
        )

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
    ) -> TextStream[JsonObject]:
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
        return TextStream(
            self._client.stream_messages(
                body, path=path, timeout=timeout, size_limit=size_limit, silence=silence, tags=tags
            )
        )


class Outcomes(BlockingIterator["Outcome"]):
    """The outcomes of a run as they settle; it lasts as long as the context.

        with client.run_all(requests) as outcomes:
            for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    A failed task is an outcome like any other. If the context is left early, nothing more is sent.
    Paid requests in flight run to their response, so that their ids are known. An exception that
    passes through lists in its notes what is still outstanding. The run's own threads call the
    client's listeners, one at a time. An exception from a listener ends the run and is raised by
    the loop.

    Args:
        outcomes: The asynchronous outcomes, whose I/O blocks.
    """

    def __init__(self, outcomes: AsyncOutcomes) -> None:
        super().__init__(outcomes)
        self._outcomes = outcomes
        self._entered = False

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have been accepted and have not ended."""
        return self._outcomes.outstanding

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that have not been sent."""
        return self._outcomes.unsent

    @property
    def unread(self) -> list[Outcome]:
        """The outcomes that the loop has not been given."""
        return self._outcomes.unread

    def __enter__(self) -> Self:
        self._entered = True
        return super().__enter__()

    def __iter__(self) -> Self:
        check_entered("with", entered=self._entered)
        return self

    def __next__(self) -> Outcome:
        check_entered("with", entered=self._entered)
        return super().__next__()


class TextStream(BlockingIterator[T]):
    """A streamed response: entering the context sends the request, iterating yields the chunks.

    Leaving the context closes the connection, even in the middle of the answer.

    Args:
        stream: The asynchronous stream to run.
    """

    def __init__(self, stream: AsyncTextStream[T]) -> None:
        super().__init__(stream)
        self._stream = stream

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, including those already iterated over."""
        return self._stream.received()


class ContentStream(TextStream["GenerateContentChunk"]):
    """A streamed response in the native protocol."""

    def __init__(self, stream: AsyncContentStream) -> None:
        super().__init__(stream)
        self._content = stream

    def collect(self) -> GenerateContentResponse:
        """Read the rest of the stream, and combine all its chunks into one response.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        return run(self._content.collect)


def _default_transport() -> Transport:
    from muybridge.wire.requests_transport import RequestsTransport

    return RequestsTransport()
