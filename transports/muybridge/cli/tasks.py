"""`get`, `wait` and `download`: commands for tasks that were created earlier."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from muybridge.cli import options
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.records import generation_record
from muybridge.cli.results import (
    STDOUT,
    check_output,
    check_target,
    expiry,
    print_generation,
    save,
)
from muybridge.cli.terminal import answer, answer_path
from muybridge.purchases.environment import default_place
from muybridge.verbs import generation
from muybridge.verbs.generation import Generation
from muybridge_protocol.errors import NotCompleted
from muybridge_protocol.operations.defaults import DOWNLOAD_TIMEOUT
from muybridge_protocol.records.convert import View, unstructure
from muybridge_protocol.records.tasks import Result, Task, as_task
from muybridge_protocol.service import shown_id

_TIMEOUT = "Seconds to wait for one response [default: 60]"


@click.command(params=[options.JSON, options.timeout(_TIMEOUT), *options.CONNECTION])
@click.argument("task", metavar="ID|TOKEN")
@pass_invocation
def get(invocation: Invocation, task: str) -> None:
    """Query a task once.

    The exit code is 0 whatever the task's status is.

    With --json: {ok, task, result: {the record's fields}, expires_at}.
    """
    known = as_task(task)
    invocation.note(verb="get", task=known)
    with invocation.client(exchange_timeout=invocation.connection.timeout) as client:
        result = client.get(known)
    if invocation.presentation.json:
        invocation.print_document(**generation_record(Generation(known, result)))
        return
    for name, value in _lines(result):
        answer(f"{name:<16}{value}")


@click.command(
    params=[
        options.output(),
        options.SIDECAR,
        options.INSECURE_DOWNLOADS,
        options.JSON,
        *options.WAITING,
        options.STORE,
        *options.CONNECTION,
    ]
)
@click.argument("task", metavar="ID|TOKEN")
@pass_invocation
def wait(invocation: Invocation, task: str) -> None:
    """Wait for a task, and save its result or print its URL.

    Prefer the token (from `create --json`) to the id: it contains the family, which has its own
    poll interval. If the store recorded the request, and enough others of its model and length, the
    command says how long they usually take.

    With --json: {ok, task, result: {the record's fields}, expires_at, path, times: {usual, so_far}
    in seconds, if that is known}.
    """
    known = as_task(task)
    invocation.note(task=known)
    if invocation.spending.store is None and Path(default_place()).is_file():
        invocation.choose(store=default_place())  # to read what is usual, if it knows the task
    check_output(invocation.presentation)
    with invocation.client() as client:
        timeout = invocation.connection.wait_timeout
        outcome = save(invocation, generation.wait, client, known, timeout=timeout)
    print_generation(invocation, outcome)


@click.command(
    params=[
        options.output(required=True),
        options.SIDECAR,
        options.INSECURE_DOWNLOADS,
        options.JSON,
        options.timeout("Maximum seconds for the download [default: 3600]"),
        options.poll_interval(
            "Poll interval in the command that is printed if there is no result yet"
        ),
        *options.CONNECTION,
    ]
)
@click.argument("source", metavar="ID|TOKEN|URL")
@pass_invocation
def download(invocation: Invocation, source: str) -> None:
    """Download the result of a task, or a result URL.

    Interrupted downloads resume. The key is not sent.

    With --json: {ok, task, result, expires_at, path}; for a URL {ok, path}.
    """
    presentation, timeout = invocation.presentation, invocation.connection.timeout
    what: Task | str
    if "://" in source and not source.lstrip().startswith("{"):
        what = source
        invocation.note(verb="download", url=source)
    else:
        what = as_task(source)
        invocation.note(verb="download", task=what)
    if presentation.output == STDOUT:
        check_output(presentation)
    else:
        check_target(presentation.output or ".")
    with invocation.client() as client:
        try:
            outcome = save(
                invocation,
                generation.download,
                client,
                what,
                timeout=DOWNLOAD_TIMEOUT if timeout is None else timeout,
            )
        except NotCompleted:
            invocation.note(verb="wait")
            raise
    if presentation.json:
        invocation.print_document(**generation_record(outcome))
    elif outcome.path is not None:
        answer_path(outcome.path)


# The id has a line of its own, and `created` one as the time until which the URL works.
_LEFT_OUT = ("id", "family", "object", "created", "raw")
_SHOWN = View(
    Result, only=tuple(name for name in attrs.fields_dict(Result) if name not in _LEFT_OUT)
)


def _lines(result: Result) -> list[tuple[str, object]]:
    """Return what is known of *result*, by the wire's names, for people."""
    known = {
        "id": shown_id(result.id),
        **unstructure(result, _SHOWN),
        "URL works until": expiry(result),
    }
    return [(name, value) for name, value in known.items() if value is not None]
