"""Downloads: resumed where they were cut off, checked at every hop and at their end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import (
    DownloadFailed,
    Forbidden,
    InvalidAddress,
    LinkExpired,
    NotCompleted,
    Refused,
    TaskFailed,
    Unauthorized,
)
from muybridge_protocol.events import DownloadProgress, WillRetry
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.operations import Download, Fetch, Send
from muybridge_protocol.operations.download import Part, Saved
from muybridge_protocol.service import Service

from .driving import (
    DONE,
    LINK,
    SERVICE,
    After,
    Reaction,
    Run,
    Streamed,
    download,
    drive,
    lost,
    media,
    next_action,
    raw,
    repeat,
    reply,
    result,
    task,
    unsent,
)

FILE = bytes(range(128, 228))
ETAG = '"v1"'
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


def whole(file: bytes = FILE, size: int = 100, **headers: str) -> Streamed:
    pieces = [file[at : at + 7] for at in range(0, len(file), 7)]
    told = {"Content_Length": str(size), "ETag": ETAG, "Content_Type": "video/mp4", **headers}
    return media(200, *pieces, broken=len(file) < size, **told)


def rest(start: int, stop: int = 100, size: int | str = 100, **headers: str) -> Streamed:
    told = {"Content_Range": f"bytes {start}-99/{size}", "ETag": ETAG, "Content_Type": "video/mp4"}
    return media(206, FILE[start:stop], broken=stop < 100, **{**told, **headers})


def header(request: HttpRequest, name: str) -> str | None:
    return dict(request.headers).get(name)


def saved(size: int, content_type: str, *, verified: bool) -> Saved:
    return Saved(size=size, content_type=content_type, length_verified=verified)


def check_whole(run: Run) -> None:
    assert run.outcome == saved(100, "video/mp4", verified=True)
    assert bytes(run.disk) == FILE


def test_a_whole_file() -> None:
    """A file that comes in one response is saved, and its length is verified."""
    run = drive(download(), whole())
    check_whole(run)
    assert run.urls == [LINK]
    progress = [event.received for event in run.events if isinstance(event, DownloadProgress)]
    assert progress[-1] == 100
    assert progress == sorted(progress)


def test_a_download_is_never_authorized() -> None:
    """No request of a download wants the key, and none names a saved cookie or a login."""
    scripts: list[list[Reaction]] = [
        [whole(FILE[:30]), rest(30)],
        [reply(302, Location="https://api.example.com/here"), whole()],
        [reply(307, Location="https://api.example.com/a"), reply(500), whole()],
        [reply(416), whole()],
    ]
    for script in scripts:
        run = drive(download(), *script)
        check_whole(run)
        for request in run.requests:
            assert not request.authorized
            assert not request.paid
            assert {name for name, _ in request.headers} <= {
                "Accept", "Accept-Encoding", "User-Agent", "Range", "If-Range",
            }  # fmt: skip


def test_what_a_driver_must_watch() -> None:
    """A download names an idle timeout, no body limit, and public hosts alone."""
    action = next_action(download(), 0)
    assert isinstance(action, Fetch)
    assert action.request.public_host_only
    assert action.request.idle_timeout == 60
    assert action.request.body_limit is None
    assert header(action.request, "Accept-Encoding") == "identity"
    assert action.deadline == 3600


@pytest.mark.parametrize("base", ["http://127.0.0.1:8080", "http://localhost", "https://10.0.0.7"])
def test_the_services_own_host_is_exempt(base: str) -> None:
    """The service's own host may be a private one, and no other private host may."""
    service = Service(base_url=base)
    own = service.url("/files/a.mp4")
    action = next_action(Download.start(own, service, now=0, seed=0), 0)
    assert isinstance(action, Fetch)
    assert not action.request.public_host_only
    with pytest.raises(InvalidAddress):
        Download.start("https://192.168.0.1/a.mp4", service, now=0, seed=0)


# Resuming.


@pytest.mark.parametrize("cut", [1, 50, 99])
def test_resumed_after_truncation(cut: int) -> None:
    """A file that was cut off resumes after its last byte, under its validator."""
    run = drive(download(), whole(FILE[:cut]), rest(cut))
    check_whole(run)
    assert header(run.requests[0], "Range") is None
    assert header(run.requests[0], "If-Range") is None
    assert header(run.requests[1], "Range") == f"bytes={cut}-"
    assert header(run.requests[1], "If-Range") == ETAG
    assert [type(e) for e in run.events if not isinstance(e, DownloadProgress)] == [WillRetry]


