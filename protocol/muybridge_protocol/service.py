"""Where the service is, which URLs may get the API key, and what a path may contain.

Three rules protect the key and the machine that it is on:

- The key is sent only to the origin (scheme, host and port) of a base URL; `Service.owns` decides.
  It is sent in clear text only if the user has allowed that, or to this machine.
- Every path is appended to a base URL and cannot leave its origin: no second slash at the start, no
  dot segments. Ids are percent-encoded.
- A link to a result comes from a response, so it may point anywhere. It must be https on a public
  host, or on the service's own host. The user may allow other hosts, but never an address at which
  a cloud gives its machines their credentials.

A base URL has one spelling, whatever the user has written: accounts, batches and rates are told
apart by it.

A URL that is refused is quoted without its query and user name, because they may be secret, and not
at all if it does not look like a URL: it may be the key itself.
"""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import attrs

from muybridge_protocol.hosts import (
    ends_in_number,
    is_clear_text,
    is_loopback,
    is_metadata_host,
    is_public_host,
    spelled_ipv6,
)
from muybridge_protocol.http import without_query
from muybridge_protocol.identifiers import (
    IDENTIFIER_LIMIT,
    is_identifier,
    is_model_name,
    is_printable_id,
    shown_id,
)
from muybridge_protocol.iri import ascii_url
from muybridge_protocol.local_errors import (
    NOTHING_SENT,
    InvalidAddress,
    LocalError,
)
from muybridge_protocol.records.json import truncated
from muybridge_protocol.remedies import Remedy, RemedyKind

__all__ = [
    "ALLOW_DOWNLOADS",
    "TEXT_ALONE",
    "Service",
    "check_identifier",
    "check_key",
    "check_model_name",
    "is_identifier",
    "is_printable_id",
    "origin_of",
    "resolve_location",
    "shown_id",
]

_QUERY = re.compile(r"([?#]).+", re.DOTALL)
_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
_QUOTES = "\"'`"
_PATH = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.ASCII | re.IGNORECASE)

_UNSENDABLE = re.compile(r"[^\x21-\x7e]|\\")
_HOST = re.compile(
    r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|(?=.*:)[0-9a-f:.]+(?:%[a-z0-9._-]+)?", re.ASCII
)
"""A name, or an IPv6 address with its zone. Escapes could be read as another host elsewhere."""

_VARIABLES = {"base_url": "MUYBRIDGE_BASE_URL", "text_base_url": "MUYBRIDGE_TEXT_BASE_URL"}
_NO_BASE_URL = (
    "There is no base URL.",
    Remedy(kind=RemedyKind.GIVE, option="base_url", variable=_VARIABLES["base_url"]),
)
TEXT_ALONE: Final = Remedy(
    kind=RemedyKind.GIVE_FOR_TEXT, option="text_base_url", variable=_VARIABLES["text_base_url"]
)
"""What to do without a base URL if only text is used."""

_SWAPPED = "It is not shown, because it may be the API key: check that the two are not swapped."

ALLOW_DOWNLOADS: Final = Remedy(
    kind=RemedyKind.ALLOW, option="allow_insecure_downloads", action="download"
)
"""What to do about a link that is not downloaded."""

_VERSION = "/v1"
"""The beginning of every path of the service."""

_ESCAPE = re.compile(r"%([0-9a-f]{2})?", re.ASCII | re.IGNORECASE)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]", re.ASCII)

_DEFAULT_PORTS = {"http": 80, "https": 443}
_BEGINNINGS = tuple(f"{scheme}://" for scheme in _DEFAULT_PORTS)


def check_identifier(text: object, what: str) -> str:
    """Return *text* if it is a valid id.

    Args:
        text: The task id or asset id.
        what: What it is, for the message.

    Raises:
        LocalError: It is not; see `is_identifier`.
    """
    if isinstance(text, str) and is_identifier(text):
        return text
    raise LocalError(
        f"{_shown_name(text)} is not a valid {what}: use 1 to {IDENTIFIER_LIMIT:,} characters, "
        "without control characters or line breaks, and neither . nor .. alone. Nothing was sent.",
        argument=what.replace(" ", "_"),
    )


