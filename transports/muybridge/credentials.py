"""The API key: held in one place, sent to one origin, redacted from everything that comes back.

Both clients use `Credentials`, and so can a driver of your own:

    credentials = Credentials(key, service)
    header = credentials.authorization_for(request)  # or None; add it last
    operation = operation.receive(credentials.redact_response(response), now)
    operation = operation.fail(credentials.redact_failure(failure), now)

A service, or a proxy on the way, may echo the key. Everything that an operation receives can end up
in exceptions, events, logs and stores. Redact it first.
"""

from __future__ import annotations

import hmac
import re
from typing import ClassVar, NoReturn

import attrs

from muybridge_protocol.http import Headers, HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.service import Service, check_key

_REDACTED = "[api key]"
_SHORTEST_REDACTED = 12
"""The shortest key that is redacted in responses. A shorter one is a placeholder of a
test, and may well be part of an id, which must stay intact."""
_FINGERPRINT = 32
"""The length of a key's digest, in hexadecimal digits."""
_LONGEST_ACCOUNT = 200
_QUOTED = '"\\/'
"""Characters that JSON may escape with a backslash."""
_SHORTEST_BEGINNING = 8
"""The fewest characters that count as the beginning of a key at the end of a truncated response."""


class HiddenKey(str):
    """The API key. Printing and formatting hide it, and pickling raises.

    It is a string so that it can be checked and encoded; `encode` returns the real key.
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
    """The value of the `Authorization` header: HTTP libraries can encode it, printing hides it."""

    __slots__ = ()
    _shown = f"Bearer {_REDACTED}"


class Credentials:
    """Holds the API key, and gives it only to requests to the service.

    Args:
        key: The API key. One trailing line break is removed.
        service: Where the service is.
        account: A name for the account that the key belongs to, or None for the key itself.

    Raises:
        LocalError: The key cannot be sent as it is.
        ValueError: The account's name is empty, too long or not printable.
    """

    __slots__ = ("_account", "_header", "_key", "_service")

    def __init__(self, key: str, service: Service, *, account: str | None = None) -> None:
        if account is not None and not (
            0 < len(account) <= _LONGEST_ACCOUNT and account.isprintable()
        ):
            raise ValueError(f"account must have 1 to {_LONGEST_ACCOUNT} printable characters")
        key = check_key(key).encode().decode()  # it may be a HiddenKey already
        self._key = HiddenKey(key)
        self._header = AuthorizationHeader("Bearer " + key)
        self._service = service
        self._account = account

    def __repr__(self) -> str:
        return f"Credentials([api key], {str(self._service)!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the API key is not pickled or copied")

    def authorization_for(self, request: HttpRequest) -> AuthorizationHeader | None:
        """Return the header for *request*, or None if the key must not be sent with it."""
        if request.authorized and self._service.owns(request.url):
            return self._header
        return None

    def fingerprint(self, salt: bytes) -> str:
        """Return a digest of the base URL and the account's name or key, to tell accounts apart.

        The key cannot be found from it. With another *salt*, the same account has another digest.
        """
        # No key begins with a line break.
        who = self._key.encode() if self._account is None else f"\n{self._account}".encode()
        identity = f"{self._service.base_url or ''}\n".encode() + who
        return _digest(salt, identity)

    def redact_response(self, response: HttpResponse) -> HttpResponse:
        """Return *response* with the key redacted, in case the service echoed it."""
        headers = self._redact_headers(response.headers)
        body = self.redact_partial(response.body)  # an error's body may end inside the key
        if headers is response.headers and body is response.body:
            return response
        return HttpResponse(response.status, headers, body)

    def redact_head(self, head: HttpHead) -> HttpHead:
        """Return *head* with the key redacted, in case a server echoed it."""
        return HttpHead(head.status, self._redact_headers(head.headers))

    def redact_failure(self, failure: TransportFailure) -> TransportFailure:
        """Return *failure* with the key redacted, in case the service echoed it."""
        return attrs.evolve(
            failure,
            partial=self.redact_partial(failure.partial),
            detail=self._redact(failure.detail),
        )

    def redact_partial(self, body: bytes) -> bytes:
        """Redact the key, and its beginning at the end of *body*, which may be cut off anywhere."""
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
        """Whether *body* contains the key unescaped, or any escaped character of it.

        Searching a response with images for every way to write the key is slow, and most responses
        do not contain it. Compiling the pattern takes 20 us, which every header would cost.
        """
        key = self._key
        if len(key) < _SHORTEST_REDACTED:
            return False
        escapes = b"%" in body or b"\\" in body
        return key.encode() in body or (escapes and _holds_escape(key, body))

    def _without_beginning(self, partial: bytes) -> bytes:
        """Redact the beginning of the key at the end of *partial*, if it was cut inside the key."""
        key = self._key.encode()
        if len(key) < _SHORTEST_REDACTED or partial[-1:] not in key:
            return partial
        for size in range(len(key) - 1, _SHORTEST_BEGINNING - 1, -1):
            if partial.endswith(key[:size]):
                return partial[:-size] + _REDACTED.encode()
        return partial


def fingerprint_of(key: str, salt: bytes) -> str:
    """Return a digest of a key alone, wherever it is used. The key cannot be found from it.

    Raises:
        LocalError: The key cannot be sent as it is.
    """
    return _digest(salt, check_key(key).encode())


def _digest(salt: bytes, message: bytes) -> str:
    return hmac.new(salt, message, "sha256").hexdigest()[:_FINGERPRINT]


def _written(key: str) -> str:
    """Return a pattern for *key* in JSON or in a URL, where any character may be escaped.

    Parsing a response undoes JSON's escapes, so a key that is escaped must be found before that.
    """
    return "".join(f"(?:{'|'.join([re.escape(mark), *_escaped(mark)])})" for mark in key)


def _escaped(mark: str) -> list[str]:
    """Return a pattern for each way to escape *mark*.

    Each pattern begins with a literal character: the search for the key would otherwise take three
    times as long.
    """
    code = f"(?i:{ord(mark):02x})"
    return [f"%{code}", rf"\\u00{code}", *([rf"\\{re.escape(mark)}"] if mark in _QUOTED else [])]


def _holds_escape(key: str, body: bytes) -> bool:
    """Whether *body* contains an escaped character of *key*."""
    codes = "|".join(sorted({f"{ord(mark):02x}" for mark in key}))
    return (
        (b"%" in body and re.search(f"%(?i:{codes})".encode(), body) is not None)
        or (b"\\u00" in body and re.search(rf"\\u00(?i:{codes})".encode(), body) is not None)
        or any(f"\\{mark}".encode() in body for mark in _QUOTED if mark in key)
    )
