"""Who decides about an item decides by what it is when the decision is recorded."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from muybridge.batch.decisions.items import apply, step_of
from muybridge.batch.journal_entries import Entry

from muybridge import Client, batch
from muybridge.batch import SharedBatch, Stage
from muybridge.batch.items.folder import FOLDER, NAME
from muybridge.batch.shared import open_journal
from muybridge_protocol.errors import InvalidIdentifier
from muybridge_protocol.records.tasks import Task
from processes import Nursery

from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .postgres_server import Postgres, psycopg
from .runner_process import KEY, horses


class Begun:
    """A batch of horses in a folder or in a database, at the service of a test.

    Args:
        server: The service.
        place: Where it is.
        spool: Where the results of a batch in a database go.
    """

    def __init__(self, server: BillingServer, place: Path | SharedBatch, spool: Path) -> None:
        self.server = server
        self.place = place
        self.spool = spool
        self.told: list[batch.BatchEvent] = []

    def begin(self, count: int) -> None:
        """Record the items."""
        if isinstance(self.place, SharedBatch):
            submit(self.server, self.place, count)
            return
        with Client(KEY, self.server.url, poll_interval=0.005) as client:
            batch.run(client, horses(count), self.place, limit=0)

    def resume(self) -> batch.Report | batch.SharedReport:
        """Work on it until nothing is left to do."""
        self.told.clear()
        with Client(KEY, self.server.url, poll_interval=0.005) as client:
            if isinstance(self.place, SharedBatch):
                return batch.work(client, self.place, self.spool, on_event=self.told.append)
            return batch.run(client, None, self.place, on_event=self.told.append)

    def arm(self, count: int, by: str = "dead") -> list[Entry]:
        """Let a worker arm items and die before a response has arrived."""
        with closing(open_journal(self.place)) as journal:
            journal.register(by)
            armed: list[Entry] = []
            for _ in range(count):
                entry = journal.take(by, creates=True)
                assert entry is not None
                journal.arm(entry, entry.attempt + 1, by=by, lasts=0)
                armed.append(entry)
            journal.bury(by, ended=True)
        return armed

    def lose(self, count: int) -> None:
        """Let items become ambiguous: a worker died, and another one has looked after it."""
        armed = self.arm(count)
        with closing(open_journal(self.place)) as journal:
            for entry in armed:
                journal.move(entry, Stage.ARMED, Stage.AMBIGUOUS, by="dead", owner=None)

    def accept(self, number: int) -> bytes:
        """Let the service accept the create of an item, and return its response."""
        task = f"task-of-{number}"
        self.server.accept(f"horse {number}", task)
        return json.dumps({"id": task, "object": "image", "status": "queued"}).encode()

    def execute(self, statement: str) -> None:
        """Execute a statement behind the back of everybody; `items` are those of the batch."""
        if isinstance(self.place, SharedBatch):
            with psycopg.connect(self.place.url, autocommit=True) as db:
                db.execute(statement.replace("items", "muybridge_items"))
            return
        with closing(sqlite3.connect(self.place / FOLDER / NAME)) as db, db:
            db.executescript(statement)

    def meanwhile(self, left: Stage, change: str) -> None:
        """Let *change* happen to item 2 as soon as item 1 has left a state."""
        changing = f"UPDATE items SET {change} WHERE number = 2;"  # noqa: S608  our own statement
        when = f"WHEN (NEW.number = 1 AND OLD.state = '{left}')"
        if isinstance(self.place, Path):
            self.execute(
                f"CREATE TRIGGER meanwhile AFTER UPDATE OF state ON items {when} "
                f"BEGIN {changing} END"
            )
            return
        self.execute(
            "CREATE FUNCTION meanwhile() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {changing} RETURN NULL; END $$;"
            "CREATE TRIGGER meanwhile AFTER UPDATE OF state ON items "
            f"FOR EACH ROW {when} EXECUTE FUNCTION meanwhile()"
        )

    def written(self, data: bytes) -> str:
        """Return bytes as a statement writes them."""
        hexed = data.hex()
        return f"X'{hexed}'" if isinstance(self.place, Path) else f"decode('{hexed}', 'hex')"


@pytest.fixture(params=["folder", "database"])
def begun(
    request: pytest.FixtureRequest, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> Begun:
    """A batch in each kind of journal, not begun yet."""
    place = tmp_path / "out" if request.param == "folder" else shared
    return Begun(server, place, tmp_path / "results")


def test_a_response_arrives_while_others_are_judged(begun: Begun) -> None:
    """Items of a dead worker are read together; a response that comes after that is not lost."""
    begun.begin(2)
    begun.arm(2)
    reply = begun.written(begun.accept(2))
    begun.meanwhile(Stage.ARMED, f"reply_status = 200, reply = {reply}")
    assert begun.resume().counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 1}
    assert begun.server.posts == 0
    assert [event.item for event in begun.told if event.what == "ambiguous"] == [1]
    with open_journal(begun.place) as journal:
        assert journal.entry(2).task_id == "task-of-2"


def test_an_item_is_sent_again_while_responses_are_judged(begun: Begun) -> None:
    """A response is that of one create: it says nothing about one that was sent meanwhile."""
    begun.begin(2)
    begun.lose(2)
    with open_journal(begun.place) as journal:
        for entry in [*journal.entries()]:
            step = (entry, Stage.AMBIGUOUS, Stage.AMBIGUOUS)
            journal.move(*step, by=None, reply_status=200, reply=begun.accept(entry.number))
    begun.meanwhile(Stage.AMBIGUOUS, "attempt = 2, reply_status = NULL, reply = NULL")
    assert begun.resume().counts == {Stage.AMBIGUOUS: 1, Stage.DOWNLOADED: 1}
    with open_journal(begun.place) as journal:
        assert [entry.task_id for entry in journal.entries()] == ["task-of-1", None]


@contextmanager
def held(
    postgres: Postgres, url: str
) -> Generator[tuple[Callable[[int], None], Callable[[int], None]], None, None]:
    """Hold up machines between what they read of an item and what they write.

    A machine is told by its application name: `slow` is held up before it first writes an item, and
    `first` before the second time.
    """
    postgres.execute(
        """
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            me text := current_setting('application_name');
            written int := coalesce(nullif(current_setting('tests.written', true), ''), '0')::int;
        BEGIN
            PERFORM set_config('tests.written', (written + 1)::text, false);
            IF me = 'slow' THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;
            IF me = 'first' AND written = 1 THEN
                PERFORM pg_advisory_xact_lock_shared(4712);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER hold BEFORE UPDATE ON muybridge_items
            FOR EACH STATEMENT EXECUTE FUNCTION hold();
        """,
        url=url,
    )
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(4711), pg_advisory_lock(4712)")

        def wait(lock: int) -> None:
            asked = (
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
            )
            ends = time.monotonic() + 60
            while not db.execute(asked, (lock,)).fetchall():
                assert time.monotonic() < ends

        def release(lock: int) -> None:
            db.execute("SELECT pg_advisory_unlock(%s)", (lock,))

        yield wait, release


@pytest.fixture(scope="module")
def machine() -> Generator[Nursery, None, None]:
    """What starts workers that are killed."""
    with Nursery("batch.worker_process") as starting:
        yield starting


@pytest.mark.parametrize("written_by", ["its worker", "its machine", "its machine, too late"])
def test_a_response_is_recorded_while_another_machine_judges(
    written_by: str,
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    machine: Nursery,
    tmp_path: Path,
) -> None:
    """What a machine has read of an item is out of date when it declares the item ambiguous.

    The response is recorded in between: by the worker that received it, whose lease has run out and
    which is killed then; or by a worker that is started again where that one was killed, and has
    the response in its spool. That one may come too late, after it has read the item in time.
    """
    submit(server, shared, 1)
    workers: list[threading.Thread] = []

    def start(name: str, folder: str) -> None:
        def go() -> None:
            at = SharedBatch(f"{shared.store!s}&application_name={name}", shared.name)
            with Client(KEY, server.url, poll_interval=0.005) as client:
                batch.work(client, at, tmp_path / folder, lease=2)

        workers.append(threading.Thread(target=go))
        workers[-1].start()

    begun, armed = Begun(server, shared, tmp_path), list[Entry]()
    if written_by != "its worker":
        order = {"url": server.url, "database": str(shared.store), "folder": str(tmp_path / "one")}
        assert machine.run(**order, kill_at="after: response kept") == -9
        postgres.execute(
            "UPDATE muybridge_workers SET lease_until = '-infinity'", url=str(shared.store)
        )
    else:
        armed = begun.arm(1)
    with held(postgres, str(shared.store)) as (wait, release):
        start("slow", "one" if written_by == "its machine, too late" else "two")
        wait(4711)
        if written_by == "its machine, too late":
            start("other", "two")
            workers[1].join()
            assert batch.shared_status(shared).counts == {Stage.AMBIGUOUS: 1}
        elif written_by == "its machine":
            start("first", "one")
            wait(4712)
        else:
            reply = begun.accept(1)
            with shared.open() as journal:
                step = (armed[0], Stage.ARMED, Stage.ARMED)
                journal.move(*step, by="dead", reply_status=200, reply=reply)
        release(4711)
        workers[0].join()
        release(4712)
        for worker in workers:
            worker.join()
    with Client(KEY, server.url, poll_interval=0.005) as client:
        report = batch.work(client, shared, tmp_path / "three")
    assert report.counts == {Stage.DOWNLOADED: 1}
    assert server.accepted["horse 1"] == [report.entries[0].task_id]
    assert server.doubles == []


def test_a_response_that_nobody_has_judged(begun: Begun) -> None:
    """A worker may be killed between recording a late response and judging it: the id is used.

    Until the batch is run again, everybody is told the id, and no decision passes over it.
    """
    begun.begin(1)
    begun.lose(1)
    with open_journal(begun.place) as journal:
        entry = journal.entry(1)
        step = (entry, Stage.AMBIGUOUS, Stage.AMBIGUOUS)
        journal.move(*step, by=None, reply_status=200, reply=begun.accept(1))
    assert "task-of-1" in batch.decision_table(begun.place)
    said = "the response to item 1 .h1. has arrived: it is task task-of-1"
    for decide in (
        lambda: batch.resubmit(begun.place, 1, i_may_pay_twice=True),
        lambda: batch.abandon(begun.place, 1),
        lambda: batch.adopt(begun.place, 1, "task-9"),
    ):
        with pytest.raises(batch.CannotDecide, match=said):
            decide()
    assert begun.resume().counts == {Stage.DOWNLOADED: 1}
    assert begun.server.posts == 0


def test_a_task_is_adopted_between_the_check_and_the_record(begun: Begun) -> None:
    """A task that was free when a decision was checked may be taken when it is recorded."""
    begun.begin(2)
    begun.lose(2)
    task = Task(id="task-7", family="imgb")
    with open_journal(begun.place) as journal:
        first, second = (
            step_of(journal, entry, batch.Choice.ADOPT, task) for entry in [*journal.entries()]
        )
        assert apply(journal, first).task_id == "task-7"
        with pytest.raises(batch.CannotDecide, match="task task-7 belongs to another item"):
            apply(journal, second)
        assert journal.counts() == {Stage.SUBMITTED: 1, Stage.AMBIGUOUS: 1}


def test_several_people_adopt_one_task(begun: Begun) -> None:
    """However many adopt a task at the same time, it becomes that of one item."""
    rounds, people = 12, 4
    begun.begin(rounds * people)
    begun.lose(rounds * people)
    for number in range(rounds):
        ready = threading.Barrier(people)
        refused: list[str] = []
        task = f"task-{number}"
        adopting = [
            threading.Thread(target=_adopt, args=(begun, item, task, ready, refused))
            for item in range(number * people + 1, (number + 1) * people + 1)
        ]
        for person in adopting:
            person.start()
        for person in adopting:
            person.join()
        assert len(refused) == people - 1, refused
        assert all(task in said for said in refused)
    with open_journal(begun.place) as journal:
        tasks = [entry.task_id for entry in journal.entries() if entry.task_id is not None]
    assert sorted(tasks) == sorted(f"task-{number}" for number in range(rounds))


def _adopt(
    begun: Begun, number: int, task: str, ready: threading.Barrier, refused: list[str]
) -> None:
    ready.wait()
    try:
        batch.adopt(begun.place, number, task)
    except batch.CannotDecide as error:
        refused.append(str(error))


def test_a_table_is_recorded_as_a_whole(begun: Begun) -> None:
    """If an item of a table changes between the check and the record, nothing is decided."""
    begun.begin(2)
    begun.lose(2)
    begun.meanwhile(Stage.AMBIGUOUS, "candidate = 'task-of-2'")
    decisions = [batch.Decision(item=number, choice="abandon") for number in (1, 2)]
    with pytest.raises(batch.CannotDecide):
        batch.decide_all(begun.place, decisions)
    with open_journal(begun.place) as journal:
        assert journal.counts() == {Stage.AMBIGUOUS: 2}


def test_what_is_queued_can_be_abandoned(begun: Begun) -> None:
    """A person may leave out an item that is not sent yet, but not one that is taken."""
    begun.begin(3)
    assert batch.abandon(begun.place, "h1").state is Stage.ABANDONED
    table = [batch.Decision(item=number, choice="abandon") for number in (1, 2)]
    assert [entry.number for entry in batch.decide_all(begun.place, table)] == [2]
    begun.arm(1)
    with pytest.raises(batch.CannotDecide, match=r"item 3 .h3. is armed"):
        batch.abandon(begun.place, 3)
    assert begun.resume().counts == {Stage.AMBIGUOUS: 1, Stage.ABANDONED: 2}
    assert begun.server.posts == 0


def _one_id(_: str, kind: str, record: dict[str, Any]) -> bytes:
    return json.dumps(record | ({"id": "task-7"} if kind == "create" else {})).encode()


def _check_one_id(report: batch.Report | batch.SharedReport, server: BillingServer) -> None:
    assert report.counts == {Stage.AMBIGUOUS: 2, Stage.DOWNLOADED: 1}
    assert server.posts == 3
    (done,) = (entry for entry in report.entries if entry.state is Stage.DOWNLOADED)
    assert done.task_id == "task-7"
    for entry in report.ambiguous:
        assert entry.candidate == "task-7"
        said = f"the service named task task-7, which belongs to {done.label}"
        assert said in (entry.reason or "")


def test_a_service_gives_one_id_to_several_creates(run: Run, server: BillingServer) -> None:
    """The task is the first one's; the others are ambiguous, and their person is told why."""
    server.write = _one_id
    server.accept("horse 1", "task-7")
    told: list[str] = []

    def noting(event: batch.BatchEvent) -> None:
        told.append(event.what)

    report = run(server, horses(3), on_event=noting)
    _check_one_id(report, server)
    assert (told.count("downloaded"), told.count("ambiguous")) == (1, 2)
    _check_one_id(run(server, None), server)


