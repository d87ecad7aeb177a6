"""Holds a client between opening a connection and sending on it, as a busy machine may."""

from __future__ import annotations

import select
import socket
import weakref
from collections.abc import Callable

import pytest

import moments
from muybridge.wire.http1.blocking import BlockingStream
from muybridge.wire.http1.connections import Connection
from muybridge.wire.http1.socket_stream import SocketStream
from muybridge.wire.http1.tls import TLSStream


def hold(monkeypatch: pytest.MonkeyPatch, until: Callable[[socket.socket], object]) -> None:
    """Let every transport call *until* with the socket before they send a request on a new one."""
    checked = moments.at("before the first byte")
    refuse = checked.value
    held: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def wait_and_refuse(connection: Connection) -> None:
        sock = socket_of(connection)
        if sock not in held:
            held.add(sock)
            until(sock)
        refuse(connection)

    monkeypatch.setattr(*checked.place, wait_and_refuse)


def socket_of(connection: Connection) -> socket.socket:
    """Return the socket of a connection."""
    stream = connection.stream
    carrier = stream.carrier if isinstance(stream, TLSStream) else stream
    assert isinstance(carrier, SocketStream | BlockingStream)
    return carrier.sock


def something_arrives(sock: socket.socket) -> None:
    """Wait until *sock* can be read."""
    assert select.select([sock], [], [], 5)[0]
