"""The page that shows the tasks as they live, and the feed that it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests

from muybridge.local import LocalService
from muybridge.local.live import LONGEST_TEXT, MOST_SETTINGS, MOST_TASKS, Live
from muybridge_protocol.emulator import FAILURES, Access, Emulator, ServiceRequest
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.family import DAY
from muybridge_protocol.http import HttpResponse

KEY = "key-CANARY"
NOW = 1_760_000_000.25
HERE = "http://127.0.0.1:8000"


class Stage:
    """An emulator, its page, and a clock that stands still.

    Args:
        address: The address that the service listens on.
        public_url: Where clients reach it.
    """

    def __init__(self, address: str = "127.0.0.1", public_url: str = HERE) -> None:
        self.emulator = Emulator(keys={KEY: Access()}, public_url=public_url)
        self.live = Live(
            self.emulator, keys={KEY: Access()}, address=address, public_url=public_url
        )
        self.now = NOW
        self.made = 0

    def make(self, family: str, **body: Any) -> str:
        """Make a task, and return its id."""
        self.made += 1
        name = f"task-{self.made}"
        models = FAMILIES[family].models
        fields = {"model": models[0].name if models else family, "prompt": "a horse", **body}
        reply = self.emulator.handle(
            ServiceRequest(
                "POST",
                FAMILIES[family].create_path,
                (("Authorization", f"Bearer {KEY}"), ("Content-Type", "application/json")),
                json.dumps(fields).encode(),
            ),
            now=self.now,
            new_id=name,
        )
        assert reply.status == 200, reply.body
        return name

    def ask(
        self, path: str, *headers: tuple[str, str], method: str = "GET", host: str = "127.0.0.1"
    ) -> HttpResponse | None:
        """Ask for *path* by the name *host*."""
        return self.live.answer(method, path, (("Host", host), *headers), self.now)

    def feed(self, *headers: tuple[str, str]) -> dict[str, Any]:
        """Return what the feed says."""
        reply = self.ask("/live", *headers)
        assert reply is not None
        assert reply.status == 200
        assert KEY.encode() not in reply.body
        return json.loads(reply.body)

    def task(self) -> dict[str, Any]:
        """Return the newest task of the feed."""
        return self.feed()["tasks"][0]


@pytest.fixture
def stage() -> Stage:
    return Stage()


# What the feed says.


def test_no_task(stage: Stage) -> None:
    """Before anything was made, the feed is empty."""
    assert stage.feed() == {"count": 0, "tasks": []}


def test_a_task_as_it_is_made(stage: Stage) -> None:
    """A task has what was asked for, and none of what is not there yet."""
    stage.make("imga", size="4:3", image_urls=["https://example.com/a.png?signature=CANARY"])
    assert stage.feed() == {
        "count": 1,
        "tasks": [
            {
                "id": "task-1",
                "family": "imga",
                "media": "image",
                "model": "imga",
                "prompt": "a horse",
                "settings": [["size", "4:3"], ["image_urls", "1 item"]],
                "created": 1_760_000_000,
                "status": "queued",
                "progress": None,
                "error": None,
                "link": None,
                "expired": False,
            }
        ],
    }


def test_a_life_of_a_task(stage: Stage) -> None:
    """A task's state, progress and link are those of the moment; the link is on this origin."""
    stage.make("vidd")
    told: list[tuple[object, ...]] = []
    for seconds in (0, 3.9, 4, 17, 29.99, 30, DAY):
        stage.now = NOW + seconds
        task = stage.task()
        told.append((task["status"], task["progress"], task["link"], task["expired"]))
    assert told == [
        ("queued", None, None, False),
        ("queued", None, None, False),
        ("processing", 0.0, None, False),
        ("processing", 0.5, None, False),
        ("processing", 1.0, None, False),
        ("completed", None, "/media/task-1.mp4", False),
        ("completed", None, None, True),
    ]


def test_a_failure_is_told(stage: Stage) -> None:
    """A task that fails says why, once it has failed."""
    marker, error = next(iter(FAILURES.items()))
    stage.make("imga", prompt=f"a horse {marker}")
    assert (stage.task()["status"], stage.task()["error"]) == ("processing", None)
    stage.now += 60
    task = stage.task()
    assert (task["status"], task["error"], task["link"]) == ("failed", error, None)


def test_a_rejected_task_is_told(stage: Stage) -> None:
    """A task that failed before it began has its reason, and no progress."""
    stage.make("imgb", resolution="4k")
    task = stage.task()
    assert (task["status"], task["progress"]) == ("failed", None)
    assert "ratio" in task["error"]


