"""The local service over real sockets, with the real renderer."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import av
import pytest
import requests
from PIL import Image

from muybridge.extras import install_command
from muybridge.local import LocalService, result_files
from muybridge_protocol.emulator import REQUEST_BODY_LIMIT, Access
from muybridge_protocol.families.family import DAY

MORE_THAN_SOCKETS_HOLD = 32 * 1024 * 1024

PNG = ("/v1/imga/images", {"model": "imga", "prompt": "a horse", "size": "4:3"})
MP4 = ("/v1/vidsb/videos", {"model": "vidsb_2_0_pro", "prompt": "a horse", "duration": 4})


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=1000) as running:
        yield running


WEB_SOCKET = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def call(
    service: LocalService,
    method: str,
    url: str,
    body: Mapping[str, object] | None = None,
    **headers: str,
) -> requests.Response:
    if url.startswith("/"):
        url = f"{service.base_url}{url}"
        headers["Authorization"] = f"Bearer {service.api_key}"
    return requests.request(method, url, json=body, headers=headers, timeout=20)


def completed(service: LocalService, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    """Create a task, ask until it is completed, and return its result record."""
    task = call(service, "POST", path, body).json()
    while True:
        result = call(service, "GET", f"/v1/result/{task['id']}").json()
        if result["status"] not in ("queued", "processing"):
            assert result["status"] == "completed"
            return result


@pytest.fixture(scope="module")
def image_url(service: LocalService) -> str:
    return completed(service, *PNG)["image_url"]


def connect(service: LocalService) -> socket.socket:
    address = urlsplit(service.base_url)
    assert address.hostname is not None
    assert address.port is not None
    return socket.create_connection((address.hostname, address.port), timeout=20)


def talk(service: LocalService, request: bytes) -> bytes:
    """Send *request* as it is, and return the head of the reply."""
    with connect(service) as connection:
        connection.sendall(request)
        reply = b""
        while b"\r\n\r\n" not in reply and (piece := connection.recv(65536)):
            reply += piece
        return reply


def test_an_image_is_downloaded_as_a_real_png(service: LocalService) -> None:
    """A completed image task's URL gives, without a key, a PNG of the size that was asked for."""
    reply = requests.get(completed(service, *PNG)["image_url"], timeout=20)
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "image/png"
    assert reply.headers["Content-Length"] == str(len(reply.content))
    assert reply.headers["Accept-Ranges"] == "bytes"
    with Image.open(BytesIO(reply.content)) as image:
        image.load()
        assert (image.format, image.size) == ("PNG", (1024, 768))


def test_a_video_is_downloaded_as_a_real_mp4(service: LocalService) -> None:
    """A completed video task's URL gives an H.264 MP4 with the asked size, length and sound."""
    result = completed(service, *MP4)
    reply = requests.get(result["video_url"], timeout=20)
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "video/mp4"
    with av.open(BytesIO(reply.content)) as film:
        (video,), (_,) = film.streams.video, film.streams.audio
        assert (video.codec_context.name, video.width, video.height) == ("h264", 1280, 720)
        seconds = (video.duration or 0) * (video.time_base or 0)
        assert seconds == result["actualDuration"] == 4


def test_the_same_file_is_served_again(image_url: str) -> None:
    """Every download of a task gives the same bytes with the same entity tag."""
    one, other = (requests.get(image_url, timeout=20) for _ in range(2))
    assert one.content == other.content
    assert one.headers["ETag"] == other.headers["ETag"]
    assert one.headers["ETag"].startswith('"')


def test_a_part_of_a_file_can_be_asked_for(image_url: str) -> None:
    """A range gets 206 with just its bytes; one outside the file gets 416 with the file's size."""
    whole = requests.get(image_url, timeout=20)
    size = len(whole.content)
    part = requests.get(image_url, headers={"Range": "bytes=100-"}, timeout=20)
    assert (part.status_code, part.content) == (206, whole.content[100:])
    assert part.headers["Content-Range"] == f"bytes 100-{size - 1}/{size}"
    assert part.headers["ETag"] == whole.headers["ETag"]
    beyond = requests.get(image_url, headers={"Range": f"bytes={size}-"}, timeout=20)
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{size}")


def test_a_part_of_another_version_is_not_sent(image_url: str) -> None:
    """A range counts only if `If-Range` names the file's own entity tag."""
    tag = requests.get(image_url, timeout=20).headers["ETag"]
    for condition, status in (
        (tag, 206),
        ('"another"', 200),
        (f"W/{tag}", 200),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 200),
    ):
        headers = {"Range": "bytes=0-9", "If-Range": condition}
        assert requests.get(image_url, headers=headers, timeout=20).status_code == status


