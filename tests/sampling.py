"""How much of the nightly run's work every run does."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(number: int) -> int:
    """Return *number*, or the number of the nightly run's own profile if this is one."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return settings().max_examples
    return number
