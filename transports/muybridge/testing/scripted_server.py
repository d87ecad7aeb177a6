"""A server on loopback that misbehaves as its script says, on real sockets.

For tests of transports, and of everything that must survive a bad network.

    with ScriptedServer([read_request, reply(200, b"{}")]) as server:
        ...  # speak to server.url
    assert server.posts == 1

A script is a callable on a `Peer`, the server's end of one connection, or a list of such steps.
It runs once for each connection, in a thread of its own; the connection is closed when it ends.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

PATIENCE = 10.0
"""Seconds after which an idle script ends."""
_SENT_KEPT = 64 * 1024
"""Bytes that a peer remembers of what it has sent."""
_SHOWN = 160
"""Bytes of data that a description shows."""


class Peer:
    """The server's end of one connection.

    Attributes:
        sock: The connected socket, or the TLS socket on it.
        number: How many connections came before this one.
        stopping: Set when the server stops; wait for it instead of sleeping.
        received: Every byte of requests that was read.
        sent: The beginning of what was sent, at most 64 KiB.
        was_reset: Whether it was closed by a reset, which may arrive before what was sent.
    """

    def __init__(self, sock: socket.socket, number: int, stopping: threading.Event) -> None:
        self.sock = sock
        self.number = number
        self.stopping = stopping
        self.received: bytearray = bytearray()
        self.sent: bytearray = bytearray()
        self.was_reset: bool = False
        self._unread = b""

    def receive(self, size: int = 65536) -> bytes:
        """Read up to *size* bytes, or nothing at the end."""
        data = self.sock.recv(size)
        self.received += data
        return data

    def read_head(self) -> bytes:
        """Read one request as far as its blank line."""
        while b"\r\n\r\n" not in self._unread:
            self._read_more()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        return head + b"\r\n\r\n"

    def read_request(self) -> bytes:
        """Read one whole request."""
        head = self.read_head()
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        missing = int(length[1]) if length else 0
        while len(self._unread) < missing:
            self._read_more()
        body, self._unread = self._unread[:missing], self._unread[missing:]
        return head + body

    def _read_more(self) -> None:
        data = self.receive()
        if not data:
            raise ConnectionResetError("the client went away")
        self._unread += data

    def send(self, data: bytes) -> None:
        """Send *data*, and keep what fits of it for the test to compare."""
        self.sent += data[: max(0, _SENT_KEPT - len(self.sent))]
        self.sock.sendall(data)

    def drip(self, data: bytes, *, every: float, size: int = 1) -> None:
        """Send *data* slowly, *size* bytes *every* so many seconds."""
        for start in range(0, len(data), size):
            self.send(data[start : start + size])
            if self.stopping.wait(every):
                return

    def hang(self) -> None:
        """Do nothing until the client closes its end."""
        while self.receive():
            pass

    def reset(self) -> None:
        """Close the connection with a reset."""
        self.was_reset = True
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self.sock.close()


Step = Callable[[Peer], object]
Script = Step | Sequence[Step]


class ScriptedServer:
    """Listens on a port of loopback and plays *script* to each connection.

    Args:
        script: What to do with each connection.
        tls: The context for the handshake before the script begins.
        scheme: The scheme of the URL. With `https` but no *tls*, the script can spoil the
            handshake.
        host: The address to listen at, and the host in the URL.
        patience: Seconds after which an idle script ends.
    """

    def __init__(
        self,
        script: Script,
        *,
        tls: ssl.SSLContext | None = None,
        scheme: str | None = None,
        host: str = "127.0.0.1",
        patience: float = PATIENCE,
    ) -> None:
        self._steps = [script] if callable(script) else list(script)
        self._tls = tls
        self._scheme = scheme or ("https" if tls else "http")
        self._host = host
        self._patience = patience
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._errors: list[Exception] = []
        self.peers: list[Peer] = []
        """Every connection that was accepted, the first one first."""

    def __enter__(self) -> Self:
        self._listener = socket.create_server((self._host, 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            peers = list(self.peers)
        for peer in peers:
            # Called on the class: a TLS socket would forget its TLS, under the script's hands.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(peer.sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(self._patience)
        for peer in self.peers:
            peer.close()
        if self._errors and kind is None:  # the failure of the test itself says more
            raise self._errors[0]

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        return f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the server, without a path."""
        return f"{self._scheme}://{self.address}"

    @property
    def received(self) -> bytes:
        """Every byte of requests that was read, of all connections."""
        return b"".join(bytes(peer.received) for peer in list(self.peers))

    @property
    def posts(self) -> int:
        """How many POST requests came in, whole or not."""
        return len(re.findall(rb"POST [^ ]+ HTTP/1\.1\r\n", self.received))

    @property
    def script_threads(self) -> list[threading.Thread]:
        """The threads that play the script to the connections."""
        return self._threads[1:]

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(self._patience)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock, len(self.peers), self._stopping)
            with self._lock:
                self.peers.append(peer)
            self._start(self._serve, peer)

    def _serve(self, peer: Peer) -> None:
        try:
            if self._tls is not None:
                peer.sock = self._tls.wrap_socket(
                    peer.sock, server_side=True, do_handshake_on_connect=False
                )
                peer.sock.do_handshake()
            for step in self._steps:
                step(peer)
        except OSError:
            pass  # the client went away, as many tests want it to
        except Exception as error:  # noqa: BLE001  # reported in the test's own thread
            self._errors.append(error)
        finally:
            peer.close()


