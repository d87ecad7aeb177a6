"""The API key goes to the service alone: it is never shown, stored or sent anywhere else."""

from __future__ import annotations

import copy
import http.client
import io
import json
import logging
import pickle
import pprint
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge import LocalError, MuybridgeError, PlainHttpWarning
from muybridge.credentials import Credentials
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.records.tasks import Result, Status
from muybridge_protocol.service import Service
from sampling import diagonal
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    hang,
    in_turn,
    read_request,
    reply,
    response_bytes,
    send,
    serve,
)

from .canaries import AWKWARD, echoes, everything, reachable
from .drivers import DRIVERS, AnyClient, MakeClient
from .film import Film
from .in_process import KEY, World
from .requests_made import image

CREATED = json.dumps({"id": "task-1", "status": "queued", "created": 1}).encode()
COMPLETED = json.dumps({"id": "task-1", "status": "completed", "created": 1}).encode()


def test_client_shows_no_key(make_client: MakeClient) -> None:
    """Neither a client nor anything that it holds shows the key, before and after its use."""
    with ScriptedServer(serve(200, CREATED)) as server:
        client = make_client(server.url)
        before = reachable(client) + pprint.pformat(vars(client))
        client.create(image())
        after = reachable(client) + json.dumps(vars(client), default=repr)
        assert KEY.encode() in server.received
    assert "api key" in after
    assert KEY not in before + after + f"{client}{client!r}"


def test_client_is_not_copied(make_client: MakeClient, world: World) -> None:
    """A client is neither pickled nor copied."""
    client = make_client(world)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError) as caught:
            take(client)  # type: ignore[operator]  # each takes one value
        assert world.key not in str(caught.value)


def test_credentials_show_no_key() -> None:
    """Credentials and the header made from them do not print, format or pickle the key."""
    credentials = Credentials(KEY, Service(base_url="https://service.test"))
    request = HttpRequest(method="GET", url="https://service.test/v1", authorized=True)
    header = credentials.authorization_for(request)
    assert header is not None
    assert header.encode() == f"Bearer {KEY}".encode()
    for value in (credentials, header):
        shown = [repr(value), str(value), f"{value}", f"{value!r:>99}", "%s %r" % (value, value)]  # noqa: UP031  the way of loggers
        assert KEY not in "".join(shown)
        assert KEY not in pprint.pformat({"header": [value]})
        assert not hasattr(value, "__dict__")
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError) as caught:
                take(value)  # type: ignore[operator]  # each takes one value
            assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://service.test/v1/any", True),
        ("https://SERVICE.test:443/v1/any?x=1", True),
        ("https://text.test/v1/any", True),
        ("http://service.test/v1/any", False),
        ("https://service.test:444/v1", False),
        ("https://service.test.evil.test/v1", False),
        ("https://evil.test/service.test", False),
        ("https://cdn.service.test/v1", False),
        ("https://service.test@evil.test/v1", False),
        ("https://user:pw@service.test/v1", False),
        ("https://service.test\\@evil.test/v1", False),
        ("https://evil.test#service.test", False),
        ("//service.test/v1", False),
        ("file://service.test/v1", False),
        ("https://[", False),
    ],
)
def test_origins(url: str, sent: bool) -> None:  # noqa: FBT001  a table's column
    """Only the service's own origins get the key, and only where the request wants it."""
    service = Service(base_url="https://service.test", text_base_url="https://text.test")
    credentials = Credentials(KEY, service)
    wants = HttpRequest(method="GET", url=url, authorized=True)
    assert (credentials.authorization_for(wants) is not None) is sent
    other = HttpRequest(method="GET", url=url, authorized=False)
    assert credentials.authorization_for(other) is None