def test_a_file_is_rendered_once(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that come at the same time wait for one rendering and get the same bytes."""
    rendered: list[Path] = []
    render = result_files.render_png

    def count(picture: Any, path: Path) -> None:
        rendered.append(path)
        render(picture, path)

    monkeypatch.setattr(result_files, "render_png", count)
    url = completed(service, *PNG)["image_url"]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(requests.get, [url] * 8))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.content for reply in replies}) == 1
    assert len(rendered) == 1


def test_a_file_that_cannot_be_rendered_is_tried_again(
    service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rendering that fails gets 503, and the next request gets the file."""

    def fail(_: Any, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    url = completed(service, *PNG)["image_url"]
    with monkeypatch.context() as patch:
        patch.setattr(result_files, "render_png", fail)
        assert requests.get(url, timeout=20).status_code == 503
    assert requests.get(url, timeout=20).status_code == 200


def test_any_prompt_can_be_rendered(service: LocalService) -> None:
    """Text that no font has, settings of any shape, and none at all still give a file."""
    for body in (
        {"prompt": "\u0000\u202e\U0001f40e\u6f22" * 50, "model": "x" * 300},
        {"prompt": "x", "deep": {"a": [1, {"b": None}]}, "long": "y" * 1000, "list": [1, 2]},
        {},
    ):
        url = completed(service, "/v1/vidm/videos", {**body, "resolution": "480p"})["video_url"]
        assert requests.get(url, timeout=20).content[4:8] == b"ftyp"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "DELETE"])
def test_a_file_can_only_be_got(image_url: str, method: str) -> None:
    """Another method than GET on a result's URL gets 405."""
    reply = requests.request(method, image_url, timeout=20)
    assert (reply.status_code, reply.headers["Allow"]) == (405, "GET")


def test_an_unfinished_task_has_no_file() -> None:
    """The URL that a task is going to have gets 404 until it is completed."""
    with LocalService() as service:
        task = call(service, "POST", *PNG).json()
        url = f"{service.base_url}/media/{task['id']}"
        assert requests.get(f"{url}.png", timeout=20).status_code == 404
        assert requests.get(f"{url}.mp4", timeout=20).status_code == 404


@pytest.mark.parametrize("name", ["", "unknown.png", "..", "../..", "%2e%2e/x", "%00", "x.png?y"])
def test_an_unknown_file_is_not_found(service: LocalService, name: str) -> None:
    """Whatever is asked for below /media/ that is no task's file gets 404."""
    reply = talk(service, f"GET /media/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 404")


class Postdated(LocalService):
    """A service whose clock can be put forward."""

    ahead = 0

    def now(self) -> float:
        return super().now() + self.ahead


def test_a_file_is_gone_after_its_retention() -> None:
    """A day later the same URL gets 410."""
    with Postdated(speed=1000) as service:
        url = completed(service, *PNG)["image_url"]
        assert requests.get(url, timeout=20).status_code == 200
        service.ahead = DAY
        assert requests.get(url, timeout=20).status_code == 410


def test_the_key_is_asked_for(service: LocalService) -> None:
    """Without its key the service answers 401."""
    assert requests.get(f"{service.base_url}/v1/result/x", timeout=20).status_code == 401


def test_keys_can_be_given() -> None:
    """Keys that the caller gives are the ones that work, each for what it is provisioned for."""
    keys = {"one": Access(), "other": Access(families=frozenset())}
    with LocalService(keys=keys) as service:
        assert service.api_key == "one"
        assert call(service, "POST", *PNG).status_code == 200
        reply = requests.post(
            f"{service.base_url}/v1/imga/images",
            json=PNG[1],
            headers={"Authorization": "Bearer other"},
            timeout=20,
        )
        assert reply.status_code == 403


def test_each_service_has_a_key_of_its_own() -> None:
    """A key is drawn anew for each service, is long, and is not in the service's text."""
    one, other = LocalService(), LocalService()
    assert one.api_key != other.api_key
    assert len(one.api_key) >= 32
    assert one.api_key not in repr(one)


def test_task_ids_cannot_be_guessed(service: LocalService) -> None:
    """An id has 128 random bits."""
    ids = {call(service, "POST", *PNG).json()["id"] for _ in range(5)}
    assert len(ids) == 5
    assert all(len(task_id.removeprefix("task-")) == 32 for task_id in ids)


