"""What connections cost: a new one over TLS, keeping one between polls, and building a client."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import requests
import trio
import trustme

from benchmarks.lifecycle import KEY
from benchmarks.loopback import ONCE, serving
from benchmarks.measuring import Benchmark, Report, Target, installed
from muybridge import Client, RequestsTransport, TrioClient, TrioTransport

CONNECTIONS = 40
CLIENTS = 20
POLLS = 4
PAUSE = 6.0
"""Seconds between the polls of `keep_alive`, which really sleeps."""
OURS = "muybridge.Client"
UNDER_TRIO = "muybridge.TrioClient"

_RECORD = b'{"id":"any","status":"processing"}'


def https() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of a poll on a new connection over TLS, and on a kept one."""
    return _https()


def building() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of building a client."""
    return _building()


@contextmanager
def _https() -> Iterator[Benchmark]:
    authority = trustme.CA()
    with TemporaryDirectory() as folder, ExitStack() as opened:
        bundle, chain, key = (
            str(Path(folder) / name) for name in ("ca.pem", "chain.pem", "key.pem")
        )
        authority.cert_pem.write_to_path(bundle)
        certificate = authority.issue_cert("127.0.0.1")
        for part in certificate.cert_chain_pems:
            part.write_to_path(chain, append=True)
        certificate.private_key_pem.write_to_path(key)
        base_url = opened.enter_context(serving("benchmarks.loopback", chain, key))
        context = import_module("ssl").create_default_context(cafile=bundle)
        transport = RequestsTransport(ssl_context=context)
        client = opened.enter_context(Client(KEY, base_url, poll_interval=0, transport=transport))
        opened.callback(transport.close)
        session = opened.enter_context(requests.Session())

        def by_hand(*, new: bool) -> Callable[[], None]:
            url = f"{base_url}/v1/result/{ONCE if new else 'any'}"

            def polls() -> None:
                for _ in range(CONNECTIONS):
                    assert session.get(url, timeout=60, verify=bundle).ok

            return polls

        def ours(*, new: bool) -> Callable[[], None]:
            def polls() -> None:
                for _ in range(CONNECTIONS):
                    client.get(ONCE if new else "any")

            return polls

        def under_trio(*, new: bool) -> Callable[[], None]:
            async def polls() -> None:
                transport = TrioTransport(ssl_context=context)
                async with TrioClient(KEY, base_url, poll_interval=0, transport=transport) as there:
                    for _ in range(CONNECTIONS):
                        await there.get(ONCE if new else "any")
                await transport.close()

            return partial(trio.run, polls)

        host, port = base_url.removeprefix("https://").split(":")
        query = f"GET /v1/result/{ONCE} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

        def bare() -> None:
            for _ in range(CONNECTIONS):
                with (
                    socket.create_connection((host, int(port))) as plain,
                    context.wrap_socket(plain, server_hostname=host) as secured,
                ):
                    secured.sendall(query)
                    assert secured.recv(65536).startswith(b"HTTP/1.1 200 ")

        async def bare_under_trio() -> None:
            for _ in range(CONNECTIONS):
                secured = await trio.open_ssl_over_tcp_stream(host, int(port), ssl_context=context)
                await secured.send_all(query)
                assert (await secured.receive_some(65536)).startswith(b"HTTP/1.1 200 ")
                await trio.aclose_forcefully(secured)

        contestants = {
            "a socket by hand, a new connection": bare,
            "a stream of trio by hand, a new connection": partial(trio.run, bare_under_trio),
            "requests, a new connection": by_hand(new=True),
            "requests, a kept connection": by_hand(new=False),
            f"{OURS}, a new connection": ours(new=True),
            f"{OURS}, a kept connection": ours(new=False),
            f"{UNDER_TRIO}, a new connection": under_trio(new=True),
            f"{UNDER_TRIO}, a kept connection": under_trio(new=False),
        }
        targets = [Target(f"{who}, a new connection", at_most=2_500) for who in (OURS, UNDER_TRIO)]
        yield Benchmark("poll over TLS", CONNECTIONS, contestants, targets)


@contextmanager
def _building() -> Iterator[Benchmark]:
    url = "https://api.example.com"
    peers: Mapping[str, Callable[[], Any]] = {
        "httpx2": lambda: import_module("httpx2").Client(),
        "openai": lambda: import_module("openai").OpenAI(api_key=KEY, base_url=url),
        "replicate": lambda: import_module("replicate").Client(KEY, base_url=url),
    }

    def many(build: Callable[[], Any]) -> Callable[[], None]:
        def clients() -> None:
            for _ in range(CLIENTS):
                client = build()
                if hasattr(client, "close"):
                    client.close()

        return clients

    contestants = {
        "requests.Session": many(requests.Session),
        OURS: many(lambda: Client(KEY, url)),
        **{name: many(peers[name]) for name in installed(peers)},
    }
    yield Benchmark("client", CLIENTS, contestants, [Target(OURS, at_most=1_000)])


def keep_alive(_: int) -> Report:
    """Count the connections that polls with pauses between them take. It sleeps for 18 s."""
    with ExitStack() as opened:
        urls = [opened.enter_context(_counting()) for _ in range(3)]
        client = opened.enter_context(Client(KEY, urls[0][0], poll_interval=0))
        session = opened.enter_context(requests.Session())
        polls: dict[str, Callable[[], object]] = {
            OURS: lambda: client.get("any"),
            "requests.Session": lambda: session.get(f"{urls[1][0]}/v1/result/any", timeout=60),
        }
        for _name in installed(["httpx2"]):
            peer = opened.enter_context(import_module("httpx2").Client())
            polls["httpx2"] = partial(peer.get, f"{urls[2][0]}/v1/result/any")
        for number in range(POLLS):
            if number:
                time.sleep(PAUSE)
            for poll in polls.values():
                poll()
        figures = {
            name: {"connections": float(len(accepted))}
            for name, (_, accepted) in zip(polls, urls, strict=False)
        }
    target = Target(OURS, at_most=1, figure="connections")
    return Report(f"connections opened for {POLLS} polls, {PAUSE:g} s apart", figures, [target])


@contextmanager
def _counting() -> Iterator[tuple[str, list[socket.socket]]]:
    """Serve polls, and give the URL and the connections that come to be."""
    accepted: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(_RECORD), _RECORD)
                )

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                accepted.append(connection)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", accepted
        for connection in accepted:
            connection.close()
