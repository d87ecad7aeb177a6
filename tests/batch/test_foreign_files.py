"""Files that are not a batch's own: none is replaced, whatever it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from muybridge import batch
from muybridge.batch import BatchEvent, Stage, What
from muybridge.batch.results.places.file_names import place, taken_names
from muybridge.cli.commands import muybridge

from .billing import PNG, BillingServer
from .conftest import Run
from .runner_process import KEY, horses

MINE = b"a picture that took a week"


def test_results_get_free_names(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A result whose name another file has is saved next to it, and the store has its name."""
    out = tmp_path / "out"
    out.mkdir()
    for name in ("h1.png", "h1-2.png", "h2.png"):
        (out / name).write_bytes(MINE)
    events: list[BatchEvent] = []
    report = run(server, horses(3), on_event=events.append)
    assert report.done
    assert [entry.path for entry in report.entries] == ["h1-3.png", "h2-2.png", "h3.png"]
    for entry in report.entries:
        path = report.path_of(entry)
        assert path is not None
        assert path.read_bytes() == PNG + server.accepted[f"horse {entry.number}"][0].encode()
    for name in ("h1.png", "h1-2.png", "h2.png"):
        assert (out / name).read_bytes() == MINE
    told = {event.item: event.detail for event in events if event.what is What.DOWNLOADED}
    assert told[1] == "h1-3.png (h1.png is another file)"
    assert told[3] == "h3.png"
    assert list((out / "state" / "incoming").iterdir()) == []


def _folder(path: Path) -> None:
    path.mkdir()


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _link(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(MINE)
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes, and links only for some")
@pytest.mark.parametrize("make", [_folder, _dangling, _link, _pipe])
def test_what_is_no_file_is_left_alone_too(
    make: Callable[[Path], None], server: BillingServer, run: Run, tmp_path: Path
) -> None:
    """Folders, links and pipes with a result's or the sheet's name stay as they are, unopened."""
    out = tmp_path / "out"
    out.mkdir()
    for name in ("h1.png", "index.html"):
        make(out / name)
    before = [os.lstat(out / name) for name in ("h1.png", "index.html")]
    report = run(server, horses(1))
    assert (report.entries[0].path, report.sheet) == ("h1-2.png", out / "index-2.html")
    assert [os.lstat(out / name).st_ino for name in ("h1.png", "index.html")] == [
        found.st_ino for found in before
    ]
    if make is _link:
        assert (out / "elsewhere").read_bytes() == MINE


def test_a_file_of_the_same_content_is_this_items_own(
    server: BillingServer, run: Run, tmp_path: Path
) -> None:
    """A result that a stopped run has named, but not recorded, is not saved a second time."""
    server.media_works = False
    run(server, horses(2))
    left = tmp_path / "out" / "h1.png"
    left.write_bytes(PNG + server.accepted["horse 1"][0].encode())
    inode = left.stat().st_ino
    server.media_works = True
    assert [entry.path for entry in run(server, None).entries] == ["h1.png", "h2.png"]
    assert left.stat().st_ino == inode


def test_another_items_file_is_not_shared(tmp_path: Path) -> None:
    """A file that is recorded for another item stays that one's, though its content is equal."""
    (tmp_path / "h1.png").write_bytes(PNG)
    saved = tmp_path / "incoming"
    saved.mkdir()
    (saved / "task.png").write_bytes(PNG)
    placed = place(saved / "task.png", tmp_path, "h1", ())
    assert (placed.path.name, placed.avoided) == ("h1-2.png", "h1.png")
    assert not (saved / "task.png").exists()


def test_a_name_that_is_taken_in_between_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears at the last moment is not replaced either."""
    saved = tmp_path / "task.png"
    saved.write_bytes(PNG)
    link = os.link

    def late(source: Path, target: Path) -> None:
        if target.name == "h1.png":
            target.write_bytes(MINE)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert place(saved, tmp_path, "h1", {"h1.png"}).path.name == "h1-2.png"
    assert (tmp_path / "h1.png").read_bytes() == MINE


def test_a_file_that_appears_meanwhile_is_another_items(tmp_path: Path) -> None:
    """A file of the same content that was not there at the look-up is not this item's."""
    saved = tmp_path / "task.png"
    saved.write_bytes(PNG)
    assert taken_names(saved, tmp_path, "h1") == []
    (tmp_path / "h1.png").write_bytes(PNG)
    assert taken_names(saved, tmp_path, "h1") == ["h1.png"]
    assert place(saved, tmp_path, "h1", ()).path.name == "h1-2.png"


def test_the_sheet_leaves_a_file_that_takes_its_place(
    server: BillingServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that replaces a new sheet at once stays as it is."""
    page = tmp_path / "out" / "index.html"
    link = os.link

    def then_replaced(source: Path, target: Path) -> None:
        link(source, target)
        if target == page:
            page.unlink()
            page.write_bytes(MINE)

    monkeypatch.setattr(os, "link", then_replaced)
    assert run(server, horses(1)).sheet == page
    assert page.read_bytes() == MINE


def test_the_sheet_replaces_only_sheets(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A page that is not a contact sheet stays; the sheet gets another name, and keeps it."""
    page = tmp_path / "out" / "index.html"
    page.parent.mkdir()
    page.write_bytes(b"<!doctype html>\n<html lang=en>my own page, about muybridge batch</html>")
    mine = page.read_bytes()
    for source in (horses(1), horses(2)):
        report = run(server, source)
        assert report.sheet == page.with_name("index-2.html")
        assert page.read_bytes() == mine
    assert 'id="item-2"' in page.with_name("index-2.html").read_text(encoding="utf-8")
    page.unlink()
    assert batch.write_sheet(page.parent) == page
    assert batch.write_sheet(page.parent) == page
    assert batch.status(page.parent).sheet == page
    assert not [path for path in page.parent.iterdir() if path.name.endswith(".new")]


def test_the_command_in_a_folder_of_pictures(
    server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out .` replaces nothing that is there, and says where things are."""
    monkeypatch.chdir(tmp_path)
    Path("b.json").write_text(
        '[{"family": "imgb", "model": "imgb-2", "prompt": "p", "name": "h1"}]', encoding="utf-8"
    )
    Path("h1.png").write_bytes(MINE)
    Path("index.html").write_bytes(MINE)
    settings = {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}
    words = ["batch", "run", "b.json", "--out", ".", "--poll-interval", "0.005"]
    done = CliRunner().invoke(muybridge, words, env=settings)
    assert done.exit_code == 0
    assert "item 1 (h1): downloaded h1-2.png (h1.png is another file)" in done.stderr
    assert "index.html is another file: the contact sheet is index-2.html" in done.stderr
    assert done.stdout == "1 downloaded\nindex-2.html\n"
    assert Path("h1.png").read_bytes() == Path("index.html").read_bytes() == MINE
    assert batch.status(".").counts == {Stage.DOWNLOADED: 1}
