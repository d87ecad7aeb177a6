"""A download appears whole or not at all, resumes where it was cut off, and leads nowhere else."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import zlib
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muybridge import DownloadFailed, InvalidAddress, LinkExpired
from muybridge.files.saving import PartFile, SaveTarget
from muybridge.testing import FakeTransport
from muybridge.wire.transport import StreamedResponse, Transport, TransportError
from muybridge_protocol.events import DownloadProgress, Event
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations.download import Part
from muybridge_protocol.records.tasks import Result, Status, Task
from transport.scripted_server import Peer, ScriptedServer, in_turn, response_bytes, serve

from .children import downloading
from .drivers import MakeClient
from .film import MEDIA, OTHER, Film
from .heard import tasks_alone
from .in_process import KEY, PNG, World
from .requests_made import image

posix = pytest.mark.skipif(os.name != "posix", reason="a matter of posix")


def failed(make_client: MakeClient, url: str, target: Path, **options: object) -> DownloadFailed:
    """Return how a download fails, having checked that no file has appeared."""
    with pytest.raises(DownloadFailed) as caught:
        make_client(url).download(f"{url}/film.mp4", target, **options)  # type: ignore[arg-type]  # each case has options of its own
    assert not target.is_file()
    return caught.value


def test_whole(make_client: MakeClient, tmp_path: Path) -> None:
    """The file appears under its name only once it is whole, and nothing else is left."""
    target = tmp_path / "film.mp4"

    def look(event: Event) -> None:
        assert isinstance(event, DownloadProgress)
        assert not target.exists()
        assert (tmp_path / "film.mp4.part").exists()

    with ScriptedServer(Film()) as server:
        client = make_client(server.url, on_event=tasks_alone(look))
        assert client.download(f"{server.url}/film.mp4", target) == target
    assert target.read_bytes() == MEDIA
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_but_the_request(make_client: MakeClient, tmp_path: Path) -> None:
    """A download carries no key and no cookie, though the server sets one on the way."""
    film = Film()
    film.instead.append(response_bytes(302, b"", location="/b", set_cookie="a=b; Path=/"))
    with ScriptedServer(film) as server:
        make_client(server.url).download(f"{server.url}/a", tmp_path)
        received = server.received.lower()
    assert len(film.asked) == 2
    assert b"authorization" not in received
    assert b"cookie" not in received
    assert KEY.encode() not in received


class BreaksWhenLeft:
    """A transport whose exchanges fail as they are left, whatever came before."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    @contextmanager
    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Generator[StreamedResponse]:
        with self._inner.stream(request, timeout=timeout, authorization=authorization) as reply:
            yield reply
        failure = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.RESET)
        raise TransportError(failure)

    def close(self) -> None:
        self._inner.close()


def test_a_settled_download_stays_settled(make_client: MakeClient, tmp_path: Path) -> None:
    """A connection that breaks while a response is left does not change its outcome."""
    gone = FakeTransport(otherwise=HttpResponse(404))
    client = make_client("https://service.test", transport=BreaksWhenLeft(gone))
    with pytest.raises(LinkExpired, match="404"):
        client.download("https://cdn.test/film.mp4", tmp_path)
    assert len(gone.requests) == 1


@pytest.mark.parametrize("cut", [1, 19, 20, 300, len(MEDIA) - 1])
def test_goes_on_in_one_call(make_client: MakeClient, tmp_path: Path, cut: int) -> None:
    """An interrupted download resumes from there, if the file is still the same."""
    film = Film(cuts=(cut,))
    with ScriptedServer(film) as server:
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA
    assert film.ranges == [None, f"bytes={cut}-"]
    assert b'If-Range: "v1"' in film.asked[1]


@pytest.mark.nightly
def test_goes_on_from_every_byte(make_client: MakeClient, tmp_path: Path) -> None:
    """Wherever a download is cut off, the file that is finally saved is correct."""
    for cut in range(len(MEDIA)):
        with ScriptedServer(Film(cuts=(cut, 5))) as server:
            path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
        assert path.read_bytes() == MEDIA


