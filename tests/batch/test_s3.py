"""Results in S3: whole or absent, never over another object, and safe while S3 is away."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import moments
from muybridge.batch import BatchEvent, PlaceUnusable, SharedBatch, Stage, What
from muybridge.batch.results.places import open_store
from muybridge.batch.results.places.names import agreed_place, place_for_all
from muybridge.batch.results.places.s3 import S3Store
from muybridge.cli.commands import muybridge
from muybridge.purchases import Store
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.errors import LocalError
from muybridge_protocol.purchases import Item

from .billing import PNG, BillingServer
from .conftest import Work
from .fixtures import submit
from .runner_process import KEY
from .s3_server import ACCESS_KEY, S3, SECRET_KEY, Fault, running

OUT = "s3://studio/horses"
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    with running() as serving:
        yield serving


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An empty bucket, and an environment that names it."""
    s3_server.reset()
    for name, value in s3_server.settings.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def work(work: Work, tmp_path: Path) -> Work:
    """Let a worker work, under the driver under test, with results in S3."""
    return partial(work, out=OUT, spool=tmp_path / "spool")


def picture(server: BillingServer, number: int) -> bytes:
    """Return the result of the only task of a horse."""
    (task,) = server.accepted[f"horse {number}"]
    return PNG + task.encode()


