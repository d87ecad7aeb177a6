"""The programs that are struck: everything that a driver does, as far as it comes."""

from __future__ import annotations

import asyncio
import selectors
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from batch.runner_process import KEY, horses
from client.alarms import ERRORS
from client.requests_made import image
from muybridge import (
    AsyncClient,
    AsyncioTransport,
    Client,
    RequestsTransport,
    TrioClient,
    TrioTransport,
    batch,
)
from muybridge_protocol.records.tasks import Task

from .striking import PATIENCE
from .terminations import ALARMS, TERM

AsyncWork = Callable[[AsyncClient], Coroutine[Any, Any, None]]
"""What a program does with an async client."""


def raised_by(name: str) -> BaseException:
    """Return what a signal's handler raises, or what is raised at a point."""
    if name in ALARMS:
        return ERRORS[ALARMS.index(name)]()
    return SystemExit("time is up") if name == TERM else KeyboardInterrupt("time is up")


class _Selector(selectors.DefaultSelector):
    """Tells whether an event loop waits."""

    def __init__(self) -> None:
        super().__init__()
        self._waits = threading.Event()
        self._turn = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        try:
            if timeout is None or timeout > 0:
                self._turn += 1
                self._waits.set()
            return super().select(timeout)
        finally:
            self._waits.clear()

    def wait_until_idle(self) -> None:
        """Wait until the event loop waits, and has looked at everything that has arrived."""
        end = time.monotonic() + PATIENCE
        while True:
            assert self._waits.wait(PATIENCE)
            turn = self._turn
            # What arrived before the event loop watched a socket ends the next wait at once. So
            # within one and the same wait, nothing may have arrived.
            if not self._has_arrived() and self._waits.is_set() and self._turn == turn:
                return
            assert time.monotonic() < end

    def _has_arrived(self) -> bool:
        """Whether something has arrived that the event loop has not looked at yet."""
        return bool(super().select(0))


@attrs.define
class Program:
    """A program of one driver.

    Args:
        driver: What it uses.
        url: Where the service is.
        folder: Where files and the batch are.
        trust: What it trusts.
        told: The tasks that `on_submitted` received.
        error: What came out.
        inside: What came out of the client under asyncio, where `asyncio.run` raises another.
        cancel: Cancels it, where it can be. It is set once it runs.
    """

    driver: str
    url: str
    folder: Path
    trust: ssl.SSLContext
    told: list[Task] = attrs.field(factory=list[Task])
    error: BaseException | None = None
    inside: BaseException | None = None
    cancel: Callable[[], None] = attrs.field(default=lambda: None)
    _selector: _Selector | None = attrs.field(default=None, init=False)

    def wait_until_idle(self) -> None:
        """Wait until asyncio's loop waits, if it runs one."""
        if self._selector is not None:
            self._selector.wait_until_idle()

    def run(self) -> None:
        """Run it to its end, whatever that is."""
        try:
            _PROGRAMS[self.driver](self)
        except BaseException as error:  # noqa: BLE001  whatever comes out is looked at
            self.error = error

    @property
    def out(self) -> Path:
        """The folder of the batch."""
        return self.folder / "out"

    @property
    def said(self) -> str:
        """The notes of what came out."""
        errors = [self.error, self.inside]
        said = (note for error in errors for note in getattr(error, "__notes__", ()))
        return "\n".join(dict.fromkeys(said))

    @property
    def options(self) -> dict[str, Any]:
        """The client's."""
        return {"poll_interval": 0.005, "on_submitted": self.told.append}

    @contextmanager
    def client(self) -> Generator[Client]:
        """Make a blocking client."""
        through = RequestsTransport(ssl_context=self.trust)
        try:
            with Client(KEY, self.url, transport=through, **self.options) as client:
                yield client
        finally:
            through.close()

    def run_asyncio(self, work: AsyncWork) -> None:
        """Do *work* as `asyncio.run` does, to be cancelled from any thread."""

        def new_loop() -> asyncio.AbstractEventLoop:
            self._selector = _Selector()
            return asyncio.SelectorEventLoop(self._selector)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._run_asyncio(work))

    async def _run_asyncio(self, work: AsyncWork) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        through = AsyncioTransport(ssl_context=self.trust)

        def cancel() -> None:
            # At once in the loop's own thread; from another thread it must be woken.
            if threading.current_thread() is threading.main_thread():
                task.cancel()
            else:
                loop.call_soon_threadsafe(task.cancel)

        self.cancel = cancel
        try:
            async with AsyncClient(KEY, self.url, transport=through, **self.options) as client:
                await work(client)
        except BaseException as error:
            self.inside = error
            raise
        finally:
            await through.close()

    def run_trio(self, work: AsyncWork) -> None:
        """Do *work* under trio, to be cancelled from any thread."""
        trio.run(self._run_trio, work)

    async def _run_trio(self, work: AsyncWork) -> None:
        token = trio.lowlevel.current_trio_token()
        through = TrioTransport(ssl_context=self.trust)
        with trio.CancelScope() as scope:

            def cancel() -> None:
                if trio.lowlevel.in_trio_run():
                    scope.cancel()
                else:
                    trio.from_thread.run_sync(scope.cancel, trio_token=token)

            self.cancel = cancel
            try:
                async with TrioClient(KEY, self.url, transport=through, **self.options) as client:
                    await work(client)
            except BaseException as error:
                self.error = error
                raise
            finally:
                with trio.CancelScope(shield=True):
                    await through.close()


def _requests(program: Program) -> None:
    with program.client() as client:
        client.download(client.run(image(), timeout=20), program.folder / "horse.png")


def _single(program: Program) -> AsyncWork:
    async def work(client: AsyncClient) -> None:
        result = await client.run(image(), timeout=20)
        await client.download(result, program.folder / "horse.png")

    return work


def _batch(program: Program) -> None:
    with program.client() as client:
        batch.run(client, horses(2), program.out, concurrency=1, timeout=20)


def _async_batch(program: Program) -> AsyncWork:
    async def work(client: AsyncClient) -> None:
        await batch.run_async(client, horses(2), program.out, concurrency=1, timeout=20)

    return work


_PROGRAMS: dict[str, Callable[[Program], None]] = {
    "requests": _requests,
    "trio": lambda program: program.run_trio(_single(program)),
    "asyncio": lambda program: program.run_asyncio(_single(program)),
    "batch": _batch,
    "trio batch": lambda program: program.run_trio(_async_batch(program)),
    "asyncio batch": lambda program: program.run_asyncio(_async_batch(program)),
}
