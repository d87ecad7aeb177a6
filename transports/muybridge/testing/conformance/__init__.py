"""Whether a transport is correct: a test suite to inherit, for blocking and async transports.

    class TestMyTransport(TransportConformance):
        def make_transport(self, ssl_context):
            return MyTransport(ssl_context=ssl_context)

    class TestMyAsyncTransport(AsyncTransportConformance):
        event_loop = "asyncio"

        def make_async_transport(self, ssl_context):
            return MyAsyncTransport(ssl_context=ssl_context)

Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. Declare what the transport does not do: `capabilities = Capabilities(...)`.
It needs the extra `testing`, and `docs/write-a-transport.md` walks through it.
"""

from __future__ import annotations

from muybridge.extras import missing_extra

try:
    from muybridge.testing.conformance.every_transport import EveryTransport
    from muybridge.testing.conformance.for_event_loops import AsyncTransportConformance
    from muybridge.testing.conformance.interrupted import Interrupted
    from muybridge.testing.conformance.lessons import Capabilities, NotConforming
except ModuleNotFoundError as _missing:
    if _missing.name not in ("pytest", "trustme"):
        raise
    raise missing_extra(__name__, _missing.name, "testing") from None

__all__ = ["AsyncTransportConformance", "Capabilities", "NotConforming", "TransportConformance"]


class TransportConformance(EveryTransport, Interrupted):
    """The checks of a transport that blocks: a `Transport`.

    Inherit it in a class whose name begins with `Test`, and override `make_transport`.
    """
