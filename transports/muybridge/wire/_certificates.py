"""The default context for TLS connections: the CA certificates that it trusts, and ALPN."""

from __future__ import annotations

import os
import ssl

import certifi

from muybridge.wire._environment import ca_variable
from muybridge.wire.exchange import Fault, reason_of
from muybridge_protocol.http import Reason


def default_context() -> ssl.SSLContext:
    """Return a context that trusts the CA certificates that the environment names, or certifi's.

    Raises:
        Fault: They cannot be read.
    """
    variable = ca_variable()
    place = certifi.where() if variable is None else os.environ[variable]
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
        named = "" if variable is None else f", which {variable} names,"
        why = error.strerror or type(error).__name__
        raise Fault(
            reason, f"the CA certificates at {place}{named} cannot be read: {why}"
        ) from None
    return context
