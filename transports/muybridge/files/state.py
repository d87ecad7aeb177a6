"""Where this machine keeps what outlasts a process: the user's state folder."""

from __future__ import annotations

from pathlib import Path


def state_folder() -> Path:
    """Return Muybridge's folder in the user's state folder; it may not exist yet."""
    from platformdirs import user_state_path

    return user_state_path("muybridge")
