"""Sends a reply piece by piece over ASGI, at its pace."""

from __future__ import annotations

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable

from muybridge_protocol.emulator import StreamedResponse
from muybridge_protocol.http import Headers


async def send_head(status: int, headers: Headers, send: ASGISendCallable) -> None:
    """Send the status and the header fields of a reply."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        }
    )


async def send_stream(
    reply: StreamedResponse, receive: ASGIReceiveCallable, send: ASGISendCallable
) -> None:
    """Send *reply* piece by piece, until its end or until its reader goes away."""
    async with trio.open_nursery() as nursery:

        async def leave_with_reader() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(leave_with_reader)
        await send_head(reply.status, reply.headers, send)
        for index, piece in enumerate(reply.pieces):
            if index:
                await trio.sleep(reply.interval)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        nursery.cancel_scope.cancel()