def test_a_cancelled_task_is_told(stage: Stage) -> None:
    """A task that was cancelled says so, and is gone when its record is."""
    body = {"duration": 5, "aspect_ratio": "16:9", "resolution": "480p"}
    stage.make("vidsa", **body)
    stage.emulator.cancel("task-1", stage.now)
    assert stage.task()["status"] == "cancelled"
    stage.now += DAY + 1
    assert stage.feed() == {"count": 1, "tasks": []}


def test_the_newest_come_first(stage: Stage) -> None:
    """The newest task comes first, and of very many only the newest come."""
    for _ in range(MOST_TASKS + 3):
        stage.make("imga")
    feed = stage.feed()
    assert feed["count"] == MOST_TASKS + 3
    assert [task["id"] for task in feed["tasks"]] == [
        f"task-{number}" for number in range(MOST_TASKS + 3, 3, -1)
    ]


def test_a_request_is_read_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the feed is asked, a request of megabytes is read once."""
    stage.make("vidm", more="x" * 1_000)
    first = stage.feed()
    monkeypatch.setattr("muybridge_protocol.emulator.tasks.read_object", None)
    assert stage.feed() == first


def test_long_texts_are_cut(stage: Stage) -> None:
    """No prompt, name, setting or number of settings makes the feed large."""
    long = "<" * 1_000_000
    more = {f"field {number}": "y" * 10_000 for number in range(200)}
    stage.make("vidm", prompt=long, model=long, **{long: 1}, **more)
    task = stage.task()
    assert task["prompt"] == task["model"] == "<" * (LONGEST_TEXT - 3) + "..."
    assert len(task["settings"]) == MOST_SETTINGS
    assert len(json.dumps(task)) < 20_000


def test_any_text_can_be_told(stage: Stage) -> None:
    """Markup, control characters and zeros go through as they came."""
    odd = '</script><img src=x onerror=alert(1)>"\0\u202e\U0001f40e'
    stage.make("imga", prompt=odd)
    assert stage.task()["prompt"] == odd


# Who may see it.

LOCAL_NAMES = [
    "127.0.0.1",
    "127.0.0.1:8000",
    "localhost",
    "LOCALHOST:8000",
    "horse.localhost:8000",
    "[::1]",
    "[::1]:8000",
    "127.8.9.1:1",
]
OTHER_NAMES = [
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8000",
    "evil.example:127.0.0.1",
    "127.0.0.1@evil.example",
    "evil.example#127.0.0.1",
    "127.0.0.1, evil.example",
    "0.0.0.0:8000",
    "192.168.1.7:8000",
    "[::ffff:192.168.1.7]:8000",
    "[::1",
    "::1]:8000:1",
    "",
    ":8000",
]
PROXIES = [
    ("X-Forwarded-For", "203.0.113.9"),
    ("x-forwarded-host", "horses.example"),
    ("Forwarded", "for=203.0.113.9"),
    ("Via", "1.1 horses"),
    ("X-Real-IP", "203.0.113.9"),
]
GOOD_KEY = ("Authorization", f"Bearer {KEY}")
BAD_KEYS = [("Authorization", "Bearer nobody"), ("Authorization", KEY), ("Cookie", KEY)]


@pytest.mark.parametrize("host", LOCAL_NAMES)
def test_this_machine_needs_no_key(stage: Stage, host: str) -> None:
    """Who asks this machine by its own name gets page and feed without a key."""
    for path in ("/", "/live"):
        reply = stage.ask(path, host=host)
        assert reply is not None
        assert reply.status == 200


@pytest.mark.parametrize("host", OTHER_NAMES)
def test_another_name_needs_a_key(stage: Stage, host: str) -> None:
    """A name that somebody else made to lead to this machine gets neither page nor feed."""
    for path in ("/", "/live"):
        assert stage.ask(path, host=host) is None
        assert stage.ask(path, *BAD_KEYS, host=host) is None
    reply = stage.ask("/live", GOOD_KEY, host=host)
    assert reply is not None
    assert reply.status == 200


@pytest.mark.parametrize("host", [(), ("127.0.0.1", "evil.example"), ("127.0.0.1", "127.0.0.1")])
def test_a_request_names_one_host(stage: Stage, host: tuple[str, ...]) -> None:
    """No name, or more than one, is not this machine's."""
    named = tuple(("Host", name) for name in host)
    for path in ("/", "/live"):
        assert stage.live.answer("GET", path, named, NOW) is None


