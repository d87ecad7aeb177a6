"""The content of a picture, video or sound as text, to be sent within a request.

An `InlineMedia` is a string, a base64 `data:` URI, so a request, a journal and a body take it like
any URL. It differs from other strings in two ways. It knows what it contains: the rules about the
media themselves are checked together with the request's other rules, before anything is sent. And
its `repr` has its type and size but never its content, so that errors, logs and tracebacks stay
readable and private.

The specification says only for some fields that the service reads base64. For others it is silent:
the service may charge for a request and ignore the picture. There, `allow_inline` says that the
caller knows this.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NoReturn, Self

from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.records.json import readable

CONTENT_TYPES: Final[Mapping[str, str]] = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WebP": "image/webp",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "AVIF": "image/avif",
    "HEIC": "image/heic",
    "HEIF": "image/heif",
    "MP4": "video/mp4",
    "QuickTime": "video/quicktime",
    "WebM": "video/webm",
    "WAV": "audio/wav",
    "MP3": "audio/mpeg",
    "M4A": "audio/mp4",
    "WebA": "audio/webm",
}
"""The media type of each format that can be sent."""

_LONGEST_NAME = 100


class InlineMedia(str):  # noqa: SLOT000  it has a few beside megabytes
    """The content of a picture, video or sound, as a `data:` URI to be sent within a request.

    Args:
        data: The content.
        name: What messages call it, such as the name of its file.
        allow_inline: Whether it may be sent in fields for which the specification does not say
            that they take base64. The service may then charge for the request and ignore it.

    Raises:
        ValueError: It is not a picture, video or sound whose format is known.
    """

    facts: MediaFacts
    """What its headers say."""
    name: str
    """What messages call it."""
    allow_inline: bool
    """Whether it may be sent where the specification does not say that base64 is read."""

    def __new__(cls, data: bytes, *, name: str = "", allow_inline: bool = False) -> Self:
        """Encode *data*, and find out what it is."""
        facts = inspect_media(Fragments.of(data))
        name = readable(name, _LONGEST_NAME)
        if facts.defect:
            raise ValueError(f"{name or 'it'} {facts.defect}; use a picture, video or sound")
        content_type = CONTENT_TYPES.get(facts.format or "")
        if content_type is None:
            known = ", ".join(CONTENT_TYPES)
            raise ValueError(f"{name or 'it'} has the format {facts.format}; use one of: {known}")
        text = base64.b64encode(data).decode("ascii")
        media = super().__new__(cls, f"data:{content_type};base64,{text}")
        vars(media).update(facts=facts, name=name, allow_inline=allow_inline)
        return media

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("inline media are frozen")

    @property
    def content_type(self) -> str:
        """Its media type, such as `image/png`."""
        return self[len("data:") : self.index(";")]

    def to_bytes(self) -> bytes:
        """Return the content."""
        return base64.b64decode(self[self.index(",") + 1 :])

    def __repr__(self) -> str:
        return f"<{self.name}: {self.facts}>" if self.name else f"<{self.facts}>"

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(type(self), name=self.name, allow_inline=self.allow_inline)
        return make, (self.to_bytes(),)
