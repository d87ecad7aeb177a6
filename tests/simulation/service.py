"""The service behind the simulated network: the emulator, its misfortunes and its books.

What it accepts is what it charges: `accepted` is the judge's measure. Each create meets one `Fate`,
before or after the service has accepted it. A service that tells the truth never refuses what it
has accepted.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import attrs
import h11

from muybridge_protocol.emulator import Access, Emulator, MediaState, ServiceRequest, Timing
from muybridge_protocol.http import Headers, HttpResponse

from .network import SimulatedStream
from .world import World

KEY: Final = "sk-canary-5e1fa0b7c2d94"
HOST: Final = "service.test"
URL: Final = f"http://{HOST}"
PNG: Final = b"\x89PNG\r\n\x1a\n" + b"picture" * 30


class Fate(StrEnum):
    """What becomes of a request and its response."""

    LOST = "a request is lost"
    THROTTLED = "a request is throttled"
    OVERLOADED = "the service is overloaded"
    REFUSED = "a request is refused"
    GATEWAY = "a response becomes a 502"
    RESET = "a response is lost"
    SILENT = "a response never comes"
    CUT = "a response is cut"
    JUNK = "a response becomes a page"
    NAMELESS = "a response has no id"
    STRAY = "a response is followed by another"
    SLOW = "a response is slow"


BEFORE: Final = (Fate.LOST, Fate.THROTTLED, Fate.OVERLOADED, Fate.REFUSED)
"""The fates that come before the service sees the request."""
HARMLESS: Final = frozenset({Fate.THROTTLED, Fate.REFUSED})
"""The fates after which a create was certainly not accepted, and which say so."""
_STATUS: Final = {Fate.THROTTLED: 429, Fate.OVERLOADED: 503, Fate.REFUSED: 402}


@attrs.define
class Create:
    """A create call that reached the service.

    Args:
        prompt: What was asked for.
        at: When.
        fate: What became of it, or None.
        task: The id of the task, if the service accepted it.
        is_read: Whether the client's process has read the whole response.
    """

    prompt: str
    at: float
    fate: Fate | None
    task: str | None = None
    is_read: Callable[[], bool] = lambda: False


@attrs.define(eq=False)
class SimulatedService:
    """The service, and what it has charged.

    Args:
        world: The world.
        faults: How often something goes wrong, from 0 to 1.
    """

    world: World
    faults: float = 0.0
    creates: list[Create] = attrs.field(factory=list[Create])
    polls: defaultdict[str, list[float]] = attrs.field(factory=lambda: defaultdict(list))
    """When each task was polled."""
    heard: bytearray = attrs.field(factory=bytearray)
    """All that came in, except the header with the key."""
    emulator: Emulator = attrs.field(init=False)
    _ids: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def __attrs_post_init__(self) -> None:
        timing = Timing(image_queued=2, image_processing=self.world.random.choice((0, 5, 40)))
        self.emulator = Emulator(keys={KEY: Access()}, public_url=URL, timing=timing)

    @property
    def accepted(self) -> defaultdict[str, list[str]]:
        """The ids of the tasks accepted, by prompt."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for create in self.creates:
            if create.task is not None:
                found[create.prompt].append(create.task)
        return found

    def accept(self, stream: SimulatedStream) -> None:
        """Serve one connection."""
        from muybridge.drivers import blocking  # noqa: PLC0415

        blocking.run(self._serve, stream)

    async def _serve(self, stream: SimulatedStream) -> None:
        peer = h11.Connection(h11.SERVER)
        body, request = bytearray(), None
        while True:
            event = peer.next_event()
            if event is h11.NEED_DATA:
                try:
                    peer.receive_data(await stream.receive(65_536))
                except OSError:
                    return
            elif isinstance(event, h11.Request):
                body, request = bytearray(), event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                if not await self._answer(stream, peer, request, bytes(body)):
                    return
                peer.start_next_cycle()
            else:
                stream.close()
                return

    async def _answer(
        self, stream: SimulatedStream, peer: h11.Connection, request: h11.Request, body: bytes
    ) -> bool:
        """Answer one request, and return whether the connection stays open."""
        path, fate = request.target.decode(), self._fate()
        create = None
        if request.method == b"POST":
            create = Create(json.loads(body)["prompt"], self.world.now, fate)
            self.creates.append(create)
        elif path.startswith("/v1/result/"):
            self.polls[path.rpartition("/")[2]].append(self.world.now)
        self.world.pause(self.world.now + self.world.random.choice((0.0, 0.1, 2.0)))
        if fate is Fate.LOST:
            _break(stream)
            return False
        if fate in _STATUS:
            response = HttpResponse(_STATUS[fate], (("Retry-After", "3"),), b"{}")
        else:
            response = self._handle(request, path, body)
        if create is not None and response.status == 200:
            create.task = json.loads(response.body)["id"]
            self.world.count("accepted")
            self.world.tell(f"accepts {create.prompt} as {create.task}")
        if fate is Fate.SLOW:
            self.world.pause(self.world.now + self.world.random.choice((20.0, 70.0)))
        return self._respond(stream, peer, response, fate, create)

    def _handle(self, request: h11.Request, path: str, body: bytes) -> HttpResponse:
        if path.startswith("/media/"):
            name = path.rpartition("/")[2].removesuffix(".png")
            if self.emulator.media(name, self.world.wall) is MediaState.AVAILABLE:
                return HttpResponse(200, (("Content-Type", "image/png"),), PNG + name.encode())
            return HttpResponse(404)
        headers: Headers = tuple((n.decode(), v.decode()) for n, v in request.headers)
        return self.emulator.handle(
            ServiceRequest(request.method.decode(), path, headers, body),
            now=self.world.wall,
            new_id=f"task-{next(self._ids)}",
        )

    def _respond(
        self,
        stream: SimulatedStream,
        peer: h11.Connection,
        response: HttpResponse,
        fate: Fate | None,
        create: Create | None,
    ) -> bool:
        if fate is Fate.SILENT:
            return False
        if fate is Fate.RESET:
            _break(stream)
            return False
        if fate is Fate.GATEWAY:
            response = HttpResponse(502, (("Content-Type", "text/html"),), b"<html>")
        if fate is Fate.JUNK:
            response = HttpResponse(200, (("Content-Type", "text/html"),), b"<html>hello")
        if fate is Fate.NAMELESS:
            response = HttpResponse(200, response.headers, b'{"status": "queued"}')
        data = b"".join(
            peer.send(event) or b""
            for event in (
                h11.Response(
                    status_code=response.status,
                    headers=[
                        *((n, v) for n, v in response.headers if n.lower() != "content-length"),
                        ("Content-Length", str(len(response.body))),
                    ],
                ),
                h11.Data(data=response.body),
                h11.EndOfMessage(),
            )
        )
        whole = stream.outgoing.sent + len(data)
        if fate is Fate.CUT:
            data = data[: self.world.random.randrange(len(data))]
        if fate is Fate.STRAY:
            data += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        for piece in _pieces(data, self.world.random.choice((1, 3, 1000))):
            stream.outgoing.send(piece)
        if create is not None and fate is not Fate.CUT:
            create.is_read = lambda: stream.outgoing.taken >= whole
        if fate is Fate.CUT:
            if self.world.chance(0.5):
                _break(stream)
            else:
                stream.close()
            return False
        if fate is Fate.STRAY or self.world.chance(0.2):
            stream.close()
            return False
        return True

    def _fate(self) -> Fate | None:
        if not self.world.chance(self.faults):
            return None
        fate: Fate = self.world.random.choice((*Fate, Fate.THROTTLED, Fate.THROTTLED))
        self.world.count(fate)
        self.world.tell(f"fate: {fate}")
        return fate


def _break(stream: SimulatedStream) -> None:
    """Reset a connection: what is on its way arrives, and then the error."""
    stream.outgoing.broken = ConnectionResetError(104, "Connection reset by peer")


def _pieces(data: bytes, number: int) -> list[bytes]:
    size = -(-len(data) // number) or 1
    return [data[start : start + size] for start in range(0, len(data), size)]
