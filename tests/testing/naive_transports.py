"""Transports as they are written in an hour: the library's defaults, and its exceptions caught."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager

import requests
import urllib3

from muybridge.wire.transport import StreamedResponse, TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason, TransportFailure

from .wrong_transports import Given


class Naive:
    """What each of them has in common.

    Args:
        ssl_context: What to make TLS connections with.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self.ssl_context = ssl_context

    @contextmanager
    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Generator[StreamedResponse]:
        headers = dict(request.headers)
        if authorization is not None:
            headers["Authorization"] = authorization
        try:
            reply = self.send(request, headers, timeout)
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError) as error:
            late = isinstance(error, TimeoutError | requests.Timeout)
            raise TransportError(
                TransportFailure(
                    phase=Phase.HEAD if late else Phase.CONNECT,
                    sent=late,
                    reason=Reason.TIMED_OUT if late else Reason.OTHER,
                )
            ) from error
        yield reply

    def send(self, request: HttpRequest, headers: dict[str, str], timeout: float) -> Given:
        """Send *request* and return the whole response."""
        raise NotImplementedError

    def close(self) -> None:
        """Close every idle connection."""


class OnRequests(Naive):
    """Uses a session of requests."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        super().__init__(ssl_context)
        self.session = requests.Session()

    def send(self, request: HttpRequest, headers: dict[str, str], timeout: float) -> Given:
        response = self.session.request(
            request.method, request.url, data=request.body, headers=headers, timeout=timeout
        )
        head = HttpHead(response.status_code, tuple(response.headers.items()))
        return Given(head, response.content)

    def close(self) -> None:
        self.session.close()


class OnUrllib(Naive):
    """Uses urllib.request."""

    def send(self, request: HttpRequest, headers: dict[str, str], timeout: float) -> Given:
        asked = urllib.request.Request(  # noqa: S310  loopback
            request.url, data=request.body, headers=headers, method=request.method
        )
        try:
            response = urllib.request.urlopen(asked, timeout=timeout, context=self.ssl_context)  # noqa: S310  the same
        except urllib.error.HTTPError as error:
            response = error
        with response:
            head = HttpHead(response.status or 0, tuple(response.headers.items()))
            return Given(head, response.read())


class VerifiesNothing(OnUrllib, Naive):
    """Takes any certificate, as `verify=False` does: that helped once."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        super().__init__(ssl_context)
        self.ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.ssl_context.check_hostname = False
        self.ssl_context.verify_mode = ssl.CERT_NONE


class OnUrllib3(Naive):
    """Uses a pool of urllib3, which follows redirects and tries again."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        super().__init__(ssl_context)
        self.pool = urllib3.PoolManager(ssl_context=ssl_context)

    def send(self, request: HttpRequest, headers: dict[str, str], timeout: float) -> Given:
        response = self.pool.request(
            request.method, request.url, body=request.body, headers=headers, timeout=timeout
        )
        return Given(HttpHead(response.status, tuple(response.headers.items())), response.data)

    def close(self) -> None:
        self.pool.clear()
