"""A window of the browser: what stands in it, and what it has asked the network for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE = 60
"""Seconds after which something that does not come is taken never to come."""

REBOUND = "rebound.test"
"""A name that leads to this machine, as a hostile site's would after DNS rebinding."""

# No other name leads anywhere.
_NAMES = f"MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,1000",
    f"--host-resolver-rules={_NAMES}",
)


def open_browser(chromium: str, chromedriver: str, profile: str) -> Chrome:
    """Start the browser.

    Args:
        chromium: Its path.
        chromedriver: The path of what drives it. Nothing is downloaded.
        profile: A new folder for what it keeps.
    """
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Chrome(options=options, service=Service(chromedriver))


class Window:
    """The browser's window.

    Args:
        driver: The browser.
    """

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Go to *url*."""
        self.driver.get(url)

    def all(self, css: str) -> list[WebElement]:
        """Return the elements that *css* selects."""
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def count(self, css: str) -> int:
        """Return how many elements *css* selects."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", css))

    def one(self, css: str) -> WebElement:
        """Return the one element that *css* selects, once it is there."""
        self.until(lambda: self.count(css) == 1, css)
        return self.all(css)[0]

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what *script* returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def text(self, css: str) -> str:
        """Return the text that is seen in the one element that *css* selects."""
        return self.one(css).text

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until *condition* holds."""
        WebDriverWait(self.driver, PATIENCE, poll_frequency=0.05).until(
            lambda _: condition(), f"{what} did not come"
        )

    def shows(self, css: str) -> bool:
        """Whether the one element that *css* selects is to be seen."""
        return self.one(css).is_displayed()

    def emulate(self, **features: str) -> None:
        """Let the page believe that its reader prefers *features*, or else nothing."""
        told = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})

    def complaints(self) -> list[str]:
        """Return what the console has said since it was last asked: errors, refused loads."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def origins_asked(self) -> set[str]:
        """Return where requests went since it was last asked, refused ones included."""
        asked: set[str] = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme not in ("data", "about", "blob"):
                    asked.add(f"{url.scheme}://{url.netloc}")
        return asked