@pytest.mark.parametrize("header", PROXIES, ids=lambda header: header[0])
def test_a_proxy_is_not_this_machine(stage: Stage, header: tuple[str, str]) -> None:
    """What a proxy on this machine passes on comes from elsewhere."""
    for path in ("/", "/live"):
        assert stage.ask(path, header) is None


@pytest.mark.parametrize(
    ("address", "public_url"),
    [
        ("0.0.0.0", HERE),  # noqa: S104  the case in question
        ("::", HERE),
        ("192.168.1.7", "http://192.168.1.7:8000"),
        ("127.0.0.1", "https://media.example.com"),
    ],
)
def test_a_service_for_others_wants_the_key(address: str, public_url: str) -> None:
    """Where other machines may come, the page is for all and its feed for those with a key."""
    stage = Stage(address, public_url)
    for host in ("127.0.0.1", "localhost", "media.example.com"):
        page = stage.ask("/", host=host)
        assert page is not None
        assert page.status == 200
        assert stage.ask("/live", host=host) is None
        for bad in BAD_KEYS:
            assert stage.ask("/live", bad, host=host) is None
        assert stage.ask("/live", GOOD_KEY, host=host) is not None


def test_other_paths_are_left_alone(stage: Stage) -> None:
    """What only looks like the page or its feed is for the emulator."""
    for path in ("//", "/live/", "/LIVE", "/index.html", "", "/live.html", "/v1/result/task-1"):
        assert stage.ask(path, GOOD_KEY) is None


@pytest.mark.parametrize("path", ["/", "/live"])
def test_page_and_feed_are_only_read(stage: Stage, path: str) -> None:
    """Any other method gets 405, from those who may read; of others a key is wanted first."""
    for method in ("POST", "HEAD", "DELETE", "OPTIONS", "get"):
        reply = stage.ask(path, method=method)
        assert reply is not None
        assert (reply.status, reply.header("Allow")) == (405, "GET")
        assert stage.ask(path, method=method, host="evil.example") is None


def test_other_sites_may_not_read_the_feed(stage: Stage) -> None:
    """The feed is kept by no cache, taken for nothing but JSON, and for no other site."""
    reply = stage.ask("/live", ("Origin", "https://evil.example"))
    assert reply is not None
    headers = {name.lower(): value for name, value in reply.headers}
    assert headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }


# Over HTTP, and the page itself.


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=1000) as running:
        yield running


def get(
    service: LocalService, path: str, headers: Mapping[str, str] | None = None
) -> requests.Response:
    return requests.get(f"{service.base_url}{path}", headers=headers, timeout=20)


def test_the_feed_follows_the_service(service: LocalService) -> None:
    """What is created over HTTP stands in the feed, with a link that can be had."""
    headers = {"Authorization": f"Bearer {service.api_key}"}
    url = f"{service.base_url}/v1/imga/images"
    body = {"model": "imga", "prompt": "a horse"}
    made = requests.post(url, json=body, headers=headers, timeout=20).json()
    while True:
        task = get(service, "/live?x=1").json()["tasks"][0]
        assert task["id"] == made["id"]
        if task["link"]:
            break
    picture = get(service, task["link"])
    assert (picture.status_code, picture.headers["Content-Type"]) == (200, "image/png")


def test_a_name_that_leads_here_is_refused(service: LocalService) -> None:
    """Over HTTP, too, a site of another name gets 401 for page and feed."""
    for path in ("/", "/live"):
        assert get(service, path).status_code == 200
        reply = get(service, path, {"Host": "evil.example"})
        assert (reply.status_code, "prompt" in reply.text) == (401, False)


def test_a_service_on_every_address_wants_the_key() -> None:
    """A service that listens on every address serves its page, and the feed to its key alone."""
    with LocalService(host="0.0.0.0") as service:  # noqa: S104  the case in question
        assert get(service, "/").status_code == 200
        assert get(service, "/live").status_code == 401
        headers = {"Authorization": f"Bearer {service.api_key}"}
        assert get(service, "/live", headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_browser_may_run_nothing_else(service: LocalService, path: str) -> None:
    """A page's policy names its one script and style by their hashes, and no text makes another."""
    reply = get(service, path)
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src 'sha256-[^']+';", policy)
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    for element in ("<script", "</script>", "<style", "</style>"):
        assert reply.text.count(element) == 1
    assert re.findall(r"\s(?:on[a-z]+|style)=|innerHTML|outerHTML|insertAdjacent", reply.text) == []


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_names_no_other_address(service: LocalService, path: str) -> None:
    """A page holds no address but its own paths, and no key."""
    page = get(service, path).text
    assert re.findall(r"(?:https?:)?//[a-z]", page) == []
    assert service.api_key not in page