def test_resumed_after_a_silent_end() -> None:
    """A body that ends early without a fault is resumed too, because its length was declared."""
    short = media(200, FILE[:40], Content_Length="100", ETag=ETAG, Content_Type="video/mp4")
    check_whole(drive(download(), short, rest(40)))


def test_resumed_many_times() -> None:
    """A download is retried for as long as every attempt brings something new."""
    script = [whole(FILE[:1]), *(rest(at, at + 1) for at in range(1, 99)), rest(99)]
    run = drive(download(), *script)
    check_whole(run)
    assert len(run.requests) == 100


def test_resumed_from_a_saved_part() -> None:
    """A part that an earlier process has saved is resumed."""
    part = Part(offset=60, validator=ETAG, total=100)
    run = drive(download(part=part), rest(60), disk=FILE[:60])
    check_whole(run)
    assert header(run.requests[0], "Range") == "bytes=60-"
    assert header(run.requests[0], "If-Range") == ETAG


def test_a_part_without_validator_is_fetched_anew() -> None:
    """Without a validator the part may be of another file: the download starts again."""
    run = drive(download(part=Part(offset=60)), whole(), disk=b"x" * 60)
    check_whole(run)
    assert header(run.requests[0], "Range") is None
    mixed = drive(
        download(part=Part(offset=60)),
        media(206, FILE[60:], Content_Range="bytes 60-99/100", Content_Type="video/mp4"),
        whole(),
        disk=b"x" * 60,
    )
    check_whole(mixed)


def test_a_200_restarts() -> None:
    """A server that answers a range with 200 sends the whole file, which replaces the part."""
    run = drive(download(part=Part(offset=60, validator=ETAG)), whole(), disk=b"x" * 60)
    check_whole(run)


@pytest.mark.parametrize(
    "content_range",
    [
        "bytes 59-99/100",
        "bytes 61-99/100",
        "bytes 0-99/100",
        "bytes 60-98/100",
        "bytes 60-100/100",
        "bytes 60-99/101",
        "bytes 60-100/101",
        "bytes 60-/100",
        "bytes */100",
        "bytes=60-99/100",
        "items 60-99/100",
        "bytes -60-99/100",
        "bytes ٦٠-99/100",
        "",
        "60-99/100",
    ],
)
def test_another_part_than_asked_for(content_range: str) -> None:
    """A 206 with another offset, end or total is dropped, and the file is fetched again."""
    part = Part(offset=60, validator=ETAG, total=100)
    wrong = rest(60, Content_Range=content_range)
    run = drive(download(part=part), wrong, whole(), disk=FILE[:60])
    check_whole(run)
    assert header(run.requests[1], "Range") is None


def test_a_206_without_content_range() -> None:
    """A 206 that does not say which part it is, as with several ranges, is dropped."""
    part = Part(offset=60, validator=ETAG, total=100)
    odd = media(206, FILE[60:], ETag=ETAG, Content_Type="multipart/byteranges; boundary=x")
    check_whole(drive(download(part=part), odd, whole(), disk=FILE[:60]))


def test_an_unknown_total_in_a_range() -> None:
    """A 206 without a total resumes with the total that is known; else it may not be all."""
    known = Part(offset=60, validator=ETAG, total=100)
    run = drive(download(part=known), rest(60, size="*"), disk=FILE[:60])
    check_whole(run)
    unknown = Part(offset=60, validator=ETAG)
    open_end = drive(download(part=unknown), rest(60, size="*"), whole(), disk=FILE[:60])
    check_whole(open_end)
    assert header(open_end.requests[1], "Range") is None


SETTLED = {"Last_Modified": DATE, "Date": "Sun, 06 Nov 1994 08:50:37 GMT"}
"""The headers of a file that had not just been modified."""


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"v2"'},
        {"ETag": 'W/"v1"'},
        {"ETag": 'W/"v1"', **SETTLED},
        {"ETag": "", **SETTLED},
        {"ETag": "v1"},
        {"ETag": '"v1", "v2"'},
        {"ETag": ""},
        SETTLED,
        {},
    ],
    ids=repr,
)
@pytest.mark.parametrize("begun", [ETAG, DATE])
def test_a_changed_validator(begun: str, headers: dict[str, Any]) -> None:
    """Only a 206 that names the very validator of the part continues it."""
    part = Part(offset=60, validator=begun, total=100)
    same = begun == DATE and headers == SETTLED
    stretch = {"Content_Range": "bytes 60-99/100", "Content_Type": "video/mp4"}
    answer = media(206, FILE[60:], **stretch, **headers)
    run = drive(download(part=part), answer, whole(), disk=FILE[:60] if same else b"y" * 60)
    check_whole(run)
    assert len(run.requests) == (1 if same else 2)
    if not same:
        assert header(run.requests[1], "Range") is None


