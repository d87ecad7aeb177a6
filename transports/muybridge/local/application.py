"""The emulator as an ASGI application, with the files of its results."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope, Scope

from muybridge.local.live import Live
from muybridge.local.model_list import ModelList
from muybridge.local.pages import only_read
from muybridge.local.ranges import Span, requested_span
from muybridge.local.result_files import ResultFiles
from muybridge.local.streaming import send_head, send_stream
from muybridge_protocol.emulator import (
    REQUEST_BODY_LIMIT,
    EmulatedTask,
    Emulator,
    MediaState,
    ServiceRequest,
    StreamedResponse,
)
from muybridge_protocol.emulator.refused import Refused, wrong_method
from muybridge_protocol.emulator.responses import error_response, media_name
from muybridge_protocol.http import Headers, HttpResponse, find_header
from muybridge_protocol.media.formats import USUAL

LOG = logging.getLogger("muybridge.local")

_PIECE = 256 * 1024


_STOPPING = error_response(Refused(503, "the service is being shut down", "stopping"))


@attrs.frozen
class FileResponse:
    """A response whose body is a file, or part of one.

    Args:
        status: 200 or 206.
        headers: Header fields.
        path: The file.
        span: The bytes of it to send.
    """

    status: int
    headers: Headers
    path: Path
    span: Span

    def pieces(self) -> Iterator[bytes]:
        """Yield the body, piece by piece."""
        # Read at once, not in a thread: the file was just written and lies in memory.
        with self.path.open("rb") as file:
            file.seek(self.span.first)
            left = self.span.length
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece


class LocalApplication:
    """Answers HTTP requests with the emulator, and downloads with its results' files.

    Args:
        emulator: The service.
        result_files: Where its results are rendered.
        pages: The other pages, by path.
        live: The page that shows the tasks.
        model_list: The list of models.
        clock: Returns Unix seconds.
    """

    def __init__(
        self,
        emulator: Emulator,
        result_files: ResultFiles,
        pages: Mapping[str, HttpResponse],
        live: Live,
        model_list: ModelList,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._emulator = emulator
        self._result_files = result_files
        self._pages = pages
        self._live = live
        self._model_list = model_list
        self._clock = clock
        self._unanswered: set[trio.CancelScope] = set()

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            await self._exchange(scope, receive, send)
        else:  # a web socket is refused by closing it before it was accepted
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": None})

    def interrupt(self) -> None:
        """Answer every open request at once: the service is being shut down."""
        for scope in self._unanswered:
            scope.cancel()

    async def _exchange(
        self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        # It stays if `interrupt` cancels the wait for the real one.
        response: HttpResponse | FileResponse | None = _STOPPING
        with self._interruptible():
            response = await self._answer(scope, receive)
        try:
            if isinstance(response, StreamedResponse):
                await send_stream(response, receive, send)
            elif response is not None:
                await _send(response, send)
        except Exception:
            LOG.debug("A response could not be sent", exc_info=True)

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        with trio.CancelScope() as scope:
            self._unanswered.add(scope)
            try:
                yield
            finally:
                self._unanswered.remove(scope)

    async def _answer(
        self, scope: HTTPScope, receive: ASGIReceiveCallable
    ) -> HttpResponse | FileResponse | None:
        """Return the response to a request, or None if the client disconnected."""
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        body = await _read_body(receive)
        if body is None:
            return None
        path = scope["raw_path"].decode("latin-1")
        if path.startswith("/media/"):
            try:
                return await self._media(scope["method"], path.removeprefix("/media/"), headers)
            except Refused as refused:
                return error_response(refused)
        if path in self._pages:
            return only_read(scope["method"], self._pages[path])
        now = self._clock()
        method = scope["method"]
        page = self._live.answer(method, path, headers, now)
        page = page or self._model_list.answer(method, path, headers)
        if page is not None:
            return page
        query = scope["query_string"].decode("latin-1")
        return self._emulator.handle(
            ServiceRequest(method, f"{path}?{query}" if query else path, headers, body),
            now=now,
            new_id=f"task-{secrets.token_hex(16)}",
        )

    async def _media(self, method: str, name: str, headers: Headers) -> FileResponse:
        task = self._emulator.task(name.rpartition(".")[0])
        if task is None or media_name(task) != name:
            raise Refused(404, "there is no such file", "not_found")
        if method != "GET":
            raise wrong_method("GET")
        state = task.media(self._clock())
        if state is MediaState.EXPIRED:
            raise Refused(410, "the result has expired", "expired")
        if state is not MediaState.AVAILABLE:
            raise Refused(404, "the task has no result", "not_found")
        try:
            path = await self._result_files.file(task)
        except Exception:
            LOG.exception("The result of task %s could not be rendered", task.id)
            raise Refused(503, "the result could not be rendered", "not_rendered") from None
        return _file_response(task, path, headers)


async def _read_body(receive: ASGIReceiveCallable) -> bytes | None:
    """Return the request's body, or None if the client disconnected.

    Of a body that is too large, one byte more than allowed is kept and the rest is read and
    dropped, because a client that is still sending would not see the response.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        room = REQUEST_BODY_LIMIT + 1 - len(body)
        body += message["body"][:room]
        if not message["more_body"]:
            return bytes(body)


async def _send(response: HttpResponse | FileResponse, send: ASGISendCallable) -> None:
    if isinstance(response, HttpResponse):
        length, pieces = len(response.body), iter((response.body,))
    else:
        length, pieces = response.span.length, response.pieces()
    await send_head(response.status, (*response.headers, ("Content-Length", str(length))), send)
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _file_response(task: EmulatedTask, path: Path, headers: Headers) -> FileResponse:
    size = path.stat().st_size
    tag = f'"{task.id}-{size}"'
    # A range of another version of the file is of no use (RFC 9110, "If-Range").
    condition = find_header(headers, "if-range")
    wanted = find_header(headers, "range") if condition in (None, tag) else None
    span = requested_span(wanted, size)
    common = (
        ("Content-Type", USUAL[task.family.media].content_type),
        ("ETag", tag),
        ("Accept-Ranges", "bytes"),
    )
    if span is None:
        return FileResponse(200, common, path, Span(0, size - 1))
    stretch = ("Content-Range", f"bytes {span.first}-{span.last}/{size}")
    return FileResponse(206, (*common, stretch), path, span)
