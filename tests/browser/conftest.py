"""The browser, and a service whose clock the tests set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from .stage import Stage
from .window import Window, open_browser

_SETTINGS = ("MUYBRIDGE_", "SE_")


@pytest.fixture(autouse=True, scope="session")
def _bare_environment() -> Iterator[None]:
    """Take proxies, and the settings of all software here, out of the environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(_SETTINGS) or name.upper().endswith("_PROXY"):
                environment.delenv(name)
        environment.setenv("SE_OFFLINE", "true")
        environment.setenv("SE_AVOID_STATS", "true")
        yield


@pytest.fixture(scope="session")
def driver(_bare_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """The browser, which is started once."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "there is no chromium: .ci/browser says what to install"
    assert chromedriver, "there is no chromedriver: .ci/browser says what to install"
    driver = open_browser(chromium, chromedriver, str(tmp_path_factory.mktemp("profile")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def window(driver: Chrome) -> Iterator[Window]:
    """The browser's window, empty; a test that uses it leaves nothing on the console unread."""
    window = Window(driver)
    window.open("about:blank")
    window.complaints()
    window.origins_asked()
    yield window
    window.emulate()
    complaints = window.complaints()
    window.open("about:blank")
    assert complaints == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A service whose time stands still but for the tests."""
    with Stage() as stage:
        yield stage


@pytest.fixture
def page(window: Window, stage: Stage) -> Iterator[Window]:
    """The page that shows the service's tasks; it asks nobody but the service for anything."""
    window.open(stage.base_url)
    yield window
    window.open("about:blank")  # before the service stops under it
    assert window.origins_asked() == {stage.base_url}