def use(client: AnyClient, server: ScriptedServer, folder: Path) -> list[BaseException]:
    """Call everything once, and return what was raised."""
    link = Result(id="task-1", status=Status.COMPLETED, image_url=f"{server.url}/a.png")
    calls: list[Callable[[], Any]] = [
        lambda: client.create(image()),
        lambda: client.get("task-1"),
        lambda: client.wait("task-1", timeout=60),
        lambda: list(client.watch("task-1", timeout=60)),
        lambda: client.run(image(), timeout=60),
        lambda: client.delete_asset("asset-1"),
        lambda: client.call("GET", "/v1/any"),
        lambda: client.call("POST", "/v1/any", {"x": 1}),
        lambda: client.download(link, folder, timeout=0.3),
        lambda: client.download("task-1", folder, timeout=0.3),
    ]
    raised: list[BaseException] = []
    for call in calls:
        try:
            shown = reachable(call())
        except MuybridgeError as error:
            raised.append(error)
        else:
            assert KEY not in shown
            assert AWKWARD not in shown
    return raised


def test_logs(
    make_client: MakeClient,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No log of any library shows the key at any level, http.client's debugging included."""
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "requests", "muybridge", "http.client"):
        caplog.set_level(logging.DEBUG, logger=name)
    replies = [serve(200, CREATED), serve(503), serve(302, location="/x"), serve(401)]
    for script in replies:
        with ScriptedServer(script) as server:
            use(make_client(server.url), server, tmp_path)
            assert KEY.encode() in server.received
    out, err = capsys.readouterr()
    records = "".join(repr(vars(record)) for record in caplog.records)
    assert KEY not in out + err + caplog.text + records


@pytest.mark.parametrize(("way", "status"), diagonal(echoes("-"), [200, 302, 401, 404, 500]))
@pytest.mark.parametrize("key", [KEY, AWKWARD], ids=["plain", "awkward"])
def test_echoes(make_client: MakeClient, tmp_path: Path, key: str, way: str, status: int) -> None:
    """A service that repeats the key in its responses does not get it into any error or result."""

    def script(peer: Peer) -> None:
        fields = {"location": f"/x?key={key}", "x_key": f"it is {key}", "www_authenticate": key}
        serve(status, echoes(key)[way], **fields)(peer)

    with ScriptedServer(script) as server:
        raised = use(make_client(server.url, api_key=key), server, tmp_path)
        assert key.encode() in server.received
    for error in raised:
        shown = everything(error)
        assert key not in shown
        assert repr(key)[1:-1] not in shown
        assert json.dumps(key)[1:-1] not in shown


@pytest.mark.parametrize("cut", range(1, 8))
def test_echoes_that_break_off(make_client: MakeClient, cut: int) -> None:
    """If a response is cut off inside the key, the beginning of the key is not in the error."""

    def script(peer: Peer) -> None:
        peer.read_request()
        whole = response_bytes(500, b"bad key " + KEY.encode(), x_key=KEY)
        peer.send(whole[:-cut])

    with ScriptedServer(script) as server, pytest.raises(MuybridgeError) as caught:
        make_client(server.url).create(image())
    shown = everything(caught.value)
    assert KEY[:-cut] not in shown


