"""The contact sheet of a large batch, opened from the disk."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from PIL import Image
from selenium.webdriver.common.by import By

from batch.begun import begun
from muybridge import batch
from muybridge.batch.results.sheet.thumbnails import make_thumbnail
from muybridge.purchases.store import NewItem

from .window import Window

COUNT = 1130
HOSTILE = "<script>document.title = 'obeyed'</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A batch of 1,130 items, of which two failed: numbers 600 and 601."""
    items = [
        NewItem(
            name=f"horse-{number}" if number > 1 else HOSTILE,
            stem=str(number),
            family="imgb",
            body=json.dumps(
                {"model": "imgb-2", "prompt": f"A {'bay' if number % 2 else 'grey'} horse"}
            ),
        )
        for number in range(1, COUNT + 1)
    ]
    begun(tmp_path / "out", items).store.close()
    db = sqlite3.connect(tmp_path / "out" / "state" / "store.sqlite3")
    db.execute(
        "UPDATE muybridge_item SET stage='failed', reason='a policy' WHERE number IN (600, 601)"
    )
    db.commit()
    db.close()
    return tmp_path / "out"


@pytest.fixture
def sheet(folder: Path, window: Window) -> Window:
    """The window with the batch's sheet."""
    window.open(batch.write_sheet(folder).as_uri())
    return window


def shown(window: Window) -> list[str]:
    return [one.get_attribute("id") or "" for one in window.all("figure") if one.is_displayed()]


def press(window: Window, text: str) -> None:
    window.driver.find_element(By.XPATH, f"//button[starts-with(., '{text}')]").click()


def follow(window: Window, text: str) -> None:
    window.driver.find_element(By.XPATH, f"//a[starts-with(., '{text}')]").click()


def test_the_index_leads_to_the_items(sheet: Window) -> None:
    """It links to each page and to the problems, and opens the page of a number, or of a link."""
    assert sheet.driver.title == "out"
    assert [one.text for one in sheet.all("li a")] == ["1-500", "501-1,000", "1,001-1,130"]
    assert "2 failed" in sheet.all("li")[1].text
    index = sheet.driver.current_url
    follow(sheet, "Failed and undecided items: 2")
    assert shown(sheet) == ["item-600", "item-601"]
    follow(sheet, "All pages")
    assert sheet.driver.current_url == index
    sheet.one("#number").send_keys("1,007")
    press(sheet, "Show")
    sheet.until(lambda: "item-1007" in shown(sheet), "item 1007")
    follow(sheet, "Back")
    assert shown(sheet)[:3] == ["item-600", "item-601", "item-501"]
    sheet.open(f"{index}#item-7")
    sheet.until(lambda: "item-7" in shown(sheet), "item 7")
    follow(sheet, "Next")
    assert shown(sheet)[2] == "item-501"


def test_a_page_has_filters_and_a_search(sheet: Window) -> None:
    """Its problems come first; a state and words choose among its items."""
    follow(sheet, "501")
    assert shown(sheet) == [f"item-{n}" for n in (600, 601, *range(501, 600), *range(602, 1001))]
    press(sheet, "failed 2")
    assert shown(sheet) == ["item-600", "item-601"]
    sheet.one("#search").send_keys("grey POLICY")
    assert shown(sheet) == ["item-600"]
    press(sheet, "queued 498")
    assert shown(sheet) == []
    assert sheet.one("#none").is_displayed()
    assert sheet.driver.title == "out"


def test_a_small_batch_is_on_one_page(folder: Path, window: Window) -> None:
    """The items of a batch that fits on a page are on its index."""
    db = sqlite3.connect(folder / "state" / "store.sqlite3")
    db.execute("DELETE FROM muybridge_item WHERE number > 3")
    db.commit()
    db.close()
    window.open(batch.write_sheet(folder).as_uri())
    assert shown(window) == ["item-1", "item-2", "item-3"]
    assert window.driver.title == "out"


@pytest.mark.parametrize("page", ["index.html", "sheet/2.html", "sheet/problems.html"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_sheet_fits_the_screen(sheet: Window, folder: Path, page: str, width: int) -> None:
    """Nothing sticks out at the side, on a desktop or on a phone, where text is large too."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    sheet.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        sheet.open((folder / page).as_uri())
        assert sheet.run("return document.documentElement.scrollWidth") <= width
    finally:
        sheet.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_sheet_that_was_copied_without_its_thumbnails_shows_the_pictures(
    tmp_path: Path, window: Window
) -> None:
    """The page, which shows thumbnails, works beside the pictures alone, on a web server say."""
    out = tmp_path / "out"
    body = json.dumps({"model": "imgb-2", "prompt": "-"})
    item = NewItem(name="horse", stem="1", family="imgb", body=body)
    begun(out, [item]).store.close()
    db = sqlite3.connect(out / "state" / "store.sqlite3")
    db.execute("UPDATE muybridge_item SET stage='downloaded', path='horse.png'")
    db.commit()
    db.close()
    Image.new("RGB", (900, 600), "orange").save(out / "horse.png")
    thumbnail = out / "state" / "thumbnails" / "1.webp"
    make_thumbnail(out / "horse.png", thumbnail)
    sheet = batch.write_sheet(out)
    window.open(sheet.as_uri())
    window.until(lambda: width(window) == 480, "the thumbnail")
    thumbnail.unlink()
    window.open(sheet.as_uri())
    window.until(lambda: width(window) == 900, "the picture")
    (complaint,) = window.complaints()
    assert "ERR_FILE_NOT_FOUND" in complaint


def width(window: Window) -> int:
    return int(window.run("return document.querySelector('img').naturalWidth"))
