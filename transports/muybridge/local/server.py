"""Serves an ASGI application with hypercorn, in a thread of its own.

Hypercorn's `serve` is documented, but an error on one connection ends all others. Some clients
cause such errors, for example by sending more data while their last request is being answered. So
this module accepts connections itself and gives each one to hypercorn's `TCPServer`, which does all
the HTTP. That class is public by name only; `tests/local` and the run with the lowest versions show
that it still takes these arguments.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from functools import partial
from types import TracebackType
from typing import Any, Self

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from muybridge.local.application import LOG, LocalApplication

_GRACE = 0.3
"""Seconds for responses in progress to finish when the service is shut down."""


class ServerThread:
    """Serves an application as long as the context lasts.

    Args:
        listener: A socket that is listening.
        application: The application.
    """

    def __init__(self, listener: socket.socket, application: LocalApplication) -> None:
        self.ended: threading.Event = threading.Event()
        self._listener = listener
        self._application = application
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="muybridge-local", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        self._raise_failure()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._stop.set)
        self._thread.join()
        self._raise_failure()

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            self._failure = error
        finally:
            self.ended.set()
            self._ready.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise RuntimeError("the local service failed") from failure

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        config = Config()
        config.errorlog = LOG
        config.include_server_header = False
        context = WorkerContext(None)
        app = ASGIWrapper(self._application)
        streams: set[trio.SocketStream] = set()

        async def connected(stream: Any) -> None:  # a SocketStream; hypercorn's types want TLS
            streams.add(stream)
            try:
                await TCPServer(app, config, context, ConnectionState({}), stream)
            except* Exception:  # noqa: BLE001  it must not end the other connections
                LOG.debug("A connection failed", exc_info=True)
            finally:
                streams.remove(stream)

        async def close_connections() -> None:
            # Hypercorn shields what it sends from cancellation. A client that stops reading would
            # keep it from ever ending, if its stream were not closed.
            await trio.sleep(_GRACE)
            connections.cancel_scope.cancel()
            for stream in [*streams]:
                await trio.aclose_forcefully(stream)

        async with trio.open_nursery() as closing:
            async with trio.open_nursery() as connections:
                listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._listener))
                accept = partial(trio.serve_listeners, handler_nursery=connections)
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(accept, connected, [listener])
                    self._ready.set()
                    await self._stop.wait()
                    accepting.cancel_scope.cancel()
                self._application.interrupt()
                await context.terminated.set()
                closing.start_soon(close_connections)
            closing.cancel_scope.cancel()
