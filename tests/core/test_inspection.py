"""An inspection finds out what a URL leads to, within its limits, whatever the server does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from media.corpus import PICTURES, picture, sound, video
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason, TransportFailure
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.operations import Fetch, Inspection, Settled
from muybridge_protocol.operations.inspect import FIRST, FURTHER, HOPS, LIMIT, Stage
from muybridge_protocol.operations.operation import Step
from muybridge_protocol.rules.media import Medium, judge_media

from .driving import SERVICE, lost

URL = "https://cdn.example.net/a.mp4?signature=secret"
PNG = picture("PNG", 1280, 720)
Response = tuple[HttpHead, list[bytes]]
Server = Callable[[HttpRequest], Response]


def start(url: str = URL, *, deadline: float = 60.0) -> Inspection:
    return Inspection.start(url, SERVICE, now=0.0, seed=0, deadline=deadline)


def span(request: HttpRequest) -> tuple[int, int]:
    """Return the first and last byte that *request* asks for."""
    found = re.fullmatch(r"bytes=(\d+)-(\d+)", dict(request.headers)["Range"])
    assert found is not None
    return int(found[1]), int(found[2])


def ranged(data: bytes, size: int = 16_384) -> Server:
    """Return a server that knows ranges and sends pieces of *size* bytes."""

    def serve(request: HttpRequest) -> Response:
        first, last = span(request)
        if first >= len(data):
            return HttpHead(416), []
        part = data[first : last + 1]
        told = f"bytes {first}-{first + len(part) - 1}/{len(data)}"
        return HttpHead(206, (("Content-Range", told),)), pieces(part, size)

    return serve


def plain(data: bytes, size: int = 16_384, *, tells_length: bool = True) -> Server:
    """Return a server that sends everything."""
    headers = (("Content-Length", str(len(data))),) if tells_length else ()
    return lambda _: (HttpHead(200, headers), pieces(data, size))


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def inspect(server: Server, *, most: int = 30) -> tuple[MediaFacts, int, int]:
    """Return what is found out, with how many requests, and how many bytes were read."""
    operation, requests, read = start(), 0, 0
    while True:
        match operation.next_action(0.0):
            case Settled(outcome):
                assert isinstance(outcome, MediaFacts)
                return outcome, requests, read
            case Fetch(request):
                requests += 1
                assert requests <= most
                assert not request.authorized
                assert request.public_host_only
                head, body = server(request)
                operation = operation.accept(head, 0.0)
                for piece in body:
                    if not operation.wants_body:
                        break
                    read += len(piece)
                    operation = operation.take(piece)
                if operation.wants_body:
                    operation = operation.end(0.0)
            case action:
                raise AssertionError(action)


WHOLE = {
    **{form: picture(form, 1280, 720) for form in PICTURES},
    "wav": sound(3),
    "mp3": sound(3, "mp3"),
    "mp4": video(1280, 720, 5),
    "mp4, fast start": video(1280, 720, 5, fast_start=True),
}


@pytest.mark.parametrize("size", [7, 1_000, 16_384, 10_000_000])
@pytest.mark.parametrize("name", WHOLE)
def test_any_pieces(name: str, size: int) -> None:
    """However a body is cut into pieces, the same is found out as of the whole file."""
    data = WHOLE[name]
    expected = inspect_media(Fragments.of(data))
    for server in (ranged(data, size), plain(data, size), plain(data, size, tells_length=False)):
        found, requests, _ = inspect(server)
        known = found if found.bytes is not None else attrs.evolve(found, bytes=len(data))
        assert known == expected
        assert requests <= 3


def test_next_to_nothing() -> None:
    """A file that is empty or has one byte is read, and is what it is."""
    assert inspect(plain(b""))[0] == MediaFacts(bytes=0, defect="is empty")
    for server in (plain(b"\x80"), ranged(b"\x80")):
        found, requests, _ = inspect(server)
        assert (found.format, found.bytes, found.defect, requests) == ("unknown", 1, "", 1)


def test_a_small_file_takes_one_request() -> None:
    """What is smaller than the first part is read whole."""
    _, requests, read = inspect(ranged(PNG))
    assert (requests, read) == (1, len(PNG))


def test_a_video_with_large_tables() -> None:
    """Headers that are far apart, because tables of samples lie between them, are found."""
    data = video(16, 16, 10 * 3600, rate=2, sound=20)
    assert len(data) - data.index(b"moov") > LIMIT
    found, requests, read = inspect(ranged(data))
    # The sound's track is another length, and stands behind the tables of the video's.
    assert (found.width, found.bytes, found.kind) == (16, len(data), MediaKind.VIDEO)
    assert found.seconds == pytest.approx(36_000)
    assert requests == 3
    assert read <= FIRST + 2 * FURTHER


def test_the_limit() -> None:
    """No more is asked for than the limit, whatever the headers point to."""
    notes = b"".join(b"\xff\xe2\xff\xff" + bytes(65_533) for _ in range(40))
    data = picture("JPEG", 1280, 720)
    data = data[:2] + notes + data[2:]
    found, requests, read = inspect(ranged(data))
    assert found.missing == "what is needed is not in the 256 KiB that are fetched"
    assert read <= LIMIT
    assert requests == 1 + (LIMIT - FIRST) // FURTHER
    found, requests, read = inspect(plain(data))
    assert found.missing.endswith("and the server sends no ranges")
    assert read <= LIMIT + 16_384
    assert requests == 1


def test_the_request() -> None:
    """It asks for the first 64 KiB, in bytes as they are, and bears silence for 10 s."""
    action = start().next_action(0.0)
    assert isinstance(action, Fetch)
    assert action.request == HttpRequest(
        method="GET",
        url=URL,
        headers=(
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "muybridge"),
            ("Range", "bytes=0-65535"),
        ),
        public_host_only=True,
        body_limit=None,
        idle_timeout=10.0,
    )
    assert (LIMIT, FURTHER) == (262_144, 16_384)


def test_the_deadline() -> None:
    """After the deadline nothing is fetched, and the reason is told."""
    action = start(deadline=5.0).next_action(5.0)
    assert action == Settled(MediaFacts(missing="it took too long"))
    action = start(deadline=5.0).next_action(4.9)
    assert isinstance(action, Fetch)
    assert action.deadline == 5.0


def test_what_has_arrived_is_used() -> None:
    """A failure in the middle of a body leaves what has arrived."""
    reading = start().accept(HttpHead(200, (("Content-Length", "9000"),)), 0.0)
    failed = reading.take(PNG[:600]).fail(lost(), 1.0)
    assert isinstance(failed.settled, Settled)
    assert isinstance(failed.settled.outcome, MediaFacts)
    assert failed.settled.outcome.width == 1280
    assert failed.settled.outcome.bytes == 9_000


def test_a_body_whose_end_is_not_told() -> None:
    """If only the connection's end tells where a body ends, a short body proves nothing."""
    cut = PNG[:-20]
    found, _, _ = inspect(lambda _: (HttpHead(200), [cut]))
    assert (found.width, found.bytes, found.defect) == (1280, None, "")
    chunked = HttpHead(200, (("Transfer-Encoding", "chunked"),))
    found, _, _ = inspect(lambda _: (chunked, [cut]))
    assert (found.bytes, found.defect) == (len(cut), "is truncated")


