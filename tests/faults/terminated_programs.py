"""The programs that are struck: everything that a driver does, as far as it comes."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from batch.runner_process import KEY, horses
from client.alarms import ERRORS
from client.requests_made import image
from muybridge import Client, RequestsTransport, TrioClient, TrioTransport, batch
from muybridge_protocol.records.tasks import Task

from .terminations import ALARMS, TERM


def raised_by(name: str) -> BaseException:
    """Return what a signal's handler raises, or what is raised at a point."""
    if name in ALARMS:
        return ERRORS[ALARMS.index(name)]()
    return SystemExit("time is up") if name == TERM else KeyboardInterrupt("time is up")


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
        cancel: Cancels it, where it can be. It is set once it runs.
    """

    driver: str
    url: str
    folder: Path
    trust: ssl.SSLContext
    told: list[Task] = attrs.field(factory=list[Task])
    error: BaseException | None = None
    cancel: Callable[[], None] = attrs.field(default=lambda: None)

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

    def run_trio(self, work: Callable[[TrioClient], Any]) -> None:
        """Do *work* under trio, to be cancelled from any thread."""
        trio.run(self._run_trio, work)

    async def _run_trio(self, work: Callable[[TrioClient], Any]) -> None:
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


def _trio(program: Program) -> None:
    async def work(client: TrioClient) -> None:
        result = await client.run(image(), timeout=20)
        await client.download(result, program.folder / "horse.png")

    program.run_trio(work)


def _batch(program: Program) -> None:
    with program.client() as client:
        batch.run(client, horses(2), program.out, concurrency=1, timeout=20)


def _trio_batch(program: Program) -> None:
    async def work(client: TrioClient) -> None:
        await batch.run_trio(client, horses(2), program.out, concurrency=1, timeout=20)

    program.run_trio(work)


_PROGRAMS: dict[str, Callable[[Program], None]] = {
    "requests": _requests,
    "trio": _trio,
    "batch": _batch,
    "trio batch": _trio_batch,
}
