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
from muybridge.batch.sheet.thumbnails import make_thumbnail
from muybridge.purchases.store import NewItem

from .window import Window

COUNT = 130
HOSTILE = "<script>document.title = 'obeyed'</script>"


@pytest.fixture
def sheet(tmp_path: Path, window: Window) -> Window:
    """The sheet of 130 items, of which two failed: numbers 100 and 101."""
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
    db = sqlite3.connect(tmp_path / "out" / "journal" / "store.sqlite3")
    db.execute(
        "UPDATE muybridge_item SET stage='failed', reason='a policy' WHERE number IN (100, 101)"
    )
    db.commit()
    db.close()
    path = batch.status(tmp_path / "out").sheet
    assert path is not None
    window.open(path.as_uri())
    return window


def shown(window: Window) -> list[str]:
    return [one.get_attribute("id") or "" for one in window.all("figure") if one.is_displayed()]


def press(window: Window, text: str) -> None:
    window.driver.find_element(By.XPATH, f"//button[starts-with(., '{text}')]").click()


def test_the_sheet_has_pages_filters_and_a_search(sheet: Window) -> None:
    """Sixty items are shown at a time, problems first; a state, words or a link choose others."""
    first = [f"item-{number}" for number in (100, 101, *range(1, 59))]
    assert shown(sheet) == first
    press(sheet, "Next")
    assert shown(sheet)[0] == "item-59"
    press(sheet, "failed 2")
    assert shown(sheet) == ["item-100", "item-101"]
    sheet.one("#search").send_keys("grey POLICY")
    assert shown(sheet) == ["item-100"]
    press(sheet, "queued 128")
    assert shown(sheet) == []
    assert sheet.one("#none").is_displayed()
    sheet.run("location.hash = '#item-7'; location.reload()")
    sheet.until(lambda: "item-7" in shown(sheet), "item 7")
    assert sheet.driver.title == "out"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sheet_fits_the_screen(sheet: Window, width: int) -> None:
    """Nothing sticks out at the side, on a desktop or on a phone."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    sheet.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
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
    db = sqlite3.connect(out / "journal" / "store.sqlite3")
    db.execute("UPDATE muybridge_item SET stage='downloaded', path='horse.png'")
    db.commit()
    db.close()
    Image.new("RGB", (900, 600), "orange").save(out / "horse.png")
    thumbnail = out / "journal" / "thumbnails" / "1.webp"
    make_thumbnail(out / "horse.png", thumbnail)
    sheet = batch.status(out).sheet
    assert sheet is not None
    window.open(sheet.as_uri())
    window.until(lambda: width(window) == 480, "the thumbnail")
    thumbnail.unlink()
    window.open(sheet.as_uri())
    window.until(lambda: width(window) == 900, "the picture")
    (complaint,) = window.complaints()
    assert "ERR_FILE_NOT_FOUND" in complaint


def width(window: Window) -> int:
    return int(window.run("return document.querySelector('img').naturalWidth"))
