"""Whether a result can be saved where the user wants it, found out before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import click


def check_target(target: str) -> None:
    """Refuse a *target* that cannot be written to, and make its folder.

    Raises:
        click.UsageError: It cannot be written to. Nothing was sent.
    """
    path = Path(target)
    wants_folder = target.endswith(("/", os.sep)) or path.is_dir()
    if not wants_folder and path.exists() and not path.is_file():
        raise click.UsageError(f"-o {target}: is neither a file nor a folder. Nothing was sent.")
    folder = path if wants_folder else path.parent
    # The download keeps its parts beside the file, under the longest name that this one has.
    probe = folder / f"{path.name if not wants_folder else ''}.part.json.try"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Only writing tells for sure: permissions are not the whole story.
        probe.touch()
        probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise click.UsageError(f"-o {target}: {reason}. Nothing was sent.") from None
