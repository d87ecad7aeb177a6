"""The local service, and an environment that points no software anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from muybridge.local import LocalService

# langchain-google-genai needs an older google-genai, so that it has an environment of its own.
collect_ignore = (
    [
        "test_anthropic.py", "test_google_genai.py", "test_llmock.py", "test_openai.py",
        "test_streamed_calls.py", "test_tool_use.py",
    ]
    if find_spec("langchain_google_genai")
    else ["test_langchain_google_genai.py"]
)  # fmt: skip

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
