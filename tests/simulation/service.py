"""The service behind the simulated network: the emulator, its misfortunes and its books.

What it accepts is what it charges: `Create.task` is the judges' measure. Each request meets one
`Fate`, before or after the service has accepted it. A service that tells the truth never refuses
what it has accepted. Its clock is its own: the jumps of the machine's clock do not move it.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import attrs
import h11

from muybridge.drivers import blocking
from muybridge_protocol.delivery import CREATE, DOWNLOAD, POLL, Delivery, Verdict
from muybridge_protocol.emulator import Access, Emulator, MediaState, ServiceRequest, Timing
from muybridge_protocol.http import Headers, HttpResponse

from .network import SimulatedStream
from .world import Actor, World

KEY: Final = "sk-canary-5e1fa0b7c2d94"
HOST: Final = "service.test"
URL: Final = f"http://{HOST}"
PNG: Final = b"\x89PNG\r\n\x1a\n" + b"picture" * 30

TABLES: Final = {"create": CREATE, "poll": POLL, "download": DOWNLOAD}
"""What a response means to each kind of request: the rows that worlds have to visit."""


class Fate(StrEnum):
    """What becomes of a request and its response."""

    LOST = "a request is lost"
    THROTTLED = "a request is throttled"
    OVERLOADED = "the service is overloaded"
    REFUSED = "a request is refused"
    GATEWAY = "a response becomes a gateway's"
    RESET = "a response is lost"
    SILENT = "a response never comes"
    CUT = "a response is cut"
    JUNK = "a response becomes a page"
    NAMELESS = "a response has no id"
    STRAY = "a response is followed by another"
    SLOW = "a response is slow"


HARMLESS: Final = frozenset({Fate.THROTTLED, Fate.REFUSED})
"""The fates after which a create was certainly not accepted, and which say so."""
UNCERTAIN: Final = frozenset(Fate) - HARMLESS - {Fate.STRAY}
"""The fates that explain why an outcome is ambiguous."""
WORDLESS: Final = frozenset({Fate.GATEWAY, Fate.CUT, Fate.JUNK, Fate.NAMELESS})
"""The fates after which a response that is read whole names no task."""
_TROUBLE: Final = (302, 307, 408, 409, 418, 451, 500, 502, 503, 504, 520)
"""Statuses of a service, or a gateway, that say nothing about the request."""


@attrs.define(eq=False)
class Create:
    """A create call that reached the service.

    Args:
        prompt: What was asked for.
        fate: What became of it, or None.
        sender: Who sent it.
        step: The world's step in which the last of it was sent.
        task: The id of the task, if the service accepted it.
        is_read: Whether the client's process has read the whole response.
    """

    prompt: str
    fate: Fate | None
    sender: Actor | None
    step: int
    task: str | None = None
    is_read: Callable[[], bool] = lambda: False


@attrs.frozen(eq=False)
class Query:
    """A poll that reached the service.

    Args:
        task: The id of the task.
        sender: Who sent it.
        step: The world's step in which the last of it was sent.
        is_last: Whether its response says that the task has ended.
    """

    task: str
    sender: Actor
    step: int
    is_last: bool


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
    polls: list[Query] = attrs.field(factory=list[Query])
    heard: bytearray = attrs.field(factory=bytearray)
    """The bodies and targets that came in, which have no place for the key."""
    emulator: Emulator = attrs.field(init=False)
    _epoch: float = attrs.field(init=False)
    _ids: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def __attrs_post_init__(self) -> None:
        timing = Timing(image_queued=2, image_processing=self.world.random.choice((0, 5, 40)))
        self.emulator = Emulator(keys={KEY: Access()}, public_url=URL, timing=timing)
        self._epoch = self.world.wall - self.world.now

    @property
    def wall(self) -> float:
        """Unix seconds, as the service has them."""
        return self._epoch + self.world.now

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
        self.heard += request.target + body
        kind, create = "download", None
        if request.method == b"POST":
            kind, incoming = "create", stream.incoming
            create = Create(json.loads(body)["prompt"], fate, incoming.sender, incoming.step)
            self.creates.append(create)
        elif path.startswith("/v1/result/"):
            kind = "poll"
        sender, step = stream.incoming.sender, stream.incoming.step
        self.world.pause(self.world.now + self.world.random.choice((0.0, 0.1, 2.0)))
        if kind == "poll":
            assert sender is not None
            task = path.rpartition("/")[2]
            is_last = fate in (None, Fate.SLOW, Fate.STRAY) and self._has_ended(task)
            self.polls.append(Query(task, sender, step, is_last))
        if fate is Fate.LOST:
            self.world.count(f"{kind}: sent, no response")
            _break(stream)
            return False
        response = self._refusal(fate, TABLES[kind]) or self._handle(request, path, body)
        if create is not None and response.status == 200:
            create.task = json.loads(response.body)["id"]
            self.world.count("accepted")
            self.world.tell(f"accepts {create.prompt} as {create.task}")
        if fate is Fate.SLOW:
            self.world.pause(self.world.now + self.world.random.choice((20.0, 70.0)))
        return self._respond(stream, peer, response, fate, kind, create)

    def _refusal(self, fate: Fate | None, table: Delivery[Verdict]) -> HttpResponse | None:
        """Return the response to a request that the service does not look at, or None."""
        chance = self.world.random
        if fate is Fate.THROTTLED:
            asked = chance.choice(((), (("Retry-After", "3"),), (("Retry-After", "soon"),)))
            return HttpResponse(429, asked, b'{"error": "too many requests"}')
        if fate is Fate.OVERLOADED:
            return HttpResponse(chance.choice(_TROUBLE), (), b"try again")
        if fate is not Fate.REFUSED:
            return None
        status = chance.choice(
            [one for one, verdict in table.statuses.items() if verdict is not Verdict.THROTTLED]
        )
        # Some services repeat what they were sent.
        said = {"error": {"message": f"refused: Bearer {KEY}"}}
        return HttpResponse(status, (), json.dumps(said).encode())

    def _has_ended(self, task: str) -> bool:
        return self.emulator.media(task, self.wall) is not MediaState.NOT_YET

    def _handle(self, request: h11.Request, path: str, body: bytes) -> HttpResponse:
        if path.startswith("/media/"):
            name = path.rpartition("/")[2].removesuffix(".png")
            if self.emulator.media(name, self.wall) is MediaState.AVAILABLE:
                return HttpResponse(200, (("Content-Type", "image/png"),), PNG + name.encode())
            return HttpResponse(404)
        headers: Headers = tuple((n.decode(), v.decode()) for n, v in request.headers)
        return self.emulator.handle(
            ServiceRequest(request.method.decode(), path, headers, body),
            now=self.wall,
            new_id=f"task-{next(self._ids)}",
        )

    def _respond(
        self,
        stream: SimulatedStream,
        peer: h11.Connection,
        response: HttpResponse,
        fate: Fate | None,
        kind: str,
        create: Create | None,
    ) -> bool:
        if fate in (Fate.SILENT, Fate.RESET):
            self.world.count(f"{kind}: sent, no response")
            if fate is Fate.RESET:
                _break(stream)
            return False
        html = (("Content-Type", "text/html"),)
        if fate is Fate.GATEWAY:
            status = self.world.random.choice(_TROUBLE)
            response = HttpResponse(status, (*html, ("Location", "/")), b"<html>")
        if fate is Fate.JUNK:
            response = HttpResponse(200, html, b"<html>hello")
        if fate is Fate.NAMELESS:
            response = HttpResponse(200, response.headers, b'{"status": "queued"}')
        data = _bytes(peer, response, chunked=self.world.chance(0.5))
        whole = stream.outgoing.sent + len(data)
        if fate is Fate.CUT:
            data = data[: self.world.random.randrange(len(data))]
        else:
            self.world.count(f"{kind}: {row(TABLES[kind], response.status)}")
            if create is not None:
                create.is_read = lambda: stream.outgoing.taken >= whole
        if fate is Fate.STRAY:
            data += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        for piece in _pieces(data, self.world.random.choice((1, 3, 1000))):
            stream.outgoing.send(piece)
        if fate is Fate.CUT:
            self.world.count(f"{kind}: sent, no response")
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


def row(table: Delivery[Any], status: int) -> str:
    """Return the row of a table in which a status stands."""
    if 200 <= status <= 299:
        return "2xx"
    if 300 <= status <= 399:
        return "3xx"
    return str(status) if status in table.statuses else "any other status"


def rows(kind: str) -> list[str]:
    """Return the rows of the table of a kind of request."""
    statuses = map(str, TABLES[kind].statuses)
    return [
        f"{kind}: {one}"
        for one in ("2xx", "3xx", *statuses, "any other status", "sent, no response")
    ]


def _bytes(peer: h11.Connection, response: HttpResponse, *, chunked: bool) -> bytes:
    headers = [(n, v) for n, v in response.headers if n.lower() != "content-length"]
    # Only the transport knows whether chunks are complete; a length is checked by downloads, too.
    ending = ("Transfer-Encoding", "chunked")
    if not chunked:
        ending = ("Content-Length", str(len(response.body)))
    events = (
        h11.Response(
            status_code=response.status,
            headers=[*headers, ending],
        ),
        h11.Data(data=response.body),
        h11.EndOfMessage(),
    )
    return b"".join(peer.send(event) or b"" for event in events)


def _break(stream: SimulatedStream) -> None:
    """Reset a connection: what is on its way arrives, and then the error."""
    stream.outgoing.broken = ConnectionResetError(104, "Connection reset by peer")


def _pieces(data: bytes, number: int) -> list[bytes]:
    size = -(-len(data) // number) or 1
    return [data[start : start + size] for start in range(0, len(data), size)]
