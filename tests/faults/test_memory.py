"""Cases 32, 43, 46 and 47: no response fills the memory, measured in a process of its own."""

from __future__ import annotations

import gzip
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from processes import Nursery
from transport.scripted_server import Peer, response_bytes

from .acts import CHUNKED, HEAD, flood, say, steps
from .clients import DRIVERS
from .hostile_server import TASK_ID, Act, HostileServer
from .memory_child import RESET

MEBIBYTE = 1024**2
MOST = 8 * MEBIBYTE - 200
"""Bytes of a reply that is just small enough to be read."""
API_GROWTH = 80 * MEBIBYTE
DOWNLOAD_GROWTH = 8 * MEBIBYTE

pytestmark = pytest.mark.skipif(not os.access(RESET, os.W_OK), reason="measures memory by /proc")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """What forks a process for each call."""
    with Nursery("faults.memory_child") as forking:
        yield forking


RECORD = f'{{"id": "{TASK_ID}", "status": "queued", "x": '.encode()


def filled(piece: bytes, *, start: bytes = b"[", end: bytes = b"]") -> bytes:
    """Return a record of 8 MiB that is nothing but *piece*."""
    room = MOST - len(RECORD) - len(start) - len(end) - 1
    body = RECORD + start + piece * (room // len(piece))
    return body[: -1 if piece.endswith(b",") else None] + end + b"}"


def names() -> bytes:
    """Return a record of 8 MiB of different names."""
    return RECORD + b"{" + b",".join(b'"%x":1' % n for n in range(800_000)) + b"}}"


def answer(make: Callable[[], bytes], status: int = 200, **headers: str) -> Callable[[], Act]:
    """Return what makes an act that answers with a body."""
    return lambda: say(response_bytes(status, make(), **headers))


def without_end(begin: bytes, piece: bytes) -> Callable[[], Act]:
    """Return what makes an act that never stops to send."""
    return lambda: steps(say(begin), flood(piece * (65_536 // len(piece))))


REPLIES: dict[str, Callable[[], Act]] = {
    "a gzip bomb": answer(
        lambda: gzip.compress(RECORD + b'"' + bytes(100 * MEBIBYTE), 6), content_encoding="gzip"
    ),
    "a bomb of JSON": answer(lambda: gzip.compress(filled(b"{},"), 9), content_encoding="gzip"),
    "an endless body": without_end(HEAD + b"\r\n" + RECORD, b" "),
    "an endless body of an error": without_end(b"HTTP/1.1 400 No\r\n\r\n", b"x"),
    "an endless header": without_end(HEAD + b"X: ", b"y"),
    "endless headers": without_end(HEAD, b"X: y\r\n"),
    "an endless status line": without_end(b"HTTP/1.1 200 ", b"O"),
    "an endless chunk size": without_end(CHUNKED, b"0"),
    "an endless chunk extension": without_end(CHUNKED + b"5;", b"x"),
    "endless trailers": without_end(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
    "endless chunks of a byte": without_end(CHUNKED, b"1\r\n \r\n"),
    "empty objects": answer(lambda: filled(b"{},")),
    "empty arrays": answer(lambda: filled(b"[],")),
    "numbers": answer(lambda: filled(b"1,")),
    "fractions": answer(lambda: filled(b"1.5,")),
    "empty texts": answer(lambda: filled(b'"",')),
    "names": answer(names),
    "objects in arrays": answer(lambda: filled(b'[{"a":[{}]}],')),
    "a long text": answer(lambda: filled(b"y", start=b'"', end=b'"')),
    "a long text with one horse": answer(
        lambda: filled(b"y", start='"\N{HORSE}'.encode(), end=b'"')
    ),
    "a long text with one escaped horse": answer(
        lambda: filled(b"y", start=b'"\\ud83d\\udc0e', end=b'"')
    ),
    "a long text with one Chinese character": answer(
        lambda: filled(b"y", start='"\u4e2d'.encode(), end=b'"')
    ),
    "a text of 4 MiB of them": answer(
        lambda: RECORD + '"\u4e2d'.encode() + b"y" * (4 * MEBIBYTE - 200) + b'"}'
    ),
    "a text of 2 MiB of horses": answer(
        lambda: RECORD + b'"' + "\N{HORSE}".encode() * (MEBIBYTE // 2 - 100) + b'"}'
    ),
    "a long text of horses": answer(lambda: filled("\N{HORSE}".encode(), start=b'"', end=b'"')),
    "a long text of escapes": answer(lambda: filled(b"\\u0079", start=b'"', end=b'"')),
    "a long text of escaped horses": answer(
        lambda: filled(b"\\ud83d\\udc0e", start=b'"', end=b'"')
    ),
    "a long text of escaped quotes": answer(lambda: filled(b'\\",:[{', start=b'"', end=b'"')),
    "a long text of per cent": answer(lambda: filled(b"%73", start=b'"', end=b'"')),
    "a long number": answer(lambda: filled(b"9", start=b"", end=b"")),
    "brackets": answer(lambda: filled(b"[", start=b"", end=b"")),
    "quotes": answer(lambda: filled(b'"', start=b"", end=b"")),
    "backslashes": answer(lambda: filled(b"\\", start=b'"', end=b"")),
    "a long page": answer(lambda: b"<html>" + b"y" * MOST),
    "a refusal of horses": answer(
        lambda: filled(b"y", start='"\N{HORSE}'.encode(), end=b'"'), status=400
    ),
}
ENDLESS = frozenset({"endless chunks of a byte"})
"""Those that never reach a limit in good time: the deadline is theirs."""
SAMPLE = [
    (driver, "create", name)
    for name, driver in zip(REPLIES, itertools.cycle(DRIVERS), strict=False)
]


def check_reply(nursery: Nursery, driver: str, call: str, name: str, **more: Any) -> None:
    """Check that a call grows by no more than it may, whatever its outcome."""
    with HostileServer(on_request=REPLIES[name](), warm=True) as server:
        timeout = 0.5 if name in ENDLESS else 20.0
        order = {"driver": driver, "call": call, "url": server.url, "timeout": timeout, **more}
        answer = nursery.run(folder="", **order)
    assert answer["outcome"] in {
        "ok", "CreateAmbiguous", "ProtocolViolation", "ServiceUnreachable", "Refused",
        "AssetDeleteUnknown", "AssetDeleteFailed",
    }, answer  # fmt: skip
    assert answer["growth"] <= API_GROWTH, f"{answer['growth'] / MEBIBYTE:.1f} MiB"


@pytest.mark.parametrize(("driver", "call", "name"), SAMPLE)
def test_replies(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The process grows by at most 80 MiB, whatever a response of the service is."""
    check_reply(nursery, driver, call, name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("call", ["create", "get", "delete"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_all_replies(nursery: Nursery, driver: str, call: str, name: str) -> None:
    """The same for every call under every driver."""
    check_reply(nursery, driver, call, name)


FILES: dict[str, bytes] = {
    "by its length": HEAD + b"Content-Type: video/mp4\r\nContent-Length: %d\r\n\r\n",
    "without a length": HEAD + b"Content-Type: video/mp4\r\n\r\n",
    "in chunks": CHUNKED,
}


def check_download(nursery: Nursery, driver: str, way: str, size: int, folder: Path) -> None:
    """Check that a download of *size* bytes grows the process by no more than it may."""
    head = FILES[way].replace(b"%d", b"%d" % size)

    def act(peer: Peer) -> None:
        peer.read_request()
        peer.send(head)
        piece = bytes(65_536)
        wire = b"10000\r\n" + piece + b"\r\n" if way == "in chunks" else piece
        for _ in range(size // len(piece)):
            peer.send(wire)
        if way == "in chunks":
            peer.send(b"0\r\n\r\n")

    with HostileServer(on_request=act, warm=True) as server:
        answer = nursery.run(
            driver=driver, call="download", url=server.url, folder=str(folder / "a.mp4")
        )
    assert answer["outcome"] == "ok"
    assert (folder / "a.mp4").stat().st_size == size
    assert answer["growth"] <= DOWNLOAD_GROWTH, f"{answer['growth'] / MEBIBYTE:.1f} MiB"


@pytest.mark.parametrize("way", FILES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_downloads(nursery: Nursery, driver: str, way: str, tmp_path: Path) -> None:
    """The process grows by at most 8 MiB while a file of any size is saved."""
    check_download(nursery, driver, way, 48 * MEBIBYTE, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("way", FILES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_large_downloads(nursery: Nursery, driver: str, way: str, tmp_path: Path) -> None:
    """The same for a gibibyte."""
    check_download(nursery, driver, way, 1024 * MEBIBYTE, tmp_path)


@pytest.mark.parametrize("driver", DRIVERS)
def test_endless_downloads(nursery: Nursery, driver: str, tmp_path: Path) -> None:
    """A file without end is rejected at the caller's limit, and the process does not grow."""
    begin = HEAD + b"Content-Type: video/mp4\r\n\r\n"
    with HostileServer(on_request=without_end(begin, bytes(1024))(), warm=True) as server:
        answer = nursery.run(
            driver=driver,
            call="download",
            url=server.url,
            folder=str(tmp_path / "a.mp4"),
            size_limit=32 * MEBIBYTE,
        )
    assert answer["outcome"] == "DownloadFailed"
    assert answer["growth"] <= DOWNLOAD_GROWTH
