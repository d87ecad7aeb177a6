"""`check` looks at the media of a request: files, base64 and URLs, the same under every driver.

Every test is over real sockets, and `allow_insecure_downloads` lets loopback be looked at.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muybridge
from media.corpus import PICTURES, picture, sound, video
from muybridge.clock import SystemClock
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.operations.inspect import LIMIT
from transport.scripted_server import Peer, ScriptedServer, response_bytes

from .drivers import MakeClient
from .in_process import KEY

Respond = Callable[[bytes], bytes]
"""Returns the response to a request."""

MIB = 1024 * 1024


def padded(data: bytes, size: int) -> bytes:
    """Return an MP4 whose data are *size* bytes longer, so that its `moov` comes late."""
    at = data.index(b"mdat") - 4
    return data[:at] + (size + 8).to_bytes(4, "big") + b"free" + bytes(size) + data[at:]


def long_video() -> bytes:
    return padded(video(), 3 * MIB)


def ranges(data: bytes) -> Respond:
    """Return what serves *data* as a server does that knows ranges."""

    def respond(request: bytes) -> bytes:
        found = re.search(rb"\r\nRange: bytes=(\d+)-(\d+)\r\n", request)
        assert found is not None
        first, last = int(found[1]), min(int(found[2]), len(data) - 1)
        if first >= len(data):
            return response_bytes(416, b"", content_range=f"bytes */{len(data)}")
        told = f"bytes {first}-{last}/{len(data)}"
        return response_bytes(206, data[first : last + 1], content_range=told)

    return respond


def whole(data: bytes) -> Respond:
    """Return what serves *data* as a server does that knows no ranges."""
    return lambda _: response_bytes(200, data)


def serving(respond: Respond, **options: Any) -> ScriptedServer:
    """Return a server that responds to each request of each connection."""

    def script(peer: Peer) -> None:
        while True:
            peer.send(respond(peer.read_request()))

    return ScriptedServer(script, **options)


def asked(server: ScriptedServer) -> list[tuple[int, int]]:
    """Return the ranges that were asked for."""
    found = re.findall(rb"\r\nRange: bytes=(\d+)-(\d+)\r\n", server.received)
    return [(int(first), int(last)) for first, last in found]


def request_for(url: str) -> muybridge.MediaRequest:
    return muybridge.VidcRequest(model="vidc_o3", prompt="A horse", reference_videos=[url])


def look(make_client: MakeClient, url: str, **options: Any) -> MediaFacts:
    """Return what is found out about a URL."""
    options = {"allow_insecure_downloads": True, **options}
    report = make_client("https://service.test", **options).check(request_for(url))
    assert len(report.media) == 1
    return report.media[0].facts


MEDIA = {
    **{form: partial(picture, form, 1280, 720) for form in PICTURES},
    "wav": partial(sound, 3),
    "mp3": partial(sound, 3, "mp3"),
    "mp4": video,
    "mp4, fast start": partial(video, fast_start=True),
    "mp4, long": long_video,
    "webm": partial(video, 320, 240, form="webm"),
}


@pytest.mark.parametrize("name", MEDIA)
def test_urls(make_client: MakeClient, name: str) -> None:
    """Of a URL, the same is found out as of the whole file, with few bytes and without the key."""
    data = MEDIA[name]()
    with serving(ranges(data)) as server:
        found = look(make_client, f"{server.url}/a?signature=secret")
        assert KEY.encode() not in server.received
        assert sum(last - first + 1 for first, last in asked(server)) <= LIMIT
    assert found == inspect_media(Fragments.of(data))
    assert (found.missing, found.defect) == ("", "")


@pytest.mark.parametrize("name", MEDIA)
def test_servers_without_ranges(make_client: MakeClient, name: str) -> None:
    """A server that sends everything is read as far as the headers need, and no further."""
    data = MEDIA[name]()
    with serving(whole(data)) as server:
        found = look(make_client, f"{server.url}/a")
        assert len(server.peers) == 1
    if name == "mp4, long":
        assert (found.format, found.bytes, found.seconds) == ("MP4", len(data), None)
        assert found.missing.endswith("and the server sends no ranges")
    else:
        assert found == inspect_media(Fragments.of(data))


def test_headers_that_are_far_apart(make_client: MakeClient) -> None:
    """If the headers need more than is fetched, that is the reason, and the rest is known."""
    data = bytearray(picture("JPEG", 1280, 720))
    notes = b"".join(b"\xff\xe2\xff\xff" + bytes(65_533) for _ in range(40))
    with serving(ranges(bytes(data[:2]) + notes + bytes(data[2:]))) as server:
        found = look(make_client, f"{server.url}/a")
        assert sum(last - first + 1 for first, last in asked(server)) <= LIMIT
    assert (found.format, found.width) == ("JPEG", None)
    assert found.missing == "what is needed is not in the 256 KiB that are fetched"


def test_a_reference_is_fetched_once(make_client: MakeClient) -> None:
    """The same URL in several places is looked at once."""
    with serving(ranges(MEDIA["PNG"]())) as server:
        client = make_client("https://service.test", allow_insecure_downloads=True)
        urls = [f"{server.url}/a"] * 3
        report = client.check(
            muybridge.ImgaRequest(model="imga", prompt="A horse", image_urls=urls)
        )
        assert len(asked(server)) == 1
    assert [medium.place for medium in report.media] == [f"image_urls[{n}]" for n in range(3)]
    assert (report.ok, report.decided, report.undecided) == (True, 3, ())


def told(head: str, body: bytes = b"") -> Respond:
    """Return what sends the same bytes whatever it is asked for, and then nothing more."""
    return lambda _: f"HTTP/1.1 {head}\r\n\r\n".encode() + body


BROKEN_SERVERS: dict[str, tuple[Respond, str]] = {
    "not found": (told("404 No\r\nContent-Length: 0"), "the server responded with status 404"),
    "a refusal": (told("403 No\r\nContent-Length: 0"), "the server responded with status 403"),
    "an error": (told("503 No\r\nContent-Length: 0"), "the server responded with status 503"),
    "another part": (
        told("206 Part\r\nContent-Length: 4\r\nContent-Range: bytes 9-12/99", b"abcd"),
        "the server sent another part than it was asked for",
    ),
    "a part without a place": (
        told("206 Part\r\nContent-Length: 4", b"abcd"),
        "the server sent another part than it was asked for",
    ),
    "a part beyond the end": (
        told("206 Part\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/3", b"abcd"),
        "the server sent another part than it was asked for",
    ),
    "packed": (
        told("200 OK\r\nContent-Length: 4\r\nContent-Encoding: gzip", b"abcd"),
        "the response is encoded as gzip",
    ),
    "a redirect to nowhere": (told("302 Go\r\nContent-Length: 0"), "it leads nowhere"),
    "endless redirects": (
        told("302 Go\r\nContent-Length: 0\r\nLocation: /again"),
        "it has too many redirects",
    ),
    "a metadata service": (
        told("302 Go\r\nContent-Length: 0\r\nLocation: http://169.254.169.254/latest"),
        "it was not fetched",
    ),
}


@pytest.mark.parametrize("name", BROKEN_SERVERS)
def test_broken_servers(make_client: MakeClient, name: str) -> None:
    """Whatever a server does wrong, nothing is refused because of it, and the reason is told."""
    respond, why = BROKEN_SERVERS[name]
    with serving(respond) as server:
        client = make_client("https://service.test", allow_insecure_downloads=True)
        report = client.check(request_for(f"{server.url}/a"))
    assert report.ok
    assert report.decided == 0
    assert [one.why for one in report.undecided if not one.why.startswith(why)] == []


def test_a_part_that_is_too_short(make_client: MakeClient) -> None:
    """A server that sends less than it announces is believed in nothing else."""
    head = "206 Part\r\nContent-Length: 9\r\nContent-Range: bytes 0-999/1000"
    with serving(told(head, b"\x89PNG\r\n\x1a\n\0")) as server:
        found = look(make_client, f"{server.url}/a")
    assert (found.defect, found.missing) == ("", "the server sent less than it announced")


def test_a_length_that_is_a_lie(make_client: MakeClient) -> None:
    """If a body ends before its announced length, that length does not count as the size."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n" + MEDIA["PNG"]())

    with ScriptedServer(script) as server:
        found = look(make_client, f"{server.url}/a")
    assert (found.format, found.width, found.bytes) == ("PNG", 1280, None)
    assert found.defect == ""


