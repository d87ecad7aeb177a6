"""A relay in front of the local service: it counts what reaches the service, and loses responses.

What it counts is what the service was given, whole, to accept. It is on a real socket, so that
servers in processes of their own use it as well.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from muybridge.local import LocalService
from muybridge.testing.scripted_server import Peer, ScriptedServer


class Relay:
    """The local service behind a relay, as long as the context lasts.

    Attributes:
        service: The service.
        posts: How often each path and body was given to the service.
        loses: Whether the next responses to creates are lost, though the service accepts them.
        open: Creates wait, before they reach the service, until this is set.
        arrived: Set whenever a create has arrived at the relay.
    """

    def __init__(self, **settings: Any) -> None:
        self.posts: Counter[tuple[str, str]] = Counter()
        self.loses: bool = False
        self.open: threading.Event = threading.Event()
        self.open.set()
        self.arrived: threading.Event = threading.Event()
        self._lock = threading.Lock()
        self._server = ScriptedServer(self._relay)
        self._settings: dict[str, Any] = {"speed": 100, **settings}

    def __enter__(self) -> Self:
        self._server.__enter__()
        self.service = LocalService(public_url=self.url, **self._settings)
        self.service.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open.set()
        self._server.__exit__(kind, error, traceback)
        self.service.__exit__(kind, error, traceback)

    @property
    def url(self) -> str:
        """Where the relay is."""
        return self._server.url

    @property
    def creates(self) -> int:
        """How many creates the service was given."""
        return sum(n for (path, _), n in self.posts.items() if "/images" in path or "/vid" in path)

    @property
    def texts(self) -> int:
        """How many text requests the service was given."""
        return sum(self.posts.values()) - self.creates

    @property
    def most(self) -> int:
        """How often the service was given the same create, at most."""
        return max(self.posts.values(), default=0)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables with which a command uses the relay."""
        return {
            "MUYBRIDGE_API_KEY": self.service.api_key,
            "MUYBRIDGE_BASE_URL": self.url,
            "MUYBRIDGE_TEXT_BASE_URL": self.url,
            **more,
        }

    def _relay(self, peer: Peer) -> None:
        request = peer.read_request()
        head, _, body = request.partition(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        loses = False
        if method == "POST":
            self.arrived.set()
            while not self.open.wait(0.05):
                if peer.stopping.is_set():
                    return
            with self._lock:
                self.posts[path, json.dumps(json.loads(body), sort_keys=True)] += 1
            loses = self.loses
        place = urlsplit(self.service.base_url)
        address = (str(place.hostname), int(str(place.port)))
        lines = [
            line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")
        ]
        with socket.create_connection(address, timeout=10) as service:
            service.sendall(b"\r\n".join([*lines, b"Connection: close", b"", body]))
            response = b""
            while piece := service.recv(65536):
                response += piece
        if not loses:
            peer.send(response)