def test_results_are_objects(
    server: BillingServer, s3: S3, shared: SharedBatch, work: Work, tmp_path: Path
) -> None:
    """Each result is one object; the store has its address, size and checksum, and no more."""
    submit(server, shared, 2)
    s3.store("horses/h2.png", b"a picture that took a week")
    events: list[BatchEvent] = []
    report = work(server, shared, on_event=events.append)
    assert report.counts == {Stage.DOWNLOADED: 2}
    assert s3.objects() == {
        "horses/h1.png": picture(server, 1),
        "horses/h2.png": b"a picture that took a week",
        "horses/h2-2.png": picture(server, 2),
    }
    first, second = report.entries
    assert (first.path, second.path) == (f"{OUT}/h1.png", f"{OUT}/h2-2.png")
    assert first.size == len(picture(server, 1))
    assert first.sha256 == hashlib.sha256(picture(server, 1)).hexdigest()
    told = {event.item: event.detail for event in events if event.what is What.DOWNLOADED}
    assert told[2] == f"{OUT}/h2-2.png (h2.png is another file)"
    left = [path.name for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    assert [name for name in left if not name.startswith("runner-")] == []


@pytest.mark.parametrize("anything", [None, b"a page"], ids=["404", "200"])
def test_a_server_that_refuses_every_object(
    anything: bytes | None, server: BillingServer, s3: S3, shared: SharedBatch, work: Work
) -> None:
    """It seems to have every object already, and returns none: nothing is paid for."""
    submit(server, shared, 1)
    s3.fault = lambda _: Fault.TAKEN
    s3.anything = anything
    with pytest.raises(PlaceUnusable, match="does not return what was stored there"):
        work(server, shared)
    assert server.posts == 0


def test_names_come_to_an_end(
    server: BillingServer,
    s3: S3,
    shared: SharedBatch,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that has every name, with another object, is not asked without end."""
    monkeypatch.setattr(*moments.constant("names tried in a bucket"), 5)
    submit(server, shared, 1)

    def taken(path: str) -> Fault:
        s3.anything = None if path.endswith("muybridge") else b"another"
        return Fault.NONE if path.endswith("muybridge") or len(s3.puts) > 100 else Fault.TAKEN

    s3.fault = taken
    events: list[BatchEvent] = []
    report = work(server, shared, on_event=events.append, seconds=1)
    assert report.counts == {Stage.COMPLETED: 1}
    assert "5 names such as h1.png are taken" in (report.entries[0].reason or "")
    assert len(set(s3.puts)) == 1 + 5


def test_a_result_that_is_not_kept(
    server: BillingServer, s3: S3, shared: SharedBatch, work: Work, tmp_path: Path
) -> None:
    """What a server reports as stored and does not return stays on this machine, unrecorded."""
    submit(server, shared, 1)
    s3.fault = lambda path: Fault.NONE if path.endswith("muybridge") else Fault.FORGOTTEN
    report = work(server, shared)
    assert report.counts == {Stage.COMPLETED: 1}
    assert "does not return it" in (report.entries[0].reason or "")
    (kept,) = (tmp_path / "spool").glob("*/incoming/*.png")
    assert kept.read_bytes() == picture(server, 1)
    s3.fault = lambda _: Fault.NONE
    assert work(server, shared).counts == {Stage.DOWNLOADED: 1}
    assert s3.objects() == {"horses/h1.png": picture(server, 1)}
    assert server.posts == 1


def test_while_s3_is_away(server: BillingServer, s3: S3, shared: SharedBatch, work: Work) -> None:
    """S3 that fails costs nothing: nothing more is paid for, and each result is stored later."""
    submit(server, shared, 3)
    away = iter([Fault.OVERLOADED] * 4)
    s3.fault = lambda path: Fault.NONE if path.endswith("muybridge") else next(away, Fault.NONE)
    events: list[BatchEvent] = []
    report = work(server, shared, on_event=events.append, creates=1, concurrency=1)
    assert report.counts == {Stage.DOWNLOADED: 3}
    assert server.posts == 3
    assert set(s3.objects()) == {"horses/h1.png", "horses/h2.png", "horses/h3.png"}
    put_off = [event for event in events if event.what is What.POSTPONED]
    assert [event.item for event in put_off] == [1]
    assert "the response was 503 SlowDown" in put_off[0].detail
    before = events[: events.index(put_off[-1])]
    assert {event.item for event in before} == {1}


def test_a_result_survives_its_link(
    server: BillingServer, s3: S3, shared: SharedBatch, work: Work
) -> None:
    """A result that was downloaded while S3 was away is stored later, even without its link."""
    submit(server, shared, 1)

    def deny(path: str) -> Fault:
        server.media_works = False
        return Fault.NONE if path.endswith("muybridge") else Fault.DENIED

    work_on = s3.fault
    server.media_works = True
    s3.fault = lambda path: deny(path) if "h1" in path else Fault.NONE
    assert work(server, shared).counts == {Stage.COMPLETED: 1}
    s3.fault = work_on
    assert work(server, shared).counts == {Stage.DOWNLOADED: 1}
    assert s3.objects() == {"horses/h1.png": picture(server, 1)}


def test_a_result_that_is_too_large(
    server: BillingServer,
    s3: S3,
    shared: SharedBatch,
    work: Work,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A result that is too large for S3 is kept on the worker's disk, and the others are stored."""
    submit(server, shared, 10)
    monkeypatch.setattr(*moments.constant("largest object"), len(PNG + b"task-9-horse-10"))
    monkeypatch.setattr(*moments.constant("shortest pause of a worker"), 0.01)
    report = work(server, shared, creates=1, concurrency=1)
    assert report.counts == {Stage.DOWNLOADED: 9, Stage.COMPLETED: 1}
    with shared.open() as store:
        (large,) = store.entries(Stage.COMPLETED)
    assert large.name == "h10"
    assert "it is too large for one PUT to S3; copy this file" in (large.reason or "")
    (kept,) = (tmp_path / "spool").glob("*/incoming/*.png")
    assert (str(kept) in (large.reason or ""), kept.read_bytes()) == (True, picture(server, 10))
    assert (server.posts, len(s3.objects())) == (10, 9)


def test_a_lost_response_of_s3(
    server: BillingServer, s3: S3, shared: SharedBatch, work: Work
) -> None:
    """An object whose PUT was stored without a response is recognized, not stored a second time."""
    submit(server, shared, 1)
    faults = iter([Fault.STORED_AND_LOST])
    s3.fault = lambda path: next(faults, Fault.NONE) if "h1" in path else Fault.NONE
    report = work(server, shared)
    assert report.counts == {Stage.DOWNLOADED: 1}
    assert report.entries[0].path == f"{OUT}/h1.png"
    assert s3.objects() == {"horses/h1.png": picture(server, 1)}


def test_a_record_that_fails(
    server: BillingServer,
    s3: S3,
    shared: SharedBatch,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A result that is stored, but not recorded, is recorded later, even without its link."""
    submit(server, shared, 1)
    move = moments.at("item moved").value
    failures = iter([StoreUnusable("the database is away", away=True)])

    def failing(store: Store, item: Item, after: Stage, **facts: Any) -> Item:
        if after is Stage.DOWNLOADED and (failure := next(failures, None)) is not None:
            server.media_works = False
            raise failure
        moved: Item = move(store, item, after, **facts)
        return moved

    monkeypatch.setattr(*moments.at("item moved").place, failing)
    report = work(server, shared)
    assert report.counts == {Stage.DOWNLOADED: 1}
    assert report.entries[0].path == f"{OUT}/h1.png"
    assert s3.objects() == {"horses/h1.png": picture(server, 1)}


@pytest.mark.parametrize(
    ("settings", "fault", "said"),
    [
        ({}, Fault.DENIED, "the response was 403 InvalidAccessKeyId"),
        ({}, Fault.OVERLOADED, "the response was 503 SlowDown"),
        ({}, Fault.UNCONDITIONAL, "the server ignores If-None-Match"),
        ({"AWS_ALLOW_HTTP": "false"}, Fault.NONE, "the endpoint is plain http"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, Fault.NONE, "it cannot be reached"),
    ],
)
def test_s3_is_checked_first(
    settings: dict[str, str],
    fault: Fault,
    said: str,
    server: BillingServer,
    s3: S3,
    shared: SharedBatch,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If results cannot be stored safely, nothing is sent, and no credentials are shown."""
    submit(server, shared, 1)
    s3.fault = lambda _: fault
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PlaceUnusable, match=said) as caught:
        work(server, shared)
    assert str(caught.value).startswith(f"{OUT} at 127.0.0.1:")
    shown = "".join(traceback.format_exception(caught.value))
    assert ACCESS_KEY not in shown
    assert SECRET_KEY not in shown
    assert server.requests == 0


@pytest.mark.usefixtures("s3")
def test_the_command(server: BillingServer, shared: SharedBatch, tmp_path: Path) -> None:
    """`muybridge worker --out s3://...` refuses a bucket that is not there, and fills one."""
    submit(server, shared, 1)
    settings = {"MUYBRIDGE_BASE_URL": server.url, "MUYBRIDGE_API_KEY": KEY}
    words = (
        f"worker --store {shared.store!s} --batch horses --spool {tmp_path} --poll-interval 0.01"
    )

    def to(out: str) -> tuple[int, str]:
        done = CliRunner().invoke(muybridge, [*words.split(), "--out", out], env=settings)
        return done.exit_code, done.output

    code, said = to("s3://studio2/horses")
    assert code == 6
    assert "s3://studio2/horses at 127.0.0.1" in said
    assert "the response was 404 NoSuchBucket" in said
    assert server.requests == 0
    code, said = to(OUT)
    assert (code, said.splitlines()[-1]) == (0, "1 downloaded")
    assert "downloaded s3://studio/horses/h1.png" in said
    code, said = to("gs://studio/horses")
    assert code == 2
    assert "results go to a folder or to s3://BUCKET/PREFIX (got gs:...)" in said


@pytest.mark.parametrize(
    "out", ["s3://", "s3://Studio", "s3://studio/a?versionId=1", "s3://key:secret@studio/a",
            "s3://studio/a//b", "s3://studio/../b", "s3:/studio/a", "https://studio/a"],
)  # fmt: skip
def test_other_addresses(out: str) -> None:
    """An address that is no place in S3 is refused, and not repeated with what may be a secret."""
    for read in (open_store, place_for_all, partial(agreed_place, kept="s3://studio/a")):
        with pytest.raises(LocalError, match=r"S3|s3|prefix") as caught:
            read(out)
        assert "secret" not in str(caught.value)
    assert not Path("s3:").exists()


@pytest.mark.parametrize("variable", ENDPOINTS)
@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:first", "http://127.0.0.1:99999", "http://[::1", "http://a host", "storage"],
)
def test_an_endpoint_that_is_no_address(
    variable: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the address of the server cannot be read, the error says what to correct."""
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, endpoint)
    with pytest.raises(PlaceUnusable, match=rf"{OUT}: The address .* Correct {variable}\."):
        open_store(OUT)


@pytest.mark.usefixtures("s3")
def test_the_endpoint_for_s3_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint that AWS's own tools use for S3 alone counts before the one for all services."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    at_once = rf"{OUT} at 127\.0\.0\.1:1: it cannot be reached"
    with pytest.raises(PlaceUnusable, match=at_once) as caught:
        open_store(OUT).check()
    assert caught.value.away


def test_without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without obstore, the error says what to install."""
    for name in ("obstore", "obstore.exceptions", "obstore.store"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "muybridge.batch.results.places.s3")
    with pytest.raises(ModuleNotFoundError, match=r"needs obstore: .*install .*\[s3\]"):
        open_store("s3://bucket")


@pytest.mark.usefixtures("s3")
def test_which_responses_may_pass() -> None:
    """A worker waits for a server that is overloaded or at fault, and for no other refusal."""
    judge = moments.at("refusal of a bucket judged").value
    away = [
        status
        for status in (403, 404, 408, 409, 412, 429, 499, 500, 503)
        if judge(S3Store(OUT), f"status code: {status}").away
    ]
    assert away == [408, 409, 429, 500, 503]
