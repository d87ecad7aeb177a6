"""Runs of batches in this process: what is sent, what is kept, and how they resume."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from moments import at
from muybridge import AsyncClient, Client, TrioClient, batch
from muybridge.batch import BatchEvent, Report, Stage, StoreUnusable, What
from muybridge.batch.items.folder import FOLDER
from muybridge.batch.running.item_work import ItemWork
from muybridge.batch.running.side_files import Runner
from muybridge.batch.shared import open_batch
from muybridge.drivers.fleet_team import Stopped
from muybridge.drivers.listeners import Listeners
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.events import Ambiguous, DownloadProgress, Submitted
from muybridge_protocol.observations import CallBegan, CallEnded, CallInfo, ResponseReceived
from muybridge_protocol.purchases import State
from muybridge_protocol.records.tasks import Task
from processes import Nursery

from .billing import PNG, BillingServer, Fault
from .conftest import Run
from .runner_process import KEY, horses


def faults(*chosen: Fault) -> Callable[[str], Fault]:
    """Return what commits *chosen* on the first creates, and none on those that follow."""
    left = list(chosen)
    return lambda _: left.pop(0) if left else Fault.NONE


def files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


def test_a_batch_is_done(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """Every result is saved under its name, once, with its size and checksum in the store."""
    report = run(server, horses(5))
    assert report.done
    assert report.counts == {Stage.DOWNLOADED: 5}
    assert server.posts == 5
    for entry in report.entries:
        path = report.path_of(entry)
        assert path is not None
        assert path == tmp_path / "out" / f"h{entry.number}.png"
        assert path.read_bytes() == PNG + server.accepted[f"horse {entry.number}"][0].encode()
        assert entry.size == path.stat().st_size


@pytest.mark.parametrize("timeout", ["600", float("nan")])
def test_a_timeout_that_is_no_number(
    server: BillingServer, run: Run, tmp_path: Path, timeout: Any
) -> None:
    """A timeout that is not a number is rejected before anything is created."""
    with pytest.raises(ValueError, match="timeout must be a number of seconds, or None"):
        run(server, horses(2), timeout=timeout)
    assert server.posts == 0
    assert not (tmp_path / "out").exists()


def test_a_negative_timeout(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A negative timeout is rejected before anything is created."""
    with pytest.raises(ValueError, match=r"timeout must not be negative \(got -1\)"):
        run(server, horses(2), timeout=-1)
    assert server.posts == 0
    assert not (tmp_path / "out").exists()


def test_finished_items_are_left_alone(server: BillingServer, run: Run) -> None:
    """Running a finished batch again asks the service for nothing and tells no event."""
    run(server, horses(3))
    asked, events = server.requests, list[BatchEvent]()
    assert run(server, horses(3), on_event=events.append).done
    assert run(server, None, on_event=events.append).done
    assert (server.requests, events) == (asked, [])


def test_a_batch_can_grow(server: BillingServer, run: Run) -> None:
    """Items may be added at the end; the others have to be the ones that were begun with."""
    run(server, horses(2))
    assert len(run(server, horses(4)).entries) == server.posts == 4
    for changed in (horses(4, first=2), horses(3)):
        with pytest.raises(InvalidInput):
            run(server, changed)
    assert server.posts == 4


def test_a_create_is_tried_again(run: Run) -> None:
    """A create that the service had no time for is sent, and written down, once more."""
    with BillingServer(faults(Fault.THROTTLED, Fault.THROTTLED)) as server:
        report = run(server, horses(1))
    assert report.done
    assert (server.posts, len(server.accepted)) == (3, 1)
    with open_batch(report.folder) as found:
        assert [one.state for one in found.purchases(1)] == [
            State.RELEASED, State.RELEASED, State.ACCEPTED,
        ]  # fmt: skip


def test_nothing_is_sent_while_an_item_is_invalid(server: BillingServer, run: Run) -> None:
    """One item that is not valid keeps all others back, and no store is begun."""
    with pytest.raises(InvalidInput):
        run(server, [*horses(3), {"family": "imgb"}])
    with pytest.raises(StoreUnusable, match="There is no batch in"):
        run(server, None)
    assert server.requests == 0


def test_a_batch_stays_at_its_service(server: BillingServer, run: Run) -> None:
    """A batch that was begun at one service does not resume at another."""
    run(server, horses(1))
    with BillingServer() as other:
        with pytest.raises(StoreUnusable, match="was begun at"):
            run(other, None)
        assert other.requests == 0