def test_a_validator_given_twice() -> None:
    """Two validators, or two ranges, are no proof of one version, though one of them fits."""
    stretch = ("Content-Range", "bytes 60-99/100")
    for more in (("ETag", '"v2"'), ("ETag", ""), ("Content-Range", "bytes 0-39/100")):
        part = Part(offset=60, validator=ETAG, total=100)
        begun = download(part=part).accept(HttpHead(206, (stretch, ("ETag", ETAG), more)), 0.0)
        assert begun.part == Part()


def test_a_resumed_rest_keeps_its_validator() -> None:
    """A rest that is cut off resumes under the same validator."""
    part = Part(offset=60, validator=ETAG, total=100)
    run = drive(download(part=part), rest(60, 70), rest(70), disk=FILE[:60])
    check_whole(run)
    assert header(run.requests[1], "If-Range") == ETAG


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": ETAG}, ETAG),
        ({"ETag": ETAG, **SETTLED}, ETAG),
        ({"ETag": 'W/"v1"', **SETTLED}, None),
        ({"ETag": "", **SETTLED}, None),
        (SETTLED, DATE),
        ({**SETTLED, "Date": "Sun, 06 Nov 1994 08:50:36 GMT"}, None),
        ({"Last_Modified": DATE, "Date": "now"}, None),
        ({"Last_Modified": DATE}, None),
        ({"Last_Modified": "now", "Date": DATE}, None),
        ({"ETag": 'W/"v1"'}, None),
        ({"ETag": "v1"}, None),
        ({"ETag": '""'}, None),
        ({"ETag": '"v\x011"'}, None),
        ({"ETag": '"v"1"'}, None),
        ({"ETag": '"ü"'}, None),
        ({**SETTLED, "Last_Modified": "x\r\nEvil: 1"}, None),
        ({}, None),
    ],
)
def test_validators(headers: dict[str, str], validator: str | None) -> None:
    """Only a strong ETag, or a date that is as good, is a validator; else the file is refetched."""
    first = media(200, FILE[:50], broken=True, Content_Length="100", **headers)
    run = drive(download(), first, whole())
    check_whole(run)
    assert header(run.requests[1], "If-Range") == validator
    assert header(run.requests[1], "Range") == ("bytes=50-" if validator else None)


def test_416_restarts() -> None:
    """A 416 drops the part, whose file is another one now."""
    part = Part(offset=200, validator=ETAG, total=300)
    run = drive(download(part=part), reply(416), whole(), disk=b"z" * 200)
    check_whole(run)
    assert header(run.requests[1], "Range") is None


# Ends.


@pytest.mark.parametrize(
    "reaction",
    [
        lost(),
        unsent(),
        reply(500),
        reply(503),
        reply(408),
        reply(429),
        reply(416),
        reply(100),
        media(200, Content_Length="0"),
        media(200),
        media(200, b"", b""),
        media(200, broken=True, Content_Length="9"),
        media(206, b"\x80", Content_Range="bytes 5-5/6"),
    ],
    ids=repr,
)
def test_tries_without_progress_end(reaction: Reaction) -> None:
    """After five attempts in a row that brought nothing new a download ends."""
    run = drive(download(), forever=reaction)
    assert type(run.outcome) is DownloadFailed
    assert len(run.requests) == 5
    assert run.now < 120


@pytest.mark.parametrize("headers", [{}, {"ETag": ETAG, "Content_Length": "100"}, {"ETag": ETAG}])
def test_a_server_that_never_gets_further(headers: dict[str, str]) -> None:
    """A file that is always cut off at the same byte, and always starts again, ends too."""
    run = drive(download(), forever=media(200, FILE[:50], broken=True, **headers))
    assert type(run.outcome) is DownloadFailed
    assert len(run.requests) == 5


def test_a_part_that_changes_for_ever() -> None:
    """A file whose validator changes with every response ends too."""
    script = [media(200, FILE[:50], broken=True, ETag=f'"{n}"') for n in range(40)]
    assert type(drive(download(), *script).outcome) is DownloadFailed


def test_progress_renews_the_tries() -> None:
    """Tries are counted anew after one that brought something."""
    script: list[Reaction] = [
        whole(FILE[:10]),
        *[lost()] * 3,
        rest(10, 20),
        *[reply(500)] * 3,
        rest(20),
    ]
    check_whole(drive(download(), *script))


