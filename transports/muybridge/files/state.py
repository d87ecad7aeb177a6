"""Where this machine keeps what outlasts a process: the user's state folder."""

from __future__ import annotations

from pathlib import Path


def state_folder(what: str, *, extra: str, instead: str) -> Path:
    """Return Muybridge's folder in the user's state folder; it may not exist yet.

    Args:
        what: What is kept in it, as the message calls it.
        extra: The extra of `muybridge` that installs what is needed to find it.
        instead: What a user may do who does not want to install that.

    Raises:
        ModuleNotFoundError: platformdirs is not installed; the message says what to do.
    """
    try:
        from platformdirs import user_state_path  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        if error.name != "platformdirs":
            raise
        raise ModuleNotFoundError(
            f'The default {what} needs platformdirs: pip install "muybridge[{extra}]". '
            f"Or {instead}. Nothing was sent.",
            name=error.name,
        ) from None
    return user_state_path("muybridge")
