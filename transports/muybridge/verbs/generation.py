"""Create a task, wait for it, and save its result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import attrs

from muybridge_protocol.errors import (
    DownloadFailed,
    InvalidAddress,
    NotCompleted,
    ResultIncomplete,
    TaskFailed,
)
from muybridge_protocol.operations.defaults import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.tasks import Result, Status, Task
from muybridge_protocol.remedies import in_facts

if TYPE_CHECKING:
    from muybridge.client import Client
    from muybridge.files.sidecar import Sidecar
    from muybridge_protocol.families.request import MediaRequest

Target = str | os.PathLike[str] | BinaryIO
"""Where a result goes: a file, a folder, or a file object."""
Listener = Callable[[Result], None]
"""Called with each record of a task."""


@attrs.frozen
class Generation:
    """A task, its result, and where that was saved.

    Args:
        task: The task, or None if only a link to its result is known.
        result: The last record that the service sent, or None.
        path: The file that the result was saved in, or None.
    """

    task: Task | None
    result: Result | None = None
    path: Path | None = None


def create(client: Client, request: MediaRequest) -> Task:
    """Create a task. One that fails at once is an error.

    Raises:
        TaskFailed: The service's response to the create says so.
        ServiceError: As `Client.create`.
    """
    task = client.create(request)
    if task.status == Status.FAILED:
        raise TaskFailed(result=task.to_result(), task=task)
    return task


def run(
    client: Client,
    request: MediaRequest,
    target: Target | None = None,
    *,
    timeout: float = WAIT_TIMEOUT,
    sidecar: bool = False,
    on_update: Listener | None = None,
) -> Generation:
    """Create a task, wait for it, and save its result.

    Args:
        client: The client.
        request: What to generate.
        target: Where the result goes, or None to keep only its link.
        timeout: Seconds to wait for the task.
        sidecar: Whether to write a JSON file beside the result.
        on_update: Called with each record of the task.

    Raises:
        ServiceError: As `create`, `Client.wait` and `Client.save`.
    """
    task = create(client, request)
    return wait(
        client,
        task,
        target,
        timeout=timeout,
        sidecar=sidecar,
        on_update=on_update,
        request=request,
    )


def wait(
    client: Client,
    task: Task,
    target: Target | None = None,
    *,
    timeout: float = WAIT_TIMEOUT,
    sidecar: bool = False,
    on_update: Listener | None = None,
    request: MediaRequest | None = None,
) -> Generation:
    """Wait for a task that was created earlier, and save its result, as `run` does.

    Args:
        client: The client.
        task: The task.
        target: Where the result goes, or None to keep only its link.
        timeout: Seconds to wait for the task.
        sidecar: Whether to write a JSON file beside the result.
        on_update: Called with each record of the task.
        request: The request of the task for the sidecar, or None if it is not known.

    Raises:
        ServiceError: As `Client.wait` and `Client.save`.
    """
    result = client.wait(task, timeout=timeout, on_update=on_update)
    return _saved(client, task, result, target, sidecar=sidecar and _sidecar(task, request))


def download(
    client: Client,
    source: Task | str,
    target: Target,
    *,
    timeout: float = DOWNLOAD_TIMEOUT,
    sidecar: bool = False,
    on_update: Listener | None = None,
) -> Generation:
    """Save the result of a completed task, or what a link leads to.

    Args:
        client: The client.
        source: The task, or a link to its result.
        target: Where the result goes.
        timeout: Seconds that the download may take.
        sidecar: Whether to write a JSON file beside the result.
        on_update: Called with the record of the completed task.

    Raises:
        NotCompleted: The task has no result yet.
        ServiceError: As `Client.get` and `Client.save`.
        InvalidAddress: The link is not one that results are downloaded from.
    """
    if isinstance(source, str):
        path = _save(client, source, target, timeout, sidecar=sidecar and _sidecar(None))
        return Generation(None, None, path)
    result = _completed(client, source)
    if on_update is not None:
        on_update(result)
    return _saved(client, source, result, target, timeout, sidecar=sidecar and _sidecar(source))


def _completed(client: Client, task: Task) -> Result:
    """Return the task's result, if there is one to download."""
    result = client.get(task)
    if result.status in (Status.FAILED, Status.CANCELLED):
        raise TaskFailed(result=result, task=task)
    if result.status != Status.COMPLETED:
        raise NotCompleted(reason=f"the task is {result.status}", task=task)
    if result.url is None:
        raise ResultIncomplete(result=result, task=task)
    return result


def _saved(
    client: Client,
    task: Task,
    result: Result,
    target: Target | None,
    timeout: float = DOWNLOAD_TIMEOUT,
    *,
    sidecar: Literal[False] | Sidecar,
) -> Generation:
    if target is None:
        return Generation(task, result)
    try:
        path = _save(client, result, target, timeout, sidecar=sidecar)
    except InvalidAddress as error:
        # The service gave this address, and the task is safe.
        raise DownloadFailed(
            reason=error.describe(in_facts), advice=error.remedies, task=task
        ) from error
    return Generation(task, result, path)


def _save(
    client: Client,
    source: Result | str,
    target: Target,
    timeout: float,
    *,
    sidecar: Literal[False] | Sidecar,
) -> Path | None:
    if isinstance(target, str | os.PathLike):
        return client.save(source, target, timeout=timeout, sidecar=sidecar)
    client.download(source, target, timeout=timeout)
    return None


def _sidecar(task: Task | None, request: MediaRequest | None = None) -> Sidecar:
    from muybridge.files.sidecar import Sidecar

    return Sidecar(request=request, task=task)