def test_no_length() -> None:
    """A file whose length was not told is saved, and its length is not verified."""
    lengths: list[dict[str, Any]] = [
        {},
        {"Content_Length": "junk"},
        {"Content_Length": "-1"},
        {"Content_Length": "1_00"},
        {"Content_Length": "9" * 30},
    ]
    for headers in lengths:
        run = drive(download(), media(200, FILE, Content_Type="image/png", **headers))
        assert run.outcome == saved(100, "image/png", verified=False)


def test_more_bytes_than_announced() -> None:
    """More bytes than were announced are an error, and none of them is saved."""
    run = drive(download(), media(200, FILE, b"\x80", Content_Length="100"))
    assert type(run.outcome) is DownloadFailed
    assert bytes(run.disk) == FILE


@pytest.mark.parametrize("limit", [99, 50, 1, 0])
def test_too_large(limit: int) -> None:
    """A file over the size limit ends the download, by its header or by its bytes."""
    by_header = drive(download(size_limit=limit), whole())
    assert type(by_header.outcome) is DownloadFailed
    assert str(limit) in str(by_header.outcome)
    assert bytes(by_header.disk) == b""
    by_count = drive(download(size_limit=limit), media(200, *(bytes([b]) for b in FILE)))
    assert type(by_count.outcome) is DownloadFailed
    assert len(by_count.disk) == limit
    part = Part(offset=60, validator=ETAG)
    resumed = drive(download(size_limit=limit, part=part), rest(60), disk=FILE[:60])
    assert type(resumed.outcome) is DownloadFailed


@pytest.mark.parametrize("limit", [100, None])
def test_not_too_large(limit: int | None) -> None:
    """A file of exactly the size limit is saved; None lifts the limit."""
    check_whole(drive(download(size_limit=limit), whole()))
    huge = drive(download(size_limit=limit), forever=whole(size=5 * 1024**4))
    assert ("more than 100 bytes" in str(huge.outcome)) is (limit == 100)


def test_the_usual_limit() -> None:
    """A download takes at most 4 GiB unless told otherwise."""
    run = drive(download(), whole(size=4 * 1024**3 + 1))
    assert "4294967296 bytes" in str(run.outcome)


def test_deadline() -> None:
    """A download ends at its deadline, whatever it is doing."""
    run = drive(download(deadline=10), After(11, lost()))
    assert type(run.outcome) is DownloadFailed
    assert "too long" in str(run.outcome)
    waiting = drive(download(deadline=10), reply(503, Retry_After="100"))
    assert waiting.now == 10
    assert type(waiting.outcome) is DownloadFailed
    late = drive(download(deadline=10), After(11, whole()))
    check_whole(late)
    query = drive(download(None, about=task(), deadline=10), forever=After(20, reply(500)))
    assert query.deadlines == [10]


# Media.

PAGES = [
    b"<!DOCTYPE html><title>Sign in</title>",
    b"<html>",
    b"  \r\n\t<HTML>",
    b"\xef\xbb\xbf<?xml version='1.0'?>",
    b'{"error":"expired"}',
    b'[{"error":1}]',
    b"\n{",
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_no_media(page: bytes) -> None:
    """A body that begins like HTML, XML or JSON is not media, in whatever pieces it comes."""
    for pieces in ([page], [b"", page], [page[at : at + 1] for at in range(len(page))]):
        run = drive(download(), media(200, *pieces, Content_Type="video/mp4"))
        assert type(run.outcome) is DownloadFailed
        assert bytes(run.disk) == b""


@pytest.mark.parametrize(
    "content_type",
    ["text/html", "TEXT/HTML; charset=utf-8", "application/json", "application/problem+json",
     "text/plain", "application/xml", "text/xml", "application/xhtml+xml"],
)  # fmt: skip
def test_a_page_by_its_type(content_type: str) -> None:
    """A response whose type is a page's or a message's is not media, and is not read."""
    run = drive(download(), media(200, FILE, Content_Type=content_type))
    assert type(run.outcome) is DownloadFailed
    assert bytes(run.disk) == b""


@pytest.mark.parametrize(
    "start",
    [
        b"\x89PNG\r\n\x1a\n",
        b"\x00\x00\x00\x18ftypmp42",
        b"\x00\x00\x00 ftypisom",
        b"\xff\xd8\xff\xe0",
        b"RIFF\x00\x00\x00\x00WEBP",
        b"GIF89a",
        b"\x1aE\xdf\xa3",
    ],
)
def test_media_is_media(start: bytes) -> None:
    """A PNG, MP4, JPEG, WebP, GIF or WebM is saved under any type that is not a page's."""
    for content_type in ("video/mp4", "application/octet-stream", "image/png", ""):
        run = drive(download(), media(200, start, b"<{[", Content_Type=content_type))
        assert run.outcome == saved(len(start) + 3, content_type, verified=False)


def test_brackets_inside_a_file() -> None:
    """A resumed file may continue with any byte."""
    part = Part(offset=1, validator=ETAG, total=3)
    run = drive(
        download(part=part),
        media(206, b"<{", Content_Range="bytes 1-2/3", ETag=ETAG),
        disk=b"\x89",
    )
    assert bytes(run.disk) == b"\x89<{"


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "Deflate", "identity, gzip", "gzip,"])
def test_a_coding_that_the_transport_undoes(coding: str) -> None:
    """A file that is decoded on its way is saved, whatever its encoded length is."""
    coded = media(200, FILE, Content_Encoding=coding, Content_Length="7", Content_Type="video/mp4")
    run = drive(download(), coded)
    assert run.outcome == saved(100, "video/mp4", verified=False)
    assert bytes(run.disk) == FILE
    by_count = drive(download(size_limit=99), coded)
    assert "more than 99 bytes" in str(by_count.outcome)