def test_a_vidsa_task_is_cancelled_by_the_caller() -> None:
    """The code that runs the service can cancel a `vidsa` task; what cancels one is not shown."""
    with LocalService() as service:
        body = {"model": "vidsa_1_5_pro_480p", "prompt": "x"}
        task = call(service, "POST", "/v1/vidsa/videos", body).json()
        assert service.cancel(task["id"])
        result = call(service, "GET", f"/v1/result/{task['id']}").json()
        assert result["status"] == "cancelled"


def test_assets_can_be_seeded() -> None:
    """The library begins with the given assets, which can be deleted once."""
    with LocalService(assets=["mine"]) as service:
        codes = [call(service, "DELETE", "/vidsb/asset/mine").json()["code"] for _ in range(2)]
    assert codes[0] == "0"
    assert codes[1] != "0"


@pytest.mark.parametrize(
    "request_",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: \xff\xfe\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://x/media/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        WEB_SOCKET,
    ],
    ids=range(11),
)
def test_odd_requests_are_no_error_of_the_service(service: LocalService, request_: bytes) -> None:
    """Whatever bytes come, the reply's status is below 500, and the next request is answered."""
    status = talk(service, request_).split(b" ", 2)[1]
    assert 400 <= int(status) < 500
    assert call(service, "GET", "/v1/result/unknown").status_code == 404


def test_a_body_over_the_limit_is_refused(service: LocalService) -> None:
    """A body over the limit gets 413, although the client sends all of it first."""
    reply = requests.post(
        f"{service.base_url}/v1/imga/images",
        data=b" " * (REQUEST_BODY_LIMIT + 1_000_000),
        headers={
            "Authorization": f"Bearer {service.api_key}",
            "Content-Type": "application/json",
        },
        timeout=20,
    )
    assert reply.status_code == 413


