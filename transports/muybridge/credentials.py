"""The API key: held in one place, shown nowhere."""

from __future__ import annotations

import re
from typing import ClassVar, NoReturn

import attrs

from muybridge_protocol.codec import read_object, write_json
from muybridge_protocol.http import Headers, HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service, check_key
from muybridge_protocol.text.stream_reader import StreamInterrupted

_REDACTED = "[api key]"
_SHORTEST_REDACTED = 12
"""Fewest characters of a key that is looked for in replies. A shorter one is the placeholder of
a test, and may well stand in an id, which must not be torn apart."""
_SHORTEST_BEGINNING = 8
"""Fewest characters that count as the beginning of a key at the end of a broken-off reply."""


class HiddenKey(str):
    """The API key; printing, formatting or pickling does not show it.

    It is a string so that it can be checked and encoded, which is the way to its content.
    """

    __slots__ = ()
    _shown: ClassVar[str] = _REDACTED

    def __repr__(self) -> str:
        return repr(self._shown)

    def __str__(self) -> str:
        return self._shown

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the API key is not pickled or copied")


class AuthorizationHeader(HiddenKey):
    """The value of the `Authorization` header, which HTTP libraries can encode and nobody sees."""

    __slots__ = ()
    _shown = f"Bearer {_REDACTED}"


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
        self._header = AuthorizationHeader("Bearer " + check_key(key))
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
        return HttpResponse(
            response.status,
            self._redact_headers(response.headers),
            self._redact_bytes(response.body),
        )

    def redact_head(self, head: HttpHead) -> HttpHead:
        """Return *head* without the key, should a server have echoed it."""
        return HttpHead(head.status, self._redact_headers(head.headers))

    def redact_failure(self, failure: TransportFailure) -> TransportFailure:
        """Return *failure* without the key, should the service have echoed it."""
        return attrs.evolve(
            failure,
            partial=self._without_beginning(self._redact_bytes(failure.partial)),
            detail=self._redact(failure.detail),
        )

    def redact_interruption(self, error: StreamInterrupted) -> StreamInterrupted:
        """Return *error* without the key, should the service have echoed it."""
        told = None if error.error is None else write_json(error.error)
        return StreamInterrupted(
            reason=self._redact(error.reason),
            dialect=error.dialect,
            raw=self._without_beginning(self._redact_bytes(error.raw)),
            arrived=error.arrived,
            failure=None if error.failure is None else self.redact_failure(error.failure),
            error=None if told is None else read_object(self._redact_bytes(told)),
        )

    @property
    def _key(self) -> str:
        return self._header.encode().decode().removeprefix("Bearer ")

    def _redact_headers(self, headers: Headers) -> Headers:
        return tuple((self._redact(name), self._redact(value)) for name, value in headers)

    def _redact(self, text: str) -> str:
        key = self._key
        return re.sub(_written(key), _REDACTED, text) if len(key) >= _SHORTEST_REDACTED else text

    def _redact_bytes(self, body: bytes) -> bytes:
        key = self._key
        if len(key) < _SHORTEST_REDACTED:
            return body
        # The search for other ways of writing takes its time, and most replies have none.
        if key.encode() not in body and b"\\" not in body and b"%" not in body:
            return body
        return re.sub(_written(key).encode(), _REDACTED.encode(), body)

    def _without_beginning(self, partial: bytes) -> bytes:
        """Return *partial* without the key's beginning at its end, where it was cut inside."""
        key = self._key.encode()
        if len(key) < _SHORTEST_REDACTED:
            return partial
        for size in range(len(key) - 1, _SHORTEST_BEGINNING - 1, -1):
            if partial.endswith(key[:size]):
                return partial[:-size] + _REDACTED.encode()
        return partial


def _written(key: str) -> str:
    """Return the pattern of *key* as it stands in JSON, where any of it may be escaped, or a URL.

    Reading a reply undoes JSON's escapes, so that a key that was hidden in them would come out.
    """
    return "".join(rf"(?:{_may_be_escaped(mark)}|(?:\\u00|%)(?i:{ord(mark):02x}))" for mark in key)


def _may_be_escaped(mark: str) -> str:
    return rf"\\?{re.escape(mark)}" if mark in '"\\/' else re.escape(mark)