def test_a_batch_without_tasks_goes_to_another_service(
    server: BillingServer, run: Run, tmp_path: Path
) -> None:
    """A batch that no service has been sent any of continues where the next run sends it."""
    with BillingServer() as other:
        assert run(other, horses(2), limit=0).counts == {Stage.QUEUED: 2}
        unlike = pytest.raises(StoreUnusable, match="was begun at")
        with Runner(tmp_path / "out" / FOLDER), unlike:
            run(server, None)  # the other runner may create tasks where the batch was begun
        assert server.requests == 0
        assert run(server, None).counts == {Stage.DOWNLOADED: 2}
        with pytest.raises(StoreUnusable, match="was begun at"):
            run(other, None)
        assert other.requests == 0


def test_neither_key_nor_signature_is_kept(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """No file of a batch holds the key or the query of a link."""
    server.media_works = False
    assert run(server, horses(2)).counts == {Stage.COMPLETED: 2}
    for path, content in files(tmp_path / "out"):
        assert KEY.encode() not in content, path
        assert b"secret-of-the-link" not in content, path


def test_a_download_that_failed_is_made_up_for(server: BillingServer, run: Run) -> None:
    """A result that could not be fetched is fetched by the next run, and not created again."""
    server.media_works = False
    report = run(server, horses(1))
    assert report.entries[0].reason is not None
    assert "download failed" in report.entries[0].reason
    server.media_works = True
    assert run(server, None).done
    assert server.posts == 1


def test_failed_tasks_are_told(server: BillingServer, run: Run) -> None:
    """A task that fails ends its item, with its reason; the others continue."""
    server.status = "failed"
    report = run(server, horses(1))
    assert (report.done, report.counts) == (True, {Stage.FAILED: 1})


def test_the_next_run_knows_when_a_task_may_be_polled(server: BillingServer, run: Run) -> None:
    """A wait that times out leaves in the store when its task may next be polled."""
    server.status = "processing"
    (entry,) = run(server, horses(1), timeout=0.05).entries
    assert entry.state is Stage.SUBMITTED
    assert entry.task is not None
    assert entry.task.next_poll_at is not None
    assert entry.task.id == server.accepted["horse 1"][0]


def test_refused_items_are_told_and_others_go_on(run: Run) -> None:
    """What the service refuses is left, with what it said; the others are done."""
    with BillingServer(faults(Fault.REFUSED)) as server:
        report = run(server, horses(3), concurrency=1)
        assert report.counts == {Stage.REFUSED: 1, Stage.DOWNLOADED: 2}
        assert "no horses today" in (report.entries[0].reason or "")
        batch.retry(report.folder, 1)
        assert run(server, None).counts == {Stage.DOWNLOADED: 3}


def test_a_wrong_key_stops_the_run(run: Run) -> None:
    """A refusal that every other request would meet stops the run and uses no item up."""
    with BillingServer(faults(Fault.UNAUTHORIZED)) as server:
        report = run(server, horses(5), concurrency=1)
        assert (server.posts, report.counts) == (1, {Stage.QUEUED: 5})
        assert "status 401" in report.stopped
        assert run(server, None).done
        assert server.doubles == []


def test_a_service_that_is_not_there_stops_the_run(run: Run) -> None:
    """What was certainly not sent is queued, and the run stops."""
    with BillingServer() as gone:
        pass
    report = run(gone, horses(5), concurrency=1)
    assert report.counts == {Stage.QUEUED: 5}
    assert "could not be sent (3 attempts)" in report.stopped


def closed(server: BillingServer, out: Path) -> None:
    client = Client(KEY, server.url)
    client.close()
    batch.run(client, horses(1), out)


async def closed_async(server: BillingServer, out: Path) -> None:
    client = AsyncClient(KEY, server.url)
    await client.close()
    await batch.run_async(client, horses(1), out)


@pytest.mark.parametrize(
    "run_closed",
    [closed, partial(trio.run, closed_async), lambda *given: asyncio.run(closed_async(*given))],
    ids=["requests", "trio", "asyncio"],
)
def test_a_closed_client(
    server: BillingServer, run_closed: Callable[[BillingServer, Path], None], tmp_path: Path
) -> None:
    """A closed client is refused before there is a batch."""
    with pytest.raises(RuntimeError, match="this client is closed, and nothing was sent"):
        run_closed(server, tmp_path / "out")
    assert server.posts == 0
    assert not (tmp_path / "out").exists()


def test_a_screen_that_is_gone_stops_the_run(server: BillingServer, run: Run) -> None:
    """An error of the file system's kind in the hook is the hook's, and no download's."""

    def hang_up(event: BatchEvent) -> None:
        if event.what is What.SENDING:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run(server, horses(5), concurrency=2, on_event=hang_up)
    assert server.posts == 0
    assert run(server, None).done


def test_a_hook_that_breaks_loses_nothing(server: BillingServer, run: Run) -> None:
    """An error in the hook stops the run and is raised; what was paid for is in the store."""

    def break_off(event: BatchEvent) -> None:
        if event.what is What.SUBMITTED:
            raise RuntimeError(event.task)

    with pytest.raises(RuntimeError, match="task-1-horse"):
        run(server, horses(5), concurrency=1, on_event=break_off)
    assert server.posts == 1
    assert run(server, None).done
    assert server.doubles == []


AMBIGUOUS = [Fault.ACCEPTED_RESET, Fault.ACCEPTED_GATEWAY, Fault.LOST_RESET]


@pytest.mark.parametrize("fault", AMBIGUOUS)
def test_an_ambiguous_item_waits_for_a_person(fault: Fault, run: Run) -> None:
    """What may have been accepted is not sent again, however often the batch is run."""
    with BillingServer(faults(fault)) as server:
        for _ in range(3):
            report = run(server, horses(2), concurrency=1)
            assert report.counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 1}
            assert not report.done
        assert server.posts == 2


