"""A downloaded file that is gone: the status says so, and the next run brings it back."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import moments
from muybridge import batch
from muybridge.batch import BatchEvent, Stage
from muybridge.batch.results.missing_files import follow_files
from muybridge.batch.shared import open_batch

from .billing import PNG, BillingServer
from .conftest import Run
from .runner_process import horses
from .test_command import AGAIN, RUN, Invoke, invoke, summary

__all__ = ["invoke"]


def resumes(stderr: str) -> list[str]:
    """Return the words after `muybridge batch` of the command that the last line names."""
    told = stderr.splitlines()[-1]
    assert told.startswith("to resume: muybridge batch ")
    return shlex.split(told.removeprefix("to resume: muybridge batch "))


def test_a_run_brings_it_back(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A run asks the task for its link again and saves the file, and creates nothing."""
    out = tmp_path / "out"
    before = tuple(run(server, horses(3)).entries)
    (out / "h2.png").unlink()
    found = batch.status(out)
    assert found.counts == {Stage.COMPLETED: 1, Stage.DOWNLOADED: 2}
    assert (found.done, found.missing) == (False, 1)
    assert found.entries[1].state is Stage.COMPLETED
    assert found.path_of(found.entries[1]) is None
    events = list[BatchEvent]()
    report = run(server, None, on_event=events.append)
    assert (report.done, report.missing, report.counts) == (True, 0, {Stage.DOWNLOADED: 3})
    assert tuple(report.entries) == before
    assert (out / "h2.png").read_bytes() == PNG + server.accepted["horse 2"][0].encode()
    assert [(event.what, event.item) for event in events] == [("retry", 2), ("downloaded", 2)]
    assert server.posts == 3


