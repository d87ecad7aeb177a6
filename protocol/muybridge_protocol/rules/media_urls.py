"""The rule for fields that point to a picture, video or sound, or contain one."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import urlsplit

import attrs

from muybridge_protocol.hosts import is_public_host
from muybridge_protocol.rules.values import either, is_array, shown

# Not compiled here, because that takes 1 ms of the start; `re` caches them.
_ABSOLUTE_URL = r"(?ai:https?)://[^\s/?#\x00-\x1f\x7f]+[^\s\x00-\x1f\x7f]*"
_ASSET = r"asset://[^\s\x00-\x1f\x7f]{1,1024}"
_DATA_URI = r"(?ai:data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/_-]+={0,2})"
LEAST_BASE64 = 64
"""Shortest text that is recognized as plain base64, in characters."""
_BARE_BASE64 = rf"[A-Za-z0-9+/]{{{LEAST_BASE64},}}={{0,2}}"
# How base64 of PNG, JPEG, GIF, WebP (RIFF), BMP and TIFF begins. Without this check, a path of
# letters and slashes would be taken for base64.
IMAGE_BEGINNINGS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk", "SUkq", "TU0A")


@attrs.frozen(kw_only=True)
class MediaUrl:
    """The string, or each string of the array, points to a picture, video or sound.

    Args:
        base64: Whether it may be the media itself, as a `data:` URI.
        bare_base64: Whether it may also be plain base64.
        assets: Whether `asset://<id>` is accepted.
        public: Whether the service requires a public URL, so that hosts which only this machine or
            network can reach are rejected.
    """

    name: ClassVar[str] = "media_url"
    base64: bool = True
    bare_base64: bool = False
    assets: bool = False
    public: bool = False

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        forms = ["a public http(s) URL" if self.public else "an http(s) URL"]
        if self.assets:
            forms.append("asset://<id>")
        if self.base64:
            forms.append("a data:...;base64 URI")
        if self.bare_base64:
            forms.append("plain base64")
        return f"use {either(forms)}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        items = [value] if isinstance(value, str) else value
        if not is_array(items):
            return f"{shown(value)} is not a URL"
        for item in items:
            complaint = self._complaint(item) if isinstance(item, str) else "not a string"
            if complaint:
                return complaint
        return None

    def _complaint(self, url: str) -> str | None:
        if url[:8].lower() == "asset://":
            if not self.assets:
                return f"{shown(url)}: assets are not accepted here"
            return None if re.fullmatch(_ASSET, url) else f"{shown(url)} is not asset://<id>"
        if url[:5].lower() == "data:":
            if not self.base64:
                return "base64 media is not accepted here"
            found = re.fullmatch(_DATA_URI, url)
            return None if found else f"{shown(url)} is not a base64 data: URI"
        if re.fullmatch(_ABSOLUTE_URL, url):
            host = _host_of(url)
            if host is None:
                return f"{shown(url)} names no host"
            if self.public and not is_public_host(host):
                return f"{shown(url)} is not a public address"
            return None
        if url.startswith(IMAGE_BEGINNINGS) and re.fullmatch(_BARE_BASE64, url):
            return None if self.bare_base64 else "plain base64 is not accepted here"
        return f"{shown(url)} is not a URL"


def _host_of(url: str) -> str | None:
    """Return the URL's host, or None if it has none or its port is invalid."""
    try:
        parts = urlsplit(url)
        host, sound = parts.hostname or "", parts.port is not None or parts.netloc[-1:] != ":"
    except ValueError:
        return None
    return host if sound and any(map(str.isalnum, host)) else None