def check_model_name(text: str) -> str:
    """Return *text* if it can be a model's name in a path.

    Raises:
        LocalError: It is empty or too long, or has other characters than letters, digits
            and `_ - ~ : = + @`, with single dots between them.
    """
    if is_model_name(text):
        return text
    raise LocalError(
        f"{_shown_name(text)} is not a valid model name: "
        "use letters, digits and _ - ~ : = + @, with single dots between them. Nothing was sent.",
        argument="model",
    )


def _shown_name(text: object) -> str:
    # It may be a link, whose query is a signature.
    shown = repr(_QUERY.sub(r"\1...", text) if isinstance(text, str) else text)
    return truncated(shown, 80)


def check_key(key: str) -> str:
    """Return the API key without the one line end that a key file has.

    Raises:
        LocalError: It is empty, in quotation marks, or contains white space, control or non-ASCII
            characters. The message does not contain it.
    """
    for line_end in ("\r\n", "\n"):
        if key.endswith(line_end):
            key = key[: -len(line_end)]
            break
    if not key:
        give = Remedy(kind=RemedyKind.GIVE, option="api_key", variable="MUYBRIDGE_API_KEY")
        raise LocalError("The API key is empty.", give, argument="api_key")
    if key[0] in _QUOTES or key[-1] in _QUOTES:
        raise LocalError(
            "The API key begins or ends with a quotation mark, which is not part of a key. Remove "
            "the quotation marks; the key is not shown here.",
            argument="api_key",
        )
    if not _KEY.fullmatch(key):
        raise LocalError(
            "The API key contains white space, control or non-ASCII characters, which cannot be "
            "sent. Copy it again; it is not shown here.",
            argument="api_key",
        )
    return key


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of *url*. An IPv6 address has one spelling.

    Raises:
        InvalidAddress: It lacks one of them, or contains a user name or password. Text that is not
            an http(s) URL is not quoted: it may be the API key, or contain a password.
    """
    if match := _UNSENDABLE.search(url):
        raise InvalidAddress(f"The address contains {_kind_of(match[0])}.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidAddress("The address has no valid host and port.") from None
    if not parts.netloc or parts.scheme not in _DEFAULT_PORTS:
        raise InvalidAddress("The address does not begin with https:// or http:// and a host.")
    if not _HOST.fullmatch(host):
        raise InvalidAddress("The address has no valid host.")
    if "@" in parts.netloc:
        raise InvalidAddress(f"{_shown(url)}: remove the user name and password from the address.")
    if ":" in host:
        try:
            host = spelled_ipv6(host)
        except ValueError:
            raise InvalidAddress("The address has no valid host.") from None
    return parts.scheme, host, port if port is not None else _DEFAULT_PORTS[parts.scheme]


def _kind_of(char: str) -> str:
    """Return what a character is that an address cannot have."""
    if char == "\\":
        return "a backslash"
    if char.isspace():
        return "white space"
    return "a control character" if char.isascii() else "a non-ASCII character"


def _without_login(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


@attrs.frozen(kw_only=True)
class Service:
    """The service's addresses (spec, "Addresses").

    Args:
        base_url: For images, videos and assets, or None if only text is used. It must be https
            unless its host is loopback. It is kept as RFC 3986 normalises it.
        text_base_url: For text, or None.
        allow_plain_http: Whether base_url may be plain http on any host. The key is then sent in
            clear text.
        allow_insecure_downloads: Whether results may also be downloaded by plain http and from
            private hosts. Metadata services of clouds are still refused.

    Raises:
        InvalidAddress: An address cannot be used, or there is none.
    """

    base_url: str | None = None
    text_base_url: str | None = None
    allow_plain_http: bool = False
    allow_insecure_downloads: bool = False
    _is_local: bool = attrs.field(init=False, repr=False, eq=False, default=False)
    _origins: frozenset[tuple[str, str, int]] = attrs.field(
        init=False, repr=False, eq=False, default=frozenset()
    )

    def __attrs_post_init__(self) -> None:
        if self.base_url is None and self.text_base_url is None:
            raise InvalidAddress(*_NO_BASE_URL, TEXT_ALONE, NOTHING_SENT)
        origins: set[tuple[str, str, int]] = set()
        for name in ("base_url", "text_base_url"):
            url: str | None = getattr(self, name)
            if url is None:
                continue
            scheme, host, port = _origin_of_base(url, name)
            origins.add((scheme, host, port))
            is_base = name == "base_url"
            if is_base:
                object.__setattr__(self, "_is_local", is_loopback(host))
            if is_base and not self.allow_plain_http and is_clear_text(scheme, host):
                raise InvalidAddress(
                    f"{_shown(url)} is plain http: the API key would travel in clear text.",
                    Remedy(kind=RemedyKind.USE_HTTPS),
                    Remedy(kind=RemedyKind.ALLOW, option="allow_plain_http"),
                )
            if "?" in url or "#" in url:
                raise InvalidAddress(f"{_shown(url)}: a base URL has no query and no fragment.")
            url = _spelled(scheme, host, port, urlsplit(url).path)
            if url.endswith(_VERSION):
                raise InvalidAddress(
                    f"{url}: leave out {_VERSION}, which every path begins with. Nothing was sent."
                )
            object.__setattr__(self, name, url)
        object.__setattr__(self, "_origins", frozenset(origins))

    def __str__(self) -> str:
        return str(self.base_url or self.text_base_url)

    @property
    def is_local(self) -> bool:
        """Whether base_url is on this machine."""
        return self._is_local

    def require_base_url(self) -> str:
        """Return the base URL.

        Raises:
            InvalidAddress: There is none.
        """
        if self.base_url is None:
            raise InvalidAddress(*_NO_BASE_URL, NOTHING_SENT)
        return self.base_url

    def url(self, path: str) -> str:
        """Return the absolute URL of *path*, which begins with one slash, below the base URL.

        Raises:
            InvalidAddress: There is no base URL, or the path leaves its origin or is not valid.
        """
        return _below(self.require_base_url(), path)

    def result_url(self, task_id: str) -> str:
        """Return the URL of the result query for the task *task_id*.

        Raises:
            InvalidAddress: There is no base URL.
            LocalError: It is not a valid id.
        """
        name = quote(check_identifier(task_id, "task id"), safe="")
        return f"{self.require_base_url()}/v1/result/{name}"

    def asset_url(self, asset_id: str) -> str:
        """Return the URL of the asset *asset_id*.

        Raises:
            InvalidAddress: There is no base URL.
            LocalError: It is not a valid id.
        """
        name = quote(check_identifier(asset_id, "asset id"), safe="")
        return f"{self.require_base_url()}/vidsb/asset/{name}"

    def text_url(self, path: str) -> str:
        """Return the absolute URL of *path*, which begins with one slash, below the text base URL.

        Raises:
            InvalidAddress: There is no text base URL, or the path leaves its origin.
        """
        if self.text_base_url is None:
            raise InvalidAddress(
                "There is no text base URL.",
                Remedy(
                    kind=RemedyKind.GIVE,
                    option="text_base_url",
                    variable=_VARIABLES["text_base_url"],
                ),
                NOTHING_SENT,
            )
        return _below(self.text_base_url, path)

    def owns(self, url: str) -> bool:
        """Whether *url* has one of the service's own origins. No other may get the API key."""
        for base in (self.base_url, self.text_base_url):
            if base is not None and url.startswith(f"{base}/"):
                return True  # no slash can stand before the end of an origin
        try:
            return origin_of(url) in self._origins
        except InvalidAddress:
            return False

    def gave_out(self, url: str) -> bool:
        """Whether *url* can be a link that the service gave out, if both are on this machine.

        This machine has several names, so that of the host may differ.
        """
        if self.base_url is None or not self.is_local:
            return False
        try:
            scheme, host, port = origin_of(url)
        except InvalidAddress:
            return False
        own_scheme, _, own_port = origin_of(self.base_url)
        return is_loopback(host) and (scheme, port) == (own_scheme, own_port)

    def check_download(self, url: str) -> str:
        """Return *url* in ASCII if a result may be downloaded from there.

        Raises:
            InvalidAddress: It is neither https on a public host nor on base_url's own host, and
                other addresses are not allowed.
        """
        url = ascii_url(url)
        scheme, host, _ = origin_of(url)
        is_secure = scheme == "https"
        if self.is_own_host(url):
            is_allowed = is_secure or origin_of(self.require_base_url())[0] == "http"
        elif is_metadata_host(host):
            raise InvalidAddress(
                f"{_shown(url)} is not downloaded: the host may be a cloud's metadata service, or "
                "is a number."
            )
        else:
            is_allowed = is_secure and is_public_host(host)
        if is_allowed or self.allow_insecure_downloads:
            return url
        why = "the host is private" if is_secure else "it is plain http"
        raise InvalidAddress(
            f"{_shown(url)} is not downloaded: {why}. A result that the service links to is paid "
            "for, and stays available under its id.",
            ALLOW_DOWNLOADS,
        )

    def wants_public_host(self, url: str) -> bool:
        """Whether the host of *url* must resolve to a public address."""
        return not self.allow_insecure_downloads and not self.is_own_host(url)

    def is_own_host(self, url: str) -> bool:
        """Whether *url* is on base_url's own host."""
        if self.base_url is None:
            return False
        return origin_of(url)[1].removesuffix(".") == origin_of(self.base_url)[1]


