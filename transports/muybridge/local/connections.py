"""Keeps what goes wrong on one connection from ending the whole service."""

from __future__ import annotations

import logging

from hypercorn.trio import run
from hypercorn.trio.tcp_server import TCPServer

LOG = logging.getLogger("muybridge.local")


class ContainedConnection(TCPServer):
    """A connection that ends by itself, whatever its client sends.

    Hypercorn breaks down over some clients, such as one that goes on sending after its last
    request while that is being answered. It lets the error end every other connection, too.
    """

    async def run(self) -> None:
        """Serve the connection to its end."""
        try:
            await super().run()
        except* Exception:
            LOG.debug("A connection broke down", exc_info=True)


def contain_connections() -> None:
    """Let hypercorn serve every connection so. It offers no place to say it to."""
    run.__dict__["TCPServer"] = ContainedConnection
