"""What a notebook and rich's terminal show of a task, a result and a request."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
import rich.console
import rich.pretty
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

import muybridge_protocol
from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.families import ImgbRequest, VidsbRequest
from muybridge_protocol.hosts import has_public_name, is_loopback, is_public_host
from muybridge_protocol.iri import ascii_url
from muybridge_protocol.records.tasks import Result, Status, Task
from muybridge_protocol.service import origin_of

SIGNED = "https://cdn.example.com/a/b.png?expires=1&signature=CANARY"
FILM = "https://cdn.example.com/a/b.mp4?signature=CANARY"
CREATED = 1_760_000_000

PICTURE = Result(
    id="task-1",
    status=Status.COMPLETED,
    family="imgb",
    model="imgb-2",
    object="image.generation",
    created=CREATED,
    image_url=SIGNED,
    raw={"secret_of_the_record": 1},
)
VIDEO = Result(
    id="task-2",
    status=Status.COMPLETED,
    family="vidsb",
    model="vidsb_2_0_pro",
    created=CREATED,
    video_url=FILM,
    actual_duration=4.5,
    total_tokens=1234,
)
FAILED = Result(id="task-3", status=Status.FAILED, family="vidr", error="<the> content policy & co")
SHOWN: dict[str, Task | Result] = {
    "picture": PICTURE,
    "video": VIDEO,
    "failed": FAILED,
    "queued": Result(id="task-4", status=Status.QUEUED, family="vidv", model="vidv", created=1),
    "unknown status": Result(id="task-5", status="having a rest"),
    "completed without a link": Result(id="task-6", status=Status.COMPLETED, family="imga"),
    "no retention": attrs.evolve(PICTURE, family="imga"),
    "inner network": attrs.evolve(PICTURE, image_url="http://10.0.0.8/a.png?signature=CANARY"),
    "no address": attrs.evolve(PICTURE, image_url="javascript:alert(1)"),
    "task": Task(
        id="task-7",
        family="vidsb",
        model="vidsb_2_0",
        requested_model="vidsb_2_0_fast",
        status=Status.QUEUED,
        created=CREATED,
        submitted_at=CREATED + 0.5,
    ),
    "bare task": Task(id="task-8"),
}

ALLOWED = {
    "div": {"style"},
    "p": set[str](),
    "table": set[str](),
    "tr": set[str](),
    "th": {"scope", "style"},
    "td": {"style"},
    "bdi": set[str](),
    "a": {"href", "referrerpolicy", "rel", "target"},
    "img": {"src", "alt", "referrerpolicy", "style"},
    "video": {"src", "controls", "preload", "aria-label", "style"},
}
"""The elements and attributes that there may be at all."""


class Page(HTMLParser):
    """What a browser makes of a piece of HTML.

    Attributes:
        elements: Each element with its attributes.
        text: All text between them.
        open: The elements that were not closed.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the element and the address of each link."""
        for tag, found in self.elements:
            for name in ("src", "href"):
                if name in found:
                    yield tag, found[name] or ""


def html_of(value: Any) -> str:
    """Return the HTML that a notebook asks *value* for."""
    return value._repr_html_()


def page_of(value: Task | Result) -> Page:
    """Return what *value* shows, having checked that it is made of nothing but what it may be."""
    html = html_of(value)
    html.encode()
    page = Page(html)
    assert page.open == []
    for tag, found in page.elements:
        assert set(found) <= ALLOWED[tag]
        assert "url(" not in (found.get("style") or "")
        if tag in ("a", "img"):
            assert found["referrerpolicy"] == "no-referrer"
        if tag == "a":
            assert set((found["rel"] or "").split()) == {"noopener", "noreferrer"}
    return page


@pytest.mark.parametrize("name", SHOWN)
def test_as_html(name: str, snapshot: SnapshotAssertion) -> None:
    """The HTML of a task or result is as it was."""
    page_of(SHOWN[name])
    assert html_of(SHOWN[name]).replace("><", ">\n<") == snapshot


def test_a_picture_is_shown() -> None:
    """The picture is loaded by its whole link, which the text beside shows without the query."""
    page = page_of(PICTURE)
    assert list(page.links()) == [("img", SIGNED), ("a", SIGNED)]
    assert "CANARY" not in page.text
    assert "until 2025-10-10 08:53:20 UTC" in page.text


def test_a_video_can_be_played() -> None:
    """A video has its controls, and its length and tokens next to it."""
    page = page_of(VIDEO)
    assert list(page.links()) == [("video", FILM), ("a", FILM)]
    (video,) = (found for tag, found in page.elements if tag == "video")
    assert "controls" in video
    assert "4.5 s" in page.text
    assert "1234" in page.text


def test_what_went_wrong_is_shown() -> None:
    """Status and error stand there as the service gave them."""
    assert "failed" in page_of(FAILED).text
    assert "<the> content policy & co" in page_of(FAILED).text


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt://example.com/%0aalert(1)",
        "data:text/html,<script>alert(1)</script>",
        "data:image/png;base64,iVBORw0KGgo=",
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "//example.com/a.png",
        "/a.png",
        "https:",
        "https://",
        "https://user:password@example.com/a.png",
        "https://example.com\\@evil.example/a.png",
        "\0https://example.com/",
        "\ud800",
    ],
)
@pytest.mark.parametrize("field", ["image_url", "video_url"])
def test_what_is_no_address_is_not_linked(field: str, url: str) -> None:
    """A link that is not a sound http(s) address is not loaded, linked or shown."""
    link: dict[str, Any] = {field: url}
    page = page_of(Result(id="task-1", status="completed", **link))
    assert list(page.links()) == []
    assert "is not an http(s) address" in page.text
    assert "alert" not in page.text


@pytest.mark.parametrize(
    ("url", "link"),
    [
        (" https://example.com/a.png", "https://example.com/a.png"),
        ("https://example.com/a b.png", "https://example.com/a%20b.png"),
        ("https://b\u00fccher.de/\u00e4.png", "https://xn--bcher-kva.de/%C3%A4.png"),
    ],
)
def test_a_link_is_encoded(url: str, link: str) -> None:
    """A link beyond ASCII, or with spaces, is linked as it is fetched."""
    page = page_of(Result(id="task-1", status="completed", image_url=url))
    assert {found for _, found in page.links()} == {link}


@pytest.mark.parametrize(
    ("url", "loaded"),
    [
        ("https://cdn.example.com/a.png", True),
        ("HTTPS://CDN.EXAMPLE.COM/a.png", True),
        ("http://127.0.0.1:8000/media/a.png", True),
        ("http://localhost:8000/media/a.png", True),
        ("http://[::1]:8000/media/a.png", True),
        ("http://cdn.example.com/a.png", False),
        ("http://192.168.1.1/reboot?now=1", False),
        ("https://192.168.1.1/reboot?now=1", False),
        ("https://printer.local/", False),
        ("http://169.254.169.254/latest", False),
        ("https://2130706433/", False),
        ("https://93.184.215.14/a.png", True),
        ("https://[2606:2800:21f:cb07::1]/a.png", True),
        ("https://[fd00::1]/a.png", False),
    ],
)
def test_inner_networks_are_not_visited(url: str, *, loaded: bool) -> None:
    """What is neither https on a public host nor this machine is not loaded automatically."""
    for field, tag in (("image_url", "img"), ("video_url", "video")):
        link: dict[str, Any] = {field: url}
        page = page_of(Result(id="task-1", status="completed", **link))
        assert list(page.links()) == ([(tag, url)] if loaded else []) + [("a", url)]
        assert ("not loaded automatically" in page.text) is not loaded


@pytest.mark.parametrize(
    ("host", "loaded"),
    [
        ("cdn.example.com", True),
        ("cdn.example.com.", True),
        ("lan.example.com", True),
        ("home.example.com", True),
        ("mylan.com", True),
        ("atlan.wlan", True),
        ("cdn.arpa", True),
        ("router", False),
        ("ROUTER.", False),
        ("lan", False),
        ("router.lan", False),
        ("Router.LAN.", False),
        ("a.b.lan", False),
        ("nas.home", False),
        ("intranet.corp", False),
        ("home.arpa", False),
        ("x.home.arpa", False),
        ("printer.localdomain", False),
        ("x.intranet", False),
        ("foo.test", False),
        ("fritz.box", False),
        ("cdn.example", False),
        ("cdn.invalid", False),
        ("printer.local", False),
        ("x.internal", False),
    ],
)
def test_names_of_inner_networks_are_not_visited(host: str, *, loaded: bool) -> None:
    """A name without a dot, or of a domain for inner networks and tests, is there to click on."""
    url = f"https://{host}/reboot?now=1"
    page = page_of(Result(id="task-1", status="completed", image_url=url))
    assert list(page.links()) == ([("img", url)] if loaded else []) + [("a", url)]
    assert ("not loaded automatically" in page.text) is not loaded


def test_a_host_that_is_none_is_no_link() -> None:
    """An address that nothing can visit is not there to click on."""
    page = page_of(Result(id="task-1", status="completed", image_url="https://.router/?now=1"))
    assert [*page.links()] == []


def test_names_are_judged_more_strictly_than_for_a_download() -> None:
    """A driver sees what a name resolves to, so that names of inner networks are its to judge."""
    for host in ("router", "Router.LAN", "x.home.arpa", "cdn.test"):
        assert is_public_host(host)
        assert not has_public_name(host)


EVIL = '<script>alert("&#39;")</script>\'"><img src=x onerror=alert(1)>\u202e\0\ud800\n--></td>&lt;'
TEXTS = [
    (kind, field.name)
    for kind in (Task, Result)
    for field in attrs.fields(kind)
    if "str" in str(field.type)
]


@pytest.mark.parametrize(("kind", "field"), TEXTS, ids=lambda part: getattr(part, "__name__", part))
def test_every_field_is_escaped(kind: type[Task | Result], field: str) -> None:
    """Markup in any field is shown as the text that it is."""
    fields: dict[str, Any] = {"id": "task-1", "status": "completed", field: f"CANARY{EVIL}"}
    page = page_of(kind(**fields))
    assert not any("onerror" in found or tag == "script" for tag, found in page.elements)
    if field not in ("object", "raw", "image_url", "video_url"):
        assert 'CANARY<script>alert("&#39;")</script>' in page.text
        assert "\u202e" not in page.text


@pytest.mark.parametrize("created", [10**30, -(10**30), 2**63, -(2**62), 0])
def test_any_time_can_be_shown(created: int) -> None:
    """A time that no calendar has is shown as the number it is."""
    assert (
        "created" in page_of(Result(id="t", status="queued", family="imgb", created=created)).text
    )
    assert "created" in page_of(Task(id="t", created=created, submitted_at=float(created))).text


def test_a_long_text_is_cut() -> None:
    """A service that answers with megabytes does not fill the notebook."""
    assert len(html_of(attrs.evolve(FAILED, error="<" * 1_000_000))) < 20_000


any_text = st.text(max_size=30) | st.sampled_from([EVIL, "", "</bdi>", "&quot;", "]]>", "<!--"])
any_link = (
    any_text
    | st.sampled_from([SIGNED, "http://127.0.0.1:1/x", "javascript:x", "http://10.0.0.1/"])
    | st.builds("https://{}".format, any_text)
    | st.builds("https://example.com/{}".format, any_text)
)
any_number = st.none() | st.integers() | st.floats()
tasks = st.builds(
    Task, id=any_text, family=any_text, model=any_text, requested_model=any_text, status=any_text,
    created=st.none() | st.integers(), error=st.none() | any_text,
    submitted_at=st.none() | st.floats(),
)  # fmt: skip
results = st.builds(
    Result, id=any_text, status=any_text, family=any_text | st.just("imgb"), model=any_text,
    created=st.none() | st.integers(), image_url=st.none() | any_link,
    video_url=st.none() | any_link, actual_duration=any_number, total_tokens=any_number,
    error=st.none() | any_text,
)  # fmt: skip


@given(value=tasks | results)
def test_whatever_the_service_said(value: Task | Result) -> None:
    """Whatever stands in a record, the HTML has its own elements and the record's links alone."""
    page = page_of(value)
    given_links = () if isinstance(value, Task) else (value.image_url, value.video_url)
    sent: set[str] = set()
    for given_link in filter(None, given_links):
        with suppress(InvalidAddress):
            sent.add(ascii_url(given_link))
    for tag, link in page.links():
        assert link in sent
        assert urlsplit(link).scheme in ("http", "https")
        scheme, host, _ = origin_of(link)
        assert tag == "a" or is_loopback(host) or (scheme == "https" and has_public_name(host))