def test_all_of_them(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """If every file is gone, every file comes back, and each is paid for once."""
    out = tmp_path / "out"
    run(server, horses(3))
    for path in out.glob("*.png"):
        path.unlink()
    assert batch.status(out).counts == {Stage.COMPLETED: 3}
    report = run(server, horses(4))
    assert (report.counts, server.posts) == ({Stage.DOWNLOADED: 4}, 4)
    assert len([*out.glob("*.png")]) == 4


def test_its_link_is_dead(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A result that cannot be downloaded any more stays missing, and is not created again."""
    out = tmp_path / "out"
    run(server, horses(2))
    (out / "h1.png").unlink()
    server.media_works = False
    for _ in range(2):
        report = run(server, None)
        assert report.counts == {Stage.COMPLETED: 1, Stage.DOWNLOADED: 1}
        assert "the link no longer works (status 404)" in (report.entries[0].reason or "")
    assert server.posts == 2
    server.media_works = True
    assert run(server, None).done
    assert (out / "h1.png").exists()
    assert server.posts == 2


def lost(server: BillingServer, run: Run, out: Path) -> tuple[bytes, list[batch.Entry]]:
    """Lose a result whose link is dead, let a run notice it, and return it and the items before."""
    before = [*run(server, horses(2)).entries]
    content = (out / "h1.png").read_bytes()
    (out / "h1.png").unlink()
    server.media_works = False
    for _ in range(2):
        report = run(server, None)
        assert (report.missing, report.counts[Stage.COMPLETED]) == (1, 1)
        assert report.path_of(report.entries[0]) is None
    row = next(batch.manifest(out))
    assert (row.file, row.bytes, row.sha256) == ("h1.png", len(content), before[0].sha256)
    return content, before


def test_it_is_put_back(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A run recognizes the file that it has missed, and asks the service for nothing."""
    out = tmp_path / "out"
    content, before = lost(server, run, out)
    (out / "h1.png").write_bytes(content)
    found = batch.status(out)
    assert (found.missing, found.counts) == (0, {Stage.COMPLETED: 1, Stage.DOWNLOADED: 1})
    assert found.path_of(found.entries[0]) is None
    asked = server.requests
    report = run(server, None)
    assert (report.done, report.missing, [*report.entries]) == (True, 0, before)
    assert (server.requests, server.posts) == (asked, 2)


def test_a_link_to_it_is_put_back(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A symbolic link to the archived file is as good as the file, but none that leads nowhere."""
    out = tmp_path / "out"
    content, before = lost(server, run, out)
    (out / "h1.png").symlink_to(tmp_path / "archived.png")
    assert run(server, None).missing == 1
    (tmp_path / "archived.png").write_bytes(content)
    assert [*run(server, None).entries] == before


def test_another_file_is_put_there(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """Another file in its place is left alone, and a new download is recorded in its stead."""
    out = tmp_path / "out"
    content, before = lost(server, run, out)
    for other, missing in ((bytes(len(content)), 0), (b"another", 1)):
        (out / "h1.png").write_bytes(other)
        report = run(server, None)
        assert (report.done, report.missing) == (False, missing)
    server.media_works = True
    report = run(server, None)
    assert report.done
    assert (out / "h1.png").read_bytes() == b"another"
    entry = report.entries[0]
    assert (entry.path, entry.sha256) == ("h1-2.png", before[0].sha256)
    assert (out / "h1-2.png").read_bytes() == content
    assert server.posts == 2


def test_the_file_of_another_item_is_there(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A file that is another item's by now is not recognized as its own, even if it is the same."""
    out, twin = tmp_path / "out", {"family": "imgb", "model": "imgb-2", "prompt": "twin"}
    out.mkdir()
    (out / "h.png").write_bytes(b"another")
    twins = [{**twin, "name": "h"}, {**twin, "name": "h-2"}]
    report = run(server, twins, limit=1, dedupe=True)
    assert report.entries[0].path == "h-2.png"
    (out / "h-2.png").unlink()
    server.media_works = False

    def works_again(event: BatchEvent) -> None:
        server.media_works = server.media_works or event.item == 2

    report = run(server, None, dedupe=True, concurrency=1, on_event=works_again)
    assert [entry.path for entry in report.entries] == [None, "h-2.png"]
    server.media_works = False
    left = {Stage.COMPLETED: 1, Stage.DOWNLOADED: 1}
    assert run(server, None).counts == left
    (out / "h-2.png").rename(tmp_path / "archived.png")
    assert run(server, None).missing == 2
    (tmp_path / "archived.png").rename(out / "h-2.png")
    assert run(server, None).counts == left
    server.media_works = True
    report = run(server, None)
    assert (report.done, server.posts) == (True, 1)
    assert [entry.path for entry in report.entries] == ["h-2.png", "h-2-2.png"]
    assert len({entry.sha256 for entry in report.entries}) == 1


def test_another_name_at_its_place(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A link to a file that is elsewhere is not missing, even if that file cannot be reached."""
    out = tmp_path / "out"
    run(server, horses(1))
    (out / "h1.png").rename(tmp_path / "elsewhere.png")
    (out / "h1.png").symlink_to(tmp_path / "elsewhere.png")
    (tmp_path / "elsewhere.png").unlink()
    asked = server.requests
    assert run(server, None).done
    assert server.requests == asked


def test_the_command(invoke: Invoke, tmp_path: Path) -> None:
    """`batch status` counts what is missing and names the command that brings it back."""
    with BillingServer() as server:
        assert invoke(*RUN, server=server).exit_code == 0
        (tmp_path / "out" / "h2.png").unlink()
        told = invoke("status", "out", server=server)
        assert told.exit_code == 6
        assert told.stdout.splitlines()[0] == "1 missing, 2 downloaded"
        assert "item 2 (h2) is completed: h2.png is missing" in told.stderr
        asked = invoke("status", "out", "--json", server=server)
        assert summary(asked)["counts"] == {"missing": 1, "downloaded": 2}
        assert [item["state"] for item in summary(asked)["items"]] == [
            "downloaded",
            "completed",
            "downloaded",
        ]
        again = invoke(*resumes(told.stderr), server=server)
        assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "3 downloaded")
        assert "item 2 (h2): h2.png is missing" in again.stderr
        assert server.posts == 3
    assert (tmp_path / "out" / "h2.png").exists()


def test_the_command_when_it_is_put_back(invoke: Invoke, tmp_path: Path) -> None:
    """`batch status` says that the file is there again, and the next run ends with 0."""
    with BillingServer() as server:
        assert invoke(*RUN, server=server).exit_code == 0
        file = tmp_path / "out" / "h2.png"
        content = file.read_bytes()
        file.unlink()
        server.media_works = False
        again = invoke(*AGAIN, server=server)
        assert (again.exit_code, again.stdout.splitlines()[0]) == (6, "1 missing, 2 downloaded")
        told = invoke("status", "out", server=server)
        assert (told.exit_code, told.stdout.splitlines()[0]) == (6, "1 missing, 2 downloaded")
        file.write_bytes(content)
        told = invoke("status", "out", server=server)
        assert (told.exit_code, told.stdout.splitlines()[0]) == (6, "1 completed, 2 downloaded")
        again = invoke(*AGAIN, server=server)
        assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "3 downloaded")
        assert server.posts == 3


def test_a_file_that_an_embedded_service_has_forgotten(invoke: Invoke, tmp_path: Path) -> None:
    """Its file is put back before the run, so that the picture is not made anew."""
    assert invoke(*RUN, "--local").exit_code == 0
    file = tmp_path / "out" / "h2.png"
    content = file.read_bytes()
    with open_batch(tmp_path / "out") as found:
        file.unlink()
        follow_files(found, tmp_path / "out")
    file.write_bytes(content)
    preview = invoke(*AGAIN, "--local", "--dry-run", "--json")
    assert json.loads(preview.stdout.splitlines()[-1])["sends"] == 0
    assert invoke(*AGAIN, "--local").stdout.splitlines()[0] == "3 downloaded"
    assert file.read_bytes() == content


def test_a_service_that_ends_with_the_command(invoke: Invoke, tmp_path: Path) -> None:
    """An embedded service does not know the task any more, so it makes the picture anew."""
    assert invoke(*RUN, "--local").exit_code == 0
    (tmp_path / "out" / "h2.png").unlink()
    told = invoke("status", "out")
    assert resumes(told.stderr) == ["run", "--out", "out", "--local"]
    assert invoke(*resumes(told.stderr)).exit_code == 0
    assert (tmp_path / "out" / "h2.png").exists()
    assert invoke(*AGAIN, "--local").stderr == ""


def test_the_contact_sheet(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """The contact sheet shows no picture that is missing."""
    run(server, horses(2))
    (tmp_path / "out" / "h1.png").unlink()
    page = batch.write_sheet(tmp_path / "out").read_text("utf-8")
    assert 'href="h1.png"' not in page
    assert "h1.png is missing" in page
    assert 'href="h2.png"' in page


def test_a_status_of_very_many_results(
    run: Run, server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not look for their files; whatever reads each item does."""
    monkeypatch.setattr(*moments.constant("results looked for"), 2)
    run(server, horses(3))
    (tmp_path / "out" / "h2.png").unlink()
    status = batch.status(tmp_path / "out")
    assert (status.missing, status.counts) == (0, {Stage.DOWNLOADED: 3})
    batch.write_sheet(tmp_path / "out")
    assert "h2.png is missing" in (tmp_path / "out" / "index.html").read_text("utf-8")
    assert run(server, None).counts == {Stage.DOWNLOADED: 3}
    assert (tmp_path / "out" / "h2.png").exists()
    assert server.posts == 3