@pytest.mark.parametrize("label", ["", "none", "aws-chunked", "utf-8", "Identity", "x, ,y"])
def test_a_label_that_is_no_coding(label: str) -> None:
    """A store's label that is no registered coding changes nothing: the length is verified."""
    check_whole(drive(download(), whole(Content_Encoding=label)))
    resumed = [whole(FILE[:50], Content_Encoding=label), rest(50, Content_Encoding=label)]
    check_whole(drive(download(), *resumed))


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress", "gzip, br"])
def test_a_coding_that_cannot_be_undone(coding: str) -> None:
    """A file in another coding is asked for once, and the error names what can be decoded."""
    run = drive(download(), whole(Content_Encoding=coding))
    assert isinstance(run.outcome, DownloadFailed)
    assert f"encoded as {coding}, and only gzip and deflate can be decoded" in str(run.outcome)
    assert run.outcome.lasting
    assert len(run.requests) == 1


def test_a_coded_part_is_not_resumed() -> None:
    """A range counts encoded bytes: a coded file starts over, and no coded rest is joined."""
    coded = {"Content_Encoding": "gzip", "ETag": ETAG, "Content_Type": "video/mp4"}
    run = drive(download(), media(200, FILE[:50], broken=True, **coded), whole())
    check_whole(run)
    assert header(run.requests[1], "Range") is None
    part = Part(offset=60, validator=ETAG, total=100)
    odd = rest(60, Content_Encoding="gzip")
    check_whole(drive(download(part=part), odd, whole(), disk=FILE[:60]))


def test_a_coding_that_does_not_fit() -> None:
    """A body that is not in its coding is not fetched again, because it would be the same."""
    begun = download().accept(HttpHead(200, (("Content-Encoding", "gzip"),)), 0.0)
    garbled = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.MALFORMED)
    outcome = drive(begun.fail(garbled, 0.0)).outcome
    assert isinstance(outcome, DownloadFailed)
    assert outcome.lasting
    assert "the response is not gzip, as it says" in str(outcome)
    lost_on_the_way = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED)
    assert begun.fail(lost_on_the_way, 0.0).settled is None


@pytest.mark.parametrize("status", [201, 202, 203, 204, 205, 207, 226, 299])
def test_a_success_without_a_file(status: int) -> None:
    """A success other than 200 and 206 brings no file."""
    assert type(drive(download(), media(status, FILE)).outcome) is DownloadFailed


# Redirects.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_five_redirects(status: int) -> None:
    """Five redirects are followed, the sixth is not."""
    hops = [reply(status, Location=f"https://h{n}.example.net/x?sig={n}") for n in range(5)]
    run = drive(download(), *hops, whole())
    check_whole(run)
    assert run.urls == [LINK, *(f"https://h{n}.example.net/x?sig={n}" for n in range(5))]
    assert run.now == 0
    assert all(request.public_host_only for request in run.requests)
    sixth = drive(download(), *hops, reply(status, Location="https://h6.example.net"))
    assert type(sixth.outcome) is DownloadFailed
    assert len(sixth.requests) == 6


