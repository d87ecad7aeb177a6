"""Whether a transport is correct: a test suite to inherit, for blocking transports and for trio.

    class TestMyTransport(TransportConformance):
        def make_transport(self, ssl_context):
            return MyTransport(ssl_context=ssl_context)

Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. Declare what the transport does not do: `capabilities = Capabilities(...)`.
It needs the extra `testing`, and `docs/write-a-transport.md` walks through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.lazy_names import Home, LazyNames

try:
    from muybridge.testing.conformance.connecting import Connecting
    from muybridge.testing.conformance.environment import Environment
    from muybridge.testing.conformance.failing import Failing
    from muybridge.testing.conformance.interrupted import Interrupted
    from muybridge.testing.conformance.lessons import Capabilities, NotConforming
    from muybridge.testing.conformance.responding import Replying
    from muybridge.testing.conformance.secrets import Secrets
    from muybridge.testing.conformance.sending import Sending
    from muybridge.testing.conformance.timing import Timing
    from muybridge.testing.conformance.unsolicited import Unasked
except ModuleNotFoundError as _missing:
    if _missing.name not in ("pytest", "trustme"):
        raise
    raise ModuleNotFoundError(
        f'muybridge.testing.conformance needs {_missing.name}: pip install "muybridge[testing]"',
        name=_missing.name,
    ) from None

if TYPE_CHECKING:
    from muybridge.testing.conformance.for_trio import AsyncTransportConformance

__all__ = ["AsyncTransportConformance", "Capabilities", "NotConforming", "TransportConformance"]
# As in `muybridge.batch`: a transport that blocks does not need trio.
_LAZY: Final = LazyNames(
    __name__,
    {
        "muybridge.testing.conformance.for_trio": Home(
            "AsyncTransportConformance", extra="trio", needs="trio"
        )
    },
    globals().pop("__all__"),
)


class EveryTransport(Sending, Failing, Replying, Timing, Connecting, Unasked, Environment, Secrets):
    """The checks of every transport, blocking or not."""


class TransportConformance(EveryTransport, Interrupted):
    """The checks of a transport that blocks: a `Transport`.

    Inherit it in a class whose name begins with `Test`, and override `make_transport`.
    """


def __getattr__(name: str) -> object:
    return _LAZY.get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY.offered()})
