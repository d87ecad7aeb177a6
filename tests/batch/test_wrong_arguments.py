"""What is given to a batch in place of what a parameter takes is refused with what to give."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from muybridge import AsyncClient, Client, ImgaRequest, Result, Task, batch
from muybridge.batch import SharedBatch, StoreUnusable
from muybridge.testing import AsyncFakeTransport, FakeTransport
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.service import Service

REQUEST = ImgaRequest(model="imga", prompt="a horse")
URL = "https://service.test"
VALUES: dict[str, Callable[[], object]] = {
    "name": lambda: "horse.png",
    "path": lambda: Path("horse.png"),
    "bytes": lambda: b"horse",
    "file": lambda: io.BytesIO(b"horse"),
    "picture": lambda: pytest.importorskip("PIL.Image").new("RGB", (640, 480)),
    "request": lambda: REQUEST,
    "task": lambda: Task(id="task-1"),
    "result": lambda: Result(id="task-1", status="completed"),
    "mapping": lambda: {"id": "task-1"},
    "list": lambda: ["horse.png"],
    "none": lambda: None,
}
ERRORS = (TypeError, ValueError, InvalidInput, StoreUnusable, FileNotFoundError)
SHARED = SharedBatch("postgresql://127.0.0.1:1/studio?connect_timeout=1", "horses")
NUMBER = "must be a (whole )?number"
OPTIONS = {
    "concurrency": (f"concurrency {NUMBER}", ""),
    "timeout": ("timeout must be a number of seconds, or None", "none"),
    "download_timeout": ("download_timeout must be a positive number of seconds", ""),
    "on_event": ("on_event must be callable, or None", "none"),
    "patience": (f"patience {NUMBER} of seconds", ""),
}
OF_RUN = {
    "local": ("local must be True or False", ""),
    "limit": ("limit must be 0 or more items, or None", "none"),
    "sidecar": ("sidecar must be True or False", ""),
    "dedupe": ("dedupe must be True or False", ""),
    "rate": (f"rate {NUMBER}", "none"),
}
OF_WORK = {
    "creates": (f"creates {NUMBER}", ""),
    "lease": (f"lease {NUMBER} of seconds", "none"),
    "seconds": (f"seconds {NUMBER}", "none"),
    "out": ("out must be a folder, or s3://", "name path none"),
    "spool": ("spool must be a folder", "name path none"),
}
SOURCE = (
    "source must be a file's path or a list of requests|its name does not end with|"
    "it is a single item; put it into a list|is not a JSON object|is not an object|item 1"
)
FOLDER = "out must be (a folder, or s3://|the folder of a batch, or a SharedBatch)|no batch in"


@pytest.fixture
def client() -> Client:
    """A client whose service answers nothing."""
    return Client("key", URL, transport=FakeTransport())


def _named(name: str, value: object) -> dict[str, Any]:
    return {name: value}


def check(use: Callable[[Any], object], told: str, taken: str = "") -> None:
    """See that *use* refuses each value but those *taken*."""
    for kind, make in VALUES.items():
        if kind not in taken.split():
            with pytest.raises(ERRORS, match=told):
                use(make())


@pytest.mark.parametrize("name", [*OPTIONS, *OF_RUN])
def test_options_of_a_run(client: Client, tmp_path: Path, name: str) -> None:
    """An option of a wrong type is refused before there is a store."""
    told, taken = {**OPTIONS, **OF_RUN}[name]
    out = tmp_path / "out"
    check(lambda value: batch.run(client, [REQUEST], out, **_named(name, value)), told, taken)
    assert not out.exists()


@pytest.mark.parametrize("name", [*OPTIONS, *OF_WORK])
def test_options_of_a_worker(client: Client, tmp_path: Path, name: str) -> None:
    """An option of a wrong type is refused before the database is asked."""
    told, taken = {**OPTIONS, **OF_WORK}[name]
    settings: dict[str, Any] = {"out": tmp_path / "out"}
    check(lambda value: batch.work(client, SHARED, **settings | _named(name, value)), told, taken)


def test_sources(client: Client, tmp_path: Path) -> None:
    """What is no file and no list of requests is refused."""
    uses: list[Callable[[Any], object]] = [
        batch.read_items,
        lambda value: batch.run(client, value, tmp_path / "out"),
        lambda value: batch.preview(value, tmp_path / "out"),
        lambda value: batch.submit(SHARED, value, client.service),
    ]
    for use in uses:
        taken = "" if use is uses[0] or use is uses[3] else "none"
        check(use, SOURCE, taken)


PLACES: list[Callable[[Any], object]] = [
    batch.status,
    lambda out: batch.preview(None, out),
    lambda out: batch.adopt(out, 1, "task-1"),
    lambda out: batch.abandon(out, 1),
    lambda out: batch.resubmit(out, 1),
    batch.ambiguous,
    batch.decision_table,
    lambda out: list(batch.manifest(out)),
    lambda out: list(batch.manifest_lines(out)),
]


@pytest.mark.parametrize("use", PLACES)
def test_places(
    use: Callable[[Any], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What names no folder is refused; a folder without a batch is named."""
    monkeypatch.chdir(tmp_path)
    check(use, FOLDER)