def test_redirects_in_a_circle() -> None:
    """Redirects in a circle end, even with breaks between them."""
    around = drive(download(), forever=reply(302, Location=LINK))
    assert len(around.requests) == 6
    script: list[Reaction] = []
    for _ in range(6):
        script += [reply(302, Location=LINK), lost()]
    assert type(drive(download(), *script).outcome) is DownloadFailed


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b.mp4", "https://cdn.example.net/b.mp4"),
        ("b.mp4?x=1", "https://cdn.example.net/b.mp4?x=1"),
        ("//other.example.org/b", "https://other.example.org/b"),
        ("https://api.example.com/b", "https://api.example.com/b"),
    ],
)
def test_where_a_redirect_leads(location: str, url: str) -> None:
    """A redirect may be relative, and lead to any public https address."""
    run = drive(download(), reply(302, Location=location), whole())
    check_whole(run)
    assert run.urls[1] == url


@pytest.mark.parametrize(
    "location",
    [
        "http://cdn.example.net/a.mp4",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://169.254.169.254/latest/meta-data",
        "https://10.1.2.3/",
        "https://192.168.1.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://user:s3cret@cdn.example.net/",
        "https://user@cdn.example.net/",
        "file:///etc/passwd",
        "ftp://cdn.example.net/a",
        "data:text/plain,x",
        "javascript:alert(1)",
        "https://[",
        "https://cdn.example.net:99999/",
        "https://cdn.example.net\\@127.0.0.1/",
        "https://\u2028.example\x00/",
    ],
)
def test_redirects_are_checked_anew(location: str) -> None:
    """A redirect to plain http, a private host, a login or nowhere is not followed."""
    run = drive(download(), reply(302, Location=location))
    assert type(run.outcome) is DownloadFailed
    assert run.urls == [LINK]
    assert "s3cret" not in str(run.outcome)


def test_a_redirect_without_location() -> None:
    """A redirect that leads nowhere is an error."""
    for status in (300, 301, 302, 304, 399):
        run = drive(download(), reply(status))
        assert type(run.outcome) is DownloadFailed
        assert run.outcome.status == status


def test_a_part_goes_on_behind_a_redirect() -> None:
    """A redirect does not lose the part."""
    run = drive(
        download(),
        reply(302, Location="/b"),
        whole(FILE[:20]),
        reply(302, Location="/c"),
        rest(20),
    )
    check_whole(run)
    assert header(run.requests[3], "Range") == "bytes=20-"


# Fresh links.

FRESH = "https://cdn.example.net/fresh.mp4?sig=2"


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_fresh_link(status: int) -> None:
    """A dead link of a known task is asked for once at the service, with the key."""
    run = drive(
        download(about=task()), reply(status), result("completed", video_url=FRESH), whole()
    )
    check_whole(run)
    assert run.urls == [LINK, "https://api.example.com/v1/result/t1", FRESH]
    assert [request.authorized for request in run.requests] == [False, True, False]


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_dead_link_without_an_id(status: int) -> None:
    """A dead link of an unknown task has expired."""
    run = drive(download(), reply(status))
    assert type(run.outcome) is LinkExpired
    assert run.outcome.status == status


def test_a_task_that_the_service_does_not_know() -> None:
    """The error says that the task, and not a link, is what is missing."""
    run = drive(download(None, about=task()), reply(404))
    assert type(run.outcome) is LinkExpired
    assert "the service does not know the task (status 404)" in str(run.outcome)


@pytest.mark.parametrize("second", [403, 404, 410])
def test_a_fresh_link_that_is_dead(second: int) -> None:
    """A fresh link that is dead too has expired: the service is asked once."""
    fresh = result("completed", image_url=FRESH)
    run = drive(download(about=task()), reply(403), fresh, reply(second))
    assert type(run.outcome) is LinkExpired
    assert run.outcome.task == task()
    first = drive(download(None, about=task()), fresh, reply(second))
    assert type(first.outcome) is LinkExpired


def test_a_fresh_link_goes_on_with_the_part() -> None:
    """A fresh link resumes the part, if it is of the same file."""
    run = drive(download(about=task()), whole(FILE[:20]), reply(403), DONE, rest(20))
    check_whole(run)


def test_a_link_is_asked_for_first() -> None:
    """A download of which only the task is known asks for the link first."""
    run = drive(download(None, about=task()), DONE, whole())
    check_whole(run)
    assert run.urls == ["https://api.example.com/v1/result/t1", LINK]
    action = next_action(download(None, about=task()), 0)
    assert isinstance(action, Send)
    assert action.deadline == 60
    with pytest.raises(ValueError, match="link or a task"):
        download(None)


