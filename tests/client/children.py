"""Clients in processes of their own, to be limited, killed and waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from processes import environment, limit_files


@contextmanager
def downloading(
    driver: str, service: str, source: str, target: Path, *, file_limit: int = 0
) -> Generator[subprocess.Popen[str]]:
    """Download in a process of its own, as long as the context lasts.

    It prints `at N` for each progress, and at its end `saved PATH` or the error's name.

    Args:
        driver: Which client to use.
        service: The service's base URL.
        source: What to download.
        target: Where to.
        file_limit: Most bytes that it may write to one file, or 0 for no limit.
    """
    child = _start("download", driver, service, source, str(target), str(file_limit))
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def forking(driver: str, service: str) -> str:
    """Ask for a task, fork, and ask again on both sides; return what was printed.

    Args:
        driver: Which client to use.
        service: The service's base URL.
    """
    return _start("fork", driver, service).communicate(timeout=30)[0]


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  this very file
        [sys.executable, "-W", "error", "-m", "client.children", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def _fork(driver: str, service: str) -> None:
    from .drivers import DRIVERS

    with ExitStack() as closing:
        client = DRIVERS[driver](closing)(service)
        print("before", client.get("task-1").status, flush=True)  # noqa: T201  read by the test
        child = os.fork()
        if child == 0:
            print("child", client.get("task-1").status, flush=True)  # noqa: T201  the same
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", client.get("task-1").status, flush=True)  # noqa: T201  the same


def _download(driver: str, service: str, source: str, target: str, file_limit: str) -> None:
    from muybridge import DownloadFailed
    from muybridge_protocol.events import DownloadProgress, Event

    from .drivers import DRIVERS

    if int(file_limit):
        limit_files(int(file_limit))

    def tell(event: Event) -> None:
        if isinstance(event, DownloadProgress):
            print("at", event.received, flush=True)  # noqa: T201  read by the test

    with ExitStack() as closing:
        client = DRIVERS[driver](closing)(service, on_event=tell)
        try:
            print("saved", client.download(source, target), flush=True)  # noqa: T201  the same
        except DownloadFailed as error:
            print(type(error).__name__, error, flush=True)  # noqa: T201  the same


if __name__ == "__main__":
    {"download": _download, "fork": _fork}[sys.argv[1]](*sys.argv[2:])
