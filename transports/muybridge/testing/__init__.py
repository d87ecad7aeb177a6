"""Helps to test programs that use Muybridge, and transports of your own.

- pytest fixtures: `muybridge_client`, `muybridge_async_client` and others; see `plugin`;
- transports without a network: `FakeTransport`, `AsyncFakeTransport`, and what they answer;
- clocks that do not wait: `VirtualClock`, `SkippingClock`;
- a server that misbehaves on real sockets: `ScriptedServer`;
- `muybridge.testing.conformance`: whether a transport is correct.

Everything is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.lazy_names import Home, LazyNames

if TYPE_CHECKING:
    from muybridge.testing.clock import SkippingClock, VirtualClock
    from muybridge.testing.fake_transport import (
        AsyncFakeTransport,
        FakeTransport,
        broken_off,
        json_response,
        lost_response,
        not_sent,
    )
    from muybridge.testing.scripted_server import Peer, ScriptedServer

__all__ = [
    "AsyncFakeTransport",
    "FakeTransport",
    "Peer",
    "ScriptedServer",
    "SkippingClock",
    "VirtualClock",
    "broken_off",
    "json_response",
    "lost_response",
    "not_sent",
]
_LAZY: Final = LazyNames(
    __name__,
    {
        "muybridge.testing.clock": Home("SkippingClock VirtualClock"),
        "muybridge.testing.fake_transport": Home(
            "AsyncFakeTransport FakeTransport broken_off json_response lost_response not_sent"
        ),
        "muybridge.testing.scripted_server": Home("Peer ScriptedServer"),
    },
)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        return _LAZY.get(name)


def __dir__() -> list[str]:
    return sorted(__all__)
