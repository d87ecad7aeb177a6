"""The page that shows the tasks as they live."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.keys import Keys

from muybridge.local.live import MOST_TASKS
from muybridge_protocol.emulator import FAILURES
from muybridge_protocol.families.family import DAY

from .stage import Stage
from .window import REBOUND, Window

KEPT = """
return [
  document.documentElement.outerHTML, document.cookie, location.href,
  JSON.stringify(localStorage), JSON.stringify(sessionStorage),
].join();
"""
READ = """
const [direct, done] = arguments;
const read = url => fetch(url).then(reply => reply.text(), error => String(error));
Promise.all(["/live", direct + "/live"].map(read)).then(done);
"""
PLAYS = """
const film = document.querySelector("video");
return !film.paused && film.played.length > 0 && film.played.end(0) > 0.2;
"""


def test_an_empty_page(page: Window) -> None:
    """Before a task was made, the page says how to make one."""
    page.until(lambda: page.shows("#none"))
    assert "No task has been made yet" in page.text("#none")
    assert "waits for requests to http://127.0.0.1:" in page.text("#none")
    assert page.all("#tasks > li") == []
    assert not page.shows("#stopped")
    assert not page.shows("#knock")
    assert not page.shows("#filters")


def test_a_picture_from_queued_to_completed(page: Window, stage: Stage) -> None:
    """A task appears by itself, tells how far it is, and ends as a picture that is really there."""
    stage.make("imga", size="4:3", image_urls=["https://example.com/a.png"])
    page.until(lambda: page.text(".state") == "queued")
    assert page.text(".prompt") == "a horse"
    assert page.text(".model") == "imga"
    assert page.one("progress").accessible_name == "The picture waits"
    stage.later(3)
    page.until(lambda: page.text(".state") == "processing")
    assert page.one("progress").accessible_name == "The picture is being made"
    page.until(lambda: page.run("return document.querySelector('progress').value") == 0.5)
    assert page.driver.title.startswith("1 running")
    stage.later(3)
    page.until(lambda: page.text(".state") == "completed")
    page.until(lambda: page.run("return document.querySelector('img')?.naturalWidth") == 1024)
    assert page.run("return document.querySelector('img').naturalHeight") == 768
    assert page.one("img").accessible_name == "The picture made of: a horse"
    assert page.one(".plate a").get_attribute("href") == page.one("img").get_attribute("src")
    page.until(lambda: page.shows("img"))
    assert page.run("return document.querySelector('#told').textContent") == "completed: a horse"
    assert page.driver.title.startswith("Muybridge")


def test_a_video_plays_on(page: Window, stage: Stage) -> None:
    """A video has its size and length, plays, and plays on while other tasks come and end."""
    stage.make("vidd", duration=6, resolution="540p")
    stage.later()
    page.until(lambda: page.run("return document.querySelector('video')?.videoWidth") == 960)
    assert page.run("return document.querySelector('video').duration") == pytest.approx(6, abs=0.1)
    assert page.run("return document.querySelector('video').controls") is True
    page.run("""
        const film = window.film = document.querySelector("video");
        film.muted = true;
        film.play();
        film.focus();
    """)
    page.until(lambda: page.run(PLAYS))
    stage.make("imga", prompt="another horse")
    page.until(lambda: page.count("article") == 2)
    stage.later()
    page.until(lambda: [state.text for state in page.all(".state")] == ["completed"] * 2)
    assert page.run("return window.film === document.querySelector('video')") is True
    assert page.run("return window.film === document.activeElement") is True
    assert page.run(PLAYS) is True


@pytest.mark.parametrize(("marker", "error"), FAILURES.items(), ids=range(len(FAILURES)))
def test_a_failure(page: Window, stage: Stage, marker: str, error: str) -> None:
    """A task that failed says why."""
    stage.make("vidr", prompt=f"a horse {marker}", duration=4)
    stage.later()
    page.until(lambda: page.text(".state") == "failed")
    assert page.text(".plate") == error
    assert page.all("img, video, progress") == []


def test_a_cancelled_task(page: Window, stage: Stage) -> None:
    """A task that was cancelled says so."""
    stage.cancel(stage.make("vidsa"))
    page.until(lambda: page.text(".state") == "cancelled")
    assert page.text(".plate") == "The task was cancelled."


def test_a_result_that_is_kept_no_longer(page: Window, stage: Stage) -> None:
    """When a file is deleted, its picture gives way to a sentence."""
    stage.make("imga")
    stage.later()
    page.until(lambda: page.run("return document.querySelector('img')?.naturalWidth"))
    stage.later(DAY)
    page.until(lambda: page.text(".plate") == "The file is kept no longer.")


def test_markup_is_text(page: Window, stage: Stage) -> None:
    """A prompt, a setting and an error of markup are seen as they were written."""
    evil = "<img src=x onerror=alert(1)></h2><script>alert(2)</script>&lt;b&gt;"
    marker, error = next(iter(FAILURES.items()))
    stage.make("vidm", prompt=f"{evil} {marker}", model=evil, **{evil: evil})
    stage.later()
    page.until(lambda: page.all(".plate p"))
    assert page.text(".prompt") == f"{evil} {marker}"
    assert page.text(".model") == evil
    assert page.text(".plate") == error
    page.one("summary").click()
    assert evil in page.text("dl")
    assert page.all("article img, article script, article b") == []


def test_hundreds_of_tasks(page: Window, stage: Stage) -> None:
    """Two hundred tasks are there, the newest first; pictures come only as they are looked at."""
    for number in range(200):
        stage.make("imga", prompt=f"horse {number}")
    page.until(lambda: page.count("article") == 200)
    assert page.text("li:first-child .prompt") == "horse 199"
    stage.later()
    page.until(lambda: page.count("article.completed") == 200)
    loaded = "return [...document.images].filter(picture => picture.naturalWidth).length"
    page.until(lambda: page.run(loaded) >= 3)
    assert page.run("return [...document.images].filter(({ src }) => src).length") < 60
    page.run("document.querySelector('li:last-child').scrollIntoView()")
    last = "return document.querySelector('li:last-child img').naturalWidth"
    page.until(lambda: page.run(last) > 0)
    assert not page.shows("#more")


def test_only_the_newest_of_very_many(page: Window, stage: Stage) -> None:
    """Of more tasks than the page can hold, it has the newest and says so."""
    for number in range(MOST_TASKS):
        stage.make("vidv", prompt=f"horse {number}")
    page.until(lambda: page.count("li > article") == MOST_TASKS)
    stage.make("vidv", prompt="one more")
    page.until(lambda: page.text("li:first-child .prompt") == "one more")
    assert page.count("li > article") == MOST_TASKS
    assert page.run("return cards.size") == MOST_TASKS  # and it keeps no others
    assert page.text("#more") == f"These are the newest {MOST_TASKS} of {MOST_TASKS + 1} tasks."


def test_tasks_of_one_state(page: Window, stage: Stage) -> None:
    """With the keyboard alone, the tasks of one state are shown, and then all again."""
    stage.make("imga", prompt=f"this one fails {next(iter(FAILURES))}")
    stage.make("imga", prompt="a horse")
    stage.later()
    stage.make("imga", prompt="a cat")
    page.until(lambda: page.count("article") == 3)

    def shown() -> list[str]:
        return [prompt.text for prompt in page.all(".prompt") if prompt.is_displayed()]

    page.until(lambda: page.text("button[value=failed]") == "failed1")
    page.one("button[value=failed]").send_keys(Keys.ENTER)
    assert [prompt.split(" [")[0] for prompt in shown()] == ["this one fails"]
    assert page.one("button[value=failed]").get_attribute("aria-pressed") == "true"
    page.one("button[value=completed]").send_keys(Keys.SPACE)
    assert shown() == ["a horse"]
    page.one("button[value='']").send_keys(Keys.ENTER)
    assert len(shown()) == 3


def test_a_file_that_cannot_be_had(
    page: Window, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture that cannot be loaded says so, and comes when it is asked for again."""
    with monkeypatch.context() as patch:
        patch.setattr("muybridge.local.result_files.render_png", None)
        stage.make("imga")
        stage.later()
        page.until(lambda: "It could not be loaded." in page.text(".plate"))
    assert any("503" in complaint for complaint in page.complaints())
    page.one(".plate button").click()
    page.until(lambda: page.run("return document.querySelector('img')?.naturalWidth") == 1024)


