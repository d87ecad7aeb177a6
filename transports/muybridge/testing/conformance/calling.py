"""What every check needs: a transport to check, and requests to send with it."""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import Generator, Iterator
from typing import Any, ClassVar, cast

import pytest
import trustme

from muybridge.testing.certificates import client_context, server_context
from muybridge.testing.conformance.lessons import (
    UNKNOWN,
    Capabilities,
    Lesson,
    NotConforming,
    named,
    require_smoke,
)
from muybridge.testing.scripted_server import Script, ScriptedServer, in_words, serve
from muybridge.wire.transport import Transport, TransportError, exchange
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure

KEY = "sk-conformance-4f81c2"
AUTHORIZATION = f"Bearer {KEY}"
DEADLINE = 0.25
"""Seconds for an exchange that should time out."""
PATIENCE = 3.0
"""Seconds after which a server stops waiting for the transport."""
ENOUGH = 5.0
"""Seconds for an exchange that should complete."""

SMOKE = Lesson(
    "a transport that does not send a plain request and read its response fails every check, for "
    "reasons that have nothing to do with them",
    "the whole of it: start with one GET to a server of your own, and set a breakpoint in "
    "muybridge.wire.building.Exchange.failure, which sees what the library has raised",
)

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@functools.cache
def authority() -> trustme.CA:
    """Return the CA that the transports under test trust."""
    return trustme.CA()


@functools.cache
def server_tls() -> ssl.SSLContext:
    """Return the TLS context of a server at 127.0.0.1 that the transports under test trust."""
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
    """What the transport declares. Override it to declare what the transport does not do."""

    def make_transport(self, ssl_context: ssl.SSLContext) -> Transport:
        """Return a new transport of the kind to check.

        Args:
            ssl_context: The context that it must use for TLS connections.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how its transport is made")

    @pytest.fixture
    def transport(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Transport]:
        """A transport that has passed the smoke check, in an environment without proxies."""
        without_proxies(monkeypatch)
        require_smoke(self, request)
        made = self.make_transport(client_context(authority()))
        yield made
        made.close()

    @pytest.fixture(params=["http", "https"])
    def tls(self, request: pytest.FixtureRequest) -> ssl.SSLContext | None:
        """Nothing for a plain server, then the context of one that speaks TLS."""
        return server_tls() if request.param == "https" else None

    def test_smoke(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One GET and one POST are answered; if not, nothing else is worth checking."""
        without_proxies(monkeypatch)
        try:
            self.smoke()
        except Exception as error:
            if not isinstance(error, NotConforming):
                error.add_note(
                    "This is your transport's own exception. Drivers know only TransportError: "
                    "fix this one first, then turn what the library raises into TransportError "
                    "(muybridge.wire.building.Response does it)."
                )
            raise

    def smoke(self) -> None:
        """Exchange one GET and one POST, and let every exception propagate."""
        with (
            contextlib.closing(self.make_transport(client_context(authority()))) as made,
            serving(serve(200, b"{}")) as server,
        ):
            for request in (get(server.url), post(server.url)):
                try:
                    response = exchange(made, request, timeout=ENOUGH, authorization=AUTHORIZATION)
                except TransportError as error:
                    SMOKE.refuse("a whole response", error)
                answer = (response.status, response.body)
                expected = "a response of status 200 with the body b'{}'"
                SMOKE.require(answer == (200, b"{}"), expected, response)


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the proxies of the environment."""
    for name in (*_VARIABLES, *map(str.upper, _VARIABLES)):
        monkeypatch.delenv(name, raising=False)


def with_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Make *url* the proxy for everything, in every variable that libraries read."""
    without_proxies(monkeypatch)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, url)
        monkeypatch.setenv(name.upper(), url)


@contextlib.contextmanager
def given(what: str) -> Generator[None]:
    """Let every check that fails meanwhile report the situation of the transport."""
    __tracebackhide__ = True  # pytest shows the check itself
    try:
        yield
    except NotConforming as refusal:
        refusal.given = refusal.given or what
        raise


@contextlib.contextmanager
def serving(
    script: Script, *, tls: ssl.SSLContext | None = None, scheme: str | None = None
) -> Generator[ScriptedServer]:
    """Start a server that does not wait for long; every check that fails meanwhile describes it."""
    __tracebackhide__ = True
    description = f"a server {'with TLS ' if tls else ''}that is to {in_words(script)}"
    with (
        ScriptedServer(script, tls=tls, scheme=scheme, patience=PATIENCE) as server,
        given(description),
    ):
        yield server


@contextlib.contextmanager
def only_transport_errors() -> Generator[None]:
    """Refuse every exception but `TransportError`, the only one that drivers know.

    Raises:
        NotConforming: Another exception was raised.
    """
    __tracebackhide__ = True
    try:
        yield
    except (TransportError, NotConforming):
        raise
    except Exception as error:  # noqa: BLE001  # reported to the author of the transport
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        UNKNOWN.refuse(
            "TransportError, or a response: a driver knows no other exception",
            f"{kind.removeprefix('builtins.')}: {str(error).strip()}",
        )


@contextlib.contextmanager
def no_failure(lesson: Lesson) -> Generator[None]:
    """Refuse every exception; *lesson* explains a `TransportError`.

    Raises:
        NotConforming: An exception was raised.
    """
    __tracebackhide__ = True
    try:
        with only_transport_errors():
            yield
    except TransportError as error:
        lesson.refuse("a whole response", error)


def call(
    transport: Transport,
    request: HttpRequest,
    lesson: Lesson,
    *,
    timeout: float = ENOUGH,
    authorization: str | None = AUTHORIZATION,
) -> HttpResponse:
    """Return the whole response to *request*.

    Raises:
        NotConforming: There is none; *lesson* explains why that is wrong.
    """
    __tracebackhide__ = True
    with no_failure(lesson):
        return exchange(transport, request, timeout=timeout, authorization=authorization)


def failure_of(
    transport: Transport, request: HttpRequest, lesson: Lesson, *, timeout: float = ENOUGH
) -> TransportFailure:
    """Return how *request* fails.

    Raises:
        NotConforming: It does not fail, or with an exception that no driver understands.
    """
    __tracebackhide__ = True
    try:
        with only_transport_errors():
            response = exchange(transport, request, timeout=timeout, authorization=AUTHORIZATION)
    except TransportError as error:
        failure = error.failure
    else:
        lesson.refuse("TransportError", response)
    return failure


def expect(failure: TransportFailure, lesson: Lesson, **wanted: object) -> None:
    """Check the attributes of *failure*.

    Args:
        failure: The failure.
        lesson: The explanation if an attribute is wrong.
        wanted: For each attribute, its value, or a set of allowed values.

    Raises:
        NotConforming: An attribute has another value.
    """
    __tracebackhide__ = True
    for name, right in wanted.items():
        values = sorted(cast("set[str]", right)) if isinstance(right, set) else [right]
        expected = f"{name}={' or '.join(map(named, values))}"
        lesson.require(getattr(failure, name) in values, expected, failure)
