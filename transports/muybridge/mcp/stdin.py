"""Lines of stdin, from a thread that nothing awaits.

A read of stdin cannot be taken back: it ends with a line, or with stdin. The SDK reads in a worker
thread, and Python awaits such threads before it ends. So a server that a signal has ended would
stay until its host says something more. A daemon thread is left behind instead.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from threading import Thread
from typing import cast

import anyio
from anyio.from_thread import BlockingPortal


@asynccontextmanager
async def stdin_lines() -> AsyncGenerator[anyio.AsyncFile[str]]:
    """Iterate over the lines of stdin until it ends; each is read once the last one is taken."""
    sending, receiving = anyio.create_memory_object_stream[str]()
    # Of its own: at the end, Python would want the lock of `sys.stdin`, which a read holds.
    stdin = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")

    def read() -> None:
        # The portal or the stream has gone if the server ended first.
        with suppress(RuntimeError, CancelledError, anyio.BrokenResourceError), stdin:
            for line in stdin:
                portal.call(sending.send, line)
            portal.call(sending.aclose)

    async with BlockingPortal() as portal:
        Thread(target=read, name="muybridge-stdin", daemon=True).start()
        try:
            yield cast("anyio.AsyncFile[str]", receiving)  # the SDK iterates over it, no more
        finally:
            receiving.close()
            await portal.stop(cancel_remaining=True)
