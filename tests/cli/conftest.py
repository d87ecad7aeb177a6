from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from batch.fixtures import postgres
from muybridge.cli.commands import muybridge
from muybridge.local import LocalService
from processes import environment
from purchases.fixtures import place, store

__all__ = ["place", "postgres", "store"]

ROOT = Path(__file__).parents[2]

Invoke = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def service() -> Iterator[LocalService]:
    """The whole service on this machine, in a hurry."""
    with LocalService(speed=50) as running:
        yield running


@pytest.fixture
def settings(service: LocalService) -> dict[str, str]:
    """The environment in which the command uses `service`."""
    return {"MUYBRIDGE_API_KEY": service.api_key, "MUYBRIDGE_BASE_URL": service.base_url}


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the command within this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, env: Mapping[str, str] | None = None, **more: Any) -> Result:
        result = CliRunner().invoke(muybridge, list(words), prog_name="muybridge", env=env, **more)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the command as a process of its own, in an empty folder."""
    with ExitStack() as ending:

        def begin(
            *words: str,
            env: Mapping[str, str] | None = None,
            program: str | None = None,
            under: Sequence[str] = (),
            **more: Any,
        ) -> subprocess.Popen[str]:
            settings: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            settings |= more
            command = ["-m", "muybridge"] if program is None else ["-c", program]
            process = ending.enter_context(
                subprocess.Popen(  # noqa: S603  our own command
                    [*under, sys.executable, *command, *words],
                    cwd=tmp_path,
                    env=environment(**(env or {})),
                    text=True,
                    **settings,
                )
            )
            ending.callback(process.kill)
            return process

        yield begin
