"""The page on which to try every endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from selenium.webdriver.support.select import Select

from .stage import Stage
from .window import Window


@pytest.fixture(params=["127.0.0.1", "localhost"])
def form(window: Window, stage: Stage, request: pytest.FixtureRequest) -> Iterator[Window]:
    """The page, asked for by each name of this machine; it asks nobody else for anything."""
    url = stage.base_url.replace("127.0.0.1", request.param)
    window.open(f"{url}/docs")
    window.until(lambda: window.all("#endpoint option"))
    window.one("#key").send_keys(stage.api_key)
    yield window
    window.open("about:blank")  # before the service stops under it
    assert window.origins_asked() == {url}


def choose(form: Window, operation: str) -> None:
    """Choose an endpoint."""
    Select(form.one("#endpoint")).select_by_value(operation)


def send(form: Window) -> str:
    """Send what stands in the form, and return the status line."""
    form.one("form button:not([type])").click()
    form.until(lambda: re.match(r"[0-9]{3} ", form.text("#response")))
    return form.text("#response").splitlines()[0]


@pytest.mark.parametrize(
    ("operation", "loaded"),
    [
        ("create_imga", "return document.querySelector('#media img')?.naturalWidth > 0"),
        ("create_vidd", "return document.querySelector('#media video')?.videoWidth > 0"),
    ],
    ids=["picture", "video"],
)
def test_a_task_made_here_appears_there(
    form: Window, stage: Stage, operation: str, loaded: str
) -> None:
    """A task made with the form shows its result here, and itself on the page of all tasks."""
    choose(form, operation)
    body = json.loads(form.one("#body").get_attribute("value") or "")
    body["prompt"] = "made with the form"
    form.run("document.querySelector('#body').value = arguments[0]", json.dumps(body))
    assert send(form).startswith("200")
    stage.later()
    form.one("#follow").click()
    form.until(lambda: '"completed"' in form.text("#response"))
    form.until(lambda: form.run(loaded))
    form.one("a[href='/']").click()
    form.until(lambda: form.all("article.completed"))
    assert form.text(".prompt") == "made with the form"
    form.until(lambda: form.run(loaded.replace("#media", "article")))


def test_a_wrong_key_is_told(form: Window) -> None:
    """With a wrong key the response is what the service answers."""
    form.one("#key").send_keys("x")
    choose(form, "create_imga")
    assert send(form).startswith("401")
    assert all("401" in complaint for complaint in form.complaints())


def test_the_fields_of_a_request_are_listed(form: Window) -> None:
    """Beside the example stand the request's fields, with values, defaults and what they mean."""
    choose(form, "create_imgb")
    listed = form.text("#fields")
    assert listed.startswith('model required "imgb-2", "imgb-2-r"\nThe model.')
    assert 'quality "low", "medium", "high"; default "low"' in listed
    assert "image_urls list of string" in listed
    choose(form, "get_result")
    assert not form.shows("#reference")


def test_no_page_shows_markdown(form: Window) -> None:
    """What descriptions have between backticks is shown as code, on every endpoint."""
    names = [str(one.get_attribute("value")) for one in form.all("#endpoint option")]
    shown = ""
    for name in names:
        choose(form, name)
        shown += form.text("form")
    assert "`" not in shown