def test_adopting(run: Run, tmp_path: Path) -> None:
    """An item that is adopted is waited for and saved; its id can be no other item's."""
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        report = run(server, horses(2), concurrency=1)
        out = tmp_path / "out"
        with pytest.raises(batch.CannotDecide, match="item 2"):
            batch.adopt(out, "h1", server.accepted["horse 2"][0])
        with pytest.raises(ValueError, match="task id"):
            batch.adopt(out, "h1", "..")
        assert batch.adopt(out, "h1", server.accepted["horse 1"][0]).state is Stage.SUBMITTED
        report = run(server, None)
        assert report.counts == {Stage.DOWNLOADED: 2}
        assert server.posts == 2
        with pytest.raises(batch.CannotDecide, match="there is nothing to decide"):
            batch.adopt(out, 1, "task-9")


def test_a_wrong_adoption_can_be_mended(run: Run, tmp_path: Path) -> None:
    """A task that a person named wrongly is not found, and another one may be named instead."""
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(2), concurrency=1)
        out = tmp_path / "out"
        for wrong in ("task-no-such", "task-neither"):
            batch.adopt(out, 1, wrong)
        # The service is asked for a new id for a minute; nobody wants to wait for that.
        report = run(server, None, timeout=0.01)
        assert report.counts == {Stage.SUBMITTED: 1, Stage.DOWNLOADED: 1}
        batch.adopt(out, 1, server.accepted["horse 1"][0])
        assert run(server, None).counts == {Stage.DOWNLOADED: 2}
        assert server.posts == 2


def test_the_services_own_word_stands(run: Run, tmp_path: Path) -> None:
    """A task whose id the service gave is not to be replaced or abandoned."""
    with BillingServer() as server:
        server.status = "processing"
        assert run(server, horses(1), timeout=0.01).counts == {Stage.SUBMITTED: 1}
        with pytest.raises(batch.CannotDecide):
            batch.adopt(tmp_path / "out", 1, "task-9")
        with pytest.raises(batch.CannotDecide):
            batch.abandon(tmp_path / "out", 1)
        server.status = "completed"
        assert run(server, None).done


def test_an_embedded_service_forgets(run: Run) -> None:
    """What an embedded service had not finished is created anew on the next one."""
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        server.status = "processing"
        report = run(server, horses(3), concurrency=1, local=True, timeout=0.01)
        assert report.counts == {Stage.SUBMITTED: 2, Stage.AMBIGUOUS: 1}
    with BillingServer() as server:
        assert run(server, None, local=True).counts == {Stage.DOWNLOADED: 3}
        assert server.posts == 3


def test_abandoning(run: Run, tmp_path: Path) -> None:
    """An item that is abandoned is left alone, and the batch counts as done."""
    with BillingServer(faults(Fault.LOST_RESET)) as server:
        run(server, horses(1))
        assert batch.abandon(tmp_path / "out", 1).state is Stage.ABANDONED
        assert run(server, None).done
        assert server.posts == 1


