"""Sidecars: a JSON file beside a download that says where the download comes from.

`horse.png` gets `horse.png.json`, with the task, the model, the digest of the request, times, and
the picture's checksum. It has neither the link, whose query may hold a signature, nor the prompt,
unless that is asked for.

It is written after the file, whole or not at all. It replaces an earlier sidecar, but no other
file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pathlib
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeGuard

import attrs

from muybridge.files.durable import sync_folders, write_all
from muybridge.media.files import inspect_file
from muybridge.signals import genuine, ignoring_errors
from muybridge.version import __version__
from muybridge_protocol.errors import DownloadFailed
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import InvalidJson, read_object, readable
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import Remedy, RemedyKind

SUFFIX: Final = ".json"
MARK: Final = "muybridge_sidecar"
"""The name by which a sidecar is known; its value is the version of the format."""
VERSION: Final = 1

_LARGEST: Final = 4 * 1024 * 1024
"""Most bytes of a file that may be a sidecar."""


@attrs.frozen(kw_only=True)
class Sidecar:
    """What a sidecar says besides what the download itself tells.

    Args:
        request: The request of the task, for its digest, or None.
        task: The task as it was created, for its times, or None.
        prompt: Whether to write the request's prompt as well.
        tags: The tags of the task's purchase, or None for those that the client's store has.
    """

    request: MediaRequest | None = None
    task: Task | None = None
    prompt: bool = False
    tags: Mapping[str, str] | None = None


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class SidecarFailed(DownloadFailed):
    """A result is saved, but its sidecar could not be written.

    Args:
        path: Where the result is.
    """

    path: pathlib.Path

    def what(self) -> str:
        """Return what happened, as a sentence."""
        path = readable(str(self.path))
        return f"{path} is saved, but its sidecar is not: {self.reason}."

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.FIX), Remedy(kind=RemedyKind.WRITE_SIDECAR))


@attrs.frozen
class Content:
    """The size and the checksum of a file.

    Args:
        size: Its bytes.
        sha256: Its SHA-256, in hexadecimal.
    """

    size: int
    sha256: str


def sidecar_path(path: Path) -> Path:
    """Return where the sidecar of the file at *path* is."""
    return path.with_name(f"{path.name}{SUFFIX}")


def with_sidecar(
    finish: Callable[[], Path], task: Task | None, about: Literal[True] | Sidecar
) -> Path:
    """Save a file by calling *finish*, and then write its sidecar. Return where the file is.

    Raises:
        SidecarFailed: The file is saved, and its sidecar is not.
    """
    path = finish()
    write_sidecar(path, task, Sidecar() if about is True else about)
    return path


def write_sidecar(
    path: Path, task: Task | None, about: Sidecar, content: Content | None = None
) -> Path:
    """Write the sidecar of the file at *path* durably, and return where it is.

    Args:
        path: The file, which is whole.
        task: The task whose result it is, or None if that is not known.
        about: What else is known.
        content: What the file holds, or None to read it.

    Raises:
        SidecarFailed: It cannot be written. The file stays.
    """
    target = sidecar_path(path)
    try:
        _refuse_foreign(target)
        record = _record(path, task, about, content or _content(path))
        data = json.dumps(record, indent=2).encode() + b"\n"
        new = target.with_name(f"{target.name}.{os.urandom(8).hex()}.new")
        try:
            with new.open("xb", buffering=0) as file:
                write_all(file, data)
                os.fsync(file.fileno())
            _publish(new, target)
        finally:
            with ignoring_errors(OSError):
                new.unlink(missing_ok=True)
        sync_folders(target.parent)
    except genuine(OSError) as error:
        reason = f"{readable(str(target))}: {error.strerror or error}"
        raise SidecarFailed(reason=reason, path=path, task=task) from error
    return target


def has_sidecar(path: Path, sha256: str) -> bool:
    """Whether the file at *path*, with this checksum, has its sidecar."""
    try:
        record = _read(sidecar_path(path))
    except OSError:
        return False
    return _is_sidecar(record) and record.get("sha256") == sha256


def task_in(sidecar: Path) -> str | None:
    """Return the id of the task that a file belongs to by its sidecar, or None if it says none."""
    try:
        record = _read(sidecar)
    except OSError:
        return None
    task = record.get("task") if _is_sidecar(record) else None
    return task if isinstance(task, str) else None


def _record(path: Path, task: Task | None, about: Sidecar, content: Content) -> dict[str, Any]:
    created, request = about.task, about.request
    # The facts of one task must not end up beside the file of another.
    same = created is not None and (task is None or task.id == created.id)
    # The create's record comes first: it knows what was requested, which no later one does.
    tasks = [one for one in (created if same else None, task) if one is not None]

    def fact(name: str) -> Any:
        values = (getattr(one, name) for one in tasks)
        return next((value for value in values if value is not None), None)

    record: dict[str, Any] = {
        MARK: VERSION,
        "file": path.name,
        **attributes(content, "size", "sha256"),
        "content_credentials": inspect_file(path).credentials,
        "task": fact("id"),
        "family": fact("family") if request is None else request.family.name,
        "model": fact("requested_model") or fact("model"),
        "tags": None if about.tags is None else dict(about.tags),
        "request_sha256": None,
        "created": fact("created"),
        "submitted_at": fact("submitted_at"),
        "saved_at": path.stat().st_mtime,
        "muybridge": __version__,
    }
    if request is not None:
        record["model"] = request.model_name or record["model"]
        record["request_sha256"] = request.digest()
    if about.prompt:
        record["prompt"] = None if request is None else request.to_body().get("prompt")
    return record


def _content(path: Path) -> Content:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Content(file.tell(), digest)


def _refuse_foreign(target: Path) -> None:
    """Refuse to replace a file that is no sidecar."""
    if os.path.lexists(target) and not _is_sidecar(_read(target)):
        raise OSError(errno.EEXIST, "it is another file")


def _read(target: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file, or None. Links and pipes are not opened."""
    status = target.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return None
    try:
        return read_object(target.read_bytes())
    except InvalidJson:
        return None


def _is_sidecar(record: dict[str, Any] | None) -> TypeGuard[dict[str, Any]]:
    return record is not None and MARK in record


def _publish(new: Path, target: Path) -> None:
    """Give the whole file *new* its name. It appears at once, and takes no other file's place."""
    if os.path.lexists(target):  # an earlier sidecar
        new.replace(target)
        return
    try:
        os.link(new, target)  # unlike a renamed file, a linked one never replaces another
    except FileExistsError:
        _refuse_foreign(target)
        new.replace(target)
    except genuine(OSError) as error:
        if error.errno not in _NO_LINKS:
            raise
        new.replace(target)


_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What file systems without hard links say."""