def test_the_service_stops_and_comes_back(window: Window) -> None:
    """When the service has stopped the page says so, and goes on when it is back."""
    with Stage() as first:
        first.make("imga", prompt="before")
        window.open(first.base_url)
        window.until(lambda: window.text(".prompt") == "before")
        port = int(first.base_url.rpartition(":")[2])
    window.until(lambda: window.shows("#stopped"))
    assert "The service has stopped." in window.text("#stopped")
    assert window.text(".prompt") == "before"
    assert any("ERR_CONNECTION_REFUSED" in complaint for complaint in window.complaints())
    with Stage(port=port) as second:
        window.until(lambda: not window.shows("#stopped"))
        window.until(lambda: window.shows("#none"))
        second.make("imga", prompt="after")
        window.until(lambda: window.all(".prompt") and window.text(".prompt") == "after")
        window.complaints()
        window.open("about:blank")


def test_one_question_at_a_time(page: Window) -> None:
    """However often the page is hidden and shown again, it asks once and waits for the answer."""
    page.until(lambda: page.shows("#none"))
    page.run("""
        window.asked = 0;
        window.fetch = () => {
          window.asked += 1;
          return new Promise(() => {});
        };
    """)
    page.until(lambda: page.run("return window.asked"))
    page.run("for (let i = 0; i < 9; i++) document.dispatchEvent(new Event('visibilitychange'))")
    assert page.run("return window.asked") == 1


