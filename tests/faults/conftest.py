from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterator

import pytest
import trustme

from client.conftest import driver, make_client
from transport.certificates import client_context, server_context
from transport.scripted_server import ScriptedServer, hang

from .cells import Surroundings
from .rows import Certificate

__all__ = ["driver", "make_client"]


@pytest.fixture(scope="session")
def certificates() -> tuple[dict[Certificate, ssl.SSLContext], ssl.SSLContext]:
    """What servers show, and what the client trusts."""
    authority = trustme.CA()
    past = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
    contexts = {
        Certificate.GOOD: server_context(authority, "127.0.0.1"),
        Certificate.UNKNOWN: server_context(trustme.CA(), "127.0.0.1"),
        Certificate.OTHER_HOST: server_context(authority, "elsewhere.example"),
        Certificate.EXPIRED: server_context(authority, "127.0.0.1", expires=past),
    }
    return contexts, client_context(authority)


@pytest.fixture(scope="session")
def around(
    certificates: tuple[dict[Certificate, ssl.SSLContext], ssl.SSLContext],
) -> Iterator[Surroundings]:
    """What every cell stands in."""
    contexts, trust = certificates
    with ScriptedServer(hang) as trap:
        yield Surroundings(contexts=contexts, trust=trust, trap=trap)
