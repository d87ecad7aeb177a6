"""Scripts of a server can be told in words, and their errors do not hide those of a test."""

from __future__ import annotations

import socket

import pytest

from muybridge.testing import Peer, ScriptedServer
from muybridge.testing.scripted_server import (
    Script,
    hang,
    in_turn,
    in_words,
    read_request,
    reply,
    reset,
    response_bytes,
    send,
    serve,
)


def drip(peer: Peer) -> None:
    """Send the response in drops.

    They are small.
    """
    peer.drip(b"response", every=0.0)


WORDS: list[tuple[Script, str]] = [
    ([], "close the connection"),
    (reset, "reset the connection"),
    ([read_request, reset], "read one whole request, reset the connection"),
    ([send(b"a"), hang], "send b'a', do nothing until the client closes its end"),
    ([drip], "send the response in drops, close the connection"),
    ([send(b"x" * 500)], f"send {b'x' * 160!r} and 340 bytes more, close the connection"),
    (
        in_turn([reply(204, b"")], reset, serve(200, b"ok")),
        (
            f"do for connection 1: send {response_bytes(204, b'')!r}, close the connection; "
            "for connection 2: reset the connection; "
            f"for each that follows: answer each request with {response_bytes(200, b'ok')!r}"
        ),
    ),
    (lambda peer: peer.close(), "do something"),
]


@pytest.mark.parametrize(("script", "words"), WORDS, ids=range(len(WORDS)))
def test_words(script: Script, words: str) -> None:
    """A script is told in the order of its steps, and by its docstring where it is a function."""
    assert in_words(script) == words


def _broken(peer: Peer) -> None:
    peer.close()
    raise RuntimeError("a script of mine")


def _connect_to(server: ScriptedServer) -> None:
    with socket.create_connection((server.address.partition(":")[0], server.port)) as sock:
        sock.recv(1)


def _fail(server: ScriptedServer) -> None:
    _connect_to(server)
    raise AssertionError("of the test")


def test_a_broken_script() -> None:
    """An error of a script is told to its test."""
    with pytest.raises(RuntimeError, match="a script of mine"), ScriptedServer(_broken) as server:
        _connect_to(server)


def test_a_broken_script_and_a_failing_test() -> None:
    """But not in the place of what failed in the test itself."""
    with pytest.raises(AssertionError, match="of the test"), ScriptedServer(_broken) as server:
        _fail(server)
