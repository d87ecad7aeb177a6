"""The contact sheet of a batch that does not fit on one page, and what is written of it again."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from muybridge import batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.results.sheet.contact_sheet import PER_PAGE
from muybridge.batch.shared import open_batch
from muybridge.files.drafts import draft
from muybridge.purchases.store import NewItem
from processes import environment

from .begun import LOST, begun, bought

KILLED = """
import os, signal, sys
import moments
from muybridge import batch
moments.struck_after(sys.argv[1], int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL))
batch.write_sheet(sys.argv[3])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A batch of 1,130 items: the first 1,000 are downloaded, but 600 and 601 went wrong."""
    out = tmp_path / "out"
    items = [
        NewItem(name=f"h{number}", stem=str(number), family="imgb", body='{"prompt": "p"}')
        for number in range(1, 1131)
    ]
    begun(out, items).store.close()
    change(out, "stage = 'downloaded', path = 'h' || number || '.png'", "number <= 1000")
    change(out, "stage = 'failed', path = NULL, reason = 'a policy'", "number = 600")
    change(out, "stage = 'ambiguous', path = NULL, reason = 'lost'", "number = 601")
    for number in range(1, 1001):
        (out / f"h{number}.png").touch()
    return out


def change(folder: Path, columns: str, which: str) -> None:
    db = sqlite3.connect(folder / "state" / "store.sqlite3")
    db.execute(f"UPDATE muybridge_item SET {columns} WHERE {which}")  # noqa: S608  ours
    db.commit()
    db.close()


def numbers(page: Path) -> list[int]:
    """Return the items that *page* shows."""
    return [int(found) for found in re.findall('<figure id="item-([0-9]+)"', text(page))]


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def written_again(folder: Path) -> set[str]:
    """Write the sheet, and return the numbered pages that were written."""
    before = {page.name: page.stat().st_ino for page in (folder / "sheet").glob("[0-9]*.html")}
    batch.write_sheet(folder)
    after = {page.name: page.stat().st_ino for page in (folder / "sheet").glob("[0-9]*.html")}
    return {name for name, inode in after.items() if before.get(name) != inode}


def test_every_item_is_on_one_page(folder: Path) -> None:
    """The index has counts and links; the pages have 500 items each, and one has the problems."""
    index = batch.write_sheet(folder)
    assert numbers(index) == []
    assert "1,130 items: 130 queued, 1 ambiguous, 1 failed, 998 downloaded" in text(index)
    links = re.findall('href="([^"]+)"', text(index))
    assert links == ["sheet/problems.html", "sheet/1.html", "sheet/2.html", "sheet/3.html"]
    pages = [folder / link for link in links[1:]]
    assert [numbers(page) for page in pages] == [
        [*range(1, 501)],
        [*range(501, 1001)],
        [*range(1001, 1131)],
    ]
    assert numbers(folder / links[0]) == [601, 600]
    assert 'href="../h7.png"' in text(pages[0])
    for page in (*pages, folder / links[0]):
        for link in re.findall('<a href="([^"]+)"', text(page)):
            assert (page.parent / link).exists()


def test_a_page_is_left_alone_while_nothing_on_it_changes(folder: Path) -> None:
    """A page is written again if an item on it has changed, its file is gone, or items follow."""
    assert written_again(folder) == {"1.html", "2.html", "3.html"}
    assert written_again(folder) == set()
    change(folder, "reason = 'another policy'", "number = 600")
    assert written_again(folder) == {"2.html"}
    (folder / "h7.png").unlink()
    assert written_again(folder) == {"1.html"}
    assert "h7.png is missing" in text(folder / "sheet" / "1.html")
    (folder / "h7.png").touch()
    assert written_again(folder) == {"1.html"}
    change(folder, "stage = 'refused'", "number = 600")
    assert written_again(folder) == {"2.html"}
    with open_batch(folder) as found:
        more = [
            NewItem(name="", stem=f"n{number}", family="imgb", body='{"prompt": "p"}')
            for number in range(400)
        ]
        found.add(more, after=1130)
    assert written_again(folder) == {"3.html", "4.html"}


CHANGED = {
    "muybridge_item": {
        "stage": "'abandoned'",
        "owner": "'another'",
        "result": """'{"model": "another", "actualDuration": 7, "totalTokens": 7}'""",
        "expires": "7",
        "reason": "'a reason'",
        "path": "'another.png'",
        "size": "7",
        "sha256": "'7'",
        "began": "7",
        "ended": "17",
        "next_poll_at": "7",
    },
    "muybridge_purchases": {
        "token": "'task-7'",
        "candidate": "'task-7'",
        "response_status": "777",
        "response": 'CAST(\'{"id": "task-7"}\' AS BLOB)',
        "state": "'accepted'",
        "decided_at": "7",
    },
}
"""Another value for each column that an item is read from and that may change, by its table."""
CALLED = {"stage": "state", "state": "bought"}
"""What such columns are called in an `Entry`."""
LASTING = {"number", "name", "stem", "family", "body", "purchase"}
"""What never changes, or changes only together with others."""
COLUMNS = [(table, column) for table, columns in CHANGED.items() for column in columns]


def test_every_value_that_may_change_is_tried() -> None:
    """The next test changes each value of an item that may change."""
    tried = {CALLED.get(column, column) for _, column in COLUMNS}
    assert tried == {field.name for field in attrs.fields(Entry)} - LASTING, (
        "give each value of Entry a row in CHANGED of tests/batch/test_sheet_pages.py"
    )


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_change_of_what_a_page_shows(tmp_path: Path, table: str, column: str) -> None:
    """A page is written again if any value has changed that a fact on it is made from."""
    out = tmp_path / "out"
    with begun(out, PER_PAGE + 1) as found:
        bought(found, 1, LOST)
    batch.write_sheet(out)
    page = out / "sheet" / "1.html"
    with closing(sqlite3.connect(out / "state" / "store.sqlite3")) as db, db:
        db.execute(f"UPDATE {table} SET {column} = {CHANGED[table][column]} WHERE number = 1")  # noqa: S608  ours
    batch.write_sheet(out)
    written = text(page)
    page.unlink()
    batch.write_sheet(out)
    assert text(page) == written, (
        f"a fact shows {column}: add it to _OUTLINES in transports/muybridge/batch/items/batch.py"
    )


@pytest.mark.parametrize("torn", [b"", b"\0" * 50_000, None])
def test_a_torn_page_is_written_again(folder: Path, torn: bytes | None) -> None:
    """A page that a power cut has emptied or shortened is not taken for a finished one."""
    batch.write_sheet(folder)
    page = folder / "sheet" / "1.html"
    whole = page.read_bytes()
    page.write_bytes(whole[:50_000] if torn is None else torn)
    assert written_again(folder) == {"1.html"}
    assert page.read_bytes() == whole


def test_the_page_of_problems_ends_with_them(folder: Path) -> None:
    """Once nothing is wrong any more, there is no such page, and no link to it."""
    batch.write_sheet(folder)
    change(folder, "stage = 'abandoned'", "number IN (600, 601)")
    index = batch.write_sheet(folder)
    assert "problems.html" not in text(index)
    assert not (folder / "sheet" / "problems.html").exists()


def test_a_thousand_problems_are_on_their_pages(folder: Path) -> None:
    """The page of problems has the first 500, those to decide about first, and says so."""
    change(folder, "stage = 'failed'", "number > 10 AND number != 601")
    batch.write_sheet(folder)
    page = folder / "sheet" / "problems.html"
    assert numbers(page) == [601, *range(11, 510)]
    assert "1,120 failed and undecided items, the first 500 of them" in text(page)


@pytest.mark.parametrize("other", ["file", "folder", "link"])
def test_a_folder_of_the_users_is_left_alone(folder: Path, tmp_path: Path, other: str) -> None:
    """If something else has the name of the folder of pages, they go into a numbered one."""
    theirs = folder / "sheet"
    if other == "file":
        theirs.write_bytes(b"mine")
    elif other == "folder":
        theirs.mkdir()
        (theirs / "1.html").write_bytes(b"mine")
    else:
        (tmp_path / "elsewhere").mkdir()
        theirs.symlink_to(tmp_path / "elsewhere")
    batch.write_sheet(folder)
    index = batch.write_sheet(folder)
    assert 'href="sheet-2/1.html"' in text(index)
    assert not (folder / "sheet-3").exists()
    left = {"file": theirs, "folder": theirs / "1.html"}.get(other)
    assert left is None or left.read_bytes() == b"mine"
    assert not [*(tmp_path / "elsewhere").glob("*")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("figures", [0, 700, 1131])
def test_a_killed_process_leaves_a_whole_sheet(folder: Path, figures: int) -> None:
    """Every page is whole, each link leads somewhere, and the next sheet sweeps what was begun."""
    index = batch.write_sheet(folder)
    before = text(index)
    change(folder, "reason = 'another policy'", "number IN (1, 600, 1130)")
    (folder / ".index.html.0123456789abcdef.new").touch()
    done = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", KILLED, "figure shown", str(figures), str(folder)],
        env=environment(),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert text(index) == before
    pages = sorted((folder / "sheet").glob("*.html"))
    assert len(pages) == 4
    assert all(text(page).endswith("</html>\n") for page in pages)
    assert [*(folder / "sheet").glob(".*.new")]
    batch.write_sheet(folder)
    assert not [*folder.glob(".*.new"), *(folder / "sheet").glob(".*.new")]
    assert "another policy" in text(folder / "sheet" / "3.html")


def test_what_another_process_is_writing_is_left_alone(folder: Path) -> None:
    """A draft whose writer lives is not swept."""
    batch.write_sheet(folder)
    with draft(folder / "sheet" / "1.html") as page, draft(folder / "index.html") as index:
        batch.write_sheet(folder)
        assert Path(page.name).exists()
        assert Path(index.name).exists()
    assert not [*folder.glob(".*.new"), *(folder / "sheet").glob(".*.new")]


def test_a_manifest_that_was_begun_is_swept(folder: Path) -> None:
    """What a killed process has left of a manifest is removed by the next one."""
    (folder / ".results.jsonl.0123456789abcdef.new").touch()
    file = batch.write_manifest(folder)
    assert not [*folder.glob("*.new"), *folder.glob(".*.new")]
    assert len(text(file).splitlines()) == 1130
