"""Streams a response over ASGI, at its own pace."""

from __future__ import annotations

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable

from muybridge_protocol.emulator import StreamedResponse
from muybridge_protocol.http import Headers


async def send_head(status: int, headers: Headers, send: ASGISendCallable) -> None:
    """Send the status and the header fields of a response."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        }
    )


async def send_stream(
    response: StreamedResponse, receive: ASGIReceiveCallable, send: ASGISendCallable
) -> None:
    """Send *response* piece by piece, until its end or until the client disconnects."""
    async with trio.open_nursery() as nursery:
        gone = trio.Event()

        async def watch_reader() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        nursery.start_soon(watch_reader)
        await send_head(response.status, response.headers, send)
        for index, piece in enumerate(response.pieces):
            if index:
                # Only the pause ends early: the server reports the disconnect while it is still
                # closing the connection in `send`, which must not be cancelled there.
                with trio.move_on_after(response.interval):
                    await gone.wait()
            if gone.is_set():
                break
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        nursery.cancel_scope.cancel()
