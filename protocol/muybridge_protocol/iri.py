"""Addresses with characters beyond ASCII (RFC 3987), as HTTP takes them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

from muybridge_protocol.errors import InvalidAddress

_PARTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)(.*)", re.DOTALL)
_KEPT: Final = "".join(map(chr, range(0x80))).replace(" ", "")
_LONGEST_LABEL: Final = 63


def ascii_url(url: str) -> str:
    """Return *url* as it is sent.

    White space around it is dropped. Path and query are percent-encoded as UTF-8 and the host's
    labels by IDNA, where they hold spaces or what is not ASCII. What is encoded already stays.

    Raises:
        InvalidAddress: It holds lone surrogates, or a host that is too long.
    """
    url = url.strip(" \t\r\n")
    found = _PARTS.fullmatch(url)
    if found is None or (url.isascii() and " " not in url):
        return url
    scheme, authority, rest = found.groups()
    try:
        return f"{scheme}{'.'.join(map(_label, authority.split('.')))}{quote(rest, safe=_KEPT)}"
    except UnicodeError:
        raise InvalidAddress("The address holds what cannot be encoded.") from None


def _label(label: str) -> str:
    """Return a label of a host, and what stands around it, in ASCII.

    Nothing is mapped to other characters but capital letters: what looks like an ASCII letter, a
    digit or a dot, and is none, must not become one.
    """
    if label.isascii():
        return label
    name, mark, port = label.partition(":")
    encoded = f"xn--{unicodedata.normalize('NFC', name.lower()).encode('punycode').decode()}"
    if len(encoded) > _LONGEST_LABEL:
        raise UnicodeError("a label is too long")
    return f"{encoded}{mark}{port}"
