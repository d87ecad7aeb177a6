"""Runs llmock on a socket that listens already: a program of its own, for `llmock_service.py`.

It ends when its standard input does, so that it never outlives its starter.
"""

from __future__ import annotations

import socket
import sys
import threading

import uvicorn
from fastapi import FastAPI
from llmock.main import create_app
from starlette.types import Receive, Scope, Send

_NATIVE = "/gemini/v1/"
_NATIVE_THERE = "/gemini/v1beta/"


class StablePaths:
    """llmock with the native protocol at `/v1` as well, which it has at `/v1beta` alone.

    Args:
        llmock: The server as it is.
    """

    def __init__(self, llmock: FastAPI) -> None:
        self._llmock = llmock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            scope = {**scope, "path": scope["path"].replace(_NATIVE, _NATIVE_THERE, 1)}
        await self._llmock(scope, receive, send)


def main() -> None:
    """Serve on the listening socket whose descriptor is the argument."""
    server = uvicorn.Server(uvicorn.Config(StablePaths(create_app()), log_level="warning"))

    def end_with_starter() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_starter, daemon=True).start()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