def test_a_connection_is_kept(service: LocalService) -> None:
    """Many requests go over one connection."""
    headers = {"Authorization": f"Bearer {service.api_key}"}
    address = urlsplit(service.base_url)
    with contextlib.closing(HTTPConnection(address.netloc, timeout=20)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(20):
            connection.request("GET", "/v1/result/x", headers=headers)
            connection.getresponse().read()
            assert connection.sock is first


def test_a_service_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the context there is no thread, no port, no file, and no open socket."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(threading.enumerate())
    with LocalService(speed=1000) as service:
        url = completed(service, *PNG)["image_url"]
        requests.get(url, timeout=20)
        assert list(tmp_path.glob("*/*.png"))
        connection = connect(service)
        began = time.monotonic()
    assert time.monotonic() - began < 1
    assert set(threading.enumerate()) == before
    assert list(tmp_path.iterdir()) == []
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        connect(service)
    gc.collect()  # an unclosed socket or folder would warn here, and warnings are errors


def _read_head_only(service: LocalService, url: str) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    address = urlsplit(service.base_url)
    connection.connect((address.hostname, address.port))
    path = urlsplit(url).path
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


@pytest.mark.parametrize(
    "unfinished",
    [
        b"",
        b"GET / HTTP/1.1\r\nHo",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf",
    ],
)
def test_an_unfinished_request_does_not_keep_a_service(unfinished: bytes) -> None:
    """A client who stops in the middle of a request does not hold up the end of the service."""
    with contextlib.ExitStack() as clients:
        with LocalService() as service:
            connection = clients.enter_context(connect(service))
            connection.sendall(unfinished)
            assert call(service, "GET", "/v1/result/x").status_code == 404
            began = time.monotonic()
        assert time.monotonic() - began < 1
    gc.collect()


def test_a_client_who_stops_reading_does_not_keep_a_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Downloads that nobody reads on are cut off when the service ends."""

    def write(_: Any, path: Path) -> None:
        path.write_bytes(bytes(MORE_THAN_SOCKETS_HOLD))

    monkeypatch.setattr(result_files, "render_png", write)
    with contextlib.ExitStack() as clients:
        with LocalService(speed=1000) as service:
            url = completed(service, *PNG)["image_url"]
            for _ in range(4):
                clients.enter_context(_read_head_only(service, url))
            began = time.monotonic()
        assert time.monotonic() - began < 1
    gc.collect()


def test_a_waiting_download_is_told_that_the_service_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that waits for a rendering gets 503 when the service ends."""
    begun, may_end = threading.Event(), threading.Event()

    def wait(_: Any, __: Path) -> None:
        begun.set()
        may_end.wait(20)

    monkeypatch.setattr(result_files, "render_png", wait)
    replies: list[requests.Response] = []
    with LocalService(speed=1000) as service:
        url = completed(service, *PNG)["image_url"]
        client = threading.Thread(target=lambda: replies.append(requests.get(url, timeout=20)))
        client.start()
        assert begun.wait(20)
        ending = threading.Thread(target=service.__exit__, args=(None, None, None))
        ending.start()
        client.join()
        may_end.set()
        ending.join()
    assert [reply.status_code for reply in replies] == [503]


def test_a_service_can_start_again_on_its_port() -> None:
    """A port is free as soon as the service has ended."""
    with LocalService() as service:
        port = urlsplit(service.base_url).port
        assert port is not None
    with LocalService(port=port) as again:
        assert call(again, "GET", "/v1/result/x").status_code == 404


def test_a_port_in_use_is_told(service: LocalService) -> None:
    """A service on a port that is taken does not start, and says what to do."""
    port = urlsplit(service.base_url).port
    assert port is not None
    before = set(threading.enumerate())
    with pytest.raises(OSError, match=rf"port {port}: Address already in use"):
        LocalService(port=port).__enter__()
    assert set(threading.enumerate()) == before


def test_an_unknown_host_is_told() -> None:
    """A service on a host that does not exist does not start, and says so."""
    with pytest.raises(OSError, match=r"cannot listen on no-such-host\.invalid port 0"):
        LocalService(host="no-such-host.invalid").__enter__()


@pytest.mark.parametrize("settings", [{"port": -1}, {"port": 65536}, {"speed": 0}, {"keys": {}}])
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    """A port out of range, a speed of 0 and an empty set of keys are a ValueError."""
    with pytest.raises(ValueError, match=r"port|speed|key"):
        LocalService(**settings)


def test_a_service_can_listen_on_ipv6() -> None:
    """On an IPv6 address the URLs have brackets and work."""
    try:
        running = LocalService(host="::1", speed=1000).__enter__()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.push(running)
        assert running.base_url.startswith("http://[::1]:")
        assert requests.get(completed(running, *PNG)["image_url"], timeout=20).status_code == 200


def test_results_can_be_served_under_another_address() -> None:
    """Behind a proxy, the results' URLs begin with the address that clients know."""
    with LocalService(speed=1000, public_url="https://media.example.com/") as service:
        url = completed(service, *PNG)["image_url"]
    assert url.startswith("https://media.example.com/media/task-")


SERVE = """
import sys
from muybridge.local import LocalService, serve

service = LocalService(speed=1000)
serve(service, on_ready=lambda service: print(service.base_url, flush=True))
print("ended", flush=True)
"""


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_serving_ends_cleanly_when_told_to(signal_: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C and a request to terminate end `serve` without a traceback or a file left behind."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(  # noqa: S603  a program of our own
        [sys.executable, "-W", "error", "-X", "dev", "-c", SERVE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        assert requests.get(f"{base_url}/v1/result/x", timeout=20).status_code == 401
        process.send_signal(signal_)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "ended\n", "")
    assert list(tmp_path.iterdir()) == []


MISSING = """
import sys
sys.modules["hypercorn"] = None
import muybridge.local
try:
    muybridge.local.LocalService
except ImportError as error:
    print(error)
"""


def run_python(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(  # noqa: S603  a program of our own
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        env=environment,
    )
    return done.stdout


def test_a_missing_extra_is_told_with_its_remedy() -> None:
    """Without the extra, the error names the command that installs it."""
    assert install_command("local") in run_python(MISSING)


def test_importing_the_package_loads_no_server() -> None:
    """`import muybridge.local` alone loads neither the server nor the renderer."""
    program = "import muybridge.local, sys, json; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run_python(program)))
    assert "muybridge.local" in loaded
    assert not loaded & {"trio", "hypercorn", "PIL", "av"}


def test_a_reply_is_plain_http(service: LocalService) -> None:
    """A reply has its length and type, and does not name the server's software."""
    address = urlsplit(service.base_url)
    with contextlib.closing(HTTPConnection(address.netloc, timeout=20)) as connection:
        connection.request("GET", "/v1/result/x")
        reply: HTTPResponse = connection.getresponse()
        assert reply.getheader("Content-Type") == "application/json"
        assert reply.getheader("Content-Length") == str(len(reply.read()))
        assert reply.getheader("Server") is None
