"""The local service, and an environment that points no software anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from muybridge.local import LocalService

_SETTINGS = ("MUYBRIDGE_", "GOOGLE_", "GEMINI_", "OPENAI_", "ANTHROPIC_", "LLMOCK_")


@pytest.fixture(autouse=True, scope="session")
def _bare_environment() -> Iterator[None]:
    """Take proxies, and the settings of all software here, out of the environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(_SETTINGS) or name.upper().endswith("_PROXY"):
                environment.delenv(name)
        yield


@pytest.fixture(scope="session")
def service() -> Iterator[LocalService]:
    """The emulator behind HTTP, whose streams do not dawdle and whose models are those listed."""
    with LocalService(speed=1000, strict=True) as service:
        yield service
