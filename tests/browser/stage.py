"""A local service whose clock the tests set, so that nothing has to be waited for."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import requests

from muybridge.local import LocalService
from muybridge_protocol.families import FAMILIES

LATER = 3600.0
"""Seconds after which any task has ended."""


class Stage(LocalService):
    """A local service whose time stands still until `later` is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._moment = time.time()
        self._session = requests.Session()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.close()
        super().__exit__(kind, error, traceback)

    def now(self) -> float:
        """Return the service's time, Unix seconds."""
        return self._moment

    def later(self, seconds: float = LATER) -> None:
        """Let *seconds* pass."""
        self._moment += seconds

    def make(self, family: str, prompt: str = "a horse", **body: Any) -> str:
        """Make a task, and return its id."""
        models = FAMILIES[family].models
        reply = self._session.post(
            f"{self.base_url}{FAMILIES[family].create_path}",
            json={"model": models[0].name if models else family, "prompt": prompt, **body},
            headers={"Authorization": f"Bearer {self.api_key}"},
            timeout=20,
        )
        return str(reply.json()["id"])