def read_request(peer: Peer) -> None:
    """Read one whole request."""
    peer.read_request()


def hang(peer: Peer) -> None:
    """Do nothing until the client closes its end."""
    peer.hang()


def reset(peer: Peer) -> None:
    """Reset the connection."""
    peer.reset()


def send(data: bytes) -> Step:
    """Return a step that sends *data*."""

    def step(peer: Peer) -> None:
        peer.send(data)

    step.__doc__ = f"Send {_shown(data)}."
    return step


def response_bytes(status: int = 200, body: bytes = b"{}", **headers: str) -> bytes:
    """Return a whole response; underscores in the names of *headers* become hyphens."""
    fields = {"content_length": str(len(body))} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Scripted", *lines, "", ""]).encode("latin-1") + body


def reply(status: int = 200, body: bytes = b"{}", **headers: str) -> Step:
    """Return a step that sends a whole response."""
    return send(response_bytes(status, body, **headers))


def serve(status: int = 200, body: bytes = b"{}", **headers: str) -> Step:
    """Return a script that answers every request of a connection in the same way."""
    data = response_bytes(status, body, **headers)

    def script(peer: Peer) -> None:
        while True:
            peer.read_request()
            peer.send(data)

    script.__doc__ = f"Answer each request with {_shown(data)}."
    return script


def in_turn(*scripts: Script) -> Step:
    """Return a script that plays the first of *scripts* to the first connection, and so on.

    The last one is played to all that follow.
    """

    def script(peer: Peer) -> None:
        chosen = scripts[min(peer.number, len(scripts) - 1)]
        for step in [chosen] if callable(chosen) else chosen:
            step(peer)

    *first, last = map(in_words, scripts)
    descriptions = [f"for connection {number}: {words}" for number, words in enumerate(first, 1)]
    script.__doc__ = "Do " + "; ".join([*descriptions, f"for each that follows: {last}"])
    return script


def in_words(script: Script) -> str:
    """Return what *script* does to a connection, in the words of its steps' docstrings."""
    if callable(script):
        sentence = (script.__doc__ or "Do something.").strip().partition("\n")[0].removesuffix(".")
        return sentence[:1].lower() + sentence[1:]
    descriptions = [in_words(step) for step in script]
    if not script or script[-1] not in (hang, reset, Peer.hang, Peer.reset):
        descriptions.append("close the connection")
    return ", ".join(descriptions)


def _shown(data: bytes) -> str:
    rest = len(data) - _SHOWN
    return repr(data) if rest <= 0 else f"{data[:_SHOWN]!r} and {rest} bytes more"


def closed_port() -> int:
    """Return a loopback port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