def resolve_location(url: str, location: str) -> str:
    """Return the absolute URL of a `Location` header in a response from *url*.

    Header fields are decoded as Latin-1, but a location that is UTF-8 is decoded as such.

    Raises:
        InvalidAddress: It is not a URL.
    """
    with suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    try:
        return urljoin(url, location)
    except ValueError:
        raise InvalidAddress("The redirect's address cannot be read.") from None


def _origin_of_base(url: str, name: str) -> tuple[str, str, int]:
    try:
        scheme, host, port = origin_of(url)
        return scheme, _host_of_base(host), port
    except InvalidAddress as error:
        hint = "" if url.lower().startswith(_BEGINNINGS) else f" {_SWAPPED}"
        correct = Remedy(kind=RemedyKind.CORRECT, option=name, variable=_VARIABLES[name])
        parts = (correct, f"{error}{hint}", NOTHING_SENT)
    raise InvalidAddress(*parts)


def _host_of_base(host: str) -> str:
    """Return *host* without a dot at its end.

    Raises:
        InvalidAddress: It is an IPv4 address in an old notation.
    """
    if ":" in host:
        return host
    host = host.removesuffix(".")
    if ends_in_number(host):
        try:
            IPv4Address(host)
        except ValueError:
            raise InvalidAddress(
                "The address's host is a number. Write an IPv4 address as four decimal numbers "
                "without leading zeros, such as 192.0.2.1."
            ) from None
    return host