def late_movie(at: int, behind: int = 0) -> bytes:
    """Return a video whose `moov`, which is empty, stands at an offset, before so many bytes."""
    data = b"\0\0\0\x0cftypisom" + (at - 12).to_bytes(4, "big") + b"mdat"
    return data.ljust(at, b"\0") + b"\0\0\0\x08moov" + bytes(behind)


READ = "its headers cannot be read: it has no length"
"""What is said of a video whose `moov` has been found, and is empty."""


def test_the_last_byte_without_ranges() -> None:
    """Without ranges, headers are read up to the limit, and not a byte beyond it."""
    found, _, read = inspect(plain(late_movie(LIMIT - 8, behind=999_999)))
    assert (found.missing, read) == (READ, LIMIT)
    found, _, read = inspect(plain(late_movie(LIMIT - 7, behind=999_999)))
    assert found.missing.endswith("and the server sends no ranges")
    assert read < LIMIT
    _, _, read = inspect(plain(late_movie(100_000, behind=999_999), size=1_024))
    assert read < 100_000 + FURTHER + 1_024


def spans_of(data: bytes) -> tuple[MediaFacts, list[tuple[int, int]]]:
    """Return what is found out, and which bytes are asked for."""
    spans: list[tuple[int, int]] = []
    serve = ranged(data)

    def recorded(request: HttpRequest) -> Response:
        spans.append(span(request))
        return serve(request)

    return inspect(recorded)[0], spans


def test_the_last_bytes_of_a_file() -> None:
    """What stands at the very end is asked for, and nothing behind it."""
    found, spans = spans_of(late_movie(1_000_000))
    assert found.missing == READ
    assert spans == [(0, FIRST - 1), (1_000_000, 1_000_007)]


