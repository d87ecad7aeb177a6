"""TLS contexts for both ends of a connection on loopback. It needs trustme."""

from __future__ import annotations

import datetime as dt
import ssl

import trustme


def server_context(
    authority: trustme.CA, *hosts: str, expires: dt.datetime | None = None
) -> ssl.SSLContext:
    """Return what a server makes handshakes with, in the name of *hosts*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.issue_cert(*hosts, not_before=expires, not_after=expires)
    certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]  # or pyOpenSSL's
    return context


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    """Return a context that trusts *authority*, and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks the certificate and its host
    authority.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]  # or pyOpenSSL's
    return context
