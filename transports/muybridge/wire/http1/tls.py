"""TLS over a byte stream, with Python's own TLS engine, which does no I/O.

The TLS streams of event loops are not used: they read ahead, wait for the peer's closing alert, and
take a missing alert for a proper end, or leave that to an option. Here, a missing alert is always
an error (`ssl.SSLEOFError`), because whoever cuts the connection would otherwise decide where a
body ends. If the head says where it ends, the exchange takes that error for the end of the
connection.

`send` encrypts and sends everything at once. A part of it may be on its way when that fails, so
unlike a plain socket, TLS never proves that nothing was sent.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from muybridge.wire.exchange import PIECE
from muybridge.wire.http1.byte_streams import ByteStream

T = TypeVar("T")


class TLSStream:
    """A byte stream that encrypts.

    Args:
        stream: The stream that carries the encrypted bytes.
        context: The context for the handshake.
        host: The host whose certificate the peer must present.
    """

    def __init__(self, stream: ByteStream, context: ssl.SSLContext, host: str) -> None:
        self.carrier: ByteStream = stream
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.engine: ssl.SSLObject = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )

    async def handshake(self) -> None:
        """Perform the handshake.

        Raises:
            OSError: It failed.
        """
        await self._complete(self.engine.do_handshake)

    async def send(self, data: memoryview) -> int:
        """Encrypt and send all of *data*.

        Raises:
            OSError: The connection broke.
        """
        return await self._complete(lambda: self.engine.write(data))

    async def receive(self, size: int) -> bytes:
        """Return up to *size* decrypted bytes, or none once the peer has ended TLS.

        Raises:
            OSError: The connection broke.
            ssl.SSLEOFError: It was closed without a closing alert.
        """
        with suppress(ssl.SSLZeroReturnError):
            return await self._complete(lambda: self.engine.read(size))
        return b""

    def receive_nowait(self, size: int) -> bytes:
        """Return decrypted bytes that have already arrived. Session tickets do not count.

        Raises:
            BlockingIOError: Nothing has arrived.
            OSError: The connection broke.
        """
        while True:
            with suppress(ssl.SSLWantReadError):
                return self.engine.read(size)
            self._take(self.carrier.receive_nowait(PIECE))

    def close(self) -> None:
        """Close the connection at once, without a closing alert."""
        self.carrier.close()

    async def _complete(self, step: Callable[[], T]) -> T:
        """Return what *step* returns once the engine has received all that it needs."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                await self._flush()
                self._take(await self.carrier.receive(PIECE))
            else:
                await self._flush()
                return done

    async def _flush(self) -> None:
        rest = memoryview(self._outgoing.read())
        while rest:
            rest = rest[await self.carrier.send(rest) :]

    def _take(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