def test_no_byte_is_fetched_twice() -> None:
    """If the headers point forward and then back, only what lies between is fetched."""
    exif = Image.Exif()
    exif[274] = 6
    picture_with_note = picture("JPEG", 500, 400, exif=exif.tobytes())
    at = picture_with_note.index(b"Exif\0\0") - 4
    size = int.from_bytes(picture_with_note[at + 2 : at + 4], "big")
    directory = picture_with_note[at + 18 : at + 2 + size]
    # The note begins near the end of the first part, and its directory stands beyond the note.
    before = b"\xff\xe2" + (63_990).to_bytes(2, "big") + bytes(63_988)
    note = (
        b"\xff\xe1" + (16_000).to_bytes(2, "big") + b"Exif\0\0MM\0*" + (20_000).to_bytes(4, "big")
    )
    rest = picture_with_note[at + 2 + size :]
    data = b"\xff\xd8" + before + note.ljust(16_002, b"\0")
    start_of_note = 2 + len(before) + 10
    between = start_of_note + 20_000 - len(data)
    data += b"\xff\xe2" + (between + 1_000).to_bytes(2, "big") + bytes(between - 4)
    data += directory.ljust(1_002, b"\0") + rest
    found, spans = spans_of(data)
    assert (found.width, found.turned) == (500, True)
    assert len(spans) >= 3
    ordered = sorted(spans)
    assert spans != ordered
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ordered))


