"""Files of requests, for commands that look at each item: JSON lines take constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from muybridge.cli.terminal import say
from muybridge_protocol.records.json import JsonObject

_LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line: references may stand in it as base64."""


def items(file: BinaryIO) -> Iterator[tuple[JsonObject, Any]]:
    """Yield each item, or a `WrongItem`, with its place; blank lines are skipped.

    The place is `{"line": ...}` or, in a JSON array, `{"item": ...}`.
    """
    from muybridge.batch.items import LINES, WrongItem, located, parsed  # noqa: PLC0415  it loads all families

    if file.isatty():
        say("type one JSON object per line; press Ctrl-D to finish")
    path = path_of(file)
    if path is not None and path.suffix.lower() not in LINES:
        for where, value in located(path):
            kind, _, number = where.rpartition(" ")
            yield ({kind: int(number)} if number.isdigit() else {}), value
        return
    for line_number, line in enumerate(_lines(file), start=1):
        if line is None:
            yield {"line": line_number}, WrongItem(("", f"it has more than {_LONGEST_LINE} bytes"))
        elif line.strip():
            yield {"line": line_number}, parsed(line.removesuffix(b"\n"))


def path_of(file: BinaryIO) -> Path | None:
    """Return where the file is that `batch run` would read, or None for stdin and other pipes."""
    path = Path(str(getattr(file, "name", "")))
    return path if path.is_file() else None


def folder_of(file: BinaryIO) -> Path:
    """Return the folder that the files which the items name are relative to."""
    return Path(str(getattr(file, "name", ""))).parent


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line, or None for one that is too long to be kept."""
    while line := _read(file):
        if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (rest := _read(file)) and not rest.endswith(b"\n"):
            pass
        yield None


def _read(file: BinaryIO) -> bytes:
    try:
        return file.readline(_LONGEST_LINE)
    except OSError as error:
        raise click.UsageError(f"the requests cannot be read: {error.strerror}") from None
