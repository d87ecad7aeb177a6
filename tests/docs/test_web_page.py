"""The web application of the docs, on a real server."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID

import pytest

from processes import environment

PAGE = Path(__file__).parents[2] / "docs" / "web.md"
PATIENCE = 30
WANTED = {"prompt": "a horse", "order": str(UUID(int=1))}


class Service(ThreadingHTTPServer):
    """The paid service: it counts creates, and responds to one when it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.created: list[str] = []
        self.arrived = threading.Semaphore(0)
        self.may_respond = threading.Event()
        self.may_respond.set()
        self.may_complete = True

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    @property
    def service(self) -> Service:
        """Return the service."""
        assert isinstance(self.server, Service)
        return self.server

    def do_POST(self) -> None:
        """Accept a create."""
        self.rfile.read(int(self.headers["Content-Length"]))
        task = f"task-{len(self.service.created)}"
        self.service.created.append(task)
        self.service.arrived.release()
        self.service.may_respond.wait(PATIENCE)
        self._respond({"id": task, "status": "queued", "created": 1})

    def do_GET(self) -> None:
        """Report a task."""
        status = "completed" if self.service.may_complete else "processing"
        url = "https://cdn.example.com/picture.png" if self.service.may_complete else None
        task = self.path.rpartition("/")[2]
        self._respond({"id": task, "model": "imgb-2", "status": status, "image_url": url})

    def _respond(self, record: object) -> None:
        body = json.dumps(record).encode()
        with suppress(OSError):  # the application has been killed
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it
        """Be quiet."""


@pytest.fixture
def service() -> Iterator[Service]:
    """Give a service that runs."""
    with Service() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.may_respond.set()
        running.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the page's application."""
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "pictures.py").write_text("\n".join(code), encoding="utf-8")
    return tmp_path


@contextmanager
def serving(folder: Path, service: Service) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run the application, and give its process and URL."""
    command = [sys.executable, "-m", "uvicorn", "pictures:app", "--port", "0"]
    where = {"MUYBRIDGE_API_KEY": "the-key", "MUYBRIDGE_BASE_URL": service.url}
    with subprocess.Popen(  # noqa: S603  our own page
        command,
        cwd=folder,
        env=environment(**where, POLL="0.01", NO_COLOR="1"),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            lines = (re.search(r"running on (http://\S+)", line) for line in process.stderr)
            url = next((found[1] for found in lines if found), None)
            assert url is not None, "the application ended"
            yield process, url
        finally:
            process.kill()
            process.communicate()


def call(url: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
    """Send a request, and return the status and the JSON of the response."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})  # noqa: S310  loopback
    try:
        with urlopen(request, timeout=PATIENCE) as response:  # noqa: S310  loopback
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


def state(url: str, order: str, *, other_than: str = "accepted") -> str:
    """Return the state of *order* once it is *other_than* the one that will change."""
    while (found := call(f"{url}/pictures/{order}")[1]["state"]) == other_than:
        pass
    return str(found)


def orders(folder: Path) -> list[tuple[str, str, str | None]]:
    """Return what the application has written down."""
    with closing(sqlite3.connect(folder / "orders.db")) as database:
        return database.execute("SELECT id, state, token FROM orders").fetchall()


def hang_up(url: str, service: Service) -> None:
    """Order a picture, disconnect without reading the response, and wait for the create."""
    body = json.dumps(WANTED).encode()
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        head = f"POST /pictures HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
    assert service.arrived.acquire(timeout=PATIENCE)


def test_an_order(folder: Path, service: Service) -> None:
    """An order is answered at once, and its picture is reported once it is there."""
    with serving(folder, service) as (_, url):
        status, answer = call(f"{url}/pictures", {"prompt": "a horse"})
        assert (status, state(url, answer["order"])) == (202, "completed")
        assert call(f"{url}/pictures/{answer['order']}")[1]["url"].endswith("picture.png")
        assert call(f"{url}/pictures", {"prompt": ""})[0] == 422
        assert call(f"{url}/pictures/unknown")[0] == 404
    assert len(service.created) == 1


def test_a_client_that_disconnects(folder: Path, service: Service) -> None:
    """The order of a client that disconnected while the create was under way has its token."""
    service.may_respond.clear()
    with serving(folder, service) as (_, url):
        hang_up(url, service)
        service.may_respond.set()
        [(order, *_)] = orders(folder)
        state(url, order, other_than="creating")
        assert state(url, order) == "completed"
    assert len(service.created) == 1


def test_an_order_that_is_sent_again(folder: Path, service: Service) -> None:
    """An order that the browser sends again is the same task, also while the first one waits."""
    wanted = {"prompt": "a horse", "order": str(UUID(int=7))}
    service.may_respond.clear()
    with serving(folder, service) as (_, url), ThreadPoolExecutor(3) as pool:
        first = pool.submit(call, f"{url}/pictures", wanted)
        assert service.arrived.acquire(timeout=PATIENCE)
        again = [pool.submit(call, f"{url}/pictures", wanted) for _ in range(2)]
        service.may_respond.set()
        assert {one.result()[0] for one in (first, *again)} == {202}
        assert call(f"{url}/pictures", wanted) == first.result()
        assert call(f"{url}/pictures", {**wanted, "prompt": "a cow"})[0] == 409
        assert state(url, first.result()[1]["order"]) == "completed"
    assert len(orders(folder)) == len(service.created) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_and_restart(folder: Path, service: Service, number: signal.Signals) -> None:
    """A server that is stopped while it waits, waits for the same tasks when it is back."""
    service.may_complete = False
    with serving(folder, service) as (process, url):
        order = call(f"{url}/pictures", {"prompt": "a horse"})[1]["order"]
        process.send_signal(number)
        process.wait(PATIENCE)
    service.may_complete = True
    with serving(folder, service) as (_, url):
        assert state(url, order) == "completed"
    assert len(service.created) == 1


def test_shutdown_within_a_create(folder: Path, service: Service) -> None:
    """A server that is stopped while a create is under way keeps its token."""
    service.may_respond.clear()
    with serving(folder, service) as (process, url):
        hang_up(url, service)
        process.terminate()
        service.may_respond.set()
        process.wait(PATIENCE)
    [(order, _, token)] = orders(folder)
    assert token is not None
    assert "task-0" in token
    with serving(folder, service) as (_, url):
        assert state(url, order) == "completed"
    assert len(service.created) == 1


def test_kill(folder: Path, service: Service) -> None:
    """After kill -9 within a create, the order is ambiguous, even if it is sent again."""
    service.may_respond.clear()
    with serving(folder, service) as (process, url):
        hang_up(url, service)
        process.kill()
        process.wait(PATIENCE)
    with serving(folder, service) as (_, url):
        [(order, *_)] = orders(folder)
        assert state(url, order) == "ambiguous"
        assert call(f"{url}/pictures", WANTED) == (202, {"order": order})
        assert state(url, order) == "ambiguous"
    assert len(service.created) == 1
