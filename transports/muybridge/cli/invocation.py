"""One invocation of the command: its options, its client and its progress."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TextIO, TypeVar

import attrs
import click

from muybridge.cli.progress import Progress, showing_progress
from muybridge.cli.terminal import say
from muybridge.clock import SystemClock
from muybridge.configuration import BASE_URL_VARIABLE, LIMIT_VARIABLES, find_address
from muybridge_protocol.errors import (
    DownloadFailed,
    IgnoredSetting,
    InvalidAddress,
    LinkExpired,
    NameChanged,
    PlainHttpWarning,
    PollingTooOften,
    ServiceError,
    TaskEnded,
    TaskFailed,
    WrongSuffix,
)
from muybridge_protocol.events import Ambiguous, Polled
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import Reason
from muybridge_protocol.observations import ExchangeFailed, ReplyReceived, RequestSent
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.tasks import Result, Status, Task, is_bare
from muybridge_protocol.service import Service, shown_id

if TYPE_CHECKING:
    from muybridge import Client, Sidecar
    from muybridge.ledger import Budget, Ledger
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.observations import AnyEvent
    from muybridge_protocol.text.responses import GenerateContentResponse

P = ParamSpec("P")
R = TypeVar("R")

_LOCAL_SPEED = 20.0
"""How much faster than usual the embedded service is."""
_LOCAL_POLL_INTERVAL = 0.2

PERMISSIONS = ("allow_plain_http", "allow_plain_http_proxy", "allow_insecure_downloads")
"""Where the options are stored that allow what is not safe."""

LIMIT_NAMES = (
    "max_creates", "max_pictures", "max_seconds", "max_calls", "max_cost", "per",
)  # fmt: skip
"""Where the options of the budget are stored."""

STDOUT = "-"
"""In place of a path: stdout."""

_NOWHERE = "https://service.invalid"
"""Stands for a service that is not connected to."""
_KEY_FILE_LIMIT = 64 * 1024
_OUR_WARNINGS = (IgnoredSetting, NameChanged, PlainHttpWarning, PollingTooOften, WrongSuffix)


@attrs.define(eq=False, kw_only=True)
class Invocation:
    """One invocation of the command: its options, its client and its progress.

    Options store their values here; error reports depend on what is known here.

    Args:
        json: Whether to print one JSON document on stdout.
        api_key_file: Where the key is, or None for the environment.
        base_url: Where the service is, or None for the environment.
        text_base_url: Where its text endpoints are, or None for the environment.
        allow_plain_http: Whether base_url may be plain http on another machine.
        allow_plain_http_proxy: Whether a proxy may see the key in plain http requests.
        allow_insecure_downloads: Whether results may be downloaded by plain http and from private
            hosts.
        verbose: Whether each request and response is logged on stderr.
        poll_interval: Seconds between result queries, or None for the specification's pace.
        timeout: Seconds for the whole, or None for the library's choice.
        output: Where the result is to be saved, or None.
        sidecar: Whether a JSON file is written beside each result.
        request: The request of the task, if this command has created it.
        prices: Where the user's prices are, or None if none are given.
        ledger: Where paid requests are recorded, or None for the library's choice.
        max_creates: Most creates, or None.
        max_pictures: Most pictures, or None.
        max_seconds: Most seconds of video, or None.
        max_calls: Most text requests, or None.
        max_cost: Most money, or None.
        per: The period that these limits are for, or None for everything.
        local: Whether an embedded service is used, which ends with the command.
        pays: Whether the command sends something that may not be sent twice.
        text: Whether what it sends is a text request.
        verb: The command that resumes while there is no result.
        task: The task, once its id is known.
        result: The last record that the service sent of it.
        answer: What has arrived of the answer to a text request.
        url: A link to download where no task is known.
        accepted: Whether the service has accepted the task during this very command.
        unanswered: Whether such a request is in flight, or was interrupted in flight.
        ambiguous: Whether such a request ended without a usable response.
        failed: Whether the same command would fail again in the same way.
        resuming: Returns the command that resumes a batch, or None if no command can; None where
            there is no batch.
        warnings: The warnings so far.
        progress: Shows each step.
    """

    json: bool = False
    api_key_file: str | None = None
    base_url: str | None = None
    text_base_url: str | None = None
    allow_plain_http: bool = False
    allow_plain_http_proxy: bool = False
    allow_insecure_downloads: bool = False
    verbose: bool = False
    poll_interval: float | None = None
    timeout: float | None = None
    output: str | None = None
    sidecar: bool = False
    request: MediaRequest | None = None
    prices: str | None = None
    ledger: str | None = None
    max_creates: str | None = None
    max_pictures: str | None = None
    max_seconds: str | None = None
    max_calls: str | None = None
    max_cost: str | None = None
    per: str | None = None
    local: bool = False
    pays: bool = False
    text: bool = False
    verb: str = "wait"
    task: Task | None = None
    result: Result | None = None
    answer: GenerateContentResponse | None = None
    url: str | None = None
    accepted: bool = False
    unanswered: bool = False
    ambiguous: bool = False
    failed: bool = False
    resuming: Callable[[], str | None] | None = None
    warnings: list[str] = attrs.field(factory=list[str])
    progress: Progress = attrs.field(factory=Progress)

    @property
    def wait_timeout(self) -> float:
        """Seconds to wait for a task."""
        return WAIT_TIMEOUT if self.timeout is None else self.timeout

    @contextmanager
    def client(
        self, *, text: bool = False, exchange_timeout: float | None = None, spinner: bool = True
    ) -> Generator[Client, None, None]:
        """Open the service: the embedded one, or the one of the options and the environment.

        Args:
            text: Whether it is for text alone, or for everything else. The environment's address
                of the other one is ignored.
            exchange_timeout: Seconds that one exchange may take, or None for the library's choice.
            spinner: Whether a terminal may show one. It would disturb an answer that is printed.
        """
        from muybridge import Client  # noqa: PLC0415  it loads the HTTP libraries

        self.text = text
        with ExitStack() as stack:
            settings = self.client_settings(stack, text=text)
            client = Client(
                **settings,
                on_submitted=self._submitted,
                on_event=self._noticed,
                timeout=API_TIMEOUT if exchange_timeout is None else exchange_timeout,
                clock=_WatchedClock(self),
            )
            stack.enter_context(client)
            self.progress = stack.enter_context(showing_progress(spinner=spinner))
            stack.enter_context(self.log())
            yield client

    def client_settings(self, stack: ExitStack, *, text: bool = False) -> dict[str, Any]:
        """Return a client's arguments, and start the embedded service if it is to be used.

        Args:
            stack: Stops that service and closes the transport.
            text: As for `client`.
        """
        from muybridge import RequestsTransport  # noqa: PLC0415  it loads the HTTP libraries

        api_key, poll_interval = self.read_key(), self.poll_interval
        base_url, text_base_url = ("", self.text_base_url) if text else (self.base_url, "")
        if self.local:
            from muybridge.local import LocalService  # noqa: PLC0415  an extra of its own

            stack.enter_context(_without_ledger())
            service = stack.enter_context(LocalService(speed=_LOCAL_SPEED))
            api_key = service.api_key
            base_url, text_base_url = service.base_url, service.text_base_url
            poll_interval = poll_interval or _LOCAL_POLL_INTERVAL
        transport = RequestsTransport(allow_plain_http_proxy=self.allow_plain_http_proxy)
        stack.callback(transport.close)
        return {
            "api_key": api_key,
            "base_url": base_url,
            "text_base_url": text_base_url,
            **attributes(self, "allow_plain_http", "allow_insecure_downloads"),
            "poll_interval": poll_interval,
            "transport": transport,
            "budget": None if self.local else self.read_budget(),
            "ledger": None if self.local else self.ledger,
            "prices": self.read_prices(),
        }

    def unopened_service(self) -> Service:
        """Return the service for a command that sends it nothing, and needs no address.

        It is that of the options and the environment if it is on this machine, because then its
        links are, too. Otherwise it makes no difference where it is.
        """
        address = None if self.local else find_address(self.base_url, BASE_URL_VARIABLE)
        if address is not None:
            with suppress(InvalidAddress):
                service = Service(base_url=address, allow_plain_http=True)
                if service.is_local:
                    return service
        return Service(base_url=_NOWHERE)

    def refuse_with_local(self, *names: str) -> None:
        """Refuse options that name another service, where the embedded one is to be used.

        Raises:
            click.UsageError: One of the attributes *names* is set.
        """
        if self.local and any(getattr(self, name) is not None for name in names):
            raise click.UsageError(
                f"--local cannot be combined with {' or '.join(map(_option, names))}"
            )

    def log(self) -> AbstractContextManager[None]:
        """Return a context in which each request and response is logged on stderr, if verbose."""
        if not self.verbose:
            return nullcontext()
        from muybridge.cli.verbose import logging_to_stderr  # noqa: PLC0415  it loads logging

        return logging_to_stderr()

    def create(self, client: Client, request: MediaRequest) -> Task:
        """Create a task; a failed one is an error.

        Raises:
            TaskFailed: The service refused it in its record.
            ServiceError: As `Client.create`.
        """
        self.pays, self.request = True, request
        task = client.create(request)
        if task.status == Status.FAILED:
            raise TaskFailed(result=task.to_result(), task=task)
        return task

    def wait(self, client: Client, task: Task) -> Result:
        """Wait for *task* to be completed, as `Client.wait` does."""
        self.result = client.wait(task, timeout=self.wait_timeout, on_update=self._updated)
        return self.result

    def wait_and_save(self, client: Client, task: Task) -> tuple[Result, Path | None]:
        """Wait for *task* to be completed, and save its result where that is wanted."""
        result = self.wait(client, task)
        return result, None if self.output is None else self.save(client, result, self.output)

    def save(
        self, client: Client, source: Result | str, path: str, *, timeout: float | None = None
    ) -> Path | None:
        """Save a completed task's result, or what a URL leads to, as `Client.save` does.

        It is written to stdout if *path* is `STDOUT`. Then there is no path to return.
        """
        limit = DOWNLOAD_TIMEOUT if timeout is None else timeout
        self.progress.downloading()
        try:
            if path == STDOUT:
                self._print(client, source, limit)
                return None
            saved = client.save(source, path, timeout=limit, sidecar=self._sidecar())
        except InvalidAddress as error:
            if isinstance(source, str):
                raise
            # The service gave this address, and the task is safe.
            raise DownloadFailed(reason=str(error), task=self.task) from error
        self.progress.say(f"saved {saved} ({saved.stat().st_size:,} bytes)")
        return saved

    def _print(self, client: Client, source: Result | str, timeout: float) -> None:
        """Write what *source* leads to to stdout, once it is whole."""
        from shutil import copyfileobj  # noqa: PLC0415  most commands save to a path
        from tempfile import TemporaryFile  # noqa: PLC0415  the same

        with TemporaryFile() as file:
            client.download(source, file, timeout=timeout)
            file.seek(0)
            copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            self.progress.say(f"wrote {file.tell():,} bytes to stdout")

    def next_command(self) -> str | None:
        """Return the exact command that resumes, or None if there is nothing to resume."""
        if self.resuming is not None:
            return self.resuming()
        if self.local:
            return None
        result = self.result  # which may have a link before it is completed
        done = result is not None and result.status == Status.COMPLETED and result.url is not None
        if self.failed:
            return None
        if self.url is not None or (done and self.output is not None):
            verb = "download"
        elif self.ambiguous or self.task is None:
            return None
        else:
            verb = self.verb
        what = str(self.url) if self.task is None else _token(self.task)
        words = ["muybridge", verb, *self.words("api_key_file", "base_url", *PERMISSIONS)]
        if verb == "wait":
            words += self.words("poll_interval")
        if verb != "get" and self.output is not None:
            words += ["-o", self.output, *self.words("sidecar")]
        return shlex.join([*words, "--", what] if what.startswith("-") else [*words, what])

    def learn(self, error: ServiceError) -> None:
        """Keep the records that *error* carries."""
        if error.task is not None and (self.task is None or error.task.next_poll_at is not None):
            self.task = error.task  # the next command must not poll it sooner
        if isinstance(error, TaskEnded):
            self.result = error.result
        if isinstance(error, DownloadFailed) and error.lasting:
            # For a task, a later download may get a better link.
            self.failed = self.task is None or isinstance(error, LinkExpired)

    @contextmanager
    def reporting_warnings(self) -> Generator[Self, None, None]:
        """Print the library's warnings as plain lines, each once."""
        with warnings.catch_warnings():
            plain = warnings.showwarning

            def show(
                message: Warning | str,
                category: type[Warning],
                filename: str,
                lineno: int,
                file: TextIO | None = None,
                line: str | None = None,
            ) -> None:
                if not issubclass(category, _OUR_WARNINGS):
                    plain(message, category, filename, lineno, file, line)
                elif str(message) not in self.warnings:
                    self.warnings.append(str(message))
                    self.progress.say(f"warning: {message}")

            for category in _OUR_WARNINGS:
                warnings.simplefilter("always", category)
            warnings.showwarning = show
            yield self

    def read_key(self) -> str | None:
        """Return the key of the key file, or None where none was given.

        Raises:
            click.UsageError: The file cannot be read.
        """
        if self.api_key_file is None:
            return None
        try:
            with Path(self.api_key_file).open("rb") as file:
                return file.read(_KEY_FILE_LIMIT).decode("utf-8", "replace")
        except OSError as error:
            raise click.UsageError(
                f"--api-key-file: {error.strerror}. Give the name of a file that has the API key "
                "in it, not the key itself. The value is not shown."
            ) from None

    def _sidecar(self) -> Literal[False] | Sidecar:
        """Return what a sidecar is to say, or False if none is wanted."""
        if not self.sidecar:
            return False
        from muybridge import Sidecar  # noqa: PLC0415  most commands write none

        return Sidecar(request=self.request, task=self.task)

    def read_prices(self) -> PriceList | None:
        """Return the prices of the price file, or None if none was given.

        Raises:
            InvalidPrices: The file is not valid.
            click.UsageError: The file cannot be read.
        """
        if self.prices is None:
            return None
        from muybridge.files.prices import load_prices  # noqa: PLC0415  most commands need no prices

        try:
            return load_prices(self.prices)
        except OSError as error:
            raise click.UsageError(f"--prices {self.prices}: {error.strerror}") from None

    def read_budget(self) -> Budget | None:
        """Return the budget of the options, or None if none was given.

        Raises:
            click.UsageError: A limit is not a number of at least 0.
        """
        given = {name: getattr(self, name) for name in LIMIT_NAMES}
        if not any(given.values()):
            return None
        from muybridge.ledger import Budget  # noqa: PLC0415  most commands have none

        limits: dict[str, Any] = {name.removeprefix("max_"): one for name, one in given.items()}
        for name, limit in limits.items():
            try:
                Budget(**{name: limit})
            except ValueError as error:
                option = "--per" if name == "per" else f"--max-{name}"
                raise click.UsageError(f"{option}: {error}. Nothing was sent.") from None
        return Budget(**limits)

    def open_ledger(self) -> Ledger:
        """Return the ledger of the options and the environment."""
        from muybridge.ledger import open_ledger  # noqa: PLC0415  most commands need none

        return open_ledger(self.ledger)

    def words(self, *names: str) -> Iterator[str]:
        """Yield the options that were given, of those that are stored in the attributes *names*."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False:
                yield _option(name)
            if isinstance(value, str):
                yield value
            elif isinstance(value, float):
                yield f"{value:g}"

    def _submitted(self, task: Task) -> None:
        self.task, self.result = task, None
        self.accepted = True
        self.progress.say(f"task {shown_id(task.id)}")

    def _noticed(self, event: AnyEvent) -> None:
        match event:
            case Ambiguous():
                self.ambiguous = True
            case RequestSent(method=method, call=call):
                self.unanswered = method != "GET"
                if call.kind == "create" and not event.resends:
                    self.progress.say(f"sending the {call.family} request")
            case ExchangeFailed(reason=Reason.INTERRUPTED, sent=True):
                pass  # it may have been accepted
            case ReplyReceived() | ExchangeFailed():
                self.unanswered = False
            case _:
                pass
        # A single query is answered on stdout.
        if self.verb == "wait" or not isinstance(event, Polled):
            self.progress.event(event)

    def _updated(self, result: Result) -> None:
        self.result = result


class _WatchedClock(SystemClock):
    """This machine's clock. It lets the progress show when the client waits."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        self._invocation.progress.waiting(seconds)
        super().sleep(seconds)


@contextmanager
def _without_ledger() -> Generator[None, None, None]:
    """Hide the environment's limits and ledger: an embedded service charges nothing."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(LIMIT_VARIABLES)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def _option(attribute: str) -> str:
    return f"--{attribute.replace('_', '-')}"


def _token(task: Task) -> str:
    """Return the task's token, which keeps its family and with it the pace, or a bare id."""
    return as_argument(task) if task.family is None else task.to_token()


def as_argument(task: Task) -> str:
    """Return the id of *task* for a command line, or its token if the id could be misread."""
    could_be_other = task.id.startswith("-") or "://" in task.id
    return task.id if is_bare(task.id) and not could_be_other else task.to_token()


def invocation_of(context: click.Context) -> Invocation:
    """Return the invocation that *context* belongs to."""
    return context.ensure_object(Invocation)


def pass_invocation(command: Callable[Concatenate[Invocation, P], R]) -> Callable[P, R]:
    """Give *command* its invocation as the first argument."""
    return click.make_pass_decorator(Invocation, ensure=True)(command)


def say_next_command(invocation: Invocation) -> None:
    """Print the command that resumes, if there is one."""
    command = invocation.next_command()
    if command is not None:
        say(f"to resume: {command}")
