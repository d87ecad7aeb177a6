"""The picture of a contact sheet in the documentation, taken in Chromium.

`python -m tests.generators.contact_sheet` runs a batch on the local service and writes the picture.
It needs what `tests/browser` needs. No test compares the picture: each Chromium draws a little
differently, and the times on it are those of the run.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from tests.browser.window import open_browser

from muybridge import Client, batch
from muybridge.local import LocalService

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "contact-sheet.png"
WIDTH, HEIGHT = 1100, 860
COLORS = 128
IMGB = {"family": "imgb", "model": "imgb-2", "ratio": "4:3"}
IMGA = {"family": "imga", "model": "imga", "size": "4:3"}
VIDSA = {"family": "vidsa", "model": "vidsa_1_5_pro_480p", "duration": 2}
ITEMS = (
    {**IMGB, "name": "gallop", "prompt": "A galloping horse, side view"},
    {**IMGA, "name": "sulky", "prompt": "A horse and sulky on the track at Palo Alto"},
    {
        "family": "imgb",
        "model": "imgb-2",
        "name": "never",
        "prompt": "A horse that the policy refuses [fail:content-policy]",
    },
    {**VIDSA, "name": "trot", "prompt": "A horse trots along a wall"},
    {**VIDSA, "name": "hedge", "prompt": "The horse jumps a hedge"},
    {**IMGB, "name": "foal", "prompt": "A foal asleep in the straw"},
    {**IMGA, "name": "water", "prompt": "Two horses at the water"},
    {**IMGB, "name": "mane", "prompt": "A mane in the wind"},
)


def main() -> None:
    """Write the picture."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        raise SystemExit("there is no chromium or chromedriver: .ci/browser says what to install")
    with tempfile.TemporaryDirectory() as name:
        out, taken = Path(name, "stable"), Path(name, "taken.png")
        with LocalService(speed=20) as service, Client(service.api_key, service.base_url) as client:
            sheet = batch.run(client, ITEMS, out, local=True).sheet
        if sheet is None:
            raise SystemExit("the contact sheet could not be written")
        browser = open_browser(chromium, chromedriver, f"{name}/profile")
        try:
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            browser.get(sheet.absolute().as_uri())
            browser.execute_async_script(
                "const done = arguments[0], ready = [...document.querySelectorAll('img, video')]"
                ".filter(one => one.getBoundingClientRect().top < innerHeight)"
                ".map(one => new Promise(seen => one.complete || one.readyState > 3 ? seen() : "
                "(one.onload = one.oncanplaythrough = seen)));"
                "Promise.all(ready).then(() => setTimeout(done, 2000));"  # for controls to fade
            )
            browser.save_screenshot(str(taken))
        finally:
            browser.quit()
        with Image.open(taken) as picture:
            picture.convert("RGB").quantize(COLORS).save(PICTURE, optimize=True)
    print(PICTURE)  # noqa: T201  what it has done


if __name__ == "__main__":
    main()
