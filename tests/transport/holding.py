"""Holds a client between opening a connection and sending on it, as a busy machine may."""

from __future__ import annotations

import select
import socket
import weakref
from collections.abc import Callable

import pytest

from muybridge.wire import _trio_exchange as trio_exchange  # pyright: ignore[reportPrivateUsage]  # the moment has no public name
from muybridge.wire import _watched_connections as watched_connections  # pyright: ignore[reportPrivateUsage]  # the same


def hold(monkeypatch: pytest.MonkeyPatch, until: Callable[[socket.socket], object]) -> None:
    """Let both transports call *until* with the socket before they send a request on a new one."""
    connect = watched_connections.WatchedConnection.connect
    send = trio_exchange.Exchange._send  # pyright: ignore[reportPrivateUsage]  # the same
    held: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connect_and_wait(connection: watched_connections.WatchedConnection) -> None:
        connect(connection)
        until(connection.sock)

    async def wait_and_send(exchange: trio_exchange.Exchange) -> None:
        connection = exchange._connection  # pyright: ignore[reportPrivateUsage]  # the same
        assert connection is not None
        sock = connection._socket  # pyright: ignore[reportPrivateUsage]  # the same
        if sock not in held:
            held.add(sock)
            until(sock)
        await send(exchange)

    monkeypatch.setattr(watched_connections.WatchedConnection, "connect", connect_and_wait)
    monkeypatch.setattr(trio_exchange.Exchange, "_send", wait_and_send)


def something_arrives(sock: socket.socket) -> None:
    """Wait until *sock* can be read."""
    assert select.select([sock], [], [], 5)[0]
