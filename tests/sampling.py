"""The share of the nightly run that every run has."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(number: int) -> int:
    """Return *number*, or in the nightly run how many examples each test has there."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return settings().max_examples
    return number
