"""Ask a model, and save what its answer contains besides text.

The answer has been paid for, so nothing of it is dropped in silence. Where no place is given,
pictures are saved in the current folder, under names that no other file has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muybridge.files.durable import make_folders, sync_folders, write_all
from muybridge.files.suffixes import free_path, right_path, suffix_for, warn_of_name
from muybridge.signals import ignoring_errors
from muybridge_protocol.media.formats import BEGINNING
from muybridge_protocol.records.json import JsonObject, as_object
from muybridge_protocol.text.content import Blob
from muybridge_protocol.text.responses import GenerateContentResponse, NoText, collect

if TYPE_CHECKING:
    from muybridge.client import Client
    from muybridge_protocol.families import Unlisted
    from muybridge_protocol.media.inline import InlineMedia

_CALL = "functionCall"
_SIGNATURE = "thoughtSignature"
_STEM = "answer"


def ask(
    client: Client,
    model: str | Unlisted,
    contents: Sequence[InlineMedia | str],
    *,
    streams: bool = True,
    on_text: Callable[[str], None] | None = None,
    on_interruption: Callable[[GenerateContentResponse], None] | None = None,
    **settings: Any,
) -> GenerateContentResponse:
    """Ask a model, and return its whole answer.

    Args:
        client: The client.
        model: The model.
        contents: The prompt, and files to look at.
        streams: Whether the answer is asked for piece by piece.
        on_text: Called with each piece of its text, if it streams.
        on_interruption: Called with what has arrived, if the stream does not reach its end.
        settings: Further arguments of `Client.generate_content`.

    Raises:
        ServiceError: As `Client.generate_content` and `Client.stream_generate_content`.
    """
    if not streams:
        return client.generate_content(model, contents, **settings)
    with client.stream_generate_content(model, contents, **settings) as stream:
        try:
            for chunk in stream:
                if on_text is not None:
                    with suppress(NoText):  # the whole answer says why
                        on_text(chunk.text)
        except BaseException:
            if on_interruption is not None:
                on_interruption(collect(stream.received()))
            raise
        return stream.collect()


def save_files(answer: GenerateContentResponse, target: str | None = None) -> Iterator[Path]:
    """Save the pictures and other files in *answer*, and yield where each of them is.

    Args:
        answer: The answer.
        target: A file or a folder, or None for the current folder.

    Raises:
        OSError: One of them cannot be saved.
    """
    first = True
    for candidate in answer.candidates:
        for part in candidate.content.parts:
            blob = part.inline_data
            if blob is None or part.thought:
                continue
            path = _place(target, blob, first=first)
            _write(path, blob.data)
            if target is not None and first:
                warn_of_name(target, path, suffix_for(blob.data[:BEGINNING], blob.mime_type))
            first = False
            yield path


def calls_in(answer: GenerateContentResponse) -> list[JsonObject]:
    """Return the function calls of *answer*: objects with `name` and `args`."""
    records = (as_object(part.extra.get(_CALL)) for part in answer.parts)
    return [call for call in records if call]


def others_in(answer: GenerateContentResponse) -> list[str]:
    """Return what *answer* contains besides text, files and calls."""
    kinds = sorted({name for part in answer.parts for name in part.extra} - {_CALL, _SIGNATURE})
    count = len(answer.candidates)
    return [*kinds, *([f"{count} candidates"] if count > 1 else [])]


def _place(target: str | None, blob: Blob, *, first: bool) -> Path:
    """Return where to save *blob*: the given file first, and never another that is there."""
    start = blob.data[:BEGINNING]
    suffix = suffix_for(start, blob.mime_type) or ".bin"
    if target is None:
        return free_path(Path(), _STEM, suffix)
    path = Path(target)
    if path.is_dir() or target.endswith(("/", os.sep)):
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