def test_a_file_that_changes(make_client: MakeClient) -> None:
    """Parts of two different files are never joined."""
    sizes = iter([len(MEDIA["mp4, long"]()), len(MEDIA["mp4, long"]()) + 1])

    def respond(request: bytes) -> bytes:
        said = ranges(MEDIA["mp4, long"]())(request)
        return re.sub(rb"/\d+\r\n", f"/{next(sizes)}\r\n".encode(), said, count=1)

    with serving(respond) as server:
        found = look(make_client, f"{server.url}/a")
    assert found.missing == "it changed while it was looked at"
    assert found.defect == ""


def test_an_endless_body(make_client: MakeClient) -> None:
    """Of a body without an end, no more than the limit is read."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n\0\0\0\x0cftypisom")
        while True:
            peer.send(b"\x7f\xff\xff\xfffree" * 4_096)

    with ScriptedServer(script) as server:
        found = look(make_client, f"{server.url}/a")
    assert (found.format, found.bytes) == ("MP4", None)
    assert found.missing.startswith("what is needed is not in the 256 KiB")


def test_a_slow_body(make_client: MakeClient) -> None:
    """What a slow server has sent by the timeout is used; after that it is not waited for."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + MEDIA["PNG"]()[:600])
        peer.hang()

    with ScriptedServer(script) as server:
        client = make_client(
            "https://service.test", allow_insecure_downloads=True, clock=SystemClock()
        )
        report = client.check(request_for(f"{server.url}/a"), timeout=0.5)
    (medium,) = report.media
    assert medium.facts.width == 1280


