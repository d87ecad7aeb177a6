from __future__ import annotations

import pytest

from client.in_process import World

from .in_trio import mock_world


@pytest.fixture
def world() -> World:
    return mock_world()
