"""The page that shows the tasks live, and the feed that it reads every second.

The page holds no secret. The feed has prompts and links, but never a key. If only this machine can
reach the service, both are served without a key to requests whose host is a name of this machine. A
site elsewhere whose name resolves to this machine ("DNS rebinding") sends its own name. For those
requests, for requests through a proxy, and on every other service, the feed needs a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from muybridge.local.pages import html_page, only_read
from muybridge_protocol.emulator import Access, EmulatedTask, Emulator, MediaState
from muybridge_protocol.emulator.accounts import authenticate
from muybridge_protocol.emulator.responses import json_response, media_name
from muybridge_protocol.hosts import is_loopback
from muybridge_protocol.http import Headers, HttpResponse
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import JsonObject, truncated
from muybridge_protocol.records.tasks import Status

PAGE = "/"
FEED = "/live"

MOST_TASKS = 500
"""Most tasks that the feed has: the newest."""
LONGEST_TEXT = 2_000
"""Most characters of a prompt, an error or a name in the feed."""
MOST_SETTINGS = 40

_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
_PROXIED = frozenset({"forwarded", "via", "x-real-ip"})
_FEED_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
)


class Live:
    """The page and its feed.

    Args:
        emulator: Whose tasks are shown.
        keys: What each API key may use. Any of them opens the feed.
        address: The address that the service listens on.
        public_url: Where clients reach it.
    """

    def __init__(
        self, emulator: Emulator, *, keys: Mapping[str, Access], address: str, public_url: str
    ) -> None:
        self._emulator = emulator
        self._keys = keys
        self._here_alone = is_loopback(address) and is_loopback(urlsplit(public_url).hostname or "")
        self._page = html_page("live.html")
        self._described: dict[str, JsonObject] = {}

    def answer(self, method: str, path: str, headers: Headers, now: float) -> HttpResponse | None:
        """Return the response to a request for the page or the feed, or None for any other.

        It is None for clients that may not see it, too: the emulator then asks for a key.

        Args:
            method: The method.
            path: The path as it came.
            headers: The request's header fields.
            now: Unix seconds.
        """
        asked_here = self._here_alone and _asks_this_machine(headers)
        if path == PAGE and (asked_here or not self._here_alone):
            return only_read(method, self._page)
        if path == FEED and (asked_here or authenticate(self._keys, headers) is not None):
            return only_read(method, self._feed(now))
        return None

    def _feed(self, now: float) -> HttpResponse:
        tasks = self._emulator.newest(MOST_TASKS)
        # Settings are read from the request, which may be large: once, while a task is shown.
        described, self._described = self._described, {}
        for task in tasks:
            self._described[task.id] = described.get(task.id) or _describe(task)
        return json_response(
            {
                "count": self._emulator.task_count,
                "tasks": [
                    {**self._described[task.id], **_state(task, now)}
                    for task in tasks
                    if not task.is_forgotten(now)
                ],
            },
            headers=_FEED_HEADERS,
        )


def _describe(task: EmulatedTask) -> JsonObject:
    """Return the fields of a task that never change."""
    return {
        **attributes(task, "id", "created"),
        "family": task.family.name,
        "media": task.family.media,
        "model": _clipped(task.model),
        "prompt": _clipped(task.prompt),
        "settings": [[_clipped(name), value] for name, value in task.settings[:MOST_SETTINGS]],
    }


def _state(task: EmulatedTask, now: float) -> Mapping[str, object]:
    status = task.status(now)
    media = task.media(now)
    return {
        "status": status,
        "progress": _progress(task, now) if status is Status.PROCESSING else None,
        "error": _clipped(task.error) if task.error and status is Status.FAILED else None,
        # On this very origin, whatever the service's public address is.
        "link": f"/media/{media_name(task)}" if media is MediaState.AVAILABLE else None,
        "expired": media is MediaState.EXPIRED,
    }


def _progress(task: EmulatedTask, now: float) -> float:
    return round((now - task.starts_at) / (task.ends_at - task.starts_at), 3)


def _asks_this_machine(headers: Headers) -> bool:
    """Whether a request comes straight, and to a name or address of this machine."""
    names = [name.lower() for name, _ in headers]
    if any(name in _PROXIED or name.startswith("x-forwarded-") for name in names):
        return False
    hosts = [value for name, value in headers if name.lower() == "host"]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return match is not None and is_loopback(match[1])


def _clipped(text: str) -> str:
    return truncated(text, LONGEST_TEXT)
