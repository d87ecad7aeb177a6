from __future__ import annotations

import pytest

from emulator.caller import Caller


@pytest.fixture
def caller() -> Caller:
    return Caller()
