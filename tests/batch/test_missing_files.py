"""A downloaded file that is gone: the status says so, and the next run brings it back."""

from __future__ import annotations

import shlex
from pathlib import Path

from muybridge import batch
from muybridge.batch import BatchEvent, State

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
    assert found.counts == {State.COMPLETED: 1, State.DOWNLOADED: 2}
    assert (found.done, found.missing) == (False, 1)
    assert found.entries[1].state is State.COMPLETED
    assert found.path_of(found.entries[1]) is None
    events = list[BatchEvent]()
    report = run(server, None, on_event=events.append)
    assert (report.done, report.missing, report.counts) == (True, 0, {State.DOWNLOADED: 3})
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
    assert batch.status(out).counts == {State.COMPLETED: 3}
    report = run(server, horses(4))
    assert (report.counts, server.posts) == ({State.DOWNLOADED: 4}, 4)
    assert len([*out.glob("*.png")]) == 4


def test_its_link_is_dead(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A result that cannot be downloaded any more stays missing, and is not created again."""
    out = tmp_path / "out"
    run(server, horses(2))
    (out / "h1.png").unlink()
    server.media_works = False
    for _ in range(2):
        report = run(server, None)
        assert report.counts == {State.COMPLETED: 1, State.DOWNLOADED: 1}
        assert "the link no longer works (status 404)" in (report.entries[0].reason or "")
    assert server.posts == 2
    server.media_works = True
    assert run(server, None).done
    assert (out / "h1.png").exists()
    assert server.posts == 2


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
    sheet = batch.status(tmp_path / "out").sheet
    assert sheet is not None
    page = sheet.read_text("utf-8")
    assert 'href="h1.png"' not in page
    assert "h1.png is missing" in page
    assert 'href="h2.png"' in page
