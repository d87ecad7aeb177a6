"""Invalid times are rejected before anything is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

from muybridge import Client


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, None, "9"])
def test_the_timeout_is_a_time(timeout: Any) -> None:
    """A client rejects a timeout that is not a positive number of seconds."""
    with pytest.raises(ValueError, match="timeout"):
        Client("key", "https://api.example.com", timeout=timeout)


@pytest.mark.parametrize("interval", [-1, math.nan, math.inf])
def test_the_poll_interval_is_a_time(interval: float) -> None:
    """A client rejects a poll interval that is not a number of seconds."""
    with pytest.raises(ValueError, match="poll_interval"):
        Client("key", "https://api.example.com", poll_interval=interval)


def test_a_wait_has_a_limit_or_none() -> None:
    """A timeout of not-a-number would never end the wait, and is rejected."""
    client = Client("key", "https://api.example.com")
    with pytest.raises(ValueError, match="nan"):
        client.wait("task-1", timeout=math.nan)