PRIVATE = ("http://10.1.2.3/a.png", "https://10.1.2.3/a.png", "http://cdn.example.com/a.png")


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses(make_client: MakeClient, url: str) -> None:
    """Nothing is fetched from private hosts, nor by plain http, unless that is allowed."""
    report = make_client("https://service.test").check(request_for(url))
    assert report.ok
    assert report.decided == 0
    assert "pass allow_insecure_downloads=True" in str(report.undecided[0])


def test_a_redirect_to_a_private_host(make_client: MakeClient) -> None:
    """A redirect is held to the same rules as the URL itself."""
    with (
        serving(ranges(MEDIA["PNG"]()), host="127.0.0.2") as hidden,
        serving(told(f"302 Go\r\nContent-Length: 0\r\nLocation: {hidden.url}/a")) as server,
    ):
        # On the service's own host, which may be asked without the option.
        report = make_client(server.url).check(request_for(f"{server.url}/a"))
        assert not hidden.peers
    assert report.ok
    assert report.undecided[0].why.startswith("it was not fetched")


def test_a_redirect_is_followed(make_client: MakeClient) -> None:
    """A redirect to an allowed address is followed, for each part anew."""

    def respond(request: bytes) -> bytes:
        if request.startswith(b"GET /a "):
            return response_bytes(302, b"", location="/b")
        return ranges(MEDIA["mp4, long"]())(request)

    with serving(respond) as server:
        found = look(make_client, f"{server.url}/a")
    assert found.seconds == pytest.approx(5)


def test_a_closed_port(make_client: MakeClient) -> None:
    """A server that cannot be reached leaves every rule undecided."""
    found = look(make_client, "http://127.0.0.1:1/a.mp4")
    assert found.missing.startswith("it could not be fetched: connection refused")


@pytest.mark.parametrize("form", ["bytes", "path", "text"])
def test_files(make_client: MakeClient, tmp_path: Path, form: str) -> None:
    """Files are checked in place of a field's URLs, which are then not looked at."""
    path = tmp_path / "horse.mp4"
    path.write_bytes(MEDIA["mp4, long"]())
    file: Any = {"bytes": path.read_bytes(), "path": path, "text": str(path)}[form]
    client = make_client("https://service.test")
    for name in ("reference_videos", "referenceVideos"):
        report = client.check(request_for("https://a.example.com/b.mp4"), files={name: [file]})
        (medium,) = report.media
        assert (medium.facts.seconds, medium.index) == (5, 0)
        assert (report.ok, report.undecided) == (True, ())


def test_one_file_for_one_field(make_client: MakeClient, tmp_path: Path) -> None:
    """A field with one URL takes one file, and the field's own rules hold for it."""
    path = tmp_path / "horse.bmp"
    path.write_bytes(MEDIA["BMP"]())
    request = muybridge.ViddRequest(model="viddq3-pro", prompt="A horse")
    report = make_client("https://service.test").check(request, files={"first_image": path})
    (problem,) = report.problems
    assert str(problem) == "first_image: is BMP. An image is JPEG, PNG or WebP."


