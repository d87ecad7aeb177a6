"""Converting URLs with non-ASCII characters (RFC 3987) to the form that HTTP requires."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

from muybridge_protocol.local_errors import InvalidAddress

_PARTS: Final = r"(?s)([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)(.*)"
_ENCODED: Final = " \\"
_KEPT: Final = "".join(char for char in map(chr, range(0x80)) if char not in _ENCODED)
_LONGEST_LABEL: Final = 63
"""Most characters of one part of a host name (RFC 1035)."""


def ascii_url(url: str) -> str:
    """Return *url* in ASCII.

    Surrounding white space is removed. Spaces, backslashes and non-ASCII characters are
    percent-encoded as UTF-8 in the path and query. Non-ASCII characters in the host are encoded by
    IDNA. Existing escapes are kept. A backslash in the host stays: programs differ in which host
    that means.

    Raises:
        InvalidAddress: It contains lone surrogates, or its host is too long.
    """
    url = url.strip(" \t\r\n")
    if url.isascii() and not any(char in url for char in _ENCODED):
        return url
    parts = re.fullmatch(_PARTS, url)
    if parts is None:
        return url
    scheme, authority, rest = parts.groups()
    try:
        return f"{scheme}{'.'.join(map(_label, authority.split('.')))}{quote(rest, safe=_KEPT)}"
    except UnicodeError:
        raise InvalidAddress("The address contains characters that cannot be encoded.") from None


def _label(label: str) -> str:
    """Return a label of a host in ASCII, with any port after it.

    Only capital letters are mapped to other characters: a character that merely looks like an ASCII
    letter, a digit or a dot must not become one.
    """
    if label.isascii():
        return label
    name, mark, port = label.partition(":")
    encoded = f"xn--{unicodedata.normalize('NFC', name.lower()).encode('punycode').decode()}"
    if len(encoded) > _LONGEST_LABEL:
        raise UnicodeError("a label is too long")
    return f"{encoded}{mark}{port}"
