"""Serves the emulator on this machine, to programs (`LocalService`) and to people (`serve`)."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from muybridge.local.application import LocalApplication
from muybridge.local.live import Live
from muybridge.local.model_list import ModelList
from muybridge.local.pages import service_pages
from muybridge.local.result_files import ResultFiles
from muybridge.local.server import ServerThread
from muybridge.signals import terminating_on_signals
from muybridge_protocol.emulator import Access, Emulator, Timing
from muybridge_protocol.emulator.text import read_answers

SEEDED_ASSETS = ("asset-1", "asset-2", "asset-3")
"""The assets that the library has when a service starts."""

_BACKLOG = 1024


class LocalService:
    """The whole service on this machine, as long as the context lasts.

    Args:
        speed: What the times of `muybridge_protocol.emulator.Timing` are divided by.
        port: Port to listen on, or 0 for any that is free.
        host: Address to listen on: this machine alone by default.
        keys: What each API key may use, or None for one new key that may use everything.
        assets: The ids of the assets in the library.
        public_url: Where clients reach the service, if not at the address that it listens on.
            The URLs of its results begin with it.
        strict: Whether to refuse fields and models that the specification does not list.
        answers: What the text endpoints say, in order: strings, mappings with the fields that
            `load_answers` describes, or what that returns.

    Raises:
        ValueError: The port, the speed, the keys or the answers cannot be used.
        OSError: On entering, when the address cannot be listened on.
    """

    def __init__(
        self,
        *,
        speed: float = 1.0,
        port: int = 0,
        host: str = "127.0.0.1",
        keys: Mapping[str, Access] | None = None,
        assets: Iterable[str] = SEEDED_ASSETS,
        public_url: str | None = None,
        strict: bool = False,
        answers: Iterable[str | Mapping[str, Any]] = (),
    ) -> None:
        if not 0 <= port <= 65535:  # noqa: PLR2004  the range of ports
            raise ValueError(f"{port} is not a port; use 0 to 65535")
        if keys is not None and not keys:
            raise ValueError("there is no key; give at least one, or None for a new one")
        self._timing = Timing(speed=speed)
        self._host = host
        self._port = port
        self._keys = dict(keys) if keys else {f"local-{secrets.token_urlsafe(24)}": Access()}
        self._assets = tuple(assets)
        self._public_url = public_url
        self._strict = strict
        self._answers = tuple(answers)
        # For its errors alone, which otherwise only entering the context would raise.
        read_answers(self._answers)
        self._epoch = time.time() - time.monotonic()
        self._running: contextlib.ExitStack | None = None
        self._thread: ServerThread
        self.emulator: Emulator

    @property
    def base_url(self) -> str:
        """Where clients on this machine reach the service, and a browser shows its tasks."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104  any address
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def text_base_url(self) -> str:
        """Where clients on this machine reach the text endpoints: at `base_url` as well."""
        return self.base_url

    @property
    def api_key(self) -> str:
        """A key that the service accepts: the first, where several were given."""
        return next(iter(self._keys))

    def now(self) -> float:
        """Return the service's time, Unix seconds. Unlike a wall clock, it never goes back."""
        return self._epoch + time.monotonic()

    def script(self, answers: Iterable[str | Mapping[str, Any]]) -> None:
        """Script what the text endpoints say from here on, in place of the answers that are left.

        Args:
            answers: Strings, or mappings with the fields that `load_answers` describes.

        Raises:
            ValueError: The answers cannot be used. Those that are left stay.
        """
        self.emulator.script(answers)

    def cancel(self, task_id: str) -> bool:
        """Cancel a task of family `vidsa`, and return whether it had not ended yet."""
        return self.emulator.cancel(task_id, self.now())

    def wait(self) -> None:
        """Block until the service stops by itself, which happens only if it fails."""
        # In short turns, because on Windows Ctrl-C does not interrupt a longer wait.
        while not self._thread.ended.wait(1.0):
            pass

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as starting:
            listener = starting.enter_context(_listen(self._host, self._port))
            self._port = listener.getsockname()[1]
            result_files = starting.enter_context(contextlib.closing(ResultFiles()))
            public_url = self._public_url or self.base_url
            self.emulator = Emulator(
                keys=self._keys,
                public_url=public_url,
                timing=self._timing,
                assets=self._assets,
                strict=self._strict,
                answers=self._answers,
            )
            live = Live(
                self.emulator,
                keys=self._keys,
                address=listener.getsockname()[0],
                public_url=public_url,
            )
            application = LocalApplication(
                self.emulator,
                result_files,
                service_pages(public_url),
                live,
                ModelList(self._keys),
                clock=self.now,
            )
            self._thread = ServerThread(listener, application)
            starting.enter_context(self._thread)
            self._running = starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            running.close()


def serve(
    service: LocalService, *, on_ready: Callable[[LocalService], None] = lambda _: None
) -> None:
    """Run *service* until Ctrl-C, or until the process is terminated.

    Args:
        service: The service, such as `LocalService(port=8000)`.
        on_ready: Called with the service once it can be reached.

    Raises:
        OSError: The address cannot be listened on.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    # SIGTERM must not leave temporary files behind, either.
    stopping = terminating_on_signals() if on_main_thread else contextlib.nullcontext()
    with contextlib.suppress(KeyboardInterrupt), stopping, service:
        on_ready(service)
        service.wait()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        failure = OSError(error.errno, f"cannot listen on {host} port {port}: {reason}")
        failure.add_note("port=0 takes any port that is free.")
        raise failure from error
