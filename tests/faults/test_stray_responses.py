"""Responses that go astray on a hop are never taken for the response to a create.

The hop stands between the client and a service that keeps the books.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import Queue

import attrs
import pytest

import moments
import muybridge
from batch.billing import BillingServer
from client.requests_made import image
from muybridge.batch import Stage
from sampling import examples
from transport.holding import hold
from transport.scripted_server import Peer, ScriptedServer, Step, response_bytes, send

from .bad_variants import ReusesConnections, TrioReusesConnections
from .clients import DRIVERS, Driven, MakeDriver, requests_driver, trio_driver

CREATES = examples(90, nightly=300)
OTHER = {"id": "task-of-another", "object": "image", "created": 1, "status": "queued"}
STRAYS = (
    response_bytes(429, b"{}", retry_after="0"),
    response_bytes(400, b'{"error": "no horses today"}'),
    response_bytes(200, json.dumps(OTHER).encode()),
)

CONTROLS: dict[str, MakeDriver] = {
    "requests": partial(requests_driver, make_transport=lambda _: ReusesConnections()),
    "trio": partial(trio_driver, make_transport=lambda _: TrioReusesConnections()),
}
"""The drivers, on transports that send creates on connections that were used before."""


class Strays:
    """Gives the strays in turn, to many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def next(self) -> bytes:
        with self._lock:
            self.count += 1
            return STRAYS[self.count % len(STRAYS)]


def passed_on(request: bytes, service: str) -> bytes:
    """Return the response of the service to *request*."""
    host, _, port = service.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as onward:
        onward.sendall(request)
        response = b""
        while b"\r\n\r\n" not in response:
            response += received(onward)
        head, _, body = response.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        assert length is not None
        while len(body) < int(length[1]):
            body += received(onward)
    return head + b"\r\n\r\n" + body


def received(connection: socket.socket) -> bytes:
    """Return the next bytes.

    Raises:
        ConnectionError: There are no more, as when a test's service stops under its hop.
    """
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the service has closed the connection")
    return data


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", response_bytes(200, b"{}")[:-1]])
def test_the_hop_ends_with_its_service(said: bytes) -> None:
    """A hop does not read on for ever where its service stops within a response."""
    with (
        ScriptedServer([Peer.read_request, send(said)]) as service,
        pytest.raises(ConnectionError, match="closed the connection"),
    ):
        passed_on(b"GET / HTTP/1.1\r\n\r\n", service.url)


def left_over(service: str, strays: Strays) -> Step:
    """Return a hop whose connections have a response left over when a create comes on them.

    It is one to an earlier request there, and arrives after the client has looked whether the
    connection is idle: when the create is on its way.
    """

    def script(peer: Peer) -> None:
        peer.send(passed_on(peer.read_request(), service))
        while True:
            request = peer.read_request()
            response = passed_on(request, service)
            if request.startswith(b"POST"):
                peer.send(strays.next())
            peer.send(response)

    return script


def closing(service: str, _: Strays) -> Step:
    """Return a hop that closes a connection when a second request comes on it."""

    def script(peer: Peer) -> None:
        peer.send(passed_on(peer.read_request(), service))
        peer.receive()

    return script


def greeting(service: str, strays: Strays, greeted: Callable[[Peer, bool], None]) -> Step:
    """Return a hop that sends a response at once on two connections of three."""

    def script(peer: Peer) -> None:
        does = peer.number % 3 != 2
        if does:
            peer.send(strays.next())
        greeted(peer, does)
        while True:
            peer.send(passed_on(peer.read_request(), service))

    return script


@attrs.frozen
class Found:
    """What came of creates.

    Args:
        outcomes: How many ended in which way.
        doubles: The prompts that were paid for twice.
        wrong: The prompts whose task is another's.
        denied: The prompts that were accepted and ended otherwise.
    """

    outcomes: Counter[str]
    doubles: list[str]
    wrong: list[str]
    denied: list[str]


