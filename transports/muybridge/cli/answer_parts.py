"""What an answer contains besides text: pictures are saved, and function calls are shown.

The answer has been paid for, so nothing of it is dropped in silence. Without -o, pictures are saved
in the current folder, under names that no other file has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muybridge.cli.invocation import Invocation
from muybridge.files.durable import make_folders, sync_folders, write_all
from muybridge.files.suffixes import BEGINNING, free_path, right_path, suffix_for, warn_of_name
from muybridge.signals import ignoring_errors
from muybridge_protocol.records.json import JsonObject, as_object, readable
from muybridge_protocol.text.content import Blob, Part
from muybridge_protocol.text.responses import GenerateContentResponse

_CALL = "functionCall"
_SIGNATURE = "thoughtSignature"
_STEM = "answer"


def save_files(invocation: Invocation, answer: GenerateContentResponse) -> list[Path]:
    """Save the pictures and other files in *answer*, and report where they are.

    Raises:
        OSError: One of them cannot be saved.
    """
    saved: list[Path] = []
    for part in _parts(answer):
        if part.inline_data is not None and not part.thought:
            path = _place(invocation.presentation.output, part.inline_data, first=not saved)
            _write(path, part.inline_data.data)
            if invocation.presentation.output is not None and not saved:
                suffix = suffix_for(part.inline_data.data[:BEGINNING], part.inline_data.mime_type)
                warn_of_name(invocation.presentation.output, path, suffix)
            saved.append(path)
            invocation.progress.say(f"saved {path} ({len(part.inline_data.data):,} bytes)")
    if saved and invocation.presentation.output is None:
        invocation.progress.say("-o PATH saves them elsewhere")
    return saved


def calls_in(answer: GenerateContentResponse) -> list[JsonObject]:
    """Return the function calls of *answer*: objects with `name` and `args`."""
    found = (as_object(part.extra.get(_CALL)) for part in answer.parts)
    return [call for call in found if call]


def report_others(invocation: Invocation, answer: GenerateContentResponse) -> None:
    """Report what is in *answer* and not printed, if there is anything."""
    kinds = sorted({name for part in answer.parts for name in part.extra} - {_CALL, _SIGNATURE})
    others = [
        *kinds,
        *([f"{len(answer.candidates)} candidates"] if len(answer.candidates) > 1 else []),
    ]
    if others and not invocation.presentation.json:
        told = readable(", ".join(others), 200)
        invocation.progress.say(f"the answer also contains {told}: --json shows everything")


def _parts(answer: GenerateContentResponse) -> Iterator[Part]:
    for candidate in answer.candidates:
        yield from candidate.content.parts


def _place(output: str | None, blob: Blob, *, first: bool) -> Path:
    """Return where to save *blob*: the given file first, and never another that is there."""
    start = blob.data[:BEGINNING]
    suffix = suffix_for(start, blob.mime_type) or ".bin"
    if output is None:
        return free_path(Path(), _STEM, suffix)
    path = Path(output)
    if path.is_dir() or output.endswith(("/", os.sep)):
        return free_path(path, _STEM, suffix)
    return (
        right_path(path, start, blob.mime_type)
        if first
        else free_path(path.parent, path.stem, suffix)
    )


def _write(path: Path, data: bytes) -> None:
    """Save *data* at *path*: whole, or not at all."""
    part = path.with_name(f"{path.name}.part")
    make_folders(path.parent)
    part.unlink(missing_ok=True)  # it may be a link to another file
    try:
        with part.open("xb", buffering=0) as file:
            write_all(file, data)
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with ignoring_errors(OSError):
            part.unlink(missing_ok=True)
        raise
    sync_folders(path.parent)