def test_resubmitting(run: Run, tmp_path: Path) -> None:
    """An item is sent again only after somebody has said that it may be paid twice."""
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        run(server, horses(1))
        with pytest.raises(batch.CannotDecide, match="may have been accepted"):
            batch.resubmit(tmp_path / "out", 1)
        batch.resubmit(tmp_path / "out", 1, i_may_pay_twice=True)
        assert run(server, None).done
        assert server.doubles == ["horse 1"]


def test_there_is_no_such_item(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """An item that does not exist is reported as such."""
    run(server, horses(1))
    with pytest.raises(batch.CannotDecide, match="there is no item '7'"):
        batch.abandon(tmp_path / "out", 7)


def test_a_run_that_ends_before_the_folder_names_its_batch(
    server: BillingServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items are in the store of the folder by then, and the next run does them."""

    def end() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    at("batch recorded in its folder").strike(end, put=monkeypatch.setattr)
    with pytest.raises(KeyboardInterrupt):
        run(server, horses(2))
    assert server.posts == 0
    assert run(server, None).counts == {Stage.DOWNLOADED: 2}
    assert run(server, horses(2)).counts == {Stage.DOWNLOADED: 2}
    assert (server.posts, server.doubles) == (2, [])


def test_two_runners_share_a_batch(run: Run) -> None:
    """Two runners on one folder work at the same time, and never on the same item."""
    both = threading.Barrier(2)

    def meet(prompt: str) -> None:
        if prompt in ("horse 1", "horse 2"):
            both.wait(20)

    with BillingServer() as server:
        server.on_create = meet
        reports: list[Report] = []
        threads = [
            threading.Thread(
                target=lambda: reports.append(run(server, horses(20), concurrency=1)), daemon=True
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(reports) == 2
        assert run(server, None).counts == {Stage.DOWNLOADED: 20}
        assert (server.posts, server.doubles) == (20, [])


def test_a_reply_finds_the_store_locked(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A response that the store cannot take goes to a side file, and the next run reads it."""
    path = tmp_path / "out" / "state" / "store.sqlite3"
    with closing(_in_any_thread(tmp_path)) as holder:

        def hold(_: str) -> None:
            holder.execute("ATTACH ? AS batch", (str(path),))
            holder.execute("BEGIN EXCLUSIVE")

        server.on_create = hold
        with pytest.raises(StoreUnusable, match="Other processes are writing"):
            run(server, horses(3), concurrency=1, patience=0.1)
    assert server.posts == 1
    server.on_create = lambda _: None
    report = run(server, None)
    assert (report.counts, server.posts) == ({Stage.DOWNLOADED: 3}, 3)
    assert server.doubles == []
    left = sorted(path.name for path in (tmp_path / "out" / FOLDER).iterdir())
    assert [name.partition("-")[0] for name in left] == [
        "batch.json", "incoming", "runner", "store.sqlite3", "store.sqlite3.owners",
    ]  # fmt: skip


def _in_any_thread(folder: Path) -> sqlite3.Connection:
    place = folder / "another.sqlite3"
    return sqlite3.connect(place, isolation_level=None, check_same_thread=False)


def test_no_room_for_a_reply(server: BillingServer, nursery: Nursery, tmp_path: Path) -> None:
    """Where no side file can be made, nothing is sent."""
    order = {"url": server.url, "folder": str(tmp_path / "out"), "items": 2}
    assert nursery.run(**order, file_limit=50_000) == 6
    assert server.requests == 0
    assert nursery.run(**order) == 0
    assert server.posts == 2


def test_the_store_is_full(server: BillingServer, nursery: Nursery, tmp_path: Path) -> None:
    """A runner that can write no further sends nothing more, and nothing is paid twice."""
    out = tmp_path / "out"
    with Client(KEY, server.url, poll_interval=0.005) as client:
        source = [{**horse, "prompt": horse["prompt"] + " " + "x" * 800} for horse in horses(200)]
        with pytest.raises(RuntimeError):  # begin the batch, and send nothing
            batch.run(client, source, out, on_event=_stop)
    assert server.posts == 0
    order = {"url": server.url, "folder": str(out)}
    size = (out / FOLDER / "store.sqlite3").stat().st_size
    assert nursery.run(**order, file_limit=size + 40_000) == 6
    assert 0 < server.posts < 200
    assert nursery.run(**order) == 0
    report = batch.status(out)
    assert report.counts == {Stage.DOWNLOADED: 200}
    assert (server.posts, server.doubles) == (200, [])


def _stop(_: BatchEvent) -> None:
    raise RuntimeError


def test_a_store_that_cannot_be_written(
    server: BillingServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent with a store that can only be read."""
    batch_of = horses(2)
    with pytest.raises(RuntimeError):
        run(server, batch_of, on_event=_stop)
    connect = sqlite3.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"{path.as_uri()}?mode=ro", uri=True, **options)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", read_only)
        with pytest.raises(StoreUnusable, match="Make the file and its folder writable"):
            run(server, batch_of)
    assert server.requests == 0
    assert run(server, None).done


def test_a_cancelled_run_keeps_what_it_paid_for(server: BillingServer, tmp_path: Path) -> None:
    """Cancelled while a create is on its way, a run under trio has the task in its store."""
    out = tmp_path / "out"

    async def cancelled() -> None:
        token = trio.lowlevel.current_trio_token()
        async with TrioClient(KEY, server.url, poll_interval=0.005) as client:
            with trio.CancelScope() as scope:
                server.on_create = lambda _: trio.from_thread.run_sync(
                    scope.cancel, trio_token=token
                )
                await batch.run_trio(client, horses(5), out, concurrency=1)
            assert scope.cancelled_caught

    trio.run(cancelled)
    assert batch.status(out).counts == {Stage.QUEUED: 4, Stage.SUBMITTED: 1}
    server.on_create = lambda _: None
    with Client(KEY, server.url, poll_interval=0.005) as client:
        assert batch.run(client, None, out).done
    assert (server.posts, server.doubles) == (5, [])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_ctrl_c_under_trio(server: BillingServer, tmp_path: Path) -> None:
    """Ctrl-C under trio is raised alone, after the paid request has come to its response."""
    out = tmp_path / "out"
    server.on_create = lambda _: os.kill(os.getpid(), signal.SIGINT)

    async def interrupted() -> None:
        async with TrioClient(KEY, server.url, poll_interval=0.005) as client:
            await batch.run_trio(client, horses(5), out, concurrency=1)

    with pytest.raises(KeyboardInterrupt) as caught:
        trio.run(interrupted)
    assert "run it again to resume" in caught.value.__notes__[-1]
    assert batch.status(out).counts == {Stage.QUEUED: 4, Stage.SUBMITTED: 1}
    assert server.posts == 1


def test_where_a_run_that_is_to_stop_breaks_off() -> None:
    """It never does at a request, which the store has for sent then, nor at a paid response."""
    shared = SimpleNamespace(stopping=True)
    told: list[object] = []
    nothing: Any = None  # no item is begun
    work = ItemWork(cast("Any", shared), nothing, nothing, nothing, Listeners(None, told.append))
    call = CallInfo(number=1, kind="create")
    passed = [
        CallBegan(call=call),
        ResponseReceived(call=call, status=200, duration=0.1, size=98),
        Submitted(Task(id="task-1", family="imga")),
        Ambiguous("status 500"),
        CallEnded(call=call, duration=0.1),
    ]
    for event in passed:
        work.noticed(event)
    with pytest.raises(Stopped):
        work.noticed(DownloadProgress(1, 2))
    assert told == [*passed, DownloadProgress(1, 2)]


def test_links_of_the_service(run: Run, server: BillingServer, tmp_path: Path) -> None:
    """An item may have a picture from the service on this machine, and from no other server there.

    One that cannot be sent is found before any is; in a batch that moves on to another service, it
    is left behind.
    """
    item = {"family": "vidd", "model": "viddq3-pro", "prompt": "It runs"}
    own, other = f"{server.url}/media/a.png", "http://127.0.0.1:9/media/a.png"
    with pytest.raises(InvalidInput, match=r"item 2: first_image: .* is not a public address"):
        run(server, [{**item, "first_image": url} for url in (own, other)])
    assert not (tmp_path / "out").exists()
    run(server, [{**item, "first_image": own}], limit=0)
    with BillingServer() as elsewhere:
        report = run(elsewhere, None)
        assert (elsewhere.posts, report.counts) == (0, {Stage.QUEUED: 1})
    (entry,) = report.entries
    assert "is not a public address" in (entry.reason or "")
    run(server, None)
    assert server.posts == 1