def test_a_service_gives_one_id_to_several_items_of_a_database(
    work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """It is the same for workers, and across the batches of a database."""
    server.write = _one_id
    server.accept("horse 1", "task-7")
    submit(server, shared, 3)
    _check_one_id(work(server, shared), server)
    other = SharedBatch(str(shared.store), "mules")
    submit(server, other, 1)
    (entry,) = work(server, other).ambiguous
    assert "which belongs to item" in (entry.reason or "")
    assert "of the batch horses" in (entry.reason or "")


def test_an_id_with_blanks_around_it(begun: Begun) -> None:
    """A blank that was copied with an id is not taken for a part of it."""
    begun.begin(1)
    begun.lose(1)
    begun.accept(1)
    for wrong in ("task-of-1 ", " task-of-1", "task-of-1\N{NO-BREAK SPACE}"):
        with pytest.raises(InvalidIdentifier, match="begins or ends with a blank"):
            batch.adopt(begun.place, 1, wrong)
    assert batch.adopt(begun.place, 1, "task-of-1").task_id == "task-of-1"
    assert begun.resume().counts == {Stage.DOWNLOADED: 1}


def test_the_clock_of_the_database_is_set_forward(
    server: BillingServer, postgres: Postgres
) -> None:
    """A create that may still be under way is not sent again because the clock was changed."""
    url = postgres.fresh()
    ((name,),) = postgres.execute("SELECT current_schema()", url=url)
    own = postgres.with_options(f"-c search_path={name},pg_catalog")  # our own clock comes first
    now = f"SELECT pg_catalog.clock_timestamp() + shift FROM {name}.clock"  # noqa: S608  our own name
    for statement in (
        "CREATE TABLE clock AS SELECT interval '0' AS shift",
        f"CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ {now} $$",
    ):
        postgres.execute(statement, url=own)
    shared = SharedBatch(own, "horses")
    submit(server, shared, 1)
    with shared.open() as journal:
        journal.register("one")
        entry = journal.take("one", creates=True)
        assert entry is not None
        journal.arm(entry, 1, by="one", lasts=60)
        journal.bury("one", ended=True)
        journal.move(entry, Stage.ARMED, Stage.AMBIGUOUS, by="one", owner=None)
    postgres.execute("UPDATE clock SET shift = '1 hour'", url=own)
    with pytest.raises(batch.CannotDecide, match=r"under way: try again in [4-6]\d seconds"):
        batch.resubmit(shared, 1, i_may_pay_twice=True)
    assert batch.shared_status(shared).counts == {Stage.AMBIGUOUS: 1}