def test_a_file_under_an_old_name(make_client: MakeClient) -> None:
    """Files for a field's old name are checked as the field's."""
    url = "https://cdn.invalid/a.png"
    request = muybridge.VideosRequest(
        model="videos", prompt="A horse", duration=4, image=url, last_frame_image=url
    )
    files = {"image": MEDIA["PNG"](), "last_frame_image": MEDIA["JPEG"]()}
    report = make_client("https://service.test").check(request, files=files)
    assert [(medium.field, medium.facts.format) for medium in report.media] == [
        ("first_image", "PNG"),
        ("last_image", "JPEG"),
    ]
    assert (report.ok, report.decided) == (True, 2)


def test_a_missing_file(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that cannot be read is an error of the caller, and no finding."""
    client, request = make_client("https://service.test"), request_for("https://a.example.com/b")
    for path in (tmp_path / "none.mp4", tmp_path):
        with pytest.raises(OSError, match=re.escape(str(path))):
            client.check(request, files={"referenceVideos": path})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a matter of posix")
def test_a_pipe(make_client: MakeClient, tmp_path: Path) -> None:
    """A pipe, which nobody may ever write to, is not opened."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    request = request_for("https://a.example.com/b")
    with pytest.raises(OSError, match="not a regular file"):
        make_client("https://service.test").check(request, files={"referenceVideos": path})


def test_a_field_without_media(make_client: MakeClient) -> None:
    """Files for a field that takes none are refused, with the fields that do."""
    client, request = make_client("https://service.test"), request_for("https://a.example.com/b")
    with pytest.raises(ValueError, match="'prompt' is not a field of vidc for media"):
        client.check(request, files={"prompt": b""})


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_that_is_none(make_client: MakeClient, timeout: float) -> None:
    """The timeout must be a positive number of seconds."""
    request = request_for("https://a.example.com/b")
    with pytest.raises(ValueError, match="timeout must be a positive number"):
        make_client("https://service.test").check(request, timeout=timeout)


@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64(make_client: MakeClient, alphabet: Callable[[bytes], bytes]) -> None:
    """A picture that the request contains is looked at, in either alphabet of base64."""
    value = f"data:image/jpeg;base64,{alphabet(MEDIA['JPEG']()).decode().rstrip('=')}"
    request = muybridge.VidrRequest(model="vidrPro", prompt="A horse", image_urls=[value])
    report = make_client("https://service.test").check(request)
    (medium,) = report.media
    assert (medium.facts.format, medium.facts.bytes) == ("JPEG", len(MEDIA["JPEG"]()))
    assert medium.source.endswith("characters of base64")
    (problem,) = report.problems  # the default is upright
    assert problem.why == "has 1280x720 px, but must have 720x1280 px"


def test_base64_that_is_none(make_client: MakeClient) -> None:
    """Base64 that cannot be read leaves the rules undecided."""
    request = muybridge.ImgaRequest(
        model="imga", prompt="A horse", image_urls=["data:image/png;base64,AAAAA"]
    )
    report = make_client("https://service.test").check(request)
    assert report.undecided[0].why.startswith("its base64 cannot be read")


def test_assets(make_client: MakeClient) -> None:
    """Assets are in the service's library, where nobody else can look."""
    request = muybridge.VidsbRequest(
        model="vidsb_2_0_pro", prompt="A horse", first_image="asset://horse"
    )
    report = make_client("https://service.test").check(request)
    assert report.ok
    assert {one.why for one in report.undecided} == {
        "it is an asset, which only the service can look into"
    }


def test_a_request_without_media(make_client: MakeClient) -> None:
    """Without media there is nothing to decide."""
    report = make_client("https://service.test").check(
        muybridge.ImgaRequest(model="imga", prompt="A horse")
    )
    assert (report.ok, report.media, report.findings) == (True, (), ())


def test_nothing_is_sent_to_the_service(make_client: MakeClient) -> None:
    """A check does not speak to the service at all."""
    with (
        serving(ranges(MEDIA["PNG"]()), host="127.0.0.2") as cdn,
        serving(told("200 OK")) as service,
    ):
        client = make_client(service.url, allow_insecure_downloads=True)
        client.check(request_for(f"{cdn.url}/a"))
        assert cdn.peers
        assert not service.peers