def printed(value: object, width: int = 200) -> str:
    """Return what rich prints of *value*."""
    console = rich.console.Console(file=io.StringIO(), width=width)
    console.print(rich.pretty.Pretty(value))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", SHOWN)
def test_as_rich_prints_it(name: str) -> None:
    """Rich prints what `repr` shows, and no link's query."""
    value = SHOWN[name]
    assert printed(value, 10_000).strip() == repr(value)
    assert "CANARY" not in printed(value)


def test_requests_as_rich_prints_them() -> None:
    """Of a request, rich prints what was set."""
    request = ImgbRequest(model="imgb-2", prompt="a horse", extra={"seed": 7})
    assert printed(request).strip() == (
        "ImgbRequest(model='imgb-2', prompt='a horse', extra={'seed': 7})"
    )
    silent = VidsbRequest(model="vidsb_2_0_pro", prompt="a horse", generate_audio=False)
    assert "generate_audio=False" in printed(silent)
    assert "None" not in printed(silent)
    assert "extra" not in printed(silent)


def test_nothing_is_loaded_before_it_is_shown() -> None:
    """The tasks' module loads neither what shows them, nor rich, nor IPython."""
    homes = [str(Path(muybridge_protocol.__file__).parent.parent)]
    code = f"""
import json, sys
sys.path[:0] = {homes!r}
import muybridge_protocol.records.tasks
before = sorted(sys.modules)
muybridge_protocol.records.tasks.Result(id="t", status="queued")._repr_html_()
print(json.dumps([before, sorted(sys.modules)]))
"""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    before, after = (set(names) for names in json.loads(done.stdout))
    assert "muybridge_protocol.notebook" not in before
    assert "muybridge_protocol.notebook" in after
    assert not [name for name in after if re.match(r"rich|IPython|pygments", name)]
