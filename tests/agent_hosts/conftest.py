"""The relay of tests/agents, and an environment that points no software anywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# LangChain's client needs an older SDK, so that it has an environment of its own.
collect_ignore = (
    ["test_conformance.py", "test_inspector.py", "test_pydantic_ai.py"]
    if find_spec("langchain_mcp_adapters")
    else ["test_langchain.py"]
)
TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from agents.relay import Relay  # noqa: E402  the folder above has it

_SETTINGS = ("MUYBRIDGE_", "LANGCHAIN_", "LANGSMITH_", "OPENAI_", "ANTHROPIC_")


@pytest.fixture(autouse=True, scope="session")
def _bare_environment() -> Iterator[None]:
    """Take proxies, and the settings of all software here, out of the environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(_SETTINGS) or name.upper().endswith("_PROXY"):
                environment.delenv(name)
        yield


@pytest.fixture
def relay() -> Iterator[Relay]:
    """The service, and a relay that counts."""
    with Relay() as relay:
        yield relay


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of the official client."""
    return "asyncio"
