"""How long things take, as messages show it."""

from __future__ import annotations


def shown_seconds(seconds: float) -> str:
    """Return a duration as a message shows it: below 10 s with two digits."""
    return f"{seconds:.0f} s" if seconds >= 10 else f"{round(seconds, 3):.2g} s"  # noqa: PLR2004  as said
