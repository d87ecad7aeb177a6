"""Transports that send something else than they are asked to, or somewhere else."""

from __future__ import annotations

import netrc
import os
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import StreamedResponse, TransportError
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure

from .wrong_transports import Wrong


class FollowsRedirectsOfGets(Wrong):
    """Follows redirects of what costs nothing, as most libraries do, and takes the key along."""

    keeps_key = True

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            place = reply.head.header("location") or ""
            if request.method == "POST" or not 301 <= reply.head.status <= 308:
                yield reply
                return
        place = f"http:{place}" if place.startswith("//") else place
        url = place if place.startswith("http") else request.url + place
        key = authorization if self.keeps_key else None
        followed = attrs.evolve(request, url=url)
        with self.right.stream(followed, timeout=timeout, authorization=key) as reply:
            yield reply


class FollowsWithoutTheKey(FollowsRedirectsOfGets, Wrong):
    """Does so without the key, as careful libraries do."""

    keeps_key = False


class FollowsSeeOther(Wrong):
    """Follows a 303 of a POST with a GET, as the standard allows to browsers."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with self.right.stream(request, timeout=timeout, authorization=authorization) as reply:
            place = reply.head.header("location") or ""
            if request.method != "POST" or reply.head.status != 303:
                yield reply
                return
        url = place if place.startswith("http") else f"http:{place}"
        seen = HttpRequest(method="GET", url=url)
        with self.right.stream(seen, timeout=timeout, authorization=authorization) as reply:
            yield reply


class TriesGetsAgain(Wrong):
    """Sends what costs nothing again when there was no response, as urllib3 does."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if request.method != "POST":
            try:
                with self.right.stream(request, timeout=timeout, authorization=authorization):
                    pass
            except TransportError:
                pass
        with super().around(request, timeout, authorization) as reply:
            yield reply


class ObeysProxies(Wrong):
    """Sends everything to the proxy that the environment names."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        proxy = os.environ.get("HTTP_PROXY")
        return request if proxy is None else attrs.evolve(request, url=f"{proxy}/{request.url}")


class ReadsNetrc(Wrong):
    """Finds credentials of its own."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if authorization is None and "NETRC" in os.environ:
            known = netrc.netrc(os.environ["NETRC"]).authenticators(
                urlsplit(request.url).hostname or ""
            )
            authorization = f"Basic {known}"
        with super().around(request, timeout, authorization) as reply:
            yield reply


class KeepsCookies(Wrong):
    """Sends a cookie back."""

    cookie: str | None = None

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if self.cookie is not None:
            request = attrs.evolve(request, headers=(*request.headers, ("Cookie", self.cookie)))
        with super().around(request, timeout, authorization) as reply:
            self.cookie = reply.head.header("set-cookie")
            yield reply


class TrustsOthers(Wrong):
    """Does not use the context that it is given."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        super().__init__(ssl_context)
        self.right = RequestsTransport(ssl_context=ssl.create_default_context())


class TrustsTheEnvironment(Wrong):
    """Trusts an authority that the environment names, beside those it is told to."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        if "SSL_CERT_FILE" in os.environ:
            ssl_context.load_verify_locations(os.environ["SSL_CERT_FILE"])
        super().__init__(ssl_context)


class SendsNull(Wrong):
    """Sends JSON where there is nothing to send."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return request if request.body is not None else attrs.evolve(request, body=b"null")


class CutsBodies(Wrong):
    """Sends as much of a body as the socket takes at once."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, body=request.body and request.body[:65536])


class ExpectsContinue(Wrong):
    """Asks whether it may send the body."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, headers=(*request.headers, ("Expect", "100-continue")))


class NormalisesUrls(Wrong):
    """Writes URLs as it thinks they should be written, so that no signature holds any more."""

    def asked(self, request: HttpRequest) -> HttpRequest:
        return attrs.evolve(request, url=unquote(request.url))


class TriesOneAddress(Wrong):
    """Looks a name up and takes the first address."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        lookup = socket.getaddrinfo

        def first(*arguments: Any, **named: Any) -> Any:
            return lookup(*arguments, **named)[:1]

        socket.getaddrinfo = first
        try:
            with super().around(request, timeout, authorization) as reply:
                yield reply
        finally:
            socket.getaddrinfo = lookup


class OpensEachTime(Wrong):
    """Keeps no connection."""

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        with super().around(request, timeout, authorization) as reply:
            yield reply
        self.right.close()


class NeverCloses(Wrong):
    """Closes its connections when it is asked for the second time, by the test."""

    asked_before = False

    def close(self) -> None:
        if self.asked_before:
            self.right.close()
        self.asked_before = True


class StaysBroken(Wrong):
    """Has one connection, which is of no use any more after a failure."""

    failure: TransportFailure | None = None

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if self.failure is not None:
            raise TransportError(self.failure)
        with super().around(request, timeout, authorization) as reply:
            yield reply

    def told(self, failure: TransportFailure) -> TransportFailure:
        self.failure = failure
        return failure


class MissesClosing(Wrong):
    """Sends on a connection that the server has closed, or said that it closes."""

    used = False

    @contextmanager
    def around(
        self, request: HttpRequest, timeout: float, authorization: str | None
    ) -> Generator[StreamedResponse]:
        if self.used:
            raise TransportError(
                TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.CLOSED)
            )
        self.used = True
        with super().around(request, timeout, authorization) as reply:
            yield reply
