"""The default context for TLS connections: the CA certificates that it trusts, and ALPN."""

from __future__ import annotations

import os
import ssl

import certifi

from muybridge.wire._environment import ca_location
from muybridge.wire.exchange import Fault, reason_of
from muybridge_protocol.http import Reason


def default_context() -> ssl.SSLContext:
    """Return a context that trusts the CA certificates that the environment names, or certifi's.

    Raises:
        Fault: They cannot be read.
    """
    place = ca_location() or certifi.where()
    # A client context checks certificates and their hosts by default.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Some gateways refuse a handshake that names no protocol.
    context.set_alpn_protocols(["http/1.1"])
    try:
        if os.path.isdir(place):  # noqa: PTH112  # a string from the environment
            context.load_verify_locations(capath=place)
        else:
            context.load_verify_locations(cafile=place)
    except OSError as error:
        limit = reason_of(error) is Reason.LOCAL_LIMIT
        reason = Reason.LOCAL_LIMIT if limit else Reason.CERTIFICATE
        raise Fault(reason, f"the CA certificates at {place} cannot be read") from None
    return context
