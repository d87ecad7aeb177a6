"""A large download into a file: CPU time per MiB, and memory.

The floors read from the socket into a file and do nothing else: http.client's `readinto`, and
`receive_some` of a trio stream, after a head that is not even read. Peers that are not installed
are left out: `pip install requests httpx2`.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import multiprocessing
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import trio

from benchmarks.loopback import serving
from benchmarks.measuring import Benchmark, Report, Target
from muybridge import Client, TrioClient

MIB = 2**20
SIZE = 256 * MIB
_PIECE = 64 * 1024
_BLOCK = bytes(MIB)

Download = Callable[[str, Path], object]
"""Saves what a URL leads to in a file."""


def _http_client(url: str, path: Path) -> None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port)
    with contextlib.closing(connection), path.open("wb", buffering=0) as file:
        connection.request("GET", parts.path)
        response, buffer = connection.getresponse(), memoryview(bytearray(_PIECE))
        while count := response.readinto(buffer):
            file.write(buffer[:count])


def _client(url: str, path: Path) -> None:
    with Client("key", url) as client:
        client.download(url, path)


def _requests(url: str, path: Path) -> None:
    requests = importlib.import_module("requests")
    with (
        requests.get(url, stream=True, timeout=60) as response,
        path.open("wb", buffering=0) as file,
    ):
        for piece in response.iter_content(_PIECE):
            file.write(piece)


def _httpx2(url: str, path: Path) -> None:
    httpx2 = importlib.import_module("httpx2")
    with httpx2.stream("GET", url, timeout=60) as response, path.open("wb", buffering=0) as file:
        for piece in response.iter_bytes(_PIECE):
            file.write(piece)


async def _trio_stream(url: str, path: Path) -> None:
    parts = urlsplit(url)
    stream = await trio.open_tcp_stream(str(parts.hostname), int(parts.port or 80))
    async with stream:
        await stream.send_all(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        head, _, piece = bytes(await stream.receive_some(_PIECE)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        missing = SIZE
        with path.open("wb", buffering=0) as file:
            while missing := missing - file.write(piece):
                piece = await stream.receive_some(_PIECE)


async def _trio_client(url: str, path: Path) -> None:
    async with TrioClient("key", url) as client:
        await client.download(url, path)


async def _trio_httpx2(url: str, path: Path) -> None:
    httpx2 = importlib.import_module("httpx2")
    async with httpx2.AsyncClient(timeout=60) as client, client.stream("GET", url) as response:
        with path.open("wb", buffering=0) as file:
            async for piece in response.aiter_bytes(_PIECE):
                file.write(piece)


def _under_trio(download: Callable[[str, Path], Awaitable[object]]) -> Download:
    return partial(trio.run, download)


_SYNC: dict[str, tuple[str, Download]] = {
    "http.client readinto": ("http.client", _http_client),
    "muybridge.Client": ("muybridge", _client),
    "requests iter_content": ("requests", _requests),
    "httpx2 iter_bytes": ("httpx2", _httpx2),
}
_TRIO: dict[str, tuple[str, Download]] = {
    "trio receive_some": ("trio", _under_trio(_trio_stream)),
    "muybridge.TrioClient": ("muybridge", _under_trio(_trio_client)),
    "httpx2 aiter_bytes": ("httpx2", _under_trio(_trio_httpx2)),
}


def benchmark() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of blocking downloads."""
    return _benchmark(_SYNC)


def under_trio() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of downloads under trio."""
    return _benchmark(_TRIO)


@contextmanager
def _benchmark(downloads: dict[str, tuple[str, Download]]) -> Iterator[Benchmark]:
    with serving("benchmarks.downloads") as url, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        contestants = {
            name: partial(_check, download, f"{url}/{SIZE}", path)
            for name, (module, download) in downloads.items()
            if _is_installed(module)
        }
        floor, ours, *_ = downloads
        targets = [Target(ours, at_most=1.3, of=floor)]
        yield Benchmark("MiB", SIZE // MIB, contestants, targets)


def _check(download: Download, url: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    download(url, path)
    assert path.stat().st_size == SIZE


def _is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(f"left out: {module} ({error})", file=sys.stderr)
        return False
    return True


def _peak() -> int:
    """Return the most bytes of memory that this process has occupied (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def _growth(download: Download, url: str) -> int:
    """Return by how many bytes a large download raises what a small one has taken."""
    with tempfile.TemporaryDirectory() as folder:
        download(f"{url}/{MIB}", Path(folder) / "small.mp4")
        before = _peak()
        download(f"{url}/{SIZE}", Path(folder) / "large.mp4")
        return _peak() - before


def memory(_: int = 1) -> Report:
    """Return what a large download adds to memory, each measured in a process of its own."""
    found: dict[str, dict[str, float]] = {}
    context = multiprocessing.get_context("spawn")
    with serving("benchmarks.downloads") as url:
        for name, (_module, download) in (_SYNC | _TRIO).items():
            if name.startswith("muybridge"):
                with context.Pool(1) as pool:
                    found[name] = {"MiB": pool.apply(_growth, (download, url)) / MIB}
    targets = [Target(name, at_most=8, figure="MiB") for name in found]
    measured = f"memory for a download of {SIZE // MIB} MiB, beyond that for 1 MiB"
    return Report(measured, found, targets)


def _serve() -> None:
    """Answer each request with as many bytes as its path says, until terminated."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while head := connection.recv(65536):
                size = int(head.split(b" ", 2)[1].removeprefix(b"/"))
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n"
                    b"Content-Length: %d\r\n\r\n" % size
                )
                for _ in range(size // MIB):
                    connection.sendall(_BLOCK)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    _serve()
