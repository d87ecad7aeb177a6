"""The API key: held in one place, shown nowhere."""

from __future__ import annotations

from typing import NoReturn

import attrs

from muybridge_protocol.http import Headers, HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service, check_key

_REDACTED = b"[api key]"


class AuthorizationHeader(str):
    """The value of the `Authorization` header; printing, formatting or pickling does not show it.

    It is a string so that HTTP libraries can encode it, which is the one way to its content.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "'Bearer [api key]'"

    def __str__(self) -> str:
        return "Bearer [api key]"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the API key is not pickled or copied")


class Credentials:
    """Holds the API key, and knows the one origin that may see it.

    Args:
        key: The API key. One line end at its end is not part of it.
        service: Where the service is.

    Raises:
        InvalidKey: The key cannot be sent as it is.
    """

    __slots__ = ("_header", "_service")

    def __init__(self, key: str, service: Service) -> None:
        self._header = AuthorizationHeader(f"Bearer {check_key(key)}")
        self._service = service

    def __repr__(self) -> str:
        return f"Credentials([api key], {self._service.base_url!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the API key is not pickled or copied")

    def authorization_for(self, request: HttpRequest) -> AuthorizationHeader | None:
        """Return the header for *request*, or None where the key must not go."""
        if request.authorized and self._service.owns(request.url):
            return self._header
        return None

    def redact_response(self, response: HttpResponse) -> HttpResponse:
        """Return *response* without the key, should the service have echoed it."""
        if self._key not in response.body and not self._in_headers(response.headers):
            return response
        return HttpResponse(
            response.status,
            self._redact_headers(response.headers),
            response.body.replace(self._key, _REDACTED),
        )

    def redact_head(self, head: HttpHead) -> HttpHead:
        """Return *head* without the key, should a server have echoed it."""
        if not self._in_headers(head.headers):
            return head
        return HttpHead(head.status, self._redact_headers(head.headers))

    def redact_failure(self, failure: TransportFailure) -> TransportFailure:
        """Return *failure* without the key, should the service have echoed it."""
        key = self._key
        return attrs.evolve(
            failure,
            partial=failure.partial.replace(key, _REDACTED),
            detail=failure.detail.replace(key.decode(), _REDACTED.decode()),
        )

    @property
    def _key(self) -> bytes:
        return self._header.encode().removeprefix(b"Bearer ")

    def _in_headers(self, headers: Headers) -> bool:
        key = self._key.decode()
        return any(key in value for _, value in headers)

    def _redact_headers(self, headers: Headers) -> Headers:
        key, redacted = self._key.decode(), _REDACTED.decode()
        return tuple((name, value.replace(key, redacted)) for name, value in headers)