def test_a_service_for_others_wants_its_key(window: Window) -> None:
    """Where other machines can come, tasks are shown to those with the key, which stays unseen."""
    with Stage(host="0.0.0.0") as stage:  # noqa: S104  the case in question
        stage.make("imga", prompt="a secret horse")
        window.open(stage.base_url)
        window.until(lambda: window.shows("#knock"))
        assert window.all("article") == []
        window.one("#key").send_keys("wrong", Keys.ENTER)
        window.until(lambda: window.shows("#refused"))
        assert any("401" in complaint for complaint in window.complaints())
        window.one("#key").clear()
        window.one("#key").send_keys(stage.api_key, Keys.ENTER)
        window.until(lambda: window.all("article"))
        assert window.text(".prompt") == "a secret horse"
        assert not window.shows("#knock")
        assert stage.api_key not in window.run(KEPT)
        window.open("about:blank")


def test_a_name_that_leads_here(window: Window, stage: Stage) -> None:
    """A hostile site whose name leads to this machine is shown no task, and can read none."""
    stage.make("imga", prompt="a secret horse")
    other = stage.base_url.replace("127.0.0.1", REBOUND)
    window.open(other)
    assert "unauthorized" in window.text("body")
    window.driver.set_script_timeout(20)
    own, direct = window.driver.execute_async_script(READ, stage.base_url)
    assert "unauthorized" in own
    assert "TypeError" in direct
    assert "secret" not in own + direct
    assert window.complaints()


def _luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"[0-9]+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


SEEN = """
const behind = element => {
  for (; element; element = element.parentElement) {
    const { backgroundColor } = getComputedStyle(element);
    if (backgroundColor !== "rgba(0, 0, 0, 0)") return backgroundColor;
  }
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = [];
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  const name = element.className || element.localName;
  seen.push([name, getComputedStyle(element).color, behind(element)]);
}
return seen;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(page: Window, stage: Stage, scheme: str) -> None:
    """In light and in dark, every text stands out from what is behind it by 4.5 to 1."""
    page.emulate(prefers_color_scheme=scheme)
    stage.make("imga", prompt=f"this one fails {next(iter(FAILURES))}")
    stage.make("imga")
    stage.later()
    stage.make("vidv")
    page.until(lambda: page.count("article") == 3)
    page.one("li:first-child summary").click()
    page.run("for (const id of ['stopped', 'knock']) document.getElementById(id).hidden = false")
    seen = page.run(SEEN)
    assert {"state", "prompt", "model", "b", "dt", "h1", "strong"} <= {name for name, _, _ in seen}
    dim = []
    for name, colour, behind in seen:
        darker, lighter = sorted((_luminance(colour), _luminance(behind)))
        if (lighter + 0.05) / (darker + 0.05) < 4.5:
            dim.append((name, colour, behind))
    assert dim == []
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (_luminance(paper) < 0.1) is (scheme == "dark")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_motion_can_be_turned_off(page: Window, stage: Stage, motion: str) -> None:
    """Who prefers little motion is shown none."""
    page.emulate(prefers_reduced_motion=motion)
    stage.make("imga")
    page.until(lambda: page.count("article.processing") == 1)
    stage.make("imga")
    stage.later(1)
    page.until(lambda: page.count("article.processing") == 2)
    page.until(lambda: page.run("return document.querySelector('progress').value") > 0)
    moving = "return document.getAnimations().length"
    assert (page.run(moving) == 0) is (motion == "reduce")


def test_what_a_screen_reader_hears(page: Window, stage: Stage) -> None:
    """Tasks are a list of articles, each named by its prompt; the filters have a name, too."""
    stage.make("imga", prompt="a horse")
    stage.later()
    page.until(lambda: page.all("article.completed"))
    assert page.one("#tasks").aria_role == "list"
    assert page.one("#tasks").accessible_name == "Tasks, the newest first"
    assert (page.one("article").aria_role, page.one("article").accessible_name) == (
        "article",
        "a horse",
    )
    assert page.one("#filters").accessible_name == "Show tasks that are"
    assert page.one("#told").aria_role == "status"
    assert page.run("return document.documentElement.lang") == "en"


def test_a_narrow_window(page: Window, stage: Stage) -> None:
    """On a telephone, nothing sticks out to the side."""
    stage.make("imga", prompt="horse" * 100)
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 320, "height": 600, "deviceScaleFactor": 1, "mobile": True},
    )
    page.until(lambda: page.all("article"))
    page.one("summary").click()
    wide = page.run("return document.documentElement.scrollWidth")
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 320
