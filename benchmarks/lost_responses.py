"""How many POSTs one lost response costs: `python -m benchmarks lost_responses`.

A server on this machine reads one whole POST, as a service does that accepts and charges it, and
then the response is lost. It counts the POSTs that come for one call on a library, at the library's
own settings; only what makes it slow is shortened, and the output says what. A library that is
not installed is left out.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any
from unittest.mock import patch

import trio

import muybridge

READ_TIMEOUT = 0.5
"""The timeout that each library is given, in seconds: the response never comes."""
PATIENCE = 60.0
"""Seconds after which the server gives up a connection that says nothing."""
PAUSE = 0.01
"""Seconds that fal-client's pauses between tries are shortened to."""

Fault = Callable[[socket.socket], object]


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def _gateway(status: int, reason: str) -> Fault:
    body = (
        f"<html><head><title>{status} {reason}</title></head>\n<body>\n"
        f"<center><h1>{status} {reason}</h1></center>\n<hr><center>nginx</center>\n"
        "</body>\n</html>\n"
    )
    response = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}"
    )
    return lambda connection: connection.sendall(response.encode())


def _hang(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


FAULTS: Mapping[str, Fault] = {
    "reset": _reset,
    "closed": _close,
    "502": _gateway(502, "Bad Gateway"),
    "503": _gateway(503, "Service Temporarily Unavailable"),
    "hung": _hang,
}
"""What happens after a whole POST has been read."""


class LossyService:
    """Listens on loopback, reads POSTs whole, counts them, and commits *fault*.

    Args:
        fault: What to do with the connection then; it is closed at last.
    """

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.posts = 0
        """How many whole POSTs came."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextmanager
    def serving(self) -> Generator[LossyService, None, None]:
        """Serve until the context ends."""
        accepting = threading.Thread(target=self._accept, daemon=True)
        accepting.start()
        try:
            yield self
        finally:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with connection, contextlib.suppress(OSError):
            if _read_post(connection):
                with self._lock:
                    self.posts += 1
                self._fault(connection)


def _read_post(connection: socket.socket) -> bool:
    """Read one request, and return whether it was a whole POST."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65536)
        if not data:
            return False
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
    assert length is not None, "a POST whose length is not told"
    while len(body) < int(length[1]):
        data = connection.recv(65536)
        if not data:
            return False
        body += data
    return head.startswith(b"POST ")


_REQUEST = muybridge.ImgbRequest(model="imgb-2", prompt="a horse")


def _client(url: str) -> None:
    with muybridge.Client("key", url, timeout=READ_TIMEOUT) as client:
        client.create(_REQUEST)


def _trio_client(url: str) -> None:
    async def create() -> None:
        async with muybridge.TrioClient("key", url, timeout=READ_TIMEOUT) as client:
            await client.create(_REQUEST)

    trio.run(create)


def _openai(url: str) -> None:
    openai: Any = import_module("openai")
    with openai.OpenAI(api_key="key", base_url=url, timeout=READ_TIMEOUT) as client:
        client.images.generate(model="gpt-image-2", prompt="a horse")


def _anthropic(url: str) -> None:
    anthropic: Any = import_module("anthropic")
    with anthropic.Anthropic(api_key="key", base_url=url, timeout=READ_TIMEOUT) as client:
        message = {"role": "user", "content": "Describe a horse."}
        client.messages.create(model="claude-sonnet-4-5", max_tokens=64, messages=[message])


def _fal(url: str) -> None:
    fal: ModuleType = import_module("fal_client.client")
    with patch.multiple(fal, QUEUE_URL_FORMAT=f"{url}/", MAX_DELAY=PAUSE):
        client = fal.SyncClient(key="key", default_timeout=READ_TIMEOUT)
        client.submit("fal-ai/horse", {"prompt": "a horse"})


def _comfy(url: str) -> None:
    comfy: Any = import_module("comfy_sdk")
    with patch.dict(os.environ, {"COMFY_BASE_URL": url}):
        client = comfy.Comfy(api_key="key", timeout=READ_TIMEOUT)
    with client:
        graph = {"1": {"class_type": "LoadHorse", "inputs": {}}}
        client.submit(client.workflows.from_json(graph))


def _replicate(url: str) -> None:
    replicate: Any = import_module("replicate")
    client = replicate.Client("key", base_url=url, timeout=READ_TIMEOUT)
    client.predictions.create(version="0" * 64, input={"prompt": "a horse"})


@dataclass(frozen=True)
class Library:
    """What is compared.

    Args:
        name: What it is called in the output.
        distribution: The name under which it is installed.
        create: Makes one thing that costs money, at the URL given.
        shortened: What was shortened beside the time-out, for people.
    """

    name: str
    distribution: str
    create: Callable[[str], object]
    shortened: str = ""


OURS = (
    Library("muybridge.Client", "muybridge", _client),
    Library("muybridge.TrioClient", "muybridge", _trio_client),
)
PEERS = (
    Library("comfy-sdk submit", "comfy-sdk", _comfy),
    Library("openai images.generate", "openai", _openai),
    Library("anthropic messages.create", "anthropic", _anthropic),
    Library(
        "fal-client submit",
        "fal-client",
        _fal,
        f"pauses to {PAUSE:g} s, and its fixed address replaced",
    ),
    Library("replicate predictions.create", "replicate", _replicate),
)


@dataclass(frozen=True)
class Count:
    """POSTs that reached the server for one call.

    Args:
        posts: By library, with its version, and by fault.
        remarks: What a reader must know, for people.
    """

    posts: Mapping[str, Mapping[str, int]]
    remarks: tuple[str, ...]

    @property
    def figures(self) -> Mapping[str, Mapping[str, int]]:
        """The same, as other benchmarks call it."""
        return self.posts

    def lines(self) -> list[str]:
        """Return the table and its remarks, for people."""
        return [
            "POSTs that reach the server for one create whose response is lost",
            "".join(f"{fault:>8}" for fault in FAULTS),
            *(
                "".join(f"{posts[fault]:>8}" for fault in FAULTS) + f"  {library}"
                for library, posts in self.posts.items()
            ),
            *(f"  {remark}" for remark in self.remarks),
        ]


def posts_for(create: Callable[[str], object], fault: Fault) -> int:
    """Return how many POSTs one call makes when its response is lost to *fault*.

    Args:
        create: Makes one thing that costs money, at the URL given.
        fault: What happens to the response.

    Raises:
        RuntimeError: None came, or the call succeeded: it was not what is to be measured.
    """
    with LossyService(fault).serving() as service:
        told: Exception | None = None
        try:
            create(service.url)
        except Exception as error:  # noqa: BLE001  each library has its own
            told = error
        posts = service.posts
    if told is None or not posts:
        raise RuntimeError(f"{posts} POSTs came, and the call ended with {told!r}") from told
    return posts


def count(libraries: tuple[Library, ...] = (*OURS, *PEERS)) -> Count:
    """Count for each of *libraries* that is installed, and each fault."""
    posts: dict[str, dict[str, int]] = {}
    remarks = [
        "502 and 503: the pages of nginx, a gateway that may have passed the request on",
        f"hung: a timeout of {READ_TIMEOUT:g} s; otherwise the defaults of each library",
    ]
    # A proxy of this machine's environment has no business with loopback.
    with patch.dict(os.environ, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}):
        for library in libraries:
            try:
                label = f"{library.name} {version(library.distribution)}"
            except PackageNotFoundError:
                remarks.append(f"left out, because it is not installed: {library.distribution}")
                continue
            posts[label] = {
                fault: posts_for(library.create, commit) for fault, commit in FAULTS.items()
            }
            if library.shortened:
                remarks.append(f"{library.distribution}: {library.shortened}")
    return Count(posts, tuple(remarks))
