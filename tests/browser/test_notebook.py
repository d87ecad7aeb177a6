"""Results as a notebook shows them: what IPython makes of them, in a page as a notebook has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import attrs
import pytest
import requests
from IPython.core.formatters import DisplayFormatter

from muybridge import Result
from muybridge_protocol.records.tasks import Task

from .stage import Stage
from .window import Window

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>'


class Sites:
    """A site with the notebook, and one with the files, each at an address of its own.

    Attributes:
        notebook: Where the notebook is.
        files: Where the files are.
        page: The notebook.
        held: The files by their paths.
        referrers: What requests for files said of where they came from.
    """

    def __init__(self) -> None:
        self.page = ""
        self.held: dict[str, tuple[str, bytes]] = {}
        self.referrers: dict[str, str | None] = {}
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler()) for _ in range(2)]
        self.notebook, self.files = (
            f"http://127.0.0.1:{server.server_port}" for server in self._servers
        )
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Close both sites."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sites = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/secret-notebook":
                    media_type, body = "text/html; charset=utf-8", sites.page.encode()
                else:
                    media_type, body = sites.held[self.path]
                    sites.referrers[self.path] = self.headers["Referer"]
                self.send_response(200)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def sites() -> Iterator[Sites]:
    """The two sites."""
    sites = Sites()
    yield sites
    sites.close()


def show(window: Window, sites: Sites, value: Result | Task) -> None:
    """Open a notebook in which *value* was evaluated."""
    formatter: Any = DisplayFormatter()
    bundle: dict[str, str] = formatter.format(value)[0]
    assert set(bundle) == {"text/plain", "text/html"}
    assert "signature" not in bundle["text/plain"]
    sites.page = (
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        f"<div id=before></div>{bundle['text/html']}<div id=after></div>"
    )
    window.open(f"{sites.notebook}/secret-notebook")


def file_of(stage: Stage, task_id: str) -> tuple[str, bytes]:
    """Return type and content of the file that a task has made."""
    headers = {"Authorization": f"Bearer {stage.api_key}"}
    record = requests.get(
        f"{stage.base_url}/v1/result/{task_id}", headers=headers, timeout=20
    ).json()
    reply = requests.get(record.get("image_url") or record["video_url"], timeout=20)
    return reply.headers["Content-Type"], reply.content


def test_a_picture(window: Window, stage: Stage, sites: Sites) -> None:
    """The picture is there, and its site is not told of the notebook."""
    task_id = stage.make("imga")
    stage.later()
    sites.held["/a.png?signature=x"] = file_of(stage, task_id)
    link = f"{sites.files}/a.png?signature=x"
    show(window, sites, Result(id=task_id, status="completed", family="imga", image_url=link))
    window.until(lambda: window.run("return document.querySelector('img').naturalWidth") == 1024)
    assert sites.referrers == {"/a.png?signature=x": None}
    assert window.origins_asked() == {sites.notebook, sites.files}
    assert task_id in window.text("table")
    assert "signature" not in window.text("body")


def test_a_video(window: Window, stage: Stage, sites: Sites) -> None:
    """The video plays; its site learns no more than that of the notebook, not its address."""
    task_id = stage.make("vidd", duration=2, resolution="540p")
    stage.later()
    sites.held["/a.mp4?signature=x"] = file_of(stage, task_id)
    link = f"{sites.files}/a.mp4?signature=x"
    show(window, sites, Result(id=task_id, status="completed", family="vidd", video_url=link))
    window.until(lambda: window.run("return document.querySelector('video').videoWidth") == 960)
    window.run("const film = document.querySelector('video'); film.muted = true; film.play()")
    window.until(lambda: window.run("return document.querySelector('video').currentTime") > 0.2)
    assert set(sites.referrers.values()) <= {None, f"{sites.notebook}/"}
    assert window.origins_asked() == {sites.notebook, sites.files}


@pytest.mark.parametrize("url", [None, f"javascript:{EVIL}"])
def test_markup_is_text(window: Window, sites: Sites, url: str | None) -> None:
    """Markup in every field runs nothing, loads nothing, and does not leave its place."""
    texts: dict[str, Any] = dict.fromkeys(("id", "status", "family", "model", "error"), EVIL)
    for value in (Result(**texts, image_url=url, video_url=url), Task(**texts)):
        show(window, sites, value)
        assert window.run("return document.body.children.length") == 3
        assert window.all("script, svg, img, video, [onerror]") == []
        assert window.text("table").count(EVIL) == len(texts)
        assert window.origins_asked() == {sites.notebook}


def test_markup_in_a_link_stays_there(window: Window, stage: Stage, sites: Sites) -> None:
    """Markup in a picture's link is a part of its path, runs nothing, and loads nothing else."""
    path = f"/{quote(EVIL, safe='/=()')}"
    task_id = stage.make("imga")
    stage.later()
    sites.held[path] = file_of(stage, task_id)
    link = f"{sites.files}/{EVIL}"
    show(window, sites, Result(id="task-1", status="completed", image_url=link))
    window.until(lambda: window.run("return document.querySelector('img').naturalWidth") == 1024)
    assert window.run("return document.body.children.length") == 3
    assert window.all("script, svg, [onerror]") == []
    assert set(sites.referrers) == {path}
    assert window.origins_asked() == {sites.notebook, sites.files}


def test_an_inner_network_is_not_asked(window: Window, sites: Sites) -> None:
    """An address of an inner network can be clicked on, and is not asked for anything before."""
    link = "http://192.168.1.1/reboot"
    value = Result(id="task-1", status="completed", image_url=link, video_url=link)
    show(window, sites, value)
    assert [found.get_attribute("href") for found in window.all("a")] == [link, link]
    assert window.origins_asked() == {sites.notebook}
    show(window, sites, attrs.evolve(value, image_url=None, video_url=None))
    assert window.all("a") == []
