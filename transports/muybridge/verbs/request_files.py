"""Files of requests, for verbs that look at each item: JSON lines take constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from muybridge.batch.items.reading import LINES, NO_ITEM, WrongItem, located, parsed
from muybridge.files.encodings import UTF_8, encoding_of_file
from muybridge_protocol.errors import LocalError
from muybridge_protocol.records.json import JsonObject, as_object
from muybridge_protocol.rules.media import MediaReport

_LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line: references may stand in it as base64."""

Findings = tuple[tuple[str, str], ...]
"""Fields, and what is wrong with each; "" is the item as a whole."""


@attrs.frozen
class Verdict:
    """What is wrong with an item.

    Args:
        place: Where it is: `{"line": ...}` or, in a JSON array, `{"item": ...}`.
        family: The family that it names, or None.
        errors: Why it is not valid.
        warnings: Which of its settings have no effect.
        media: What a check of its media found, or None if there was none.
    """

    place: JsonObject
    family: str | None
    errors: Findings = ()
    warnings: Findings = ()
    media: MediaReport | None = None

    @classmethod
    def of(cls, place: JsonObject, item: Any, errors: Iterable[tuple[str, str]] = ()) -> Verdict:
        """Return the verdict on *item*, which has *errors*."""
        family: object = (as_object(item) or {}).get("family")
        return cls(place, family if isinstance(family, str) else None, tuple(errors))

    @property
    def ok(self) -> bool:
        """Whether the item is valid."""
        return not self.errors and (self.media is None or self.media.ok)


EMPTY = Verdict({}, None, (("", NO_ITEM),))
"""The verdict on a file without an item."""


def items(file: BinaryIO) -> Iterator[tuple[JsonObject, Any]]:
    """Yield each item, or a `WrongItem`, with its place; blank lines are skipped.

    Raises:
        LocalError: The file cannot be read any further.
    """
    path = path_of(file)
    if path is not None and (path.suffix.lower() not in LINES or encoding_of_file(path) != UTF_8):
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
        raise LocalError(f"The requests cannot be read: {error.strerror}.") from None