def broken_off(make_client: MakeClient, server: ScriptedServer, target: Path) -> None:
    """Interrupt a download after 300 bytes, as if the process had ended."""
    film = Film(cuts=(300, *[0] * 20))
    with ScriptedServer(in_turn(film)) as other:
        error = failed(make_client, other.url, target)
        assert error.status is None
    part = target.with_name(f"{target.name}.part")
    assert part.read_bytes() == MEDIA[:300]
    note_path = part.with_name(f"{part.name}.json")
    first, _, rest = note_path.read_text().partition("\n")
    note = json.loads(first)
    note["source"] = f"{server.url}/film.mp4"  # each server has a port of its own
    note_path.write_text(f"{json.dumps(note)}\n{rest}")


def test_goes_on_in_a_later_call(make_client: MakeClient, tmp_path: Path) -> None:
    """The next call resumes what an earlier call has saved, in whatever process."""
    film, target = Film(), tmp_path / "film.mp4"
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA
    assert film.ranges == ["bytes=300-"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("lost", [slice(0, 100), slice(100, 200), slice(200, 300)], ids=str)
def test_bytes_that_a_power_cut_took(make_client: MakeClient, tmp_path: Path, lost: slice) -> None:
    """A part that has its length, but not all of its bytes, is not resumed behind the loss."""
    film, target = Film(), tmp_path / "film.mp4"
    part = tmp_path / "film.mp4.part"
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        left = bytearray(part.read_bytes())
        left[lost] = bytes(100)
        with part.open("r+b") as file:  # it stays the same file
            file.write(left)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA
    assert list(tmp_path.iterdir()) == [target]


def test_a_part_that_goes_on_in_another_process_twice(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """What was resumed and interrupted again is resumed from where it ended last."""
    target = tmp_path / "film.mp4"
    film = Film(cuts=(700, *[0] * 20))
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        failed(make_client, server.url, target)
        film.cuts.clear()
        film.asked.clear()
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA
    assert film.ranges == ["bytes=1000-"]


def test_a_part_of_something_else(make_client: MakeClient, tmp_path: Path) -> None:
    """The part of another download is not resumed."""
    film, target = Film(OTHER), tmp_path / "film.mp4"
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/other.mp4", target)
    assert target.read_bytes() == OTHER
    assert film.ranges == [None]


@pytest.mark.parametrize(
    "note", [b"", b"null", b"[]", b"{}", b"\xff", b'{"source": 1, "validator": 2, "total": "x"}']
)
def test_a_note_that_cannot_be_read(make_client: MakeClient, tmp_path: Path, note: bytes) -> None:
    """If the note cannot be read, the download starts again."""
    film, target = Film(), tmp_path / "film.mp4"
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        (tmp_path / "film.mp4.part.json").write_bytes(note)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA
    assert film.ranges == [None]


def test_a_note_that_was_never_put_in_place(tmp_path: Path) -> None:
    """The longer note that a killed process left unfinished does not affect the next one."""
    target = SaveTarget(tmp_path, "film", ".mp4", ".mp4")
    (tmp_path / "film.mp4.part.json.new").write_bytes(b"x" * 1_000)
    with PartFile(target, "task-1") as part:
        part.begin(Part(validator='"v1"', total=len(MEDIA)))
        part.write(MEDIA[:300])
    with PartFile(target, "task-1") as part:
        assert part.find() == Part(offset=300, validator='"v1"', total=len(MEDIA))


def test_changed_in_between(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that has changed since is fetched from its beginning, and nothing is mixed."""
    film, target = Film(OTHER, etag='"v2"'), tmp_path / "film.mp4"
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == OTHER


def test_changed_and_the_server_does_not_care(make_client: MakeClient, tmp_path: Path) -> None:
    """A part of a changed file is not appended to the old one, though the server sends it."""
    target = tmp_path / "film.mp4"
    changed = MEDIA[:100] + OTHER[100:] + MEDIA[len(OTHER) :]
    film = Film(changed, etag='"v2"')
    stretch = f"bytes 300-{len(MEDIA) - 1}/{len(MEDIA)}"
    film.instead.append(response_bytes(206, changed[300:], content_range=stretch, etag='"v2"'))
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == changed


ALIKE = bytes(255 - byte for byte in MEDIA)
"""Another version, of the same size."""


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ['ETag: "v2"'],
        ['ETag: W/"v1"'],
        ["ETag: v1"],
        ['ETag: "v2'],
        ["ETag:"],
        ['ETag: "v2", "v1"'],
        ['ETag: "v1"', 'ETag: "v2"'],
        ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"],
    ],
    ids=str,
)
def test_versions_are_never_mixed(
    make_client: MakeClient, tmp_path: Path, fields: list[str]
) -> None:
    """A rest that does not name the very validator of the part is not joined to it."""
    film, target = Film(ALIKE, etag='"v2"', content_type="image/png"), tmp_path / "film.mp4"
    stretch = f"Content-Range: bytes 300-{len(MEDIA) - 1}/{len(MEDIA)}"
    length = f"Content-Length: {len(MEDIA) - 300}"
    head = "\r\n".join(["HTTP/1.1 206 Partial Content", stretch, length, *fields, "", ""])
    film.instead.append(head.encode() + ALIKE[300:])
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == ALIKE
    assert film.ranges == ["bytes=300-", None]


def test_a_date_as_a_validator(make_client: MakeClient, tmp_path: Path) -> None:
    """Without an ETag, a download resumes by its date, and no file of another date is joined."""
    times = {"date": "Sun, 06 Nov 1994 08:59:37 GMT"}
    dates = [f"Sun, 06 Nov 1994 08:49:3{second} GMT" for second in (7, 8)]
    size = len(MEDIA)
    for there, saved, asked in ((MEDIA, dates[0], 2), (ALIKE, dates[1], 3)):
        film = Film(there, etag=None, cuts=(0,))
        film.instead.append(
            response_bytes(
                200, MEDIA[:300], content_length=str(size), last_modified=dates[0], **times
            )
        )

        def script(peer: Peer, film: Film = film, saved: str = saved, there: bytes = there) -> None:
            film.asked.append(peer.read_request())
            if film.instead:
                peer.send(film.instead.popleft())
                return
            if film.ranges[-1] is None:
                peer.send(response_bytes(200, there))
                return
            stretch = f"bytes 300-{size - 1}/{size}"
            peer.send(
                response_bytes(
                    206, there[300:], content_range=stretch, last_modified=saved, **times
                )
            )

        with ScriptedServer(script) as server:
            path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
        assert path.read_bytes() == there
        assert film.ranges[:2] == [None, "bytes=300-"]
        assert f"If-Range: {dates[0]}".encode() in film.asked[1]
        assert len(film.asked) == asked


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_result_that_its_store_has_encoded(
    make_client: MakeClient, tmp_path: Path, coding: str
) -> None:
    """A result that its store labels as encoded is decoded, and starts over if it is cut off."""
    packed = gzip.compress(MEDIA) if coding == "gzip" else zlib.compress(MEDIA)
    whole = response_bytes(200, packed, content_encoding=coding, etag='"v1"')
    film = Film()
    film.instead.extend([whole, whole])

    def script(peer: Peer) -> None:
        film.asked.append(peer.read_request())
        reply = film.instead.popleft()
        peer.send(reply[: -len(packed) // 2] if film.instead else reply)

    with ScriptedServer(script) as server:
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA
    assert film.ranges == [None, None]


@pytest.mark.parametrize("label", ["", "none", "aws-chunked", "utf-8", "identity"])
def test_a_label_that_is_no_coding(make_client: MakeClient, tmp_path: Path, label: str) -> None:
    """A result with a label that names no content coding is saved as it is, and resumes."""
    stretch = f"bytes 300-{len(MEDIA) - 1}/{len(MEDIA)}"
    fields = {"content_encoding": label, "etag": '"v1"'}
    replies = deque(
        [
            response_bytes(200, MEDIA, **fields)[: 300 - len(MEDIA)],
            response_bytes(206, MEDIA[300:], content_range=stretch, **fields),
        ]
    )

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(replies.popleft())

    with ScriptedServer(script) as server:
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA


@pytest.mark.parametrize(
    ("coding", "says"),
    [
        ("br", "the response is encoded as br, and only gzip and deflate can be decoded"),
        ("zstd", "the response is encoded as zstd, and only gzip and deflate can be decoded"),
        ("gzip", "the response is not gzip, as it says"),
    ],
)
def test_a_result_that_cannot_be_decoded(
    make_client: MakeClient, tmp_path: Path, coding: str, says: str
) -> None:
    """A result that cannot be decoded is asked for once, and no error says that it resumes."""
    with ScriptedServer(serve(200, MEDIA, content_encoding=coding, etag='"v1"')) as server:
        error = failed(make_client, server.url, tmp_path / "film.mp4")
        assert server.received.count(b"GET ") == 1
    assert says in str(error)
    assert "resume" not in str(error)
    assert not list(tmp_path.iterdir())


def test_an_encoded_result_is_bounded(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that decodes to more than the limit is given up once the limit is reached."""
    bomb = gzip.compress(bytes(16 * 1024 * 1024), 9)
    with ScriptedServer(serve(200, bomb, content_encoding="gzip")) as server:
        error = failed(make_client, server.url, tmp_path / "film.mp4", size_limit=100_000)
        assert server.received.count(b"GET ") == 1
    assert "100000 bytes" in str(error)
    assert not list(tmp_path.rglob("*.mp4"))


def test_no_validator(make_client: MakeClient, tmp_path: Path) -> None:
    """A file without a version is fetched from its beginning after it was cut off."""
    film = Film(etag=None, cuts=(300,))
    with ScriptedServer(film) as server:
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA
    assert film.ranges == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        response_bytes(200, MEDIA, etag='"v1"'),
        response_bytes(206, MEDIA[200:], content_range=f"bytes 200-{len(MEDIA) - 1}/{len(MEDIA)}"),
        response_bytes(206, MEDIA[301:], content_range=f"bytes 301-{len(MEDIA) - 1}/{len(MEDIA)}"),
        response_bytes(206, MEDIA[300:], content_range=f"bytes 300-{len(MEDIA) - 1}/9999"),
        response_bytes(206, MEDIA[300:400], content_range=f"bytes 300-399/{len(MEDIA)}"),
        response_bytes(
            206, MEDIA[300:400], content_range=f"bytes 300-{len(MEDIA) - 1}/{len(MEDIA)}"
        ),
        response_bytes(206, MEDIA[300:], content_range="bytes x"),
        response_bytes(206, MEDIA[300:]),
        response_bytes(416, b""),
    ],
    ids=["200", "before", "behind", "total", "middle", "short", "junk", "none", "416"],
)  # fmt: skip
def test_an_odd_answer_to_a_range(make_client: MakeClient, tmp_path: Path, answer: bytes) -> None:
    """Whatever the server sends instead of the rest, the saved file is correct in the end."""
    film, target = Film(), tmp_path / "film.mp4"
    film.instead.append(answer)
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA


def test_never_whole(make_client: MakeClient, tmp_path: Path) -> None:
    """A download that is always cut off before anything new arrives fails."""
    film = Film(cuts=(0,) * 50)
    with ScriptedServer(film) as server:
        failed(make_client, server.url, tmp_path / "film.mp4")
    assert len(film.asked) <= 10
    assert not list(tmp_path.iterdir())


def test_empty(make_client: MakeClient, tmp_path: Path) -> None:
    """An empty file is not a result."""
    with ScriptedServer(Film(b"")) as server:
        failed(make_client, server.url, tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_without_a_length(make_client: MakeClient, tmp_path: Path) -> None:
    """A file of undeclared length ends with its connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(head + MEDIA)

    with ScriptedServer(script) as server:
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/a\\b.mp4?sig=c\\d", b"/a%5Cb.mp4?sig=c%5Cd"),
        ("/a b|c.mp4?sig={d e}", b"/a%20b|c.mp4?sig={d%20e}"),
        ("/é%5C.mp4?sig=a%2Fb+c#part", b"/%C3%A9%5C.mp4?sig=a%2Fb+c"),
        ("/a//%2e./b;c=[d]^`.mp4", b"/a//%2e./b;c=[d]^`.mp4"),
    ],
)
def test_paths_that_no_rule_allows(
    make_client: MakeClient, tmp_path: Path, path: str, sent: bytes
) -> None:
    """A link with characters that URLs must not have is followed, and its signature is kept."""
    film = Film()
    with ScriptedServer(film) as server:
        film.instead.append(response_bytes(302, b"", location=path.encode().decode("latin-1")))
        client = make_client(server.url)
        client.download(f"{server.url}/film.mp4", tmp_path / "a.mp4")
        client.download(f"{server.url}{path}", tmp_path / "b.mp4")
    assert [head.split(b" ")[1] for head in film.asked[1:]] == [sent, sent]
    assert (tmp_path / "b.mp4").read_bytes() == MEDIA


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("https://cdn.test\\@127.0.0.1/a.mp4", "contains a backslash"),
        ("https://cdn.test/a\tb.mp4", "contains white space"),
        ("https://cdn.test/a\0b.mp4", "contains a control character"),
    ],
)
def test_links_that_cannot_be_sent(
    make_client: MakeClient, tmp_path: Path, link: str, says: str
) -> None:
    """A link that may be meant for two hosts, or would split the request, is refused by name."""
    with pytest.raises(InvalidAddress, match=says):
        make_client("https://service.test").download(link, tmp_path / "a.mp4")


@pytest.mark.parametrize("hops", [1, 5])
def test_redirects(make_client: MakeClient, tmp_path: Path, hops: int) -> None:
    """Up to five redirects within the service's own host are followed, to any port of it."""
    target, film = Film(), Film()
    with ScriptedServer(target) as last, ScriptedServer(film) as server:
        for hop in range(hops - 1):
            film.instead.append(response_bytes(307, b"", location=f"/hop/{hop}"))
        film.instead.append(response_bytes(302, b"", location=f"{last.url}/b.mp4"))
        path = make_client(server.url).download(f"{server.url}/film.mp4", tmp_path)
    assert path.read_bytes() == MEDIA
    assert len(film.asked) == hops


def test_too_many_redirects(make_client: MakeClient, tmp_path: Path) -> None:
    """The sixth redirect is not followed."""
    with ScriptedServer(serve(302, b"", location="/again")) as server:
        error = failed(make_client, server.url, tmp_path / "film.mp4")
        assert server.received.count(b"GET ") == 6
    assert "redirect" in str(error)


@pytest.mark.parametrize(
    "place",
    [
        "http://example.com/a.mp4",
        "http://10.0.0.1/a.mp4",
        "https://10.0.0.1/a.mp4",
        "https://192.168.1.1/a.mp4",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/a.mp4",
        "https://[::1]/a.mp4",
        "https://[::ffff:10.0.0.1]/a.mp4",
        "https://2130706433/a.mp4",
        "https://0x7f.1/a.mp4",
        "https://printer.local/a.mp4",
        "https://user:pass@example.com/a.mp4",
        "ftp://127.0.0.1/a.mp4",
        "file:///etc/passwd",
        "data:video/mp4;base64,AAAA",
        "https://",
        "https://[",
        "//10.0.0.1/a.mp4",
        "https://exa mple.com/",
    ],
)
def test_places_that_are_not_downloaded_from(
    make_client: MakeClient, tmp_path: Path, place: str
) -> None:
    """Neither a link nor a redirect leads to a private host or off http and https."""
    with ScriptedServer(serve(302, b"", location=place)) as server:
        error = failed(make_client, server.url, tmp_path / "film.mp4")
        assert len(server.peers) == 1
    assert "user:" not in str(error)
    if "://" in place:
        with pytest.raises(InvalidAddress):
            make_client("https://service.test").download(place, tmp_path / "new" / "film.mp4")
    result = Result(id="task-1", status=Status.COMPLETED, video_url=place)
    with pytest.raises((InvalidAddress, DownloadFailed)):
        make_client("https://service.test").download(result, tmp_path / "new" / "film.mp4")
    assert not (tmp_path / "new").exists()


def test_too_large(make_client: MakeClient, tmp_path: Path) -> None:
    """A file over the limit is refused before or while it comes, and the limit can be lifted."""
    target = tmp_path / "film.mp4"
    with ScriptedServer(Film()) as server:
        assert "100 bytes" in str(failed(make_client, server.url, target, size_limit=100))
        make_client(server.url).download(f"{server.url}/a", target, size_limit=None)
    assert target.read_bytes() == MEDIA


def test_too_large_by_its_word(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that declares more than 4 GiB is rejected, unless the caller has no limit."""
    huge = response_bytes(200, MEDIA, content_length=str(5 * 1024**3), content_type="video/mp4")

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(huge)

    with ScriptedServer(script) as server:
        assert "more than" in str(failed(make_client, server.url, tmp_path / "film.mp4"))
        assert len(server.peers) == 1
        error = failed(make_client, server.url, tmp_path / "film.mp4", size_limit=None)
    assert "more than" not in str(error)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<html>not found</html>"),
        ("application/json", b'{"error": "gone"}'),
        ("video/mp4", b"<!doctype html>"),
        ("video/mp4", b'\n {"error": "gone"}'),
        ("text/html; charset=utf-8", MEDIA),
    ],
)
def test_pages_and_messages(
    make_client: MakeClient, tmp_path: Path, kind: str, body: bytes
) -> None:
    """A web page or an error message is not a result, whatever its status."""
    with ScriptedServer(serve(200, body, content_type=kind)) as server:
        failed(make_client, server.url, tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_dead_link(make_client: MakeClient, tmp_path: Path, status: int) -> None:
    """If no task is known, a link that no longer works is reported as expired."""
    with ScriptedServer(serve(status, b"gone")) as server:
        error = failed(make_client, server.url, tmp_path / "film.mp4")
        assert len(server.peers) == 1
    assert isinstance(error, LinkExpired)
    assert error.status == status


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_fresh_link(make_client: MakeClient, tmp_path: Path, status: int) -> None:
    """If the task is known, the service is asked once for a fresh link, with the key."""
    film = Film()
    with ScriptedServer(film) as server:
        fresh = {"id": "task-1", "status": "completed", "video_url": f"{server.url}/fresh.mp4"}
        film.instead.extend(
            [response_bytes(status), response_bytes(200, json.dumps(fresh).encode())]
        )
        old = Result(id="task-1", status=Status.COMPLETED, video_url=f"{server.url}/old.mp4")
        path = make_client(server.url).download(old, tmp_path)
    assert path == tmp_path / "task-1.mp4"
    assert path.read_bytes() == MEDIA
    paths = [head.split(b" ")[1] for head in film.asked]
    assert paths == [b"/old.mp4", b"/v1/result/task-1", b"/fresh.mp4"]
    keyed = [KEY.encode() in head for head in film.asked]
    assert keyed == [False, True, False]


def test_fresh_links_are_asked_for_once(make_client: MakeClient, tmp_path: Path) -> None:
    """If the fresh link does not work either, the download fails; the error has the task."""
    film = Film()
    with ScriptedServer(film) as server:
        url = f"{server.url}/fresh.mp4"
        fresh = {"id": "task-1", "status": "completed", "video_url": url}
        film.instead.extend(
            [
                response_bytes(404),
                response_bytes(200, json.dumps(fresh).encode()),
                response_bytes(404),
            ]
        )
        old = Result(id="task-1", status=Status.COMPLETED, video_url=url)
        with pytest.raises(LinkExpired) as caught:
            make_client(server.url).download(old, tmp_path)
    assert caught.value.task is not None
    assert caught.value.task.id == "task-1"
    assert len(film.asked) == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "..", "%2e%2e", "..%2f..%2fetc", "CON", "con.mp4", "nul", "lpt1.png", "x" * 300,
        "%00", "a%00b.mp4", "%F0%9F%90%8E.mp4", ".hidden", "a%0Ab.mp4", "trailing.", "a%5Cb", "",
        "%ff%fe.mp4", "..mp4",
    ],
)  # fmt: skip
def test_hostile_names(make_client: MakeClient, tmp_path: Path, name: str) -> None:
    """The name of a file in a folder holds only letters, digits, `_`, `-` and a known suffix."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with ScriptedServer(Film()) as server:
        path = make_client(server.url).download(f"{server.url}/media/{name}?x=1", folder)
    assert path.parent == folder
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == [path]
    stem, _, suffix = path.name.partition(".")
    assert suffix == "mp4"
    assert stem.replace("_", "").replace("-", "").isalnum() or stem == "_"
    assert stem.isascii()
    assert len(path.name) <= 110
    assert stem.lower() not in ("con", "nul", "lpt1")


def test_file_or_folder(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """A path is a folder if it is one or ends with a slash, and is made where it is missing."""
    client = make_client(world)
    result = client.run(image())
    made = client.download(result, f"{tmp_path}/new/folder/")
    assert made == tmp_path / "new" / "folder" / f"{result.id}.png"
    assert client.download(result, tmp_path / "file") == tmp_path / "file"
    assert client.download(result, tmp_path / "a.mp4") == tmp_path / "a.mp4"
    assert (tmp_path / "file").read_bytes() == PNG


def test_an_older_file(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that is there already stays as it is until the new one is whole."""
    target = tmp_path / "film.mp4"
    target.write_bytes(b"old")
    with ScriptedServer(serve(404)) as server, pytest.raises(LinkExpired):
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == b"old"
    with ScriptedServer(Film()) as server:
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA


@posix
@pytest.mark.parametrize("name", ["film.mp4", "film.mp4.part", "film.mp4.part.json",
                                  "film.mp4.part.json.new"])  # fmt: skip
def test_a_link_in_the_way(make_client: MakeClient, tmp_path: Path, name: str) -> None:
    """A symbolic link under any name that is written to is never followed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    (tmp_path / name).symlink_to(elsewhere)
    target = tmp_path / "film.mp4"
    with ScriptedServer(Film()) as server:
        try:
            make_client(server.url).download(f"{server.url}/film.mp4", target)
        except DownloadFailed:
            assert not target.exists()
        else:
            assert target.read_bytes() == MEDIA
            assert not target.is_symlink()
    assert elsewhere.read_bytes() == b"precious"


@posix
@pytest.mark.parametrize("name", ["film.mp4.part", "film.mp4.part.json", "film.mp4.part.json.new"])
def test_another_name_of_a_part(make_client: MakeClient, tmp_path: Path, name: str) -> None:
    """A file that has a name of ours as a second name, such as in a backup, is not written to."""
    target, copies = tmp_path / "film.mp4", tmp_path / "copies"
    copies.mkdir()
    film = Film()
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        if not (tmp_path / name).exists():
            (tmp_path / name).write_bytes(b"precious")
        before = (tmp_path / name).read_bytes()
        (copies / name).hardlink_to(tmp_path / name)
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == MEDIA
    assert (copies / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copies", "film.mp4"]


@posix
def test_a_new_folder_is_on_the_disk(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of each folder that a download makes is flushed to the disk before its file is."""
    flushed: list[int] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        flushed.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    with ScriptedServer(Film()) as server:
        path = make_client(server.url).download(f"{server.url}/a.mp4", tmp_path / "a" / "b" / "c")
    folders = [tmp_path, tmp_path / "a", path, tmp_path / "a" / "b"]
    assert flushed == [folder.stat().st_ino for folder in folders]


@pytest.mark.parametrize(
    "target", ["taken/film.mp4", "x" * 300, "x" * 300 + "/film.mp4", "taken/"], ids=len
)
def test_no_place_to_save(make_client: MakeClient, tmp_path: Path, target: str) -> None:
    """A place that cannot be written to is reported as such, and the task is kept."""
    (tmp_path / "taken").write_bytes(b"a file")
    task = Task(id="task-1")
    with pytest.raises(DownloadFailed) as caught:
        make_client("https://service.test").download(task, f"{tmp_path}/{target}")
    assert caught.value.task == task
    assert (tmp_path / "taken").read_bytes() == b"a file"


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(make_client: MakeClient, tmp_path: Path) -> None:
    """A folder that cannot be written to is reported as such, and the task is kept."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    with pytest.raises(DownloadFailed, match="ermission") as caught:
        make_client("https://service.test").download(Task(id="task-1"), folder / "film.mp4")
    assert caught.value.task is not None


@posix
@pytest.mark.parametrize("limit", [1, 300, len(MEDIA) - 1])
def test_a_full_disk(driver: str, tmp_path: Path, limit: int) -> None:
    """A disk that takes only part of a file leaves no file that looks whole."""
    target = tmp_path / "film.mp4"
    film = Film()
    with ScriptedServer(film) as server:
        url = f"{server.url}/film.mp4"
        with downloading(driver, server.url, url, target, file_limit=limit) as child:
            said, _ = child.communicate(timeout=30)
    assert said.splitlines()[-1].startswith("DownloadFailed")
    assert not target.exists()


def test_a_write_that_fails(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the file system says at the end, the error keeps the task and no file appears."""
    client = make_client(world)
    result = client.run(image())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DownloadFailed, match="No space left on device") as caught:
        client.download(result, tmp_path / "a.png")
    assert caught.value.task is not None
    assert caught.value.task.id == result.id
    assert not (tmp_path / "a.png").exists()


class Held:
    """A film that pauses after 300 bytes until it is released."""

    def __init__(self) -> None:
        self.film = Film()
        self.go = threading.Event()

    def __call__(self, peer: Peer) -> None:
        while True:
            head = peer.read_request()
            self.film.asked.append(head)
            reply = self.film.reply(head)
            if self.go.is_set():
                peer.send(reply)
                continue
            split = reply.index(b"\r\n\r\n") + 4 + 300
            peer.send(reply[:split])
            self.go.wait(20)
            peer.send(reply[split:])


@posix
def test_two_processes(make_client: MakeClient, driver: str, tmp_path: Path) -> None:
    """If two processes save to one file, one succeeds; the other's error keeps its task."""
    held, target = Held(), tmp_path / "film.mp4"
    with ScriptedServer(held) as server:
        url = f"{server.url}/film.mp4"
        with downloading(driver, server.url, url, target) as child:
            assert child.stdout is not None
            assert "at 300\n" in iter(child.stdout.readline, "")
            with pytest.raises(DownloadFailed, match="another") as caught:
                make_client(server.url).download(Task(id="task-1"), target)
            held.go.set()
            said, _ = child.communicate(timeout=20)
    assert caught.value.task == Task(id="task-1")
    assert said.splitlines()[-1] == f"saved {target}"
    assert target.read_bytes() == MEDIA
    assert list(tmp_path.iterdir()) == [target]


@posix
def test_killed(make_client: MakeClient, driver: str, tmp_path: Path) -> None:
    """A process that is killed leaves the part and its note, and the next one resumes."""
    held, target = Held(), tmp_path / "film.mp4"
    with ScriptedServer(held) as server:
        url = f"{server.url}/film.mp4"
        with downloading(driver, server.url, url, target) as child:
            assert child.stdout is not None
            assert "at 300\n" in iter(child.stdout.readline, "")
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == ["film.mp4.part", "film.mp4.part.json"]
        held.go.set()
        make_client(server.url).download(url, target)
    assert target.read_bytes() == MEDIA
    assert held.film.ranges == [None, "bytes=300-"]
    assert list(tmp_path.iterdir()) == [target]


def test_killed_as_a_new_version_began(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at whatever step of starting over, a part is never taken for the new version's."""
    target = tmp_path / "film.mp4"
    changed = MEDIA[:100] + OTHER[100:] + MEDIA[len(OTHER) :]
    replace = Path.replace

    def killed(self: Path, to: Path) -> Path:
        replace(self, to)
        raise SystemExit

    film = Film(changed, etag='"v2"')
    with ScriptedServer(film) as server:
        broken_off(make_client, server, target)
        monkeypatch.setattr(Path, "replace", killed)
        with pytest.raises(SystemExit):
            make_client(server.url).download(f"{server.url}/film.mp4", target)
        monkeypatch.undo()
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    assert target.read_bytes() == changed
