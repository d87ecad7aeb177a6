"""Processes that stand still, as on a machine that hangs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

psutil = pytest.importorskip("psutil", reason="psutil is not installed")


@contextmanager
def suspended(number: int) -> Generator[None]:
    """Let a process and its children stand still as long as the context lasts."""
    process = psutil.Process(number)
    processes = [process, *process.children(recursive=True)]
    for one in processes:
        one.suspend()
    while any(one.is_running() and one.status() != psutil.STATUS_STOPPED for one in processes):
        pass  # a signal takes a while
    try:
        yield
    finally:
        for one in processes:
            with suppress(psutil.NoSuchProcess):
                one.resume()
