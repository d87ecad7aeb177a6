"""Where results are saved, checked before anything is sent, and how they are printed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muybridge.cli.invocation import Invocation
from muybridge.cli.records import generation_record
from muybridge.cli.terminal import answer, answer_path, say
from muybridge.files.durable import make_folders
from muybridge.files.suffixes import media_of_suffix
from muybridge_protocol.families.family import Media
from muybridge_protocol.records.tasks import Result

if TYPE_CHECKING:
    from muybridge.cli.presentation import Presentation
    from muybridge.verbs.generation import Generation, Target

_MEDIA = {"image": "pictures", "video": "videos", "audio": "sounds"}


STDOUT = "-"
"""In place of a path: stdout."""


def save(
    invocation: Invocation, verb: Callable[..., Generation], *arguments: object, timeout: float
) -> Generation:
    """Call *verb* with where its result is to be saved, and report where that was.

    Args:
        invocation: The options, and what is known.
        verb: A function of `muybridge.verbs.generation`.
        arguments: Its first arguments.
        timeout: Seconds that it may take.
    """
    presentation = invocation.presentation
    with _target(invocation) as target:
        generation = verb(
            *arguments,
            target,
            timeout=timeout,
            sidecar=presentation.sidecar,
            on_update=invocation.update,
        )
    if generation.path is not None:
        size = generation.path.stat().st_size
        invocation.progress.say(f"saved {generation.path} ({size:,} bytes)")
    return generation


@contextmanager
def _target(invocation: Invocation) -> Generator[Target | None, None, None]:
    """Yield where to save the result. For stdout, it is written there once it is whole."""
    output = invocation.presentation.output
    if output != STDOUT:
        yield output
        return
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        yield file
        file.seek(0)
        copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        invocation.progress.say(f"wrote {file.tell():,} bytes to stdout")


def print_generation(invocation: Invocation, generation: Generation) -> None:
    """Print where the result is: the saved file, or its URL and when that expires."""
    if invocation.presentation.json:
        invocation.print_document(**generation_record(generation))
    elif generation.path is not None:
        answer_path(generation.path)
    elif invocation.presentation.output is None and generation.result is not None:
        expires = expiry(generation.result)
        if invocation.connection.local:
            say(
                "the URL no longer works, because the local service has ended; -o PATH saves the "
                "result"
            )
        elif expires is not None:
            say(f"the URL works until {expires}")
        answer(generation.result.url or "")


def expiry(result: Result) -> str | None:
    """Return when the result's URL expires, for people, or None if that is unknown."""
    try:
        ends = None if result.expires_at is None else datetime.fromtimestamp(result.expires_at, UTC)
    except (OverflowError, OSError, ValueError):  # `created` is not a time
        return None
    return None if ends is None else f"{ends:%Y-%m-%d %H:%M} UTC"


def check_output(presentation: Presentation, media: Media | None = None) -> None:
    """Refuse a -o that cannot be written to, and what needs a -o without one.

    Args:
        presentation: The options.
        media: What the result is, or None if that is not known.

    Raises:
        click.UsageError: It cannot be used. Nothing was sent.
    """
    if presentation.output == STDOUT:
        _check_stdout(presentation)
    elif presentation.output is not None:
        _check_suffix(presentation.output, media)
        check_target(presentation.output)
    elif presentation.sidecar:
        raise click.UsageError("--sidecar needs -o PATH. Nothing was sent.")


def _check_stdout(presentation: Presentation) -> None:
    """Refuse to write a result to a stdout that is not for it alone."""
    if presentation.json or presentation.sidecar:
        option = "--json" if presentation.json else "--sidecar"
        message = f"writes the result to stdout, and cannot be combined with {option}"
    elif sys.stdout.isatty():
        message = (
            f"writes the result to stdout, which is a terminal. Redirect it, or give -o ./{STDOUT}"
        )
    else:
        check_stdout(f"-o {STDOUT} writes the result")
        return
    raise click.UsageError(f"-o {STDOUT} {message}. Nothing was sent.")


def check_stdout(what: str) -> None:
    """Refuse to pay for what is only on stdout, if that is closed.

    Args:
        what: What is written there, as the beginning of a sentence.

    Raises:
        click.UsageError: stdout cannot be written to. Nothing was sent.
    """
    try:
        # To write nothing tells whether it is open.
        os.write(sys.stdout.fileno(), b"")
    except OSError as error:
        # What else goes wrong, such as a full disk, shows only when there is something to write.
        if error.errno == errno.EBADF:
            raise click.UsageError(
                f"{what} to stdout, which cannot be written to. Nothing was sent."
            ) from None


def _check_suffix(output: str, media: Media | None) -> None:
    """Refuse a name that can only mislead."""
    named = media_of_suffix(output)
    if media is None or named in ("", media) or _names_folder(output):
        return
    suffix = Path(output).suffix
    raise click.UsageError(
        f"-o {output}: {suffix} is a suffix of {_MEDIA[named]}, and this model makes "
        f"{_MEDIA[media]}. Leave it out: the right one is added. Nothing was sent."
    )


def check_target(target: str, option: str = "-o") -> None:
    """Refuse a *target* that cannot be written to, and make its folder.

    Args:
        target: A file or a folder.
        option: Where it was given, for the message.

    Raises:
        click.UsageError: It cannot be written to. Nothing was sent.
    """
    try:
        reason = _obstacle(target)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
    if reason is not None:
        raise click.UsageError(f"{option} {target}: {reason}. Nothing was sent.")


def _names_folder(target: str) -> bool:
    return target.endswith(("/", os.sep)) or Path(target).is_dir()


def _obstacle(target: str) -> str | None:
    """Return why *target* cannot be written to, or None; most obstacles raise OSError."""
    path = Path(target)
    wants_folder = _names_folder(target)
    if not wants_folder and path.exists() and not path.is_file():
        return "is neither a file nor a folder"
    folder = path if wants_folder else path.parent
    make_folders(folder)
    # Only writing is a reliable test: permissions are not the whole story. A download keeps its
    # parts next to the file, and this name is as long as the longest of theirs.
    probe = folder / f"{'' if wants_folder else path.name}.part.json.try"
    probe.touch()
    probe.unlink(missing_ok=True)
    return None
