"""A service in the test's process that answers single items of a batch as a script says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import attrs

from client.in_process import PNG, World
from muybridge_protocol.http import HttpRequest, HttpResponse

_JSON = (("Content-Type", "application/json"),)


@attrs.frozen
class Script:
    """What is answered to the requests for one item; what follows is answered as it should be.

    Args:
        create: The response to its create, or None for the right one.
        polls: The responses to its first result queries.
        media: The response to its first download, or None for the right one.
    """

    create: HttpResponse | None = None
    polls: tuple[HttpResponse, ...] = ()
    media: HttpResponse | None = None


@attrs.define
class _Left:
    creates: list[HttpResponse]
    polls: list[HttpResponse]
    media: list[HttpResponse]


class ScriptedWorld(World):
    """Answers by script; items are told from one another by their prompts.

    Args:
        scripts: By prompt. Requests that name no item's task belong to the first item.
    """

    def __init__(self, scripts: dict[str, Script]) -> None:
        super().__init__()
        self.creates: dict[str, list[HttpResponse]] = {prompt: [] for prompt in scripts}
        """The responses to creates, by prompt."""
        self.statuses: set[int] = set()
        """Those of all responses."""
        self._odd = next(iter(scripts))
        self._left = {
            prompt: _Left(_list(script.create), list(script.polls), _list(script.media))
            for prompt, script in scripts.items()
        }

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:  # noqa: ARG002  the key is tested elsewhere
        """Answer *request*, wherever it goes."""
        response = self._answer(request)
        self.statuses.add(response.status)
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        self.clock.elapsed += 0.001
        path = request.url.removeprefix(self.url)
        if request.method == "POST":
            prompt = str(json.loads(request.body or b"")["prompt"])
            response = self._next(self._left[prompt].creates) or _record(self.id_of(prompt))
            self.creates[prompt].append(response)
            return response
        task = unquote(path.rpartition("/")[2])
        prompt = next((p for p in self._left if self.id_of(p) in path), self._odd)
        if path.startswith("/v1/result/"):
            url = f"{self.url}/media/{self.id_of(prompt)}.png"
            right = _record(task, status="completed", image_url=url)
            return self._next(self._left[prompt].polls) or right
        right = HttpResponse(200, (("Content-Type", "image/png"),), PNG)
        return self._next(self._left[prompt].media) or right

    def recover(self) -> None:
        """Answer everything as it should be from now on."""
        self._left = {prompt: _Left([], [], []) for prompt in self._left}

    def id_of(self, prompt: str) -> str:
        """Return the id of a prompt's task, where the script says nothing else."""
        return f"id-{prompt}"

    def _next(self, left: list[HttpResponse]) -> HttpResponse | None:
        return left.pop(0) if left else None


def _list(response: HttpResponse | None) -> list[HttpResponse]:
    return [] if response is None else [response]


def _record(task: str, **values: Any) -> HttpResponse:
    record = {"id": task, "object": "image", "created": 1_750_000_000, "status": "queued"}
    return HttpResponse(200, _JSON, json.dumps({**record, **values}).encode())


def prompts(scripts: Iterable[Script]) -> dict[str, Script]:
    """Return *scripts* by prompts, which are the horses of a batch."""
    return {f"horse{number}": script for number, script in enumerate(scripts, start=1)}
