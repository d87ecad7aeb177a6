"""Downloading a result: the whole way from a link, a task or an id to a path, a file or bytes."""

from __future__ import annotations

import errno
import os
from functools import partial
from inspect import iscoroutinefunction
from io import BytesIO, RawIOBase, TextIOBase
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Drive, Driver, Stream
from muybridge.files.durable import make_folders
from muybridge.files.saving import PartFile, SaveTarget, unsaved
from muybridge.files.suffixes import warn_of_name
from muybridge.signals import genuine
from muybridge.wire.exchange import PIECE
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations import Download
from muybridge_protocol.operations.download import DownloadStage, Part, Saved
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import RemedyKind

if TYPE_CHECKING:
    from muybridge.files.sidecar import Sidecar


async def download(
    driver: Driver,
    calls: Calls,
    url: str | None,
    task: Task | None,
    path: str | os.PathLike[str],
    *,
    now: float,
    seconds: float,
    size_limit: int | None,
    sidecar: bool | Sidecar,
    adds_suffix: bool = False,
) -> Path:
    """Save a result and return where it is, as `Client.download` and `Client.save` say.

    Args:
        driver: Drives the download.
        calls: Begins it.
        url: Where the result is, or None to query the service first.
        task: Whose result it is, or None if only the link is known.
        path: A file or a folder.
        now: Seconds on the driver's clock.
        seconds: How long the download may take.
        size_limit: Most bytes, or None for no limit.
        sidecar: Whether to write a sidecar, or what else it is to say.
        adds_suffix: Whether a missing suffix follows from the content, with a warning if the name
            misleads.
    """
    if url is not None:
        calls.service.check_download(url)  # before a folder is made for it
    try:
        target = SaveTarget.choose(path, url, task, adds_suffix=adds_suffix)
        if not target.folder.is_dir():
            await driver.runtime.in_thread(partial(make_folders, target.folder))
        with PartFile(target, source=task.id if task is not None else str(url)) as part:
            earlier = Part() if part.is_new else await driver.runtime.in_thread(part.find)
            operation = calls.download(
                url,
                task,
                earlier,
                timeout=seconds,
                size_limit=size_limit,
                now=now,
            )
            saved = await _fetch(driver, operation, part)
            # In a thread, because it waits for the disk.
            finish = partial(part.finish, saved.content_type)
            if sidecar:
                from muybridge.files.sidecar import with_sidecar

                finish = partial(with_sidecar, finish, task, sidecar)
            where = await driver.runtime.in_thread(finish)
    except genuine(OSError) as error:
        raise unsaved(path, error, task) from error
    if adds_suffix:
        warn_of_name(path, where, part.suffix)
    return where


async def read(
    driver: Driver,
    calls: Calls,
    url: str | None,
    task: Task | None,
    *,
    now: float,
    seconds: float,
    size_limit: int | None,
) -> bytes:
    """Return the bytes of a result, as `Client.read` says; for the arguments, see `download`."""
    memory = BytesIO()
    operation = calls.download(url, task, None, timeout=seconds, size_limit=size_limit, now=now)
    await _fetch(driver, operation, Unnamed(memory))
    return memory.getvalue()


async def copy(
    driver: Driver,
    calls: Calls,
    url: str | None,
    task: Task | None,
    file: BinaryIO,
    *,
    now: float,
    seconds: float,
    size_limit: int | None,
) -> None:
    """Write a result to an open *file*; for the other arguments, see `download`.

    A file object cannot be trusted to take anything back. So it gets the result when that is whole.
    """
    operation = calls.download(url, task, None, timeout=seconds, size_limit=size_limit, now=now)
    try:
        with SpooledTemporaryFile(_IN_MEMORY) as temporary:
            await _fetch(driver, operation, Unnamed(temporary))
            # In a thread, because it waits for the disk or whatever is behind the file.
            await driver.runtime.in_thread(partial(_copy_all, temporary, file))
    except genuine(OSError) as error:
        raise unsaved("the file object", error, task, RemedyKind.CHOOSE_FILE) from error


