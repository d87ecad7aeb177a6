"""What every check stands on: a transport to be checked, and requests to send with it."""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import trustme

from muybridge.testing.certificates import client_context, server_context
from muybridge.testing.conformance.lessons import Capabilities, Lesson
from muybridge.testing.scripted_server import Script, ScriptedServer
from muybridge.wire.transport import Transport, TransportError
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure

KEY = "sk-conformance-4f81c2"
AUTHORIZATION = f"Bearer {KEY}"
DEADLINE = 0.25
"""Seconds for an exchange that is to run out of time."""
PATIENCE = 3.0
"""Seconds after which a server gives up on a transport that never does."""
ENOUGH = 5.0
"""Seconds for an exchange that is to come to its end."""

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@functools.cache
def authority() -> trustme.CA:
    """Return the authority that the transports under test trust."""
    return trustme.CA()


@functools.cache
def server_tls() -> ssl.SSLContext:
    """Return what a server at 127.0.0.1 makes its handshakes with."""
    return server_context(authority(), "127.0.0.1", "localhost")


def get(url: str, **settings: Any) -> HttpRequest:
    """Return a request that costs nothing."""
    return HttpRequest(method="GET", url=url, **settings)


def post(url: str, body: bytes = b'{"prompt": "a horse"}', **settings: Any) -> HttpRequest:
    """Return a request that may be charged."""
    headers = (("Content-Type", "application/json"),)
    return HttpRequest(method="POST", url=url, headers=headers, body=body, paid=True, **settings)


class Checks:
    """What every group of checks inherits."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    """What the transport declares. Anything that it does not do is said here, and nowhere else."""

    def make_transport(self, ssl_context: ssl.SSLContext) -> Transport:
        """Return a new transport of the kind to be checked.

        Args:
            ssl_context: What it is to make TLS connections with.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how its transport is made")

    def grow_old(self, seconds: float) -> None:
        """Let *seconds* pass, so that an idle connection is no longer fresh.

        Override it if that can be had without waiting.
        """
        time.sleep(seconds)

    @pytest.fixture
    def transport(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Transport]:
        """A transport under test, closed at the end, in an environment without settings."""
        for name in (*_VARIABLES, *map(str.upper, _VARIABLES)):
            monkeypatch.delenv(name, raising=False)
        made = self.make_transport(client_context(authority()))
        yield made
        made.close()


def serving(
    script: Script, *, tls: ssl.SSLContext | None = None, scheme: str | None = None
) -> ScriptedServer:
    """Return a server that does not wait for long."""
    return ScriptedServer(script, tls=tls, scheme=scheme, patience=PATIENCE)


def call(
    transport: Transport,
    request: HttpRequest,
    lesson: Lesson,
    *,
    timeout: float = ENOUGH,
    authorization: str | None = AUTHORIZATION,
) -> HttpResponse:
    """Return the whole reply to *request*.

    Raises:
        NotConforming: There is none, which *lesson* explains.
    """
    outcome = _outcome(transport, request, lesson, timeout, authorization)
    if isinstance(outcome, TransportFailure):
        lesson.refuse("a whole reply", shown(outcome))
    return outcome


def failure_of(
    transport: Transport, request: HttpRequest, lesson: Lesson, *, timeout: float = ENOUGH
) -> TransportFailure:
    """Return how *request* fails.

    Raises:
        NotConforming: It does not, or with an exception that no driver understands.
    """
    outcome = _outcome(transport, request, lesson, timeout, AUTHORIZATION)
    if not isinstance(outcome, TransportFailure):
        found = f"a reply of status {outcome.status} with {len(outcome.body)} bytes"
        lesson.refuse("TransportError", found)
    return outcome


def _outcome(
    transport: Transport,
    request: HttpRequest,
    lesson: Lesson,
    timeout: float,
    authorization: str | None,
) -> HttpResponse | TransportFailure:
    body = bytearray()
    try:
        with transport.stream(request, timeout=timeout, authorization=authorization) as reply:
            head = reply.head
            for piece in reply.pieces():
                body += piece
    except TransportError as error:
        return error.failure
    except Exception as error:  # noqa: BLE001  # told to whoever wrote the transport
        lesson.refuse(
            "TransportError, or a reply: a driver knows no other exception",
            f"{type(error).__module__}.{type(error).__qualname__}",
        )
    return HttpResponse(head.status, head.headers, bytes(body))


def shown(failure: TransportFailure) -> str:
    """Return what matters of *failure*, for people."""
    return f"sent={failure.sent}, status={failure.status}, {failure}"
