"""Every address that a call connects to, whichever driver makes it."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Generator
from typing import Any

_open: list[set[str]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        for addresses in _open:
            addresses.add(f"{arguments[1][0]}:{arguments[1][1]}")


@functools.cache
def _install() -> None:
    sys.addaudithook(_hear)  # which stays until the process ends


@contextlib.contextmanager
def connections() -> Generator[set[str]]:
    """Give the addresses that this process connects to meanwhile, as `host:port`."""
    _install()
    addresses: set[str] = set()
    _open.append(addresses)
    try:
        yield addresses
    finally:
        _open.remove(addresses)
