"""Threads, tasks, processes and a store that fails: nothing is mixed up, lost or paid twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

import moments
import muybridge
from batch.billing import PNG, BillingServer, Fault, at_random
from batch.runner_process import KEY, horses
from client.drivers import MakeClient
from client.in_process import World
from client.requests_made import image
from muybridge import batch
from muybridge.batch import Stage, StoreUnusable
from muybridge.batch.running.side_files import KeptResponse, ResponseSlot
from muybridge_protocol.records.tasks import Task
from processes import environment
from trio_client.in_trio import (
    TrioTime,
    at_every_checkpoint,
    client_of,
    mock_world,
    on_virtual_time,
)

THREADS = 32
WEIGHTS = {
    Fault.NONE: 80,
    Fault.ACCEPTED_RESET: 4,
    Fault.ACCEPTED_CUT: 4,
    Fault.LOST_GATEWAY: 4,
    Fault.THROTTLED: 4,
    Fault.REFUSED: 4,
}


def check_books(server: BillingServer, known: dict[str, str], unsure: set[str]) -> None:
    """Check that each create was paid at most once, and is known to the one who sent it."""
    assert server.doubles == []
    accepted = {prompt: ids[0] for prompt, ids in server.accepted.items() if ids}
    assert {prompt: name for prompt, name in accepted.items() if prompt not in unsure} == known


# An event loop of asyncio belongs to one thread, and so does a client that it serves.
@pytest.mark.parametrize("driver", ["requests", "trio"])
def test_many_threads_do_everything(make_client: MakeClient, tmp_path: Path) -> None:
    """32 threads create, ask, wait and download with one client, and each gets its own."""
    known: dict[str, str] = {}
    unsure: set[str] = set()
    with BillingServer(at_random(3, WEIGHTS)) as server:
        client = make_client(server.url, poll_interval=0)

        def use(number: int) -> None:
            prompt = f"horse {number}"
            try:
                task = client.create(image(prompt))
            except muybridge.CreateAmbiguous:
                unsure.add(prompt)
                return
            except muybridge.Refused:
                return
            known[prompt] = task.id
            assert task.id.endswith(f"-horse-{number}")
            assert client.get(task).id == task.id
            result = client.wait(task)
            assert task.id in str(result.url)
            saved = client.download(result, tmp_path / f"{number}.png")
            assert saved.read_bytes() == PNG + task.id.encode()

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(use, range(THREADS * 4)))
    check_books(server, known, unsure)
    assert len(known) > THREADS * 2
    assert unsure


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_many_tasks_do_everything(loop: str, tmp_path: Path) -> None:
    """So do 32 tasks of one event loop with one client."""
    known: dict[str, str] = {}
    unsure: set[str] = set()

    async def use(client: muybridge.AsyncClient, number: int) -> None:
        prompt = f"horse {number}"
        try:
            task = await client.create(image(prompt))
        except muybridge.CreateAmbiguous:
            unsure.add(prompt)
            return
        except muybridge.Refused:
            return
        known[prompt] = task.id
        result = await client.wait(task)
        assert task.id in str(result.url)
        saved = await client.download(result, tmp_path / f"{number}.png")
        assert saved.read_bytes() == PNG + task.id.encode()

    async def many() -> None:
        async with muybridge.TrioClient(KEY, server.url, poll_interval=0) as client:
            for first in range(0, THREADS * 2, THREADS):
                async with trio.open_nursery() as nursery:
                    for number in range(first, first + THREADS):
                        nursery.start_soon(use, client, number)

    async def many_on_asyncio() -> None:
        async with muybridge.AsyncClient(KEY, server.url, poll_interval=0) as client:
            for first in range(0, THREADS * 2, THREADS):
                async with asyncio.TaskGroup() as tasks:
                    for number in range(first, first + THREADS):
                        tasks.create_task(use(client, number))

    weights = {**WEIGHTS, Fault.THROTTLED: 0}  # nobody skips the waits here
    with BillingServer(at_random(4, weights)) as server:
        if loop == "trio":
            trio.run(many)
        else:
            asyncio.run(many_on_asyncio())
    check_books(server, known, unsure)
    assert len(known) > THREADS


@on_virtual_time
async def test_run_all_cancelled_at_any_time() -> None:
    """`run_all` cancelled at any moment has reported every id that it paid for."""
    world = mock_world()
    told: list[Task] = []
    client = client_of(world, 0.1, on_submitted=told.append)
    sent: list[int] = []
    for tick in range(200):
        before = len(world.posts)
        with trio.move_on_after(tick * 0.05) as scope:
            async with client.run_all([image("a"), image("b")], concurrency=2) as outcomes:
                async for outcome in outcomes:
                    assert outcome.result is not None
        assert len({task.id for task in told}) == len(told) == len(world.posts)
        sent.append(len(world.posts) - before)
        if not scope.cancelled_caught:
            break
    assert sent[0] == 0
    assert sent[-1] == 2


@on_virtual_time
async def test_delete_cancelled_anywhere() -> None:
    """A deletion cancelled at any checkpoint is done or not, and can be asked for again."""
    world = World(assets=[f"asset-{number}" for number in range(20)], clock=TrioTime())
    client = client_of(world, 0.1)
    numbers = iter(range(20))
    asset = ""

    async def delete() -> None:
        nonlocal asset
        asset = f"asset-{next(numbers)}"
        await client.delete_asset(asset)

    async def check(scope: trio.CancelScope) -> None:
        if not scope.cancelled_caught:
            assert asset not in world.emulator.assets

    assert await at_every_checkpoint(delete, check) >= 3


class Stores:
    """Runs batches in one folder under the driver under test."""

    def __init__(self, driver: str, folder: Path) -> None:
        self._driver = driver
        self.folder = folder
        self.path = folder / "state" / "store.sqlite3"

    def run(self, server: BillingServer, source: Any, **options: Any) -> batch.Report:
        async def run_async() -> batch.Report:
            async with muybridge.AsyncClient(KEY, server.url, poll_interval=0.005) as client:
                return await batch.run_async(client, source, self.folder, **options)

        match self._driver:
            case "trio":
                return trio.run(run_async)
            case "asyncio":
                return asyncio.run(run_async())
            case _:
                return self._run_blocking(server, source, **options)

    def _run_blocking(self, server: BillingServer, source: Any, **options: Any) -> batch.Report:
        with muybridge.Client(KEY, server.url, poll_interval=0.005) as client:
            return batch.run(client, source, self.folder, **options)


@pytest.fixture
def stores(driver: str, tmp_path: Path) -> Stores:
    return Stores(driver, tmp_path / "out")


def _torn(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096)


def _header_gone(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _removed(path: Path) -> None:
    path.unlink()


SPOILT = [_torn, _overwritten, _header_gone, _empty]


@pytest.mark.parametrize("spoil", SPOILT)
def test_nothing_is_sent_by_a_spoilt_store(stores: Stores, spoil: Callable[[Path], None]) -> None:
    """With a store that cannot be trusted, not one request is sent."""
    with BillingServer() as server:
        server.status = "processing"
        stores.run(server, horses(2), timeout=0.01)
        before = server.requests
        spoil(stores.path)
        with pytest.raises(StoreUnusable):
            stores.run(server, horses(4))
        assert server.requests == before


@pytest.mark.skipif(os.name != "posix", reason="an open file is not removed elsewhere")
@pytest.mark.parametrize("spoil", [_torn, _header_gone, _empty, _removed])
def test_no_more_is_sent_once_the_store_is_spoilt(
    stores: Stores, spoil: Callable[[Path], None]
) -> None:
    """If a store is damaged or removed during a run, the run ends before a create."""
    with BillingServer() as server:
        server.on_create = lambda _: spoil(stores.path)
        with pytest.raises(StoreUnusable):
            stores.run(server, horses(5), concurrency=1)
        assert server.posts == 1


def test_the_store_stays_locked(stores: Stores, tmp_path: Path) -> None:
    """A response that a locked store cannot take is kept from run to run until it can."""
    with BillingServer() as server, closing(_in_any_thread(tmp_path)) as holder:

        def hold(_: str) -> None:
            holder.execute("ATTACH ? AS batch", (str(stores.path),))
            holder.execute("BEGIN EXCLUSIVE")

        server.on_create = hold
        for _ in range(3):
            with pytest.raises(StoreUnusable, match="Other processes are writing"):
                stores.run(server, horses(2), concurrency=1, patience=0.01)
            assert server.posts == 1
            assert len(list(stores.path.parent.glob("response-*"))) == 1
        holder.execute("ROLLBACK")
        server.on_create = lambda _: None
        assert stores.run(server, None).counts == {Stage.DOWNLOADED: 2}
        assert (server.posts, server.doubles) == (2, [])


def test_nothing_is_left_to_write_to(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the side file fails as well, the error has the response; the item is ambiguous then."""

    def full(_: ResponseSlot, __: KeptResponse) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*moments.at("response kept").place, full)
    with BillingServer() as server:
        with closing(_in_any_thread(tmp_path)) as holder:

            def hold(_: str) -> None:
                holder.execute("ATTACH ? AS batch", (str(stores.path),))
                holder.execute("BEGIN EXCLUSIVE")

            server.on_create = hold
            with pytest.raises(StoreUnusable) as caught:
                stores.run(server, horses(2), concurrency=1, patience=0.01)
        (task,) = server.accepted["horse 1"]
        assert task in "\n".join(caught.value.__notes__)
        server.on_create = lambda _: None
        report = stores.run(server, None)
        assert report.counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 1}
        assert server.posts == 2