def check_path(target: object) -> None:
    """Check that a result can be saved to *target* by its name.

    Raises:
        TypeError: It is no path.
    """
    if isinstance(target, str | os.PathLike):
        return
    if callable(getattr(target, "write", None)):
        raise TypeError(
            "save names the file by its content. To write to a file that is open, write "
            "client.download(result, file). Nothing was sent."
        )
    raise _not_a_target(target)


def check_file(target: object) -> None:
    """Check that a result can be written to *target*, which is no path.

    Raises:
        TypeError: It is not a file that is open for writing bytes.
    """
    write, can_write = getattr(target, "write", None), getattr(target, "writable", None)
    if not callable(write):
        raise _not_a_target(target)
    takes_bytes = not isinstance(target, TextIOBase) and not iscoroutinefunction(write)
    if not takes_bytes or (callable(can_write) and not can_write()):
        raise TypeError(
            'a result is written to a file that is opened with open(path, "wb"), and this one is '
            "for text, for reading or for an event loop. Nothing was sent."
        )


def _not_a_target(target: object) -> TypeError:
    return TypeError(
        "a result is saved to a path or to a file that is open for writing, not to "
        f"{type(target).__name__}. Write client.download(result, path). Nothing was sent."
    )


class Unnamed:
    """A download in memory or in a temporary file, which no later call resumes.

    Args:
        file: Where the bytes go.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def begin(self, part: Part) -> None:
        """Prepare to write at the part's offset, and drop everything from there on."""
        self._file.seek(part.offset)
        self._file.truncate()

    def write(self, piece: bytes) -> None:
        """Keep the next piece."""
        self._file.write(piece)


def _copy_all(source: IO[bytes], file: BinaryIO) -> None:
    source.seek(0)
    while piece := source.read(PIECE):
        rest = memoryview(piece)
        while rest:
            count = cast("int | None", file.write(rest))  # not every object counts
            if count is None and isinstance(file, RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "it takes no more bytes now")
            rest = rest[len(rest) if count is None else count :]


_IN_MEMORY = 8 * 1024 * 1024
"""Bytes of a result that are kept in memory until it is whole; more are kept on the disk."""


async def _fetch(driver: Driver, operation: Download, part: PartFile | Unnamed) -> Saved:
    """Drive *operation* to its end, saving the body to *part*.

    Raises:
        ServiceError: The operation failed.
        OSError: The part cannot be written.
    """
    drive = _Saving(driver, operation, part)
    while await drive.step():
        pass
    saved: Saved = drive.outcome()
    return saved


class _Saving(Drive[Download]):
    """A download under way.

    Args:
        driver: The driver of its client.
        operation: The operation at its beginning.
        part: Where to save what comes.
    """

    def __init__(self, driver: Driver, operation: Download, part: PartFile | Unnamed) -> None:
        super().__init__(driver, operation)
        self._part = part

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        self._operation = await self._exchange(request, deadline, self._save)
        self._tracker.tell_end(self._operation.events)

    async def _save(self, stream: Stream) -> None:
        now = self._driver.runtime.now
        async with stream as response:
            head = self._driver.credentials.redact_head(response.head)
            moment = now()
            self._operation = self._operation.accept(head, moment)
            self._tracker.head(head.status, moment)
            if self._operation.stage is not DownloadStage.READING:
                return
            self._part.begin(self._operation.part)
            self._tracker.tell(self._operation.events)
            async for piece in response.pieces():
                self._operation = self._operation.take(piece)
                if self._operation.settled is not None:
                    return
                # In this thread: writing a piece to the system's cache takes a fraction of the time
                # that handing it to another thread would.
                self._part.write(piece)
                self._tracker.tell(self._operation.events)
        self._operation = self._operation.end(now())