def _spelled(scheme: str, host: str, port: int, path: str) -> str:
    """Return the base URL of these parts as RFC 3986, section 6.2, normalises it.

    The scheme and the host are in lower case already. No slash is at its end.
    """
    name = f"[{host}]" if ":" in host else host
    at = "" if port == _DEFAULT_PORTS[scheme] else f":{port}"
    kept: list[str] = []
    for segment in _ESCAPE.sub(_escaped, path).split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return f"{scheme}://{name}{at}/{'/'.join(kept)}".rstrip("/")


def _escaped(match: re.Match[str]) -> str:
    """Return an escape in upper case, or its character if that needs none.

    A percent sign that begins no escape becomes one. Otherwise, it could begin another one as soon
    as what follows it is unescaped.
    """
    if match[1] is None:
        return "%25"
    mark = chr(int(match[1], 16))
    return mark if _UNRESERVED.fullmatch(mark) else match[0].upper()


def _below(base_url: str, path: str) -> str:
    if not _PATH.fullmatch(path) or _DOTS.search(path.partition("?")[0]):
        shown = repr(without_query(path)[:80]) if re.match("/(?!/)", path) else "The argument"
        raise InvalidAddress(
            f"{shown} is not a path of the service: begin with one slash, and use no "
            "address, dot segments, white space or fragment. Nothing was sent."
        )
    return f"{base_url}{path}"


def _shown(url: str) -> str:
    return _without_login(without_query(url))
