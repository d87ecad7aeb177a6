"""What all of these tests stand on."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep no log records: thousands of programs that continue would leave too many."""
    caplog.set_level(logging.CRITICAL, "muybridge")
