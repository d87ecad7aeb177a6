"""How much of the nightly run's work every run does."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(number: int, *, nightly: int | None = None) -> int:
    """Return *number*, or in the nightly run *nightly*, by default the number of its profile."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return nightly or settings().max_examples
    return number