def _in_any_thread(folder: Path) -> sqlite3.Connection:
    place = folder / "another.sqlite3"
    return sqlite3.connect(place, isolation_level=None, check_same_thread=False)


UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork")
RUNNER = """
import os, sys
from batch import runner_process
url, folder, step = sys.argv[1:]
print(os.getpid(), flush=True)
sys.exit(runner_process.run(url, folder, 2, concurrency=1, kill_at=step or None))
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_a_process_id_that_is_used_again(tmp_path: Path) -> None:
    """A runner with the process id of one that was killed takes nothing of it for its own."""

    def run(step: str) -> list[str]:
        script = '"$@"; echo $?'  # a shell of its own, because the first process cannot be killed
        child = [sys.executable, "-W", "error", "-c", RUNNER, server.url, str(tmp_path), step]
        done = subprocess.run(  # noqa: S603  our own script
            [*UNSHARE, "sh", "-c", script, "sh", *child],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if not done.stdout:
            pytest.skip(f"no process ids of one's own here: {done.stderr.strip()}")
        return done.stdout.split()

    with BillingServer() as server:
        number, code = run("before: response kept")
        assert code == "137"
        again, code = run("")
        assert (again, code) == (number, "0")
        assert server.posts == 2
    assert batch.status(tmp_path).counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 1}