@pytest.mark.parametrize("server", [ranged, plain])
def test_a_file_of_small_parts(
    server: Callable[[bytes], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many small parts a hostile file has, they are looked at a few times only."""
    looks: list[int] = []

    def counted(fragments: Fragments) -> MediaFacts:
        looks.append(fragments.held)
        return inspect_media(fragments)

    monkeypatch.setattr("muybridge_protocol.operations.inspect.inspect_media", counted)
    found, _, _ = inspect(server(b"\0\0\0\x0cftypisom" + b"\0\0\0\x08free" * 100_000))
    assert found.format == "MP4"
    assert len(looks) <= 2 + (LIMIT - FIRST) // FURTHER


def test_a_body_that_is_cut() -> None:
    """If a body ends before its announced length, that length does not count as the size."""
    reading = start().accept(HttpHead(200, (("Content-Length", "9000"),)), 0.0).take(PNG[:600])
    cut = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED)
    failed = reading.fail(cut, 1.0)
    assert isinstance(failed.settled, Settled)
    assert isinstance(failed.settled.outcome, MediaFacts)
    assert (failed.settled.outcome.width, failed.settled.outcome.bytes) == (1280, None)


LATE = b"\0\0\0\x0cftypisom" + (3_000_000).to_bytes(4, "big") + b"mdat" + bytes(400_000)
"""The beginning of a video whose `moov` comes late."""


def part(size: str = "5000000") -> HttpHead:
    return HttpHead(206, (("Content-Range", f"bytes 0-{FIRST - 1}/{size}"),))


def test_more_than_was_asked_for() -> None:
    """What a server sends beyond the part that it was asked for is not kept."""
    after = start().accept(part(), 0.0).take(LATE)
    assert not after.wants_body
    assert after.fragments.held == FIRST


def test_a_server_that_no_longer_knows_ranges() -> None:
    """If a server sends everything in place of a later part, it is not read."""
    after = start().accept(part(), 0.0).take(LATE).accept(HttpHead(200), 0.0)
    assert isinstance(after.settled, Settled)
    assert isinstance(after.settled.outcome, MediaFacts)
    assert after.settled.outcome.format == "MP4"
    assert after.settled.outcome.missing == "the server no longer sends ranges"


def test_a_part_that_does_not_fit() -> None:
    """The last byte of a part stands before the end of the whole."""
    why = "the server sent another part than it was asked for"
    for told, fits in (("0-9/10", True), ("0-9/9", False), ("1-9/10", False), ("x", False)):
        after = start().accept(HttpHead(206, (("Content-Range", f"bytes {told}"),)), 0.0)
        assert after.wants_body == fits
        assert fits or after.settled == Settled(MediaFacts(missing=why))


@pytest.mark.parametrize("size", ["5000000", "*"])
def test_a_part_that_ends_early(size: str) -> None:
    """A part that is shorter than it says is not taken for the end."""
    after = start().accept(part(size), 0.0).take(LATE[:9]).end(0.0)
    assert isinstance(after.settled, Settled)
    assert isinstance(after.settled.outcome, MediaFacts)
    assert after.settled.outcome.missing == "the server sent less than it announced"
    assert after.settled.outcome.defect == ""


def test_a_private_address() -> None:
    """A name that resolves to a private address is not connected to, and the option is named."""
    failure = TransportFailure(phase=Phase.RESOLVE, sent=False, reason=Reason.PRIVATE_ADDRESS)
    failed = start().fail(failure, 1.0)
    assert isinstance(failed.settled, Settled)
    assert isinstance(failed.settled.outcome, MediaFacts)
    outcome = failed.settled.outcome
    assert outcome.missing == "it was not fetched: the host has a private address"
    assert [remedy.to_dict() for remedy in outcome.remedies] == [
        {"kind": "allow", "option": "allow_insecure_downloads", "action": "inspect"}
    ]


def test_redirects() -> None:
    """So many redirects are followed as for a download, and not one more."""
    head = HttpHead(302, (("Location", "/b"),))
    operation = start()
    for _ in range(HOPS):
        operation = operation.accept(head, 0.0)
        assert operation.settled is None
    assert operation.url == "https://cdn.example.net/b"
    last = operation.accept(head, 0.0)
    assert last.settled == Settled(MediaFacts(missing="it has too many redirects"))


@pytest.mark.parametrize(
    "location", ["http://cdn.example.net/a", "https://10.0.0.1/a", "https://169.254.169.254/a"]
)
def test_redirects_that_are_not_followed(location: str) -> None:
    """A redirect to plain http, a private host or a metadata service ends it."""
    after = start().accept(HttpHead(302, (("Location", location),)), 0.0)
    assert isinstance(after.settled, Settled)


STEPS: dict[Step, Callable[[Inspection], Inspection]] = {
    "accept": lambda operation: operation.accept(HttpHead(200), 0.0),
    "take": lambda operation: operation.take(b"a"),
    "end": lambda operation: operation.end(0.0),
    "fail": lambda operation: operation.fail(lost(), 0.0),
}


@pytest.mark.parametrize("step", STEPS)
def test_misuse(step: Step) -> None:
    """A step that does not come next is an error of the driver."""
    reading = start().accept(HttpHead(200), 0.0)
    assert (start().stage, reading.stage) == (Stage.FETCHING, Stage.READING)
    wrong = reading if step == "accept" else start()
    if step != "fail":
        with pytest.raises(RuntimeError, match=f"Inspection.{step} was called"):
            STEPS[step](wrong)
    with pytest.raises(RuntimeError, match="has settled"):
        STEPS[step](start().fail(lost(), 0.0))


def test_the_url_is_not_shown() -> None:
    """The query of a URL may be a signature."""
    assert "secret" not in repr(start())
    assert "secret" not in repr(start().accept(HttpHead(200), 0.0).take(PNG))


def head_of(status: int, named: dict[str, str]) -> HttpHead:
    return HttpHead(status, tuple(named.items()))


heads = st.builds(
    head_of,
    st.sampled_from([200, 201, 204, 206, 301, 302, 304, 400, 404, 416, 429, 500, 503]),
    st.fixed_dictionaries(
        {},
        optional={
            "Content-Length": st.sampled_from(["0", "5", "99999999999", "-1", "x"]),
            "Content-Range": st.sampled_from(
                ["bytes 0-9/10", "bytes 0-9/*", "bytes 5-9/10", "bytes 9-0/10", "bytes */10", "x"]
            ),
            "Location": st.sampled_from(["/b", "https://[", "http://10.0.0.1/", "?a", "\x80"]),
            "Content-Encoding": st.sampled_from(["gzip", "identity", ""]),
            "Content-Type": st.just("text/html"),
        },
    ),
)


@given(st.lists(st.tuples(heads, st.lists(st.binary(max_size=40), max_size=4)), max_size=12))
def test_any_server(script: list[Response]) -> None:
    """Whatever a server sends, the inspection ends, and a refusal always has a reason."""
    answers = iter(script)
    after: Response = (HttpHead(404), [])
    found, _, read = inspect(lambda _: next(answers, after))
    assert read <= LIMIT
    field, kind = next(iter(media_fields(FAMILIES["vidc"]).items()))
    medium = Medium(field=field, index=0, kind=kind, source="", facts=found)
    report = judge_media(FAMILIES["vidc"].media_rules, [medium], {})
    assert all(one.why for one in (*report.problems, *report.undecided))
