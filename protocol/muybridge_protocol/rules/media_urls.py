"""The rule for fields that point to a picture, video or sound, or contain one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import ClassVar, Final
from urllib.parse import urlsplit

import attrs

from muybridge_protocol.hosts import has_public_name, is_loopback
from muybridge_protocol.media.formats import FORMATS
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.rules.values import either, is_array, shown

# Without flags and classes such as `\s`, so that the OpenAPI document can have the same patterns.
# They are not compiled here, because that takes 1 ms of the start; `re` caches them.
SPACE: Final = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters for which `str.isspace` is true, for use in a set."""
_CONTROL = "\x00-\x1f\x7f"
_MARK = f"[^{SPACE}{_CONTROL}]"
URL: Final = f"[Hh][Tt][Tt][Pp][Ss]?://[^{SPACE}{_CONTROL}/?#]{_MARK}*"
ASSET: Final = f"asset://{_MARK}{{1,1024}}"
DATA_URI: Final = (
    "[Dd][Aa][Tt][Aa]:[A-Za-z]+/[A-Za-z0-9.+-]+;[Bb][Aa][Ss][Ee]64,[A-Za-z0-9+/_-]+={0,2}"
)
ALLOW_INLINE: Final = Remedy(kind=RemedyKind.ALLOW, option="allow_inline", owner="load_media")
"""How a file is sent where the specification does not say that files are read."""
LEAST_BASE64 = 64
"""Shortest text that is recognized as plain base64, in characters."""
# Without this check, a path of letters and slashes would be taken for base64.
IMAGE_BEGINNINGS: Final = tuple(
    b64encode(mark).decode()[: len(mark) * 8 // 6]  # the last character depends on what follows
    for name in ("PNG", "JPEG", "GIF", "WebP", "BMP", "TIFF")
    for mark in FORMATS[name].marks
)
"""How base64 of the pictures begins that fields take in this form."""
BARE_BASE64: Final = "(?:{})={{0,2}}".format(
    "|".join(f"{first}[A-Za-z0-9+/]{{{LEAST_BASE64 - len(first)},}}" for first in IMAGE_BEGINNINGS)
)


@attrs.frozen(kw_only=True)
class MediaUrl:
    """The string, or each string of the array, points to a picture, video or sound.

    Args:
        base64: Whether it may be the media itself, as a `data:` URI.
        bare_base64: Whether it may also be plain base64.
        base64_stated: Whether the specification says that the service reads base64 here. Elsewhere
            it is silent, so a local file is only sent if its user has said so.
        assets: Whether `asset://<id>` is accepted.
        kind: What it is.
        public: Whether the service requires a public URL, so that hosts which only this network
            can reach are rejected. URLs on this machine are left to `out_of_reach`.
    """

    name: ClassVar[str] = "media_url"
    base64: bool = True
    bare_base64: bool = False
    base64_stated: bool = False
    assets: bool = False
    public: bool = False
    kind: MediaKind = MediaKind.IMAGE

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return f"use {self.form}"

    @property
    def form(self) -> str:
        """How an accepted value is written."""
        forms = self._addresses()
        if self.base64:
            forms.append("a data:...;base64 URI")
        if self.bare_base64:
            forms.append("plain base64")
        return either(forms)

    def accepted_instead_of(self, value: object) -> tuple[str, tuple[Remedy, ...]]:
        """Return what the rule accepts in place of *value*, which it refuses, and the remedies."""
        items = value if is_array(value) else (value,)
        if self.base64 and any(isinstance(item, InlineMedia) for item in items):
            return f"use {either(self._addresses())}", (ALLOW_INLINE,)
        return self.accepted, ()

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        items = value if is_array(value) else (value,)
        for item in items:
            if isinstance(item, InlineMedia):
                complaint = self._complaint_of_file(item)
            else:
                complaint = (
                    self._complaint(item)
                    if isinstance(item, str)
                    else f"{shown(value)} is not a URL"
                )
            if complaint:
                return complaint
        return None

    def out_of_reach(self, value: object, own: Callable[[str], bool]) -> str | None:
        """Return which URL in *value* is on this machine and none of the service's own, or None.

        Args:
            value: The URL, or the array of them.
            own: Whether a URL on this machine is one that the service gave out.
        """
        for item in value if is_array(value) else (value,):
            if self.public and isinstance(item, str) and re.fullmatch(URL, item):
                host = _host_of(item)
                if host is not None and is_loopback(host) and not own(item):
                    return _not_public(item)
        return None

    def _addresses(self) -> list[str]:
        """Return the kinds of addresses that are accepted."""
        http = "a public http(s) URL" if self.public else "an http(s) URL"
        return [http, "asset://<id>"] if self.assets else [http]

    def _complaint(self, url: str) -> str | None:
        if url[:8].lower() == "asset://":
            if not self.assets:
                return f"{shown(url)}: assets are not accepted here"
            return None if re.fullmatch(ASSET, url) else f"{shown(url)} is not asset://<id>"
        if url[:5].lower() == "data:":
            if not self.base64:
                return "base64 media is not accepted here"
            match = re.fullmatch(DATA_URI, url)
            return None if match else f"{shown(url)} is not a base64 data: URI"
        if re.fullmatch(URL, url):
            host = _host_of(url)
            if host is None:
                return f"{shown(url)} names no host"
            # Whether the service can reach this machine is not known yet: see `out_of_reach`.
            is_open = not self.public or is_loopback(host) or has_public_name(host)
            return None if is_open else _not_public(url)
        if re.fullmatch(BARE_BASE64, url):
            return None if self.bare_base64 else "plain base64 is not accepted here"
        return f"{shown(url)} is not a URL"

    def _complaint_of_file(self, media: InlineMedia) -> str | None:
        """Return what is wrong with a loaded file, or None."""
        if not self.base64:
            return f"{media!r}: this field takes no files"
        if media.why_unknown:
            return f"{media!r} {media.why_unknown}"
        if self.base64_stated or media.allow_inline:
            return None
        return (
            f"{media!r}: the specification does not say that the service reads files in this "
            "field, so it may charge for the request and ignore the file"
        )


def _not_public(url: str) -> str:
    return f"{shown(url)} is not a public address"


def _host_of(url: str) -> str | None:
    """Return the URL's host, or None if it has none or its port is invalid."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # `port` raises `ValueError` for text that is not a number. It is None for an empty port as
        # well as for a missing one, so a trailing colon is checked separately.
        is_port_good = parts.port is not None or parts.netloc[-1:] != ":"
    except ValueError:
        return None
    return host if is_port_good and any(map(str.isalnum, host)) else None
