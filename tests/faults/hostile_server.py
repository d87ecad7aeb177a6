"""A service that commits faults on real sockets, and keeps the books.

What it has read is the ground truth: a create that it read as a whole is accepted and charged,
unless it declines it, and no one else knows how many bytes of a request have arrived.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import attrs

from client.answers import STOPPED, candidate
from transport.scripted_server import Peer, ScriptedServer, response_bytes

TASK_ID = "task-1f2e3d"
ASSET_ID = "asset-1"
SIGNATURE = "signature=canary-9b1c77"
"""The query of every link that this service gives."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4

SOUND = (
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0"
    + struct.pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8)
    + struct.pack("<4sI100000x4sI16000x", b"LIST", 100_000, b"data", 16_000)
)
"""A sound of two seconds, whose length stands beyond the first part that a check fetches."""

TEXTS = ("A horse ", "at a gallop \N{EM DASH} ", "\N{HORSE}.")
"""The answer to every text request, in the pieces of a stream."""

Act = Callable[[Peer], object]
"""What is done to one connection, or to one request on it."""


@attrs.frozen
class Asked:
    """A request, as far as it was read.

    Attributes:
        head: Its request line and headers.
        body: Its body.
        whole: Whether nothing of it is missing.
    """

    head: bytes
    body: bytes
    whole: bool

    @property
    def method(self) -> bytes:
        return self.head.partition(b" ")[0]

    @property
    def is_media(self) -> bool:
        """Whether it asks for a file, which needs no key."""
        return b" /media/" in self.head.partition(b"\r\n")[0]

    @property
    def authorization(self) -> bytes | None:
        found = re.search(rb"(?i)\r\nauthorization: *([^\r]*)", self.head)
        return found[1] if found else None

    @property
    def size(self) -> int:
        """How many bytes of it were read. What is said to a proxy is no part of a request."""
        return 0 if self.method == b"CONNECT" else len(self.head) + len(self.body)


def requests_in(received: bytes) -> Iterator[Asked]:
    """Yield the requests that came on one connection; the last one may be incomplete."""
    while received:
        head, blank, rest = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        size = int(length[1]) if length else 0
        yield Asked(head + blank, rest[:size], whole=bool(blank) and len(rest) >= size)
        received = rest[size:]


def written(record: object) -> bytes:
    """Return *record* as JSON whose characters are not escaped."""
    return json.dumps(record, ensure_ascii=False).encode()


def text_events() -> list[bytes]:
    """Return the payloads of a streamed answer, which says in every protocol that it is whole."""
    last = {**candidate(TEXTS[-1], "STOP"), **STOPPED}
    return [written(record) for record in (*map(candidate, TEXTS[:-1]), last)]


def part_of(data: bytes, request: bytes) -> bytes:
    """Return the whole response with the part of *data* that *request* asks for."""
    asked = re.search(rb"(?i)\r\nrange: bytes=([0-9]+)-([0-9]+)\r\n", request)
    assert asked is not None
    first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
    place = f"bytes {first}-{last}/{len(data)}"
    return response_bytes(206, data[first : last + 1], content_range=place)


def good_reply(request: bytes, url: str) -> bytes:
    """Return the whole response that an honest service would give to *request*."""
    kind, body = "application/json", b'{"ok": true}'
    record = {"id": TASK_ID, "object": "imga", "created": 1_750_000_000, "model": "imga"}
    line = request.partition(b"\r\n")[0]
    if b":streamGenerateContent" in line or b"/v1/messages " in line:
        kind = "text/event-stream"
        body = b"".join(b"data: %s\n\n" % payload for payload in text_events())
    elif b":generateContent " in line:
        body = written(candidate("".join(TEXTS), "STOP"))
    elif line.startswith(b"DELETE "):
        body = b'{"code": "0", "msg": "deleted", "data": null}'
    elif b" /media/a.wav" in line:
        return part_of(SOUND, request)
    elif b" /media/" in line:
        kind, body = "image/png", PNG
    elif line.startswith(b"POST ") and b"/images " in line:
        body = json.dumps({**record, "status": "queued"}).encode()
    elif b"/v1/result/" in line:
        link = f"{url}/media/a.png?{SIGNATURE}"
        body = json.dumps({**record, "status": "completed", "image_url": link}).encode()
    return response_bytes(200, body, content_type=kind)


class HostileServer(ScriptedServer):
    """Commits one fault, always or once, and serves well otherwise.

    Args:
        on_connection: What is done to a connection before a word is spoken, or None.
        on_request: What is done instead of an answer, or None. It reads the request itself.
        scheme: `http` or `https`.
        tls: What handshakes are made with, under https.
        once: Whether the fault is committed once only.
        warm: Whether the first request is answered well.
        declines: Whether the fault is a refusal, so that nothing is charged.
        closes: Whether the connection ends with the fault.
    """

    def __init__(
        self,
        *,
        on_connection: Act | None = None,
        on_request: Act | None = None,
        scheme: str = "http",
        tls: ssl.SSLContext | None = None,
        once: bool = False,
        warm: bool = False,
        declines: bool = False,
        closes: bool = True,
    ) -> None:
        super().__init__(self._play, scheme=scheme)
        self._on_connection = on_connection
        self._on_request = on_request
        self._context = tls if scheme == "https" else None
        self._left = 1 if once else -1
        self._warm = warm
        self._declines = declines
        self._closes = closes
        self._turns = threading.Lock()

    @property
    def asked(self) -> list[Asked]:
        """Every request that came, whole or not. What belongs to a handshake is none."""
        return [
            asked
            for peer in list(self.peers)
            if self._context is None
            or isinstance(peer.sock, ssl.SSLSocket)
            or peer.received.startswith(b"CONNECT ")
            for asked in requests_in(bytes(peer.received))
        ]

    @property
    def accepted(self) -> Counter[bytes]:
        """How often each create was accepted and charged, by its body."""
        if self._declines:
            return Counter()
        return Counter(
            asked.body for asked in self.asked if asked.method == b"POST" and asked.whole
        )

    @property
    def bytes_of_creates(self) -> int:
        """How many bytes of creates were read."""
        return sum(asked.size for asked in self.asked if asked.method not in (b"GET", b"DELETE"))

    @property
    def paid(self) -> int:
        """How often a create was accepted and charged."""
        return sum(self.accepted.values())

    def _strikes(self) -> bool:
        with self._turns:
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def _play(self, peer: Peer) -> None:
        if self._on_connection is not None and self._strikes():
            self._on_connection(peer)
            return
        if self._context is not None:
            peer.sock = self._context.wrap_socket(
                peer.sock, server_side=True, do_handshake_on_connect=False
            )
            assert isinstance(peer.sock, ssl.SSLSocket)
            peer.sock.do_handshake()
        while True:
            if self._on_request is not None and not self._is_warming() and self._strikes():
                self._on_request(peer)
                if self._closes:
                    return
            else:
                self.answer(peer)

    def _is_warming(self) -> bool:
        warming, self._warm = self._warm, False
        return warming

    def hang_up(self) -> None:
        """Take every connection away from its client."""
        for peer in list(self.peers):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(peer.sock, socket.SHUT_RDWR)

    def forget(self) -> None:
        """Wait until every connection has ended, and forget it."""
        for thread in self.script_threads:
            thread.join(10)
            assert not thread.is_alive(), "a connection is still open"
            self._threads.remove(thread)
        for peer in self.peers:
            peer.close()
        self.peers.clear()

    def answer(self, peer: Peer) -> None:
        """Answer one request as an honest service would."""
        peer.send(good_reply(peer.read_request(), self.url))
