"""Where results are saved, checked before anything is sent, and how they are printed."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from muybridge.cli.invocation import STDOUT, Invocation
from muybridge.cli.records import outcome_record
from muybridge.cli.terminal import answer, answer_path, document, say
from muybridge.files.durable import make_folders
from muybridge.files.suffixes import media_of_suffix
from muybridge_protocol.families.family import Media
from muybridge_protocol.records.tasks import Result

_MEDIA = {"image": "pictures", "video": "videos", "audio": "sounds"}


def print_document(invocation: Invocation, record: dict[str, Any]) -> None:
    """Print *record* as the one JSON document of a finished command."""
    noted = {"warnings": invocation.warnings} if invocation.warnings else {}
    document({"ok": True, **record, **noted})


def print_result(invocation: Invocation, result: Result, path: Path | None) -> None:
    """Print where the result is: the saved file, or its URL and when that expires."""
    if invocation.json:
        print_document(invocation, outcome_record(invocation.task, result, path))
    elif invocation.output == STDOUT:
        pass  # it is there already
    elif path is not None:
        answer_path(path)
    else:
        expires = expiry(result)
        if invocation.local:
            say(
                "the URL no longer works, because the local service has ended; -o PATH saves the "
                "result"
            )
        elif expires is not None:
            say(f"the URL works until {expires}")
        answer(result.url or "")


def expiry(result: Result) -> str | None:
    """Return when the result's URL expires, for people, or None if that is unknown."""
    try:
        ends = None if result.expires_at is None else datetime.fromtimestamp(result.expires_at, UTC)
    except (OverflowError, OSError, ValueError):  # `created` is not a time
        return None
    return None if ends is None else f"{ends:%Y-%m-%d %H:%M} UTC"


def check_output(invocation: Invocation, media: Media | None = None) -> None:
    """Refuse a -o that cannot be written to, and what needs a -o without one.

    Args:
        invocation: The options.
        media: What the result is, or None if that is not known.

    Raises:
        click.UsageError: It cannot be used. Nothing was sent.
    """
    if invocation.output == STDOUT:
        _check_stdout(invocation)
    elif invocation.output is not None:
        _check_suffix(invocation.output, media)
        check_target(invocation.output)
    elif invocation.sidecar:
        raise click.UsageError("--sidecar needs -o PATH. Nothing was sent.")


def _check_stdout(invocation: Invocation) -> None:
    """Refuse to write a result to a stdout that is not for it alone."""
    if invocation.json or invocation.sidecar:
        option = "--json" if invocation.json else "--sidecar"
        said = f"writes the result to stdout, and cannot be combined with {option}"
    elif sys.stdout.isatty():
        said = (
            f"writes the result to stdout, which is a terminal. Redirect it, or give -o ./{STDOUT}"
        )
    else:
        return
    raise click.UsageError(f"-o {STDOUT} {said}. Nothing was sent.")


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