@pytest.mark.parametrize(
    ("answer", "expired", "never"),
    [
        (result("queued"), LinkExpired, NotCompleted),
        (result("processing"), LinkExpired, NotCompleted),
        (result("failed", error="x"), LinkExpired, TaskFailed),
        (result("cancelled"), LinkExpired, TaskFailed),
    ],
)
def test_a_task_without_a_result(
    answer: HttpResponse, expired: type[Exception], never: type[Exception]
) -> None:
    """A task that has no result is no expired link, unless there was a link before."""
    assert type(drive(download(about=task()), reply(410), answer).outcome) is expired
    outcome = drive(download(None, about=task()), answer).outcome
    assert type(outcome) is never
    assert getattr(outcome, "task", None) == task()
    assert "link" not in str(outcome)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (result("completed", "t2", video_url=FRESH), DownloadFailed),
        (result("completed", video_url="http://cdn.example.net/a"), DownloadFailed),
        (result("completed", video_url="https://127.0.0.1/a"), DownloadFailed),
        (result("completed", video_url="https://u:p@cdn.example.net/a"), DownloadFailed),
        (result("completed", video_url="file:///etc/passwd"), DownloadFailed),
        (result("completed", video_url="a.mp4"), DownloadFailed),
        (result("completed"), LinkExpired),
        (result("completed", video_url=""), LinkExpired),
        (result("completed", video_url=7), LinkExpired),
        (reply(404), LinkExpired),
        (reply(401), Unauthorized),
        (reply(403), Forbidden),
        (reply(400), Refused),
        (reply(402), Refused),
        (reply(422), Refused),
        (reply(301, Location=FRESH), DownloadFailed),
    ],
)
def test_odd_replies_to_the_query(answer: HttpResponse, kind: type[Exception]) -> None:
    """A query that gives no usable link ends the download, which never takes another task's."""
    for url in (LINK, None):
        script: list[Any] = [reply(410)] if url else []
        run = drive(download(url, about=task()), *script, answer)
        assert type(run.outcome) is kind
        assert getattr(run.outcome, "task", None) == task()
        assert FRESH not in run.urls


@pytest.mark.parametrize(
    "passing",
    [
        reply(500),
        reply(503, Retry_After="30"),
        reply(429),
        reply(408),
        reply(409),
        reply(425),
        lost(),
        unsent(),
        raw(200, b""),
        raw(200, b"<html>"),
        reply(200, {"id": "t1"}),
    ],
    ids=repr,
)
def test_a_query_that_fails_is_repeated(passing: Reaction) -> None:
    """A query for a fresh link is repeated as any poll is, but not forever."""
    run = drive(download(None, about=task()), passing, passing, DONE, whole())
    check_whole(run)
    never = drive(download(None, about=task()), forever=passing)
    assert type(never.outcome) is DownloadFailed
    assert len(never.requests) == 5


def test_links_are_checked_at_the_start() -> None:
    """A link that may not be downloaded from is refused before anything is sent."""
    for url in ("http://cdn.example.net/a", "https://localhost/a", "a.mp4", "", "file:///a"):
        with pytest.raises(InvalidAddress):
            download(url)


INSECURE = attrs.evolve(SERVICE, allow_insecure_downloads=True)


@pytest.mark.parametrize("link", ["http://cdn.example.net/a.mp4", "https://10.1.2.3/a.mp4"])
def test_insecure_links(link: str) -> None:
    """Where it is allowed, a link may be plain http or private: given, fresh or a redirect."""
    fresh = result("completed", video_url=link)
    for script in ([whole()], [reply(404), fresh, whole()], [reply(302, Location=link), whole()]):
        given_link = link if len(script) == 1 else LINK
        start = Download.start(given_link, INSECURE, task=task(), now=0.0, seed=0)
        run = drive(start, *script)
        check_whole(run)
        assert run.urls[-1] == link
        assert not run.requests[-1].public_host_only
        assert not run.requests[-1].authorized


def test_links_are_encoded() -> None:
    """A link beyond ASCII is encoded wherever it comes from: given, fresh or a redirect."""
    link = "https://bücher.example/絵 1.mp4?s=é%2F"
    sent = "https://xn--bcher-kva.example/%E7%B5%B5%201.mp4?s=%C3%A9%2F"
    fresh = result("completed", video_url=link)
    raw_location = link.encode().decode("latin-1")
    for script in (
        [whole()],
        [reply(404), fresh, whole()],
        [reply(302, Location=link), whole()],
        [reply(302, Location=raw_location), whole()],
    ):
        run = drive(download(link if len(script) == 1 else LINK, about=task()), *script)
        check_whole(run)
        assert run.urls[-1] == sent


