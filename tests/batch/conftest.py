from __future__ import annotations

from collections.abc import Iterator

import pytest

from .runner_process import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What forks runners."""
    with Nursery() as forking:
        yield forking
