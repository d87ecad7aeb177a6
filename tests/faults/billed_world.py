"""A service with a fate for every request, which keeps the books: the oracle of the client."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from enum import StrEnum

from client.in_process import Reply, Seen, World
from muybridge.testing.fake_transport import BrokenOff
from muybridge.wire.transport import TransportError
from muybridge_protocol.emulator import MediaState
from muybridge_protocol.http import (
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)


class Fate(StrEnum):
    """What becomes of one request and its response."""

    ANSWERED = "answered"
    UNKNOWN_NAME = "not sent: there is no such name"
    UNCONNECTED = "not sent: refused"
    UNSECURED = "not sent: the handshake hangs"
    UNCERTIFIED = "not sent: the certificate is wrong"
    LOST_REQUEST = "sent, and lost on its way"
    LOST_REPLY = "handled, and the reply lost"
    STALLED = "handled, and the reply never comes"
    CUT_EARLY = "handled, and the reply broken off at once"
    CUT_LATE = "handled, and the reply broken off near its end"
    GATEWAY = "handled, then 502"
    OVERLOADED = "not handled, 503"
    THROTTLED = "not handled, 429"
    REFUSED = "not handled, 402"
    JUNK = "handled, and answered with a page"
    NAMELESS = "handled, and answered without an id"
    REDIRECTED = "handled, and answered with 303"
    MIXED_UP = "answered with another one's record"
    CHANGED = "the file has changed"
    GONE = "not handled, 404"


UNSENT = {
    Fate.UNKNOWN_NAME: (Phase.RESOLVE, Reason.NAME_RESOLUTION),
    Fate.UNCONNECTED: (Phase.CONNECT, Reason.REFUSED),
    Fate.UNSECURED: (Phase.TLS, Reason.TIMED_OUT),
    Fate.UNCERTIFIED: (Phase.TLS, Reason.CERTIFICATE),
}
UNHANDLED = {
    Fate.OVERLOADED: 503,
    Fate.THROTTLED: 429,
    Fate.REFUSED: 402,
    Fate.GONE: 404,
}
HARMLESS = frozenset({*UNSENT, Fate.THROTTLED, Fate.REFUSED, Fate.GONE})
"""The fates after which a create was certainly not accepted."""


class BilledWorld(World):
    """A service that does to each request what `fates` says, and books every create.

    Attributes:
        fates: What becomes of the next requests; those that follow are answered.
        booked: The ids of the tasks accepted, by prompt.
        open: The prompts that came in a way in which they may have been accepted.
        doubles: The prompts that were sent again after that.
    """

    def __init__(self) -> None:
        super().__init__(assets=(f"asset-{number}" for number in range(50)))
        self.fates: deque[Fate] = deque()
        self.booked: defaultdict[str, list[str]] = defaultdict(list)
        self.open: set[str] = set()
        self.doubles: list[str] = []
        self._versions: defaultdict[str, int] = defaultdict(int)

    def film(self, task_id: str, version: int) -> bytes:
        """Return one version of a task's picture."""
        return b"\x89PNG\r\n\x1a\n" + f"{task_id} v{version} ".encode() * 60

    def is_film(self, task_id: str, content: bytes) -> bool:
        """Whether *content* is a whole picture of the task, in one of its versions."""
        versions = range(self._versions[task_id] + 1)
        return any(content == self.film(task_id, version) for version in versions)

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        """Return the response to *request*, whole or broken off.

        Raises:
            TransportError: There is no head.
        """
        fate = self.fates.popleft() if self.fates else Fate.ANSWERED
        if fate in UNSENT:
            phase, reason = UNSENT[fate]
            raise TransportError(TransportFailure(phase=phase, sent=False, reason=reason))
        if request.paid:
            self._look_at_create(request, fate)
        if fate is Fate.LOST_REQUEST:
            raise TransportError(_failure(Phase.SEND, Reason.RESET))
        if fate in UNHANDLED:
            self.seen.append(Seen(self.clock.elapsed, request.method, request.url, None))
            said = {"error": f"no, {self.key}", "retry_after": 3}
            return HttpResponse(UNHANDLED[fate], (), json.dumps(said).encode())
        if fate is Fate.CHANGED and "/media/" in request.url:
            self._versions[request.url.rpartition("/")[2].partition(".")[0]] += 1
        return self._spoilt(self.answer(request, authorization), fate, request)

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        """Answer *request* as the service does, and book what it accepts."""
        if "/media/" in request.url:
            return self._picture(request)
        response = super().answer(request, authorization)
        if request.paid and response.status == 200:
            self.booked[_prompt(request)].append(json.loads(response.body)["id"])
        return response

    def _look_at_create(self, request: HttpRequest, fate: Fate) -> None:
        prompt = _prompt(request)
        if prompt in self.open:
            self.doubles.append(prompt)
        if fate not in HARMLESS:
            self.open.add(prompt)

    def _spoilt(self, response: HttpResponse, fate: Fate, request: HttpRequest) -> Reply:
        body, status = response.body, response.status
        match fate:
            case Fate.LOST_REPLY:
                raise TransportError(_failure(Phase.HEAD, Reason.RESET))
            case Fate.STALLED:
                self.clock.sleep(30.0)
                raise TransportError(_failure(Phase.HEAD, Reason.TIMED_OUT))
            case Fate.CUT_EARLY | Fate.CUT_LATE:
                partial = body[: 3 if fate is Fate.CUT_EARLY else len(body) - 2]
                cut = HttpResponse(status, response.headers, partial)
                return BrokenOff(cut, _failure(Phase.BODY, Reason.TRUNCATED, partial, status))
            case Fate.GATEWAY:
                return HttpResponse(502, (), b"<html>Bad gateway</html>")
            case Fate.JUNK:
                page = f"<html>{self.key}</html>".encode()
                return HttpResponse(200, (("Content-Type", "text/html"),), page)
            case Fate.NAMELESS:
                return HttpResponse(200, (), b'{"status": "queued", "object": "imga"}')
            case Fate.REDIRECTED if "/media/" not in request.url:
                return HttpResponse(303, (("Location", "/v1/result/task-1"),), b"")
            case Fate.MIXED_UP if request.url.startswith(f"{self.url}/v1/result/"):
                record = {**json.loads(body), "id": "task-of-another"}
                return HttpResponse(status, (), json.dumps(record).encode())
            case _:
                return response

    def _picture(self, request: HttpRequest) -> HttpResponse:
        task_id = request.url.rpartition("/")[2].partition(".")[0]
        self.seen.append(Seen(self.clock.elapsed, request.method, request.url, None))
        if self.emulator.media(task_id, self.clock.wall()) is not MediaState.AVAILABLE:
            return HttpResponse(404)
        version = self._versions[task_id]
        body, etag = self.film(task_id, version), f'"{task_id}-{version}"'
        fields = (("Content-Type", "image/png"), ("ETag", etag))
        asked = dict(request.headers)
        begin = re.fullmatch(r"bytes=([0-9]+)-", asked.get("Range", ""))
        if begin is None or asked.get("If-Range") not in (None, etag):
            return HttpResponse(200, (*fields, ("Content-Length", str(len(body)))), body)
        first = int(begin[1])
        if first >= len(body):
            return HttpResponse(416)
        stretch = ("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        return HttpResponse(206, (*fields, stretch), body[first:])


def _prompt(request: HttpRequest) -> str:
    prompt: str = json.loads(request.body or b"")["prompt"]
    return prompt


def _failure(
    phase: Phase, reason: Reason, partial: bytes = b"", status: int | None = None
) -> TransportFailure:
    return TransportFailure(phase=phase, sent=True, reason=reason, partial=partial, status=status)
