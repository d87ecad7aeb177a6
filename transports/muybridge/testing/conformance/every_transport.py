"""The checks of every transport."""

from __future__ import annotations

from muybridge.testing.conformance.connecting import Connecting
from muybridge.testing.conformance.environment import Environment
from muybridge.testing.conformance.failing import Failing
from muybridge.testing.conformance.responding import Responding
from muybridge.testing.conformance.secrets import Secrets
from muybridge.testing.conformance.sending import Sending
from muybridge.testing.conformance.timing import Timing
from muybridge.testing.conformance.unsolicited import Unasked


class EveryTransport(
    Sending, Failing, Responding, Timing, Connecting, Unasked, Environment, Secrets
):
    """The checks of every transport, blocking or not."""
