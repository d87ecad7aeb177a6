"""Cases 48 to 50: streamed answers that do not end, or come in odd pieces."""

from __future__ import annotations

from typing import Any

from faults.acts import CHUNKED, DATA, HEAD, body_of, drops, flood, steps
from faults.hostile_server import Act, text_events
from faults.rows import ALL, STREAMED, Elsewhere, Entry, Point, Row, every
from transport.scripted_server import Peer


def _streamed(number: int, name: str, does: str, act: Act, outcome: str, **more: Any) -> Row:
    """Return a row of streams alone. None is asked for again, so that once is as always."""
    others = [known for known in ALL if known not in STREAMED]
    return Row(
        numbers=(number,),
        name=name,
        point=Point.BODY,
        does=does,
        on_request=act,
        always=every(outcome, STREAMED),
        once=every(outcome, STREAMED),
        without=dict.fromkeys(others, "is not streamed"),
        **more,
    )


def _begin_stream(peer: Peer) -> None:
    """Read a request, and send the head and the first event of a stream without a length."""
    first = body_of(peer).partition(b"\n\n")[0]
    peer.send(HEAD + b"Content-Type: text/event-stream\r\n\r\n" + first + b"\n\n")


def _split(line_end: bytes) -> Act:
    """Return what sends a stream whose every byte is a chunk of its own."""
    body = b"".join(DATA + payload + b"\n\n" for payload in text_events())
    chunks = (b"1\r\n%c\r\n" % byte for byte in body.replace(b"\n", line_end))
    whole = CHUNKED + b"".join(chunks) + b"0\r\n\r\n"
    return lambda peer: peer.send(whole)


ROWS: tuple[Entry, ...] = (
    *(
        _streamed(
            48,
            f"an endless {what}",
            f"streams one event, and then {what} without end",
            steps(_begin_stream, flood(data)),
            "StreamInterrupted",
            size_limit=65_536,
        )
        for what, data in (
            ("line", b"x" * 4096),
            ("line of data", DATA + b"x" * 4096),
            ("comment", b": " + b"x" * 4096),
        )
    ),
    *(
        _streamed(
            48,
            f"endless {what}",
            f"streams one event, and then {what} without end",
            steps(_begin_stream, flood(data * 100)),
            "StreamInterrupted",
            size_limit=2048,  # each of so many events takes its time
        )
        for what, data in (
            ("events", DATA + b"{}\n\n"),
            ("lines of one event", DATA + b"x\n"),
            ("empty lines", b"\n"),
            ("empty objects", b"{}\n"),
        )
    ),
    Elsewhere(
        numbers=(48,),
        tests=(
            "text/test_stream_parser.py::test_an_endless_line_ends_at_the_limit",
            "text/test_stream_parser.py::test_memory_of_a_large_event",
            "client/test_text_streams.py::test_an_event_that_is_too_large",
        ),
    ),
    *(
        _streamed(
            49,
            f"split at every byte, with {name}",
            f"streams a byte at a time in chunks, with {name} between lines",
            steps(Peer.read_request, _split(end)),
            "ok",
        )
        for name, end in (("LF", b"\n"), ("CRLF", b"\r\n"), ("CR", b"\r"))
    ),
    Elsewhere(
        numbers=(49,),
        tests=(
            "text/test_stream_parser.py::test_every_split_point",
            "text/test_stream_reader.py::test_every_split_point",
        ),
    ),
    *(
        _streamed(
            50,
            f"a stream of {what}",
            f"streams one event, and then nothing but {what}, slowly",
            steps(_begin_stream, drops(data)),
            "StreamInterrupted",
            hangs=True,
        )
        for what, data in (
            ("comments", b": still thinking\n\n"),
            ("empty lines", b"\r\n"),
            ("fields without data", b"event: ping\nid: 1\n\n"),
            ("half an event in drops", DATA),
            ("nothing", b""),
        )
    ),
    Elsewhere(numbers=(50,), tests=("client/test_text_streams.py::test_times",)),
)
