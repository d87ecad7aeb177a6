"""The API key: held in one place, sent to one origin, redacted from what comes back.

Both clients use it, and so can a driver of your own:

    credentials = Credentials(key, service)
    header = credentials.authorization_for(request)  # or None; add it last
    operation = operation.receive(credentials.redact_response(response), now)
    operation = operation.fail(credentials.redact_failure(failure), now)

A service, or a proxy on the way, may echo the key. Whatever an operation is told ends up in
exceptions, events, logs and journals, so redact it first.
"""

from __future__ import annotations

import re
from typing import ClassVar, NoReturn

import attrs

from muybridge_protocol.http import Headers, HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service, check_key

_REDACTED = "[api key]"
_SHORTEST_REDACTED = 12
"""Fewest characters of a key that is looked for in replies. A shorter one is the placeholder of
a test, and may well stand in an id, which must not be torn apart."""
_QUOTED = '"\\/'
"""What JSON may write with a backslash before it."""
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

    __slots__ = ("_header", "_key", "_service")

    def __init__(self, key: str, service: Service) -> None:
        key = check_key(key).encode().decode()  # it may be hidden already
        self._key = HiddenKey(key)
        self._header = AuthorizationHeader("Bearer " + key)
        self._service = service

    def __repr__(self) -> str:
        return f"Credentials([api key], {str(self._service)!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the API key is not pickled or copied")

    def authorization_for(self, request: HttpRequest) -> AuthorizationHeader | None:
        """Return the header for *request*, or None where the key must not go."""
        if request.authorized and self._service.owns(request.url):
            return self._header
        return None

    def redact_response(self, response: HttpResponse) -> HttpResponse:
        """Return *response* without the key, should the service have echoed it."""
        headers = self._redact_headers(response.headers)
        body = self.redact_partial(response.body)  # of an error there may be its beginning alone
        if headers is response.headers and body is response.body:
            return response
        return HttpResponse(response.status, headers, body)

    def redact_head(self, head: HttpHead) -> HttpHead:
        """Return *head* without the key, should a server have echoed it."""
        return HttpHead(head.status, self._redact_headers(head.headers))

    def redact_failure(self, failure: TransportFailure) -> TransportFailure:
        """Return *failure* without the key, should the service have echoed it."""
        return attrs.evolve(
            failure,
            partial=self.redact_partial(failure.partial),
            detail=self._redact(failure.detail),
        )

    def redact_partial(self, body: bytes) -> bytes:
        """Return *body*, which may have been cut anywhere, without the key or its beginning."""
        if self._may_hold(body):
            body = re.sub(_written(self._key).encode(), _REDACTED.encode(), body)
        return self._without_beginning(body)

    def _redact_headers(self, headers: Headers) -> Headers:
        if not self._may_hold("\n".join(map("\n".join, headers)).encode(errors="replace")):
            return headers
        return tuple((self._redact(name), self._redact(value)) for name, value in headers)

    def _redact(self, text: str) -> str:
        if not self._may_hold(text.encode(errors="replace")):
            return text
        return re.sub(_written(self._key), _REDACTED, text)

    def _may_hold(self, body: bytes) -> bool:
        """Whether *body* holds the key as it is, or any escape of one of its marks.

        To search a reply with pictures for every way of writing a key takes long, and most have
        none. Making the pattern alone takes 20 us, and would be done for each header.
        """
        key = self._key
        return len(key) >= _SHORTEST_REDACTED and (key.encode() in body or _holds_escape(key, body))

    def _without_beginning(self, partial: bytes) -> bytes:
        """Return *partial* without the key's beginning at its end, where it was cut inside."""
        key = self._key.encode()
        if len(key) < _SHORTEST_REDACTED or partial[-1:] not in key:
            return partial
        for size in range(len(key) - 1, _SHORTEST_BEGINNING - 1, -1):
            if partial.endswith(key[:size]):
                return partial[:-size] + _REDACTED.encode()
        return partial


def _written(key: str) -> str:
    """Return the pattern of *key* as it stands in JSON, where any of it may be escaped, or a URL.

    Reading a reply undoes JSON's escapes, so that a key that was hidden in them would come out.
    """
    return "".join(f"(?:{'|'.join([re.escape(mark), *_escaped(mark)])})" for mark in key)


def _escaped(mark: str) -> list[str]:
    """Return the patterns of the ways in which *mark* may be escaped. Each begins with a literal.

    So does each way of writing the first mark of a key, without which the search for the key would
    take three times as long.
    """
    code = f"(?i:{ord(mark):02x})"
    return [f"%{code}", rf"\\u00{code}", *([rf"\\{re.escape(mark)}"] if mark in _QUOTED else [])]


def _holds_escape(key: str, body: bytes) -> bool:
    """Whether *body* holds an escape of one of the marks of *key*."""
    if b"%" not in body and b"\\" not in body:
        return False
    codes = "|".join(sorted({f"{ord(mark):02x}" for mark in key}))
    return (
        (b"%" in body and re.search(f"%(?i:{codes})".encode(), body) is not None)
        or (b"\\u00" in body and re.search(rf"\\u00(?i:{codes})".encode(), body) is not None)
        or any(f"\\{mark}".encode() in body for mark in _QUOTED if mark in key)
    )
