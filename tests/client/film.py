"""A file on a real server that is cut off, changes and redirects as scripted."""

from __future__ import annotations

import re
from collections import deque

from transport.scripted_server import Peer, response_bytes

MEDIA = b"\x00\x00\x00\x18ftypmp42" + bytes(range(256)) * 8
OTHER = b"\x00\x00\x00\x18ftypmp42" + bytes(reversed(range(256))) * 7


class Film:
    """Serves one file with ranges; a script for `ScriptedServer`.

    Args:
        body: The file.
        etag: Its version, or None to send none.
        cuts: Bytes of the file after which each response is cut off, or None for a whole one.
    """

    def __init__(
        self,
        body: bytes = MEDIA,
        *,
        etag: str | None = '"v1"',
        cuts: tuple[int | None, ...] = (),
        content_type: str = "video/mp4",
    ) -> None:
        self.body = body
        self.etag = etag
        self.cuts = deque(cuts)
        self.content_type = content_type
        self.asked: list[bytes] = []
        """The head of each request."""
        self.instead: deque[bytes] = deque()
        """Whole replies to the next requests instead of the file."""

    @property
    def ranges(self) -> list[str | None]:
        """The range that each request asked for."""
        return [self._field(head, "Range") for head in self.asked]

    @staticmethod
    def _field(head: bytes, name: str) -> str | None:
        found = re.search(rf"(?i)\r\n{name}: ([^\r]*)".encode(), head)
        return found[1].decode() if found else None

    def __call__(self, peer: Peer) -> None:
        while True:
            head = peer.read_request()
            self.asked.append(head)
            if self.instead:
                peer.send(self.instead.popleft())
                continue
            reply = self.reply(head)
            cut = self.cuts.popleft() if self.cuts else None
            if cut is not None:
                peer.send(reply[: reply.index(b"\r\n\r\n") + 4 + cut])
                return
            peer.send(reply)

    def reply(self, head: bytes) -> bytes:
        """Return the whole response to a request."""
        fields = {"content_type": self.content_type}
        if self.etag is not None:
            fields["etag"] = self.etag
        asked = re.fullmatch(r"bytes=([0-9]+)-", self._field(head, "Range") or "")
        if asked is None or self._field(head, "If-Range") not in (None, self.etag):
            return response_bytes(200, self.body, **fields)
        first, size = int(asked[1]), len(self.body)
        if first >= size:
            return response_bytes(416, b"", content_range=f"bytes */{size}")
        stretch = f"bytes {first}-{size - 1}/{size}"
        return response_bytes(206, self.body[first:], content_range=stretch, **fields)
