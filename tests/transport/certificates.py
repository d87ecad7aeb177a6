"""TLS contexts for both ends of a connection, under the name that the tests know them by."""

from __future__ import annotations

from muybridge.testing.certificates import client_context, server_context

__all__ = ["client_context", "server_context"]
