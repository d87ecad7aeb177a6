"""The same bytes mean the same under every binding of HTTP/1.1."""

from __future__ import annotations

import pytest

from muybridge.testing.conformance.wires import NEVER_WHOLE
from muybridge.wire.transport import Transport, TransportError

from .calls import call, post
from .scripted_server import ScriptedServer, read_request, send
from .wires import WIRES, Verdict


def verdict(transport: Transport, wire: bytes) -> Verdict:
    with ScriptedServer([read_request, send(wire)]) as server:
        try:
            return call(transport, post(server.url)).body
        except TransportError as error:
            return error.failure.phase, error.failure.reason


@pytest.mark.parametrize("name", WIRES)
def test_one_verdict(transport: Transport, name: str) -> None:
    """Each odd response is accepted by every binding or by none, and for the same reason."""
    wire, expected = WIRES[name]
    assert verdict(transport, wire) == expected


def test_the_table() -> None:
    """The table has many rows, all different, and those of the kit are never whole responses."""
    assert len({wire for wire, _ in WIRES.values()}) == len(WIRES) >= 150
    assert not [name for name in NEVER_WHOLE if isinstance(WIRES[f"kit: {name}"][1], bytes)]
