"""What the programs that are killed have in common."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from processes import serve

KEY: Final = "sk-canary-4b1d97e2"
POLL: Final = "0.05"
"""Seconds between two looks at a task."""
_LOG: Final = "log"


def load_recipe(folder: Path, url: str) -> Any:
    """Return the module `orders` in *folder*, which becomes the working directory.

    This process leads a group, so that it can be killed with all that it forks.

    Args:
        folder: The folder of the run. The file `log` in it takes all output.
        url: Where the service is.
    """
    lead(folder)
    os.environ.update(MUYBRIDGE_API_KEY=KEY, MUYBRIDGE_BASE_URL=url, POLL=POLL)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    return import_module("orders")


def lead(folder: Path) -> None:
    """Make this process the leader of a group, whose output goes to the file `log` in *folder*."""
    log = os.open(folder / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.setpgrp()
    os.dup2(log, 1)
    os.dup2(log, 2)


def run_celery(app: Any, *, pool: str, slots: int) -> None:
    """Let a Celery worker work until this process is killed.

    Args:
        app: The application.
        pool: Celery's pool.
        slots: How many tasks it works on at once.
    """
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"]
    app.worker_main(["worker", "-P", pool, "-c", str(slots), *quiet])


def serve_celery(work: Callable[..., int], *modules: str) -> None:
    """Call *work* in a fork for each order of a nursery; *modules* are imported once."""
    warnings.resetwarnings()  # other people's libraries may warn
    serve(
        work,
        "celery.bin.celery",
        "celery.concurrency.prefork",
        "celery.concurrency.solo",
        "celery.worker.worker",
        "kombu.transport.filesystem",
        "muybridge.wire.requests_transport",
        "muybridge_protocol.families.imgb",
        *modules,
    )


def kill_all(leader: int) -> None:
    """Kill a process that has loaded a recipe, and all that it has forked, if any are left."""
    # One that has only just been forked does not lead its group yet.
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(leader, signal.SIGKILL)


def last_output(folder: Path) -> str:
    """Return the end of what the programs of the run in *folder* have printed."""
    log = folder / _LOG
    return log.read_text("utf-8", "replace")[-5000:] if log.exists() else ""
