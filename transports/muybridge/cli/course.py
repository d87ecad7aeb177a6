"""What is known of the work that a command does: its exit code and its last lines depend on it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import attrs

from muybridge.cli.connection import PERMISSIONS, Connection, words_of
from muybridge.cli.presentation import Presentation
from muybridge_protocol.errors import DownloadFailed, LinkExpired, ServiceError, TaskFailed
from muybridge_protocol.events import Ambiguous
from muybridge_protocol.http import Reason
from muybridge_protocol.observations import ExchangeFailed, RequestSent, ResponseReceived
from muybridge_protocol.records.tasks import Result, Status, Task

if TYPE_CHECKING:
    from muybridge_protocol.observations import AnyEvent
    from muybridge_protocol.text.responses import GenerateContentResponse


@attrs.frozen(kw_only=True)
class Course:
    """What is known of the work that a command does.

    Args:
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
    """

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

    def after(self, event: AnyEvent) -> Self:
        """Return what is known after *event*."""
        match event:
            case Ambiguous():
                return attrs.evolve(self, ambiguous=True)
            case RequestSent(method=method):
                return attrs.evolve(self, unanswered=method != "GET")
            case ExchangeFailed(reason=Reason.INTERRUPTED, sent=True):
                return self  # it may have been accepted
            case ResponseReceived() | ExchangeFailed():
                return attrs.evolve(self, unanswered=False)
            case _:
                return self

    def after_error(self, error: ServiceError) -> Self:
        """Return what is known after *error*, with the records that it carries."""
        known = self
        if error.task is not None and (self.task is None or error.task.next_poll_at is not None):
            known = attrs.evolve(known, task=error.task)  # the next command must not poll it sooner
        if isinstance(error, TaskFailed):
            known = attrs.evolve(known, result=error.result)
        if isinstance(error, DownloadFailed) and error.lasting:
            # For a task, a later download may get a better link.
            known = attrs.evolve(known, failed=known.task is None or isinstance(error, LinkExpired))
        return known

    def next_command(self, connection: Connection, presentation: Presentation) -> str | None:
        """Return the exact command that resumes, or None if there is nothing to resume."""
        if self.resuming is not None:
            return self.resuming()
        if connection.local or self.failed:
            return None
        result = self.result  # which may have a link before it is completed
        done = result is not None and result.status == Status.COMPLETED and result.url is not None
        output = presentation.output
        if self.url is not None or (done and output is not None):
            verb = "download"
        elif self.ambiguous or self.task is None:
            return None
        else:
            verb = self.verb
        what = str(self.url) if self.task is None else _token(self.task)
        words = ["muybridge", verb, *words_of(connection, "api_key_file", "base_url", *PERMISSIONS)]
        if verb == "wait":
            words += words_of(connection, "poll_interval")
        if verb != "get" and output is not None:
            words += ["-o", output, *words_of(presentation, "sidecar")]
        return shlex.join([*words, *operand(what)])


def _token(task: Task) -> str:
    """Return the task's token, which keeps its family and with it the pace, or a bare id."""
    return as_argument(task) if task.family is None else task.to_token()


def as_argument(task: Task) -> str:
    """Return the id of *task* for a command line, or its token if the id could be misread."""
    reference = task.reference
    could_be_other = reference.startswith("-") or "://" in reference
    return task.to_token() if could_be_other else reference


def operand(text: str) -> tuple[str, ...]:
    """Return the words for *text* as the last argument, so that it is not taken for an option."""
    return ("--", text) if text.startswith("-") else (text,)