@pytest.mark.parametrize(
    "script",
    [
        [read_request, hang],
        [read_request],
        [read_request, send(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")],
        [read_request, send(b"SSH-2.0\r\n\r\n")],
        [read_request, send(response_bytes(200, CREATED, content_encoding="gzip"))],
        [read_request, send(response_bytes(200, CREATED)[:-1])],
    ],
    ids=["hang", "close", "length", "ssh", "gzip", "cut"],
)
def test_errors_show_no_key(make_client: MakeClient, tmp_path: Path, script: list[Step]) -> None:
    """No error shows the key, nor do the variables in its traceback, nor its pickle."""
    with ScriptedServer(script) as server:
        raised = use(make_client(server.url, timeout=0.1), server, tmp_path)
    assert len(raised) >= 8
    for error in raised:
        assert KEY not in everything(error)


class Impatient(io.StringIO):
    """A screen whose reader presses Ctrl-C at once."""

    def write(self, text: str, /) -> int:
        signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_interruptions_show_no_key(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption in the middle of an exchange does not show the key in its traceback."""
    monkeypatch.setattr(sys, "stderr", Impatient())

    def interrupt(_: Peer) -> None:
        signal.raise_signal(signal.SIGINT)

    script = [read_request, interrupt, send(b"H"), hang]
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        make_client(server.url, timeout=0.5).create(image())
    assert KEY not in everything(caught.value)


def test_interruptions_while_sending(
    make_client: MakeClient, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption at the very moment when the key is sent does not show it either."""
    if driver != "requests":
        pytest.skip("the moment is that of a blocking socket")

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(socket.socket, "send", interrupted)
    with ScriptedServer(hang) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            make_client(server.url).create(image())
        monkeypatch.undo()
    assert KEY not in everything(caught.value)


@pytest.mark.parametrize("place", ["download", "redirect", "fresh link"])
def test_other_hosts(make_client: MakeClient, tmp_path: Path, place: str) -> None:
    """Another origin than the service's never sees the key, however the client got there."""
    film = Film()
    with ScriptedServer(film) as other:
        link = f"{other.url}/a.mp4"
        fresh = json.dumps({"id": "task-1", "status": "completed", "video_url": link}).encode()
        first = reply(302, b"", location=link) if place == "redirect" else reply(404)
        script = in_turn([read_request, first], serve(200, fresh))
        with ScriptedServer(script) as server:
            client = make_client(server.url)
            old = link if place == "download" else f"{server.url}/old.mp4"
            client.download(Result(id="task-1", status=Status.COMPLETED, video_url=old), tmp_path)
        assert film.asked
        assert b"authorization" not in other.received.lower()
        assert KEY.encode() not in other.received


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(make_client: MakeClient, tmp_path: Path, status: int) -> None:
    """A service that redirects its calls elsewhere does not get the key there."""
    with ScriptedServer(serve(404)) as other:
        with ScriptedServer(serve(status, b"", location=f"{other.url}/v1")) as server:
            raised = use(make_client(server.url), server, tmp_path)
        assert len(raised) >= 8
        assert len(other.peers) <= 1  # the file is looked for there, without the key
        assert KEY.encode() not in other.received
        assert b"authorization" not in other.received.lower()


@pytest.mark.parametrize("entry", ["machine 127.0.0.1 ", "default "])
def test_netrc(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """A netrc file neither replaces the key nor adds a password to a download."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"{entry}login user password canary-password\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with ScriptedServer(serve(200, CREATED)) as server:
        make_client(server.url).create(image())
        assert f"Authorization: Bearer {KEY}\r\n".encode() in server.received
        assert server.received.lower().count(b"authorization:") == 1
    with ScriptedServer(Film()) as server:
        make_client(server.url).download(f"{server.url}/a.mp4", tmp_path)
        assert b"authorization" not in server.received.lower()


def test_tokens_and_files(make_client: MakeClient, tmp_path: Path) -> None:
    """Neither a token nor any file that is written holds the key or a link's signature."""
    film = Film(cuts=(300, *[0] * 20))
    with ScriptedServer(in_turn([read_request, reply(200, CREATED)], film)) as server:
        client = make_client(server.url)
        task = client.create(image())
        with pytest.raises(MuybridgeError):
            client.download(f"{server.url}/a.mp4?signature=canary-signature", tmp_path)
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    written = b"".join(path.read_bytes() for path in files) + task.to_token().encode()
    written += pickle.dumps(task) + repr(files).encode()
    assert KEY.encode() not in written
    assert b"canary-signature" not in written


BAD_KEYS = [
    "", " ", "\n", f" {KEY}", f"{KEY} ", f"{KEY}\n\n", f"{KEY}\r", f"{KEY}\n ", f"{KEY}\t",
    f"\n{KEY}",
    f"{KEY}\x00", f"{KEY}\x7f", f"{KEY}\x1b[0m", f"{KEY}é", f"{KEY}…", f"{KEY}\u2028",
    f"Bearer {KEY}",
    f"{KEY}\r\nX-Evil: 1", f"{KEY}\ud800",
]  # fmt: skip


def refused_key(make: Callable[[], object]) -> str:
    """Return all that is shown of a refused key outside of the test itself."""
    with pytest.raises(LocalError, match="The API key") as caught:
        make()
    error = caught.value
    shown = [str(error), repr(error), repr(error.args)]
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "muybridge" in Path(frame.f_code.co_filename).parts:
            shown += [f"{name}={value!r}" for name, value in frame.f_locals.items()]
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return "\n".join(shown)


@pytest.mark.parametrize("key", BAD_KEYS, ids=repr)
def test_bad_keys(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A key that cannot be sent as it is is refused at once, and shown nowhere."""
    shown = refused_key(lambda: make_client("https://service.test", api_key=key))
    assert KEY not in shown
    if key.isprintable() or "\n" in key:
        monkeypatch.setenv("MUYBRIDGE_API_KEY", key)
        shown = refused_key(lambda: make_client("https://service.test", api_key=None))
        assert KEY not in shown


def test_what_is_not_a_key_or_a_budget(make_client: MakeClient) -> None:
    """A key that is not a string, and a budget that is not one, are refused by the constructor."""
    with pytest.raises(TypeError, match="api_key must be a string") as caught:
        make_client("https://service.test", api_key=12345)
    assert "12345" not in str(caught.value)
    with pytest.raises(TypeError, match=r"budget must be .*, not int: write Budget\(creates=3\)"):
        make_client("https://service.test", budget=3)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("place", ["argument", "environment"])
def test_key_of_a_file(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, place: str, end: str
) -> None:
    """The one line end that a key file has is not part of the key."""
    monkeypatch.setenv("MUYBRIDGE_API_KEY", "another" if place == "argument" else f"{KEY}{end}")
    with ScriptedServer(serve(200, CREATED)) as server:
        given = f"{KEY}{end}" if place == "argument" else None
        make_client(server.url, api_key=given).create(image())
        assert f"Authorization: Bearer {KEY}\r\n".encode() in server.received


@pytest.mark.parametrize(
    "address",
    ["", "ftp://x", "http://service.test", "https://u:pw@service.test", "https://service.test?x"],
)
def test_bad_addresses_show_no_key(make_client: MakeClient, address: str) -> None:
    """An address that is refused does not bring the key into the traceback's variables."""
    with pytest.raises(muybridge.InvalidAddress) as caught:
        make_client(address)
    for frame, _ in traceback.walk_tb(caught.value.__traceback__):
        if "muybridge" in Path(frame.f_code.co_filename).parts:
            assert KEY not in repr(frame.f_locals)


@pytest.mark.parametrize("name", ["base_url", "text_base_url"])
@pytest.mark.parametrize("place", ["argument", "environment"])
def test_a_key_instead_of_an_address(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    """If the key and an address are swapped, the error says so and does not show the key."""
    monkeypatch.setenv(f"MUYBRIDGE_{name.upper()}", KEY)
    given = {"base_url": "https://service.test", "text_base_url": "", "api_key": "https://x.test"}
    given[name] = KEY
    if place == "environment":
        given.pop(name)
    with pytest.raises(muybridge.InvalidAddress, match="swapped") as caught:
        make_client("", **(given if place == "argument" else {**given, name: None}))
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(caught.value) + str(pickle.dumps(caught.value))


def test_warnings_show_no_key(make_client: MakeClient) -> None:
    """The warning of plain http names the address and not the key."""
    with pytest.warns(PlainHttpWarning) as caught:
        make_client("http://service.test", allow_plain_http=True)
    (warning,) = caught
    assert "http://service.test" in str(warning.message)
    assert KEY not in str(warning)


def test_every_driver_is_tested() -> None:
    """The drivers are those that the package offers."""
    assert "requests" in DRIVERS
