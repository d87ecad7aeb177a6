"""A caller of the emulator, with a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from muybridge_protocol.emulator import Access, Emulator, ServiceRequest, Timing
from muybridge_protocol.http import Headers, HttpResponse

KEY = "local-key"
BEARER = ("Authorization", f"Bearer {KEY}")
JSON = ("Content-Type", "application/json")
MIDNIGHT = 1_700_000_000.75

# Images wait 1 s and take 6 s, videos wait 4 s and take 26 s.
TIMING = Timing(image_queued=1, image_processing=6, video_queued=4, video_processing=26)
LATER = MIDNIGHT + 1000
DAY = 24 * 60 * 60


def new_emulator(
    *,
    access: Access | None = None,
    timing: Timing = TIMING,
    assets: tuple[str, ...] = (),
    strict: bool = False,
) -> Emulator:
    return Emulator(
        keys={KEY: access or Access()},
        public_url="http://127.0.0.1:8000",
        timing=timing,
        assets=assets,
        strict=strict,
    )


@attrs.define
class Caller:
    """Speaks to an emulator as a client with a good key does."""

    emulator: Emulator = attrs.field(factory=new_emulator)
    now: float = MIDNIGHT
    made: int = 0

    def send(
        self, method: str, target: str, body: bytes = b"", headers: Headers = (BEARER, JSON)
    ) -> HttpResponse:
        self.made += 1
        request = ServiceRequest(method, target, headers, body)
        return self.emulator.handle(request, now=self.now, new_id=f"task-{self.made}")

    def post(self, path: str, body: Mapping[str, object]) -> HttpResponse:
        return self.send("POST", path, json.dumps(body).encode())

    def create(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        reply = self.post(path, body)
        assert reply.status == 200, reply.body
        return read(reply)

    def result(self, task_id: str, at: float | None = None) -> dict[str, Any]:
        if at is not None:
            self.now = at
        reply = self.send("GET", f"/v1/result/{task_id}")
        assert reply.status == 200, reply.body
        return read(reply)

    def refused(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Return the error that a create call gets."""
        return read(self.post(path, body))["error"]


def read(reply: HttpResponse) -> dict[str, Any]:
    return json.loads(reply.body)
