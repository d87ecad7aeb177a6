"""Whether a result can be saved where the user wants it, found out before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import click


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


def _obstacle(target: str) -> str | None:
    """Return why *target* cannot be written to, or None; most obstacles raise OSError."""
    path = Path(target)
    wants_folder = target.endswith(("/", os.sep)) or path.is_dir()
    if not wants_folder and path.exists() and not path.is_file():
        return "is neither a file nor a folder"
    folder = path if wants_folder else path.parent
    folder.mkdir(parents=True, exist_ok=True)
    # Only writing tells for sure: permissions are not the whole story. The download keeps its
    # parts beside the file, and this name is as long as the longest of theirs.
    probe = folder / f"{'' if wants_folder else path.name}.part.json.try"
    probe.touch()
    probe.unlink(missing_ok=True)
    return None
