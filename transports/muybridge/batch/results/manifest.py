"""The manifest of a batch: what each item was, and where its result is, as JSON lines or CSV.

It is for programs that use the results, and knows nothing that the store does not know. A row is
made from one item of it, so a batch of any length takes the same memory.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Final

import attrs

from muybridge.batch.items.entry import Entry
from muybridge.batch.shared import Place, SharedBatch, open_batch
from muybridge.batch.storable_values import encodable
from muybridge.files.drafts import complete, draft, sweep
from muybridge.files.durable import sync_folders
from muybridge.files.tables import cell
from muybridge_protocol.arguments import check_type
from muybridge_protocol.purchases import Stage
from muybridge_protocol.records.convert import unstructure
from muybridge_protocol.records.json import read_object


@attrs.frozen(kw_only=True)
class ManifestRow:
    """An item of a manifest.

    Args:
        item: Its place in the batch, from 1.
        name: The user's name for the item, or "".
        family: The family of the request.
        model: The model, or None.
        prompt: The prompt, or None.
        state: Its progress.
        task: The task's id, or None.
        file: Where its result is: a name within the folder of results, or the address of an object;
            or None.
        bytes: The result's size, or None.
        sha256: The result's checksum, or None.
        reason: Why there is no result, or None.
    """

    item: int
    name: str
    family: str
    model: str | None
    prompt: str | None
    state: Stage
    task: str | None
    file: str | None
    bytes: int | None
    sha256: str | None
    reason: str | None


_COLUMNS: Final = tuple(field.name for field in attrs.fields(ManifestRow))
_NAMES: Final = {False: "results.jsonl", True: "results.csv"}
_BEGINNINGS: Final = {False: b'{"item": 1, "name": ', True: ",".join(_COLUMNS).encode()}
"""What the files begin with."""


def manifest(out: Place) -> Iterator[ManifestRow]:
    """Yield a row for each item of a batch, by number.

    Args:
        out: The folder of the batch, or a batch in a database.

    Raises:
        StoreUnusable: The store cannot be used.
    """
    with open_batch(out) as batch:
        yield from map(_row, batch.entries())


def manifest_lines(out: Place, *, csv: bool = False) -> Iterator[str]:
    """Yield the lines of a manifest.

    Args:
        out: The folder of the batch, or a batch in a database.
        csv: Whether they are CSV, with column names in the first line, rather than JSON.

    Raises:
        StoreUnusable: The store cannot be used.
    """
    if csv:
        yield _csv_line(_COLUMNS)
    for row in manifest(out):
        record: dict[str, object] = unstructure(row)
        if not csv:
            yield f"{json.dumps(record)}\n"
        else:
            values = ("" if value is None else encodable(str(value)) for value in record.values())
            yield _csv_line(map(cell, values))


def write_manifest(
    out: Place, path: str | os.PathLike[str] | None = None, *, csv: bool = False
) -> Path:
    """Write the manifest of a batch to a file, whole or not at all, and return its path.

    Args:
        out: The folder of the batch, or a batch in a database.
        path: The file, or None for `results.jsonl` (or `results.csv`) in the batch's folder, or in
            the current one if the batch is in a database.
        csv: Whether it is CSV rather than JSON lines.

    Raises:
        StoreUnusable: The store cannot be used.
        FileExistsError: No path is given, and the file is not a manifest.
        OSError: It cannot be written.
    """
    check_type(
        "out", out, (str, os.PathLike, SharedBatch), "the folder of a batch, or a SharedBatch"
    )
    check_type("path", path, (str, os.PathLike, NoneType), "a path")
    if path is None:
        file = (Path() if isinstance(out, SharedBatch) else Path(out)) / _NAMES[csv]
        _check_replaceable(file, _BEGINNINGS[csv])
    else:
        file = Path(path)
    sweep(file.parent, file.name)
    with draft(file) as new:
        new.writelines(line.encode() for line in manifest_lines(out, csv=csv))
        new.flush()
        os.fsync(new.fileno())
        complete(new).replace(file)
    sync_folders(file.parent)
    return file


def _row(entry: Entry) -> ManifestRow:
    request = read_object(entry.body)
    model, prompt = request.get("model"), request.get("prompt")
    return ManifestRow(
        item=entry.number,
        name=entry.name,
        family=entry.family,
        model=model if isinstance(model, str) else None,
        prompt=prompt if isinstance(prompt, str) else None,
        state=entry.state,
        task=entry.task_id,
        file=entry.path,
        bytes=entry.size,
        sha256=entry.sha256,
        reason=entry.reason,
    )


def _csv_line(cells: Iterator[str] | tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _check_replaceable(file: Path, beginning: bytes) -> None:
    """Refuse to replace a file that is not a manifest."""
    if not os.path.lexists(file):
        return
    if file.is_file() and not file.is_symlink():
        with file.open("rb") as stream:
            if stream.read(len(beginning)) in (beginning, b""):
                return
    raise FileExistsError(errno.EEXIST, "another file has this name; name one", str(file))
