"""Events in words."""

from __future__ import annotations

import pytest

from muybridge_protocol.events import WillRetry


@pytest.mark.parametrize(
    ("delay", "said"), [(0.43, "0.43"), (1.0, "1"), (1.75, "1.8"), (17.8, "18")]
)
def test_a_short_delay_is_not_called_none(delay: float, said: str) -> None:
    """A retry after less than a second says when it comes, not that it comes in 0 seconds."""
    event = WillRetry(what="create", reason="status 503", delay=delay, attempt=1)
    assert event.sentence() == f"retrying create in {said} s: status 503"
