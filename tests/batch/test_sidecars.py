"""The sidecars of a batch's results: beside each of them, and never instead of one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import moments
from muybridge.batch import BatchEvent, Stage, What
from muybridge.cli.commands import muybridge
from muybridge.files import sidecar as sidecars
from muybridge_protocol.families import ImgbRequest

from .billing import BillingServer
from .conftest import Run
from .runner_process import KEY, horses


def sidecar(tmp_path: Path, number: int) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((tmp_path / "out" / f"h{number}.png.json").read_bytes())
    return told


def test_each_result_has_one(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """Each result of a batch has a sidecar with its task, its request's digest and its checksum."""
    report = run(server, horses(3), sidecar=True)
    assert (report.done, report.without_sidecar) == (True, 0)
    for entry in report.entries:
        told = sidecar(tmp_path, entry.number)
        request = ImgbRequest(model="imgb-2", prompt=f"horse {entry.number}")
        assert told["task"] == entry.task_id
        assert told["request_sha256"] == request.digest()
        assert (told["sha256"], told["size"]) == (entry.sha256, entry.size)
        assert (told["file"], told["model"]) == (entry.path, "imgb-2")
        assert told["tags"] == {"batch": "out"}
        assert None not in told.values()
    for path in (tmp_path / "out").glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert not any(secret in text for secret in ("horse ", "secret", KEY))


def test_none_unless_asked_for(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A batch without `sidecar` has none."""
    run(server, horses(1))
    assert list((tmp_path / "out").glob("*.json")) == []


def test_earlier_results_get_theirs(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A later run writes the sidecars that are missing, without asking the service."""
    run(server, horses(3))
    asked, events = server.requests, list[BatchEvent]()
    report = run(server, None, sidecar=True, on_event=events.append)
    assert (server.requests, report.done, events) == (asked, True, [])
    assert sidecar(tmp_path, 1)["task"] == report.entries[0].task_id
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == [
        "h1.png.json",
        "h2.png.json",
        "h3.png.json",
    ]


def test_a_missing_result_comes_back_with_its_sidecar(
    server: BillingServer, run: Run, tmp_path: Path
) -> None:
    """A result that is downloaded again gets its sidecar, and is paid for once."""
    run(server, horses(2))
    (tmp_path / "out" / "h2.png").unlink()
    report = run(server, None, sidecar=True)
    assert (report.done, report.without_sidecar, server.posts) == (True, 0, 2)
    assert sidecar(tmp_path, 1)["task"] == report.entries[0].task_id
    assert sidecar(tmp_path, 2)["task"] == report.entries[1].task_id


def test_a_sidecar_in_place_is_left_alone(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A sidecar that is there is not written again; one of another content is."""
    run(server, horses(2), sidecar=True)
    first, second = (tmp_path / "out" / f"h{number}.png.json" for number in (1, 2))
    before = first.stat().st_ino
    second.write_text('{"muybridge_sidecar": 1, "sha256": "0"}', encoding="utf-8")
    run(server, None, sidecar=True)
    assert first.stat().st_ino == before
    assert sidecar(tmp_path, 2)["file"] == "h2.png"


def test_a_file_in_its_place(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A result without a sidecar is saved, and paid for once; a later run writes the sidecar."""
    place = tmp_path / "out" / "h2.png.json"
    place.parent.mkdir()
    place.write_bytes(b"mine")
    events = list[BatchEvent]()
    report = run(server, horses(3), sidecar=True, on_event=events.append)
    assert report.counts == {Stage.DOWNLOADED: 3}
    assert report.without_sidecar == 1
    (said,) = [event for event in events if event.what is What.POSTPONED]
    assert said.item == 2
    assert "h2.png is saved, but its sidecar is not" in said.detail
    assert place.read_bytes() == b"mine"
    assert run(server, None, sidecar=True).without_sidecar == 1
    place.unlink()
    assert run(server, None, sidecar=True).without_sidecar == 0
    assert sidecar(tmp_path, 2)["file"] == "h2.png"
    assert server.posts == 3


def test_a_full_disk(
    server: BillingServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that is full for sidecars, all results are recorded as downloaded."""

    def fail(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(sidecars, "write_all", fail)
        report = run(server, horses(3), sidecar=True)
    assert (report.counts, report.without_sidecar) == ({Stage.DOWNLOADED: 3}, 3)
    assert list((tmp_path / "out").glob("*.json*")) == []
    assert run(server, None, sidecar=True).without_sidecar == 0
    assert server.posts == 3


def test_killed_before_a_sidecar(
    server: BillingServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run ends between a result and its sidecar, the next one writes it and pays nothing."""

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(*moments.at("sidecar written").place, die)
        with pytest.raises(BaseException) as caught:  # noqa: PT011  each runtime wraps it in its way
            run(server, horses(1), sidecar=True)
        assert isinstance(caught.value, Killed | BaseExceptionGroup)
    report = run(server, None, sidecar=True)
    assert (report.counts, server.posts) == ({Stage.DOWNLOADED: 1}, 1)
    assert sidecar(tmp_path, 1)["file"] == "h1.png"


def test_many_are_caught_up_with(
    server: BillingServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing sidecars are written page by page."""
    monkeypatch.setattr(*moments.constant("sidecars written at once"), 2)
    run(server, horses(5))
    run(server, None, sidecar=True)
    assert len(list((tmp_path / "out").glob("*.json"))) == 5


def test_a_listener_that_raises(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """An exception of a listener, told of a missing sidecar, ends the run and is raised."""
    run(server, horses(2), limit=1)
    (tmp_path / "out" / "h1.png.json").write_bytes(b"mine")

    def refuse(event: BatchEvent) -> None:
        raise LookupError(event.what)

    with pytest.raises(LookupError, match="postponed"):
        run(server, None, sidecar=True, on_event=refuse)
    assert server.posts == 1


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: BillingServer) -> Invoke:
    """Run the command within this process, in a folder with a batch of two horses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(2))), encoding="utf-8")

    def go(*words: str) -> Result:
        env = {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}
        result = CliRunner().invoke(muybridge, list(words), env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return go


def test_the_command(invoke: Invoke, tmp_path: Path) -> None:
    """`batch run --sidecar` writes them, and exits with 6 while one cannot be written."""
    run = ("batch", "run", "b.jsonl", "--out", "out", "--sidecar", "--poll-interval", "0.005")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "h1.png.json").write_bytes(b"mine")
    done = invoke(*run)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (6, "2 downloaded")
    assert "item 1 (h1): postponed: out/h1.png is saved, but its sidecar is not" in done.stderr
    assert "to resume: muybridge batch run --out out --concurrency 4" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("--sidecar")
    (tmp_path / "out" / "h1.png.json").unlink()
    assert invoke(*run).exit_code == 0
    assert sidecar(tmp_path, 1)["file"] == "h1.png"