def create_all(driven: Driven, service: BillingServer, count: int = CREATES) -> Found:
    """Make creates one after the other, and compare their outcomes with the books."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    denied: list[str] = []
    for number in range(count):
        prompt = f"horse {number}"
        try:
            task = driven.client.create(image(prompt))
        except muybridge.MuybridgeError as error:
            outcomes[type(error).__name__] += 1
            if service.accepted[prompt]:
                denied.append(prompt)
        else:
            outcomes["submitted"] += 1
            if task.id not in service.accepted[prompt]:
                wrong.append(prompt)
    return Found(outcomes, service.doubles, wrong, denied)


ALL_WELL = Found(Counter(submitted=CREATES), [], [], [])


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("hop", [left_over, closing])
def test_connections_used_before(driver: str, hop: Callable[[str, Strays], Step]) -> None:
    """A create meets nothing that is left over from an earlier exchange, be it the end."""
    with ExitStack() as stack, BillingServer() as service:
        server = stack.enter_context(ScriptedServer(hop(service.url, Strays())))
        driven = DRIVERS[driver](stack, None)(server.url)
        assert create_all(driven, service) == ALL_WELL


@pytest.mark.parametrize("driver", CONTROLS)
def test_control_that_reuses_connections(driver: str) -> None:
    """A transport that sends creates on used connections pays twice, and loses and mixes up ids."""
    with ExitStack() as stack, BillingServer() as service:
        server = stack.enter_context(ScriptedServer(left_over(service.url, Strays())))
        driven = CONTROLS[driver](stack, None)(server.url)
        found = create_all(driven, service)
    assert len(found.doubles) > CREATES // 10
    assert len(found.wrong) > CREATES // 10
    assert len(found.denied) > CREATES // 10
    assert found.outcomes["Refused"] > CREATES // 10


@pytest.mark.parametrize("driver", CONTROLS)
def test_control_whose_connections_are_closed(driver: str) -> None:
    """A transport that sends creates on used connections has ambiguous ones for nothing."""
    with ExitStack() as stack, BillingServer() as service:
        server = stack.enter_context(ScriptedServer(closing(service.url, Strays())))
        driven = CONTROLS[driver](stack, None)(server.url)
        found = create_all(driven, service)
    assert found.outcomes["CreateAmbiguous"] > CREATES // 10


class Greetings:
    """Holds clients until the hop's greeting has arrived, or it has decided not to greet them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._greeted: defaultdict[object, Queue[bool]] = defaultdict(Queue)

    def greeted(self, peer: Peer, does: bool) -> None:  # noqa: FBT001  an answer
        self._of(peer.sock.getpeername()).put(does)

    def wait(self, sock: socket.socket) -> None:
        if self._of(sock.getsockname()).get(timeout=10):
            assert select.select([sock], [], [], 10)[0]
        with self._lock:
            del self._greeted[sock.getsockname()]

    def _of(self, address: object) -> Queue[bool]:
        with self._lock:  # both may be the first to ask
            return self._greeted[address]


def created_after_greetings(driver: str, monkeypatch: pytest.MonkeyPatch) -> Found:
    """Make creates whose connections are greeted with responses before a byte is sent."""
    greetings = Greetings()
    hold(monkeypatch, greetings.wait)
    with ExitStack() as stack, BillingServer() as service:
        hop = greeting(service.url, Strays(), greetings.greeted)
        server = stack.enter_context(ScriptedServer(hop))
        driven = DRIVERS[driver](stack, None)(server.url)
        return create_all(driven, service)


@pytest.mark.parametrize("driver", DRIVERS)
def test_before_the_first_byte(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A create leaves a connection on which a response came first, and goes out on another."""
    assert created_after_greetings(driver, monkeypatch) == ALL_WELL


@pytest.mark.parametrize("driver", DRIVERS)
def test_control_that_does_not_look(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport that does not look before it sends takes them for the response."""

    def look_away(*_: object) -> None:
        pass

    for under in ("requests", "trio"):
        monkeypatch.setattr(*moments.at("before the first byte", under).place, look_away)
    found = created_after_greetings(driver, monkeypatch)
    assert found.doubles
    assert found.wrong
    assert found.denied


@pytest.mark.parametrize("driver", DRIVERS)
def test_batch(driver: str, tmp_path: Path) -> None:
    """A batch behind such a hop pays for each item once, and downloads its own picture."""
    with ExitStack() as stack, BillingServer() as service:
        server = stack.enter_context(ScriptedServer(left_over(service.url, Strays())))
        driven = DRIVERS[driver](stack, None)(server.url)
        items = [image(f"horse {number}") for number in range(40)]
        report = driven.batch(items, tmp_path)
        assert service.doubles == []
        assert sum(map(len, service.accepted.values())) == len(items)
    assert report.counts == {Stage.DOWNLOADED: len(items)}