def test_a_name_that_leads_to_a_private_host() -> None:
    """Where a public name turns out to be private, the option that allows it is named."""
    failure = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.PRIVATE_ADDRESS)
    outcome = drive(download(), failure).outcome
    assert isinstance(outcome, DownloadFailed)
    assert "pass allow_insecure_downloads=True" in str(outcome)


def test_a_query_of_the_link_is_not_shown() -> None:
    """A link's query, which may hold a signature, is in no error."""
    signed = f"{LINK}?sig=SECRET"
    for script in ([reply(404)], [reply(302, Location="http://x.example/?sig=SECRET")]):
        run = drive(download(signed), *script)
        assert "SECRET" not in str(run.outcome)
        assert "SECRET" not in repr(run.outcome)
    assert SERVICE.check_download(signed) == signed


def test_a_links_signature_is_not_shown() -> None:
    """The query of a link, which may hold a signature, stays out of what is printed."""
    fetching = Download.start("https://cdn.example.com/a.mp4?sig=s3cret", SERVICE, now=0.0, seed=0)
    assert "s3cret" not in repr(fetching)
    assert "s3cret" not in repr(fetching.next_action(0.0))


@pytest.mark.parametrize(
    ("answer", "says", "again"),
    [
        (media(200, FILE, Content_Encoding="br"), "encoded as br", False),
        (media(200, FILE, Content_Type="text/html"), "text/html, not media", False),
        (media(302, Location="http://elsewhere.example.com/a"), "redirect was not followed", False),
        (media(401), "status 401", False),
        (whole(FILE[:50]), "broke off", True),
    ],
    ids=["encoded", "page", "redirect", "refused", "broken off"],
)
def test_advice_fits_the_cause(answer: Streamed, says: str, *, again: bool) -> None:
    """A failed download says why, and to try again only where that can help."""
    outcome = drive(download(), forever=answer).outcome
    assert isinstance(outcome, DownloadFailed)
    assert ("Download it again" in str(outcome)) is again
    assert outcome.lasting is not again
    assert ".." not in str(outcome)
    if not again:
        assert says in str(outcome)


@pytest.mark.parametrize(
    ("start", "offset", "resumes"),
    [
        (Download.start, 1, True),
        (partial(Download.start, keeps_part=True), 1, True),
        (partial(Download.start, keeps_part=False), 1, False),
        (partial(Download.start, keeps_part=True), 0, False),
        (Download, 1, True),
    ],
)
def test_only_a_part_that_is_kept_resumes(
    start: Callable[..., Download], offset: int, *, resumes: bool
) -> None:
    """A failed download says that it can be resumed only if a byte and its validator are kept."""
    for validator in (ETAG, None):
        part = Part(offset=offset, validator=validator, total=100)
        more = {"due": 0.0, "deadline": 60.0} if start is Download else {"now": 0.0}
        begun = start(url=LINK, task=None, part=part, service=SERVICE, seed=0, **more)
        outcome = drive(begun, forever=lost()).outcome
        assert isinstance(outcome, DownloadFailed)
        assert outcome.resumes is (resumes and validator is not None)


def test_a_dead_link_without_a_task_is_lasting() -> None:
    """A link that has expired does not come back: another download of it would fail, too."""
    outcome = drive(download(), reply(410)).outcome
    assert isinstance(outcome, LinkExpired)
    assert outcome.lasting


def test_a_retry_without_a_time_is_soon() -> None:
    """Where the server says nothing of when, the first retry comes after the usual backoff."""
    refused = download().accept(HttpHead(503), 0.0)
    assert 0 < refused.due < 1
    assert refused.due == download().fail(lost(), 0.0).due


def test_redirects_are_counted_anew_for_a_fresh_link() -> None:
    """A fresh link may lead five redirects far, however far the dead one led, and no further."""
    begun = [
        *repeat(3, reply(302, Location=LINK)),
        reply(403),
        result("completed", video_url=FRESH),
    ]
    five = repeat(5, reply(302, Location=LINK))
    check_whole(drive(download(about=task()), *begun, *five, whole()))
    run = drive(download(about=task()), *begun, *five, reply(302, Location=LINK))
    assert isinstance(run.outcome, DownloadFailed)
    assert "too many redirects" in str(run.outcome)
    nowhere = drive(download(), reply(302))
    assert isinstance(nowhere.outcome, DownloadFailed)
    assert "status 302 leads nowhere" in str(nowhere.outcome)


def test_a_query_for_a_link_is_retried_soon() -> None:
    """Where the service says nothing of when, a query for a link is retried after the backoff."""
    asked = download(None, about=task())
    assert asked.receive(reply(503), 0.0).due == asked.fail(lost(), 0.0).due < 1
