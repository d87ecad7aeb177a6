"""llmock, a server that others wrote, as a process of its own for the tests to script."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

_PROGRAM = Path(__file__).with_name("llmock_server.py")

_READY = 60.0
"""Seconds that it may take to start."""

_PATIENCE = 10.0
"""Seconds that it may take to answer, and to end."""


class LlmockService:
    """llmock on this machine, as long as the context lasts."""

    url: str

    def __init__(self) -> None:
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._session)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                descriptor = listener.fileno()
                process = subprocess.Popen(  # noqa: S603  our own program
                    [sys.executable, str(_PROGRAM), str(descriptor)],
                    stdin=subprocess.PIPE,
                    pass_fds=[descriptor],
                )
            starting.callback(_end, process)
            # The socket listens already: this waits until somebody answers on it.
            self._call("GET", "/health", timeout=_READY)
            self._running = starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.close()

    def script(self, *behaviours: dict[str, Any]) -> None:
        """Let *behaviours* come upon the next requests."""
        self._call("POST", "/_llmock/scenario", {"behaviors": behaviours})

    def requests(self) -> list[dict[str, Any]]:
        """Return what it noted of each request since the last reset."""
        noted: list[dict[str, Any]] = self._call("GET", "/_llmock/requests")["requests"]
        return noted

    def findings(self) -> list[dict[str, Any]]:
        """Return what it holds against the client that made these requests."""
        found: list[dict[str, Any]] = self._call("GET", "/_llmock/verdict")["findings"]
        return found

    def reset(self) -> None:
        """Forget all requests, and all that is still scripted."""
        self._call("POST", "/_llmock/reset")

    def _call(self, method: str, path: str, body: Any = None, timeout: float = _PATIENCE) -> Any:
        reply = self._session.request(method, f"{self.url}{path}", json=body, timeout=timeout)
        reply.raise_for_status()
        return reply.json()


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