def test_written_places(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where results or their list are written, what names no folder is refused as well."""
    monkeypatch.chdir(tmp_path)
    check(lambda out: batch.run(client, [REQUEST], out), FOLDER, "name path")
    check(batch.write_manifest, f"{FOLDER}|No such file")
    check(
        lambda out: batch.submit(SHARED, [REQUEST], client.service, out=out),
        f"{FOLDER}|is another folder on each machine",
        "none",
    )


def test_clients(client: Client, tmp_path: Path) -> None:
    """What is no client is refused; for a client of the other kind, the error says what to call."""
    other: Any = AsyncClient("key", URL, transport=AsyncFakeTransport())
    out = tmp_path / "out"
    uses: list[tuple[Callable[[Any], object], str]] = [
        (lambda value: batch.run(value, [REQUEST], out), r"await batch\.run_async\(client"),
        (lambda value: batch.work(value, SHARED, out), r"await batch\.work_async\(client"),
    ]
    for use, line in uses:
        check(use, "client must be a Client, not")
        with pytest.raises(TypeError, match=rf"not AsyncClient: write {line}"):
            use(other)
    wrong: Any = client
    for coroutine, line in (
        (batch.run_async(wrong, [REQUEST], out), r"batch\.run\(client"),
        (batch.work_async(wrong, SHARED, out), r"batch\.work\(client"),
    ):
        with pytest.raises(TypeError, match=rf"must be an AsyncClient, not Client: write {line}"):
            coroutine.send(None)
    assert not out.exists()


def test_shared_batches(client: Client) -> None:
    """What is no shared batch, service, budget or price list is refused."""
    service: Any = client.service
    line = r"batch must be a SharedBatch, not .*: write SharedBatch\('postgresql://"
    check(lambda value: batch.work(client, value, "out"), line)
    check(batch.shared_status, line)
    check(lambda value: batch.submit(value, [REQUEST], service), line)
    line = "store must be a store, or its place, such as 'postgresql://"
    check(lambda value: SharedBatch(value, "horses"), line, "name path")
    line = r"service must be the service of a client, not .*: write client\.service"
    check(lambda value: batch.submit(SHARED, [REQUEST], value), line)
    for name, told in (
        ("budget", r"budget must be a Budget, not .*: write Budget\(creates=3\)"),
        ("prices", r"prices must be a PriceList, not .*: write muybridge\.load_prices\(path\)"),
        ("rate", "rate must be a number"),
    ):
        use = partial(_submit, service, name)
        check(use, told, "none")


def _submit(service: Service, name: str, value: object) -> object:
    return batch.submit(SHARED, [REQUEST], service, **_named(name, value))


@pytest.mark.parametrize(
    ("name", "told", "taken"),
    [
        ("limit", "limit must be", "none"),
        ("dedupe", "dedupe must be", ""),
        ("local", "local must be", ""),
        ("prices", "prices must be a PriceList", "none"),
        ("budget", "budget must be a Budget", "none"),
        ("store", "store must be a path, 'postgresql://...' or a Store", "name path none"),
    ],
)
def test_options_of_a_preview(name: str, told: str, taken: str, tmp_path: Path) -> None:
    """An option of a wrong type is refused."""
    check(lambda value: batch.preview([REQUEST], tmp_path, **_named(name, value)), told, taken)
