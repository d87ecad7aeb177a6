"""One invocation of the command: what was chosen, what is known so far, and its client."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

import attrs
import click

from muybridge.cli.connection import Connection, open_client
from muybridge.cli.course import Course
from muybridge.cli.presentation import Presentation
from muybridge.cli.progress import Progress, showing_progress
from muybridge.cli.spending import Spending
from muybridge.cli.terminal import document, say
from muybridge.clock import SystemClock
from muybridge_protocol.errors import (
    MuybridgeWarning,
    ServiceError,
)
from muybridge_protocol.events import Polled
from muybridge_protocol.observations import Expected, RequestSent
from muybridge_protocol.operations.operation import API_TIMEOUT
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import shown_id

if TYPE_CHECKING:
    from muybridge import Client
    from muybridge_protocol.observations import AnyEvent

P = ParamSpec("P")
R = TypeVar("R")

_CHOICES = {
    field.name: part
    for part, kind in (
        ("connection", Connection), ("spending", Spending), ("presentation", Presentation),
    )
    for field in attrs.fields(kind)
}  # fmt: skip
"""Which of the values has the choice of an option."""


@attrs.define(eq=False, kw_only=True)
class Invocation:
    """One invocation of the command.

    Args:
        connection: Where the service is.
        spending: What may be spent.
        presentation: How results are presented.
        course: What is known of the command's work so far.
        warnings: The warnings so far.
        progress: Shows each step.
        times: How long such tasks usually take, and how old this one is, in seconds; nothing if
            it is not known what is usual.
    """

    connection: Connection = attrs.field(factory=Connection)
    spending: Spending = attrs.field(factory=Spending)
    presentation: Presentation = attrs.field(factory=Presentation)
    course: Course = attrs.field(factory=Course)
    warnings: list[str] = attrs.field(factory=list[str])
    progress: Progress = attrs.field(factory=Progress)
    times: dict[str, float | None] = attrs.field(factory=dict[str, float | None])

    def choose(self, **values: object) -> None:
        """Replace choices that options made, or would have made."""
        for name, value in values.items():
            part = _CHOICES[name]
            setattr(self, part, attrs.evolve(getattr(self, part), **{name: value}))

    def note(self, **known: Any) -> None:
        """Replace what is known of the command's work."""
        self.course = attrs.evolve(self.course, **known)

    def learn(self, error: ServiceError) -> None:
        """Keep the records that *error* carries."""
        self.course = self.course.after_error(error)

    def update(self, result: Result) -> None:
        """Keep the last record of the task."""
        self.note(result=result)

    def next_command(self) -> str | None:
        """Return the exact command that resumes, or None if there is nothing to resume."""
        return self.course.next_command(self.connection, self.presentation)

    @contextmanager
    def client(
        self, *, text: bool = False, exchange_timeout: float | None = None, spinner: bool = True
    ) -> Generator[Client, None, None]:
        """Open the service: the embedded one, or the one of the options and the environment.

        Args:
            text: Whether it is for text alone, or for everything else.
            exchange_timeout: Seconds that one exchange may take, or None for the library's choice.
            spinner: Whether a terminal may show one. It would disturb an answer that is printed.
        """
        self.note(text=text)
        with ExitStack() as stack:
            client = self.open_client(
                stack,
                text=text,
                on_submitted=self._submitted,
                on_event=self._noticed,
                timeout=API_TIMEOUT if exchange_timeout is None else exchange_timeout,
                clock=_WatchedClock(self),
            )
            self.progress = stack.enter_context(showing_progress(spinner=spinner))
            stack.enter_context(self.log())
            yield client

    def open_client(self, stack: ExitStack, *, text: bool = False, **more: Any) -> Client:
        """Return a client, and start the embedded service if it is to be used.

        Args:
            stack: Closes the client and stops that service.
            text: As for `client`.
            more: Further arguments of the client.
        """
        connection, spending = self.connection, self.spending
        tags = spending.read_tags()
        settings: dict[str, Any] = {
            **connection.settings(stack, text=text),
            "budget": None if connection.local else spending.read_budget(),
            "store": None if connection.local else spending.store,
            "prices": spending.read_prices(),
            "tags": None if connection.local else tags,
        }
        return open_client(stack, **(settings | more))

    def log(self) -> AbstractContextManager[None]:
        """Return a context in which each request and response is logged on stderr, if verbose."""
        if not self.presentation.verbose:
            return nullcontext()
        from muybridge.cli.verbose import logging_to_stderr

        return logging_to_stderr()

    def print_document(self, **record: Any) -> None:
        """Print *record* as the one JSON document of a finished command, with the warnings."""
        ok = {} if "ok" in record else {"ok": True}
        noted: dict[str, Any] = {"warnings": self.warnings} if self.warnings else {}
        if self.times:
            noted["times"] = self.times
        document({**ok, **record, **noted})

    def say_next_command(self) -> None:
        """Print the command that resumes, if there is one."""
        command = self.next_command()
        if command is not None:
            say(f"to resume: {command}")

    @contextmanager
    def reporting_warnings(self) -> Generator[None, None, None]:
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
                if not issubclass(category, MuybridgeWarning):
                    plain(message, category, filename, lineno, file, line)
                elif str(message) not in self.warnings:
                    self.warnings.append(str(message))
                    self.progress.say(f"warning: {message}")

            warnings.simplefilter("always", MuybridgeWarning)
            warnings.showwarning = show
            yield

    def _submitted(self, task: Task) -> None:
        self.note(task=task, result=None, accepted=True)
        self.progress.say(f"task {shown_id(task.id)}")

    def _noticed(self, event: AnyEvent) -> None:
        self.course = self.course.after(event)
        match event:
            case RequestSent(call=call, resends=0) if call.kind == "create":
                self.progress.say(f"sending the {call.family} request")
            case Expected(usual=usual, age=age):
                self.times = {"usual": usual, "so_far": age}
            case Polled(age=age) if self.times:
                self.times["so_far"] = age
            case _:
                pass
        # A single query is answered on stdout.
        if self.course.verb == "wait" or not isinstance(event, Polled):
            self.progress.event(event)


class _WatchedClock(SystemClock):
    """This machine's clock. It lets the progress show when the client waits."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        self._invocation.progress.waiting(seconds)
        super().sleep(seconds)


def invocation_of(context: click.Context) -> Invocation:
    """Return the invocation that *context* belongs to, which is new in a context without one."""
    return context.ensure_object(Invocation)


def pass_invocation(command: Callable[Concatenate[Invocation, P], R]) -> Callable[P, R]:
    """Give *command* its invocation as the first argument."""
    return click.make_pass_decorator(Invocation, ensure=True)(command)
