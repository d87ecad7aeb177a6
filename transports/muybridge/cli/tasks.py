"""`get`, `wait` and `download`: commands for tasks that were created earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from muybridge.cli.invocation import STDOUT, Invocation, pass_invocation
from muybridge.cli.options import (
    CONNECTION,
    INSECURE_DOWNLOADS,
    JSON,
    SIDECAR,
    WAITING,
    output,
    poll_interval,
    timeout,
)
from muybridge.cli.records import outcome_record
from muybridge.cli.results import check_output, check_target, expiry, print_document, print_result
from muybridge.cli.terminal import answer, answer_path
from muybridge_protocol.errors import ResultIncomplete, ServiceError, TaskCancelled, TaskFailed
from muybridge_protocol.records.convert import View, unstructure
from muybridge_protocol.records.tasks import Result, Status, Task, as_task
from muybridge_protocol.service import shown_id

if TYPE_CHECKING:
    from muybridge import Client


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class NotCompleted(ServiceError):
    """A task has no result yet.

    Args:
        status: Its status.
    """

    status: str

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"There is nothing to download yet (status: {self.status})."


_TIMEOUT = "Seconds to wait for one response [default: 60]"


@click.command(params=[JSON, timeout(_TIMEOUT), *CONNECTION])
@click.argument("task", metavar="ID|TOKEN")
@pass_invocation
def get(invocation: Invocation, task: str) -> None:
    """Query a task once.

    The exit code is 0 whatever the task's status is.

    With --json: {ok, task, result: {the record's fields}, expires_at}.
    """
    invocation.verb, invocation.task = "get", as_task(task)
    with invocation.client(exchange_timeout=invocation.timeout) as client:
        invocation.result = client.get(invocation.task)
    if invocation.json:
        print_document(invocation, outcome_record(invocation.task, invocation.result))
        return
    for name, value in _lines(invocation.result):
        answer(f"{name:<16}{value}")


@click.command(
    params=[
        output(),
        SIDECAR,
        INSECURE_DOWNLOADS,
        JSON,
        *WAITING,
        *CONNECTION,
    ]
)
@click.argument("task", metavar="ID|TOKEN")
@pass_invocation
def wait(invocation: Invocation, task: str) -> None:
    """Wait for a task, and save its result or print its URL.

    Prefer the token (from `create --json`) to the id: it contains the family, which has its own
    poll interval.

    With --json: {ok, task, result: {the record's fields}, expires_at, path}.
    """
    invocation.task = as_task(task)
    check_output(invocation)
    with invocation.client() as client:
        result, path = invocation.wait_and_save(client, invocation.task)
    print_result(invocation, result, path)


@click.command(
    params=[
        output(required=True),
        SIDECAR,
        INSECURE_DOWNLOADS,
        JSON,
        timeout("Maximum seconds for the download [default: 3600]"),
        poll_interval("Poll interval in the command that is printed if there is no result yet"),
        *CONNECTION,
    ]
)
@click.argument("source", metavar="ID|TOKEN|URL")
@pass_invocation
def download(invocation: Invocation, source: str) -> None:
    """Download the result of a task, or a result URL.

    Interrupted downloads resume. The key is not sent.

    With --json: {ok, task, result, expires_at, path}; for a URL {ok, path}.
    """
    output = invocation.output or "."
    invocation.verb = "download"
    if "://" in source and not source.lstrip().startswith("{"):
        invocation.url = source
    else:
        invocation.task = as_task(source)
    if output == STDOUT:
        check_output(invocation)
    else:
        check_target(output)
    with invocation.client() as client:
        if invocation.task is not None:
            invocation.result = _completed(invocation, client, invocation.task)
        path = invocation.save(
            client, invocation.result or source, output, timeout=invocation.timeout
        )
    if invocation.json:
        print_document(invocation, outcome_record(invocation.task, invocation.result, path))
    elif path is not None:
        answer_path(path)


def _completed(invocation: Invocation, client: Client, task: Task) -> Result:
    """Return the task's result, if there is one to download."""
    result = client.get(task)
    if result.status == Status.FAILED:
        raise TaskFailed(result=result, task=task)
    if result.status == Status.CANCELLED:
        raise TaskCancelled(result=result, task=task)
    if result.status != Status.COMPLETED:
        invocation.verb = "wait"
        raise NotCompleted(status=result.status, task=task)
    if result.url is None:
        raise ResultIncomplete(result=result, task=task)
    return result


_SHOWN = View(
    Result,
    only=(
        *("status", "model", "image_url", "video_url"),
        *("actual_duration", "total_tokens", "error"),
    ),
)


def _lines(result: Result) -> list[tuple[str, object]]:
    """Return what is known of *result*, by the wire's names, for people."""
    known = {
        "id": shown_id(result.id),
        **unstructure(result, _SHOWN),
        "URL works until": expiry(result),
    }
    return [(name, value) for name, value in known.items() if value is not None]
