"""A service that keeps its books across a power cut of its client, and what it leaves as marks.

A mark is one line among the operations of a recording:

    accepted TASK PROMPT    the service has accepted a create, and charges for it
    declined PROMPT         it has received a create and charges nothing
    told TASK PROMPT        the user knows the id
    saved NAME              the user knows that a file is saved
    changed NAME            the service has replaced a file by a newer version
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final

from muybridge import Client
from muybridge.testing import FakeTransport, VirtualClock, broken_off, json_response, lost_response
from muybridge.testing.fake_transport import Answer
from muybridge_protocol.http import HttpRequest, HttpResponse

URL: Final = "https://service.test"
KEY: Final = "sk-canary-5e0cba91"
_MEDIA: Final = "https://media.test/"
_CREATED: Final = 1_750_000_000


class Response(StrEnum):
    """How the service responds to a create."""

    ACCEPTED = "accepted"
    LOST = "accepted, but the response is lost"
    REFUSED = "400"
    THROTTLED = "429"


Note = Callable[[str], None]
"""Hears of each mark."""


def silent(_text: str) -> None:
    """Hear of a mark, and do nothing."""


class Service:
    """The service, in this process.

    Args:
        responses: The response to each create of a prompt; the last one is repeated. Prompts that
            are not among them are accepted.
        note: Called with each mark.
        size: Bytes of each picture.

    Attributes:
        accepted: The ids of the accepted tasks, by prompt.
        told: The ids that the user was told, by prompt.
        saved: The names of the files that the user knows to be saved.
        posts: How many creates came in, by prompt.
        versions: Which version of a picture there is, by the task's id, if not the first.
        dies_after: With how many accepted creates this process is killed, or None.
        breaks: After how many bytes responses with a picture break off, by the task's id.
    """

    def __init__(
        self,
        responses: Mapping[str, tuple[Response, ...]] | None = None,
        note: Note = silent,
        *,
        size: int = 1500,
    ) -> None:
        self._responses = responses or {}
        self._note = note
        self._size = size
        self.accepted: dict[str, list[str]] = defaultdict(list)
        self.told: dict[str, str] = {}
        self.saved: list[str] = []
        self.posts: Counter[str] = Counter()
        self.versions: Counter[str] = Counter()
        self.dies_after: int | None = None
        self.breaks: dict[str, int] = {}

    def client(self, **options: Any) -> Client:
        """Return a client of this service, for which no time passes while it waits."""
        transport = FakeTransport(otherwise=self.answer)
        return Client(KEY, URL, transport=transport, clock=VirtualClock(), **options)

    def remember(self, marks: Iterable[str]) -> None:
        """Book what earlier marks say."""
        for mark in marks:
            self._book(mark)

    def mark(self, text: str) -> None:
        """Book what happens, and leave a mark of it."""
        self._book(text)
        self._note(text)
        if text.startswith("accepted") and sum(map(len, self.accepted.values())) == self.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    def _book(self, text: str) -> None:
        kind, _, rest = text.partition(" ")
        match kind:
            case "accepted":
                task, prompt = rest.split(" ", 1)
                self.accepted[prompt].append(task)
                self.posts[prompt] += 1
            case "declined":
                self.posts[rest] += 1
            case "told":
                task, prompt = rest.split(" ", 1)
                self.told[prompt] = task
            case "saved":
                self.saved.append(rest)
            case "changed":
                self.versions[rest] += 1
            case _:
                raise ValueError(text)

    def response_to(self, prompt: str) -> Response:
        """Return the response to the next create of *prompt*."""
        planned = self._responses.get(prompt, (Response.ACCEPTED,))
        return planned[min(self.posts[prompt], len(planned) - 1)]

    def answer(self, request: HttpRequest) -> Answer:
        """Answer a request."""
        if request.method == "POST":
            return self._create(json.loads(request.body or b"{}")["prompt"])
        task = request.url.rpartition("/")[2].removesuffix(".png")
        if request.url.startswith(_MEDIA):
            return self._picture(task, dict(request.headers))
        link = f"{_MEDIA}{task}.png"
        return json_response({**_record(task, "completed"), "image_url": link})

    def picture(self, task: str, version: int | None = None) -> bytes:
        """Return the picture of a task, the newest version by default."""
        return _drawn(task, self.versions[task] if version is None else version, self._size)

    def _create(self, prompt: str) -> Answer:
        response = self.response_to(prompt)
        if response is Response.REFUSED or response is Response.THROTTLED:
            self.mark(f"declined {prompt}")
            return json_response({"error": "no horses today"}, int(response), retry_after="1")
        task = f"task-{sum(map(len, self.accepted.values())) + 1}-{prompt.replace(' ', '-')}"
        self.mark(f"accepted {task} {prompt}")
        return (
            lost_response() if response is Response.LOST else json_response(_record(task, "queued"))
        )

    def _picture(self, task: str, asked: Mapping[str, str]) -> Answer:
        whole = self.picture(task)
        tag = f'"{task}-{self.versions[task]}"'
        headers = (("Content-Type", "image/png"), ("ETag", tag), ("Accept-Ranges", "bytes"))
        wanted = re.fullmatch(r"bytes=(\d+)-", asked.get("Range", ""))
        if wanted is None or asked.get("If-Range") != tag:
            length = ("Content-Length", str(len(whole)))
            response = HttpResponse(200, (*headers, length), whole)
            after = self.breaks.get(task)
            return response if after is None else broken_off(response, after)
        start = int(wanted[1])
        if start >= len(whole):
            return HttpResponse(416, (("Content-Range", f"bytes */{len(whole)}"),))
        if task in self.breaks:
            return lost_response()
        span = ("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        length = ("Content-Length", str(len(whole) - start))
        return HttpResponse(206, (*headers, span, length), whole[start:])


@cache
def _drawn(task: str, version: int, size: int) -> bytes:
    """Return a picture of about *size* bytes, no two sectors of which are the same."""
    line = f"{task}, version {version}, line {{:06}}\n"
    lines = (line.format(number).encode() for number in range(size // len(line)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(lines)


def _record(task: str, status: str) -> dict[str, object]:
    return {
        "id": task, "object": "image", "created": _CREATED, "model": "imgb-2", "status": status,
    }  # fmt: skip
