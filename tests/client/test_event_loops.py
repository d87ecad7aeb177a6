"""The driver serves any event loop, even one whose cancellation no shield holds back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from muybridge.async_client import AsyncClient
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import (
    Peer,
    Script,
    ScriptedServer,
    hang,
    read_request,
    response_bytes,
    send,
)

from .in_process import KEY
from .requests_made import image

CREATED = response_bytes(200, b'{"id": "task-1", "status": "queued", "created": 1}')


def client_of(url: str, listen: Callable[[Task], None]) -> AsyncClient:
    return AsyncClient(KEY, url, timeout=5, on_submitted=listen)


@dataclass(frozen=True)
class Cancelled:
    """The outcome of a create that was cancelled."""

    error: BaseException
    notes: str
    told: list[str]
    posts: int


class Cancelling:
    """Cancels a create while a server has its request, or before that."""

    def __init__(self) -> None:
        self._may_cancel = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._done = threading.Event()

    def strike(self, _: Peer) -> None:
        """In the server's thread: have the call cancelled, and wait until it has been."""
        self._loop.call_soon_threadsafe(self._may_cancel.set)
        assert self._done.wait(20)

    async def by_timeout(self, call: Awaitable[object]) -> None:
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await self._may_cancel.wait()
                limit.reschedule(self._loop.time())
                self._loop.call_soon(self._done.set)  # after the expiry, which is due at once

            expiring = asyncio.ensure_future(expire())
            await call
        await expiring

    async def by_task(self, call: Awaitable[object]) -> None:
        task = asyncio.ensure_future(call)
        await self._may_cancel.wait()
        task.cancel()
        self._loop.call_soon(self._done.set)  # after the task has heard of it
        await task


def cancelled(
    way: str, script: Callable[[Cancelling], Script], scheme: str, *, raising: bool = False
) -> Cancelled:
    """Return what comes of a create that is cancelled as *script* has it.

    Args:
        way: How it is cancelled.
        script: What the server does, and when.
        scheme: http or https.
        raising: Whether `on_submitted` raises.
    """
    told: list[Task] = []

    def listen(task: Task) -> None:
        told.append(task)
        if raising:
            raise ValueError("the listener fails")

    async def create() -> tuple[BaseException, int]:
        cancelling = Cancelling()
        with ScriptedServer(script(cancelling), scheme=scheme) as server:
            async with client_of(server.url, listen) as client:
                try:
                    await getattr(cancelling, way)(client.create(image()))
                except BaseException as error:  # noqa: BLE001  it is looked at
                    await asyncio.sleep(0)  # a cancellation that is left over comes here
                    return error, server.posts
        raise AssertionError("nothing was cancelled")

    error, posts = asyncio.run(create())
    causes = (error, error.__cause__ or error)
    notes = "\n".join(note for one in causes for note in getattr(one, "__notes__", ()))
    return Cancelled(error, notes, [task.id for task in told], posts)


@pytest.mark.parametrize("way", ["by_timeout", "by_task"])
def test_a_paid_exchange_is_not_broken_off(way: str) -> None:
    """A sent create is completed despite cancellation, which then reports the id."""
    done = cancelled(
        way, lambda cancelling: [read_request, cancelling.strike, send(CREATED)], "http"
    )
    assert isinstance(done.error, TimeoutError if way == "by_timeout" else asyncio.CancelledError)
    assert "task-1" in done.notes
    assert done.told == ["task-1"]
    assert done.posts == 1


@pytest.mark.parametrize("way", ["by_timeout", "by_task"])
def test_a_listener_that_raises_undoes_no_cancellation(way: str) -> None:
    """A create that is cancelled ends as cancelled, with its id, though `on_submitted` raises."""
    done = cancelled(
        way,
        lambda cancelling: [read_request, cancelling.strike, send(CREATED)],
        "http",
        raising=True,
    )
    assert isinstance(done.error, TimeoutError if way == "by_timeout" else asyncio.CancelledError)
    assert "task-1" in done.notes
    assert done.told == ["task-1"]


@pytest.mark.parametrize("way", ["by_timeout", "by_task"])
def test_what_is_not_sent_is_cancelled_at_once(way: str) -> None:
    """A create that is cancelled before its first byte is not sent, and the error says so."""
    done = cancelled(way, lambda cancelling: [cancelling.strike, hang], "https")
    assert isinstance(done.error, TimeoutError if way == "by_timeout" else asyncio.CancelledError)
    assert "was not sent" in done.notes
    assert done.told == []
    assert done.posts == 0
