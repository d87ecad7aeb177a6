"""The content of a file as a value, to be sent within a request.

A file is not text, so an `InlineMedia` is no string: each place that takes files writes it in its
own form, and every text refuses it. Sent as text, a photo would be paid for as a million tokens.

An `InlineMedia` knows what it contains: the rules about the media themselves are checked together
with the request's other rules, before anything is sent. Its `repr` has its type and size but never
its content, so that errors, logs and tracebacks stay readable and private.

The specification says only for some fields of creates that the service reads base64. For others it
is silent: the service may charge for a request and ignore the picture. There, `allow_inline` says
that the caller knows this.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.media.formats import CONTENT_TYPES, PDF
from muybridge_protocol.records.json import readable
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.rules.values import shown

if TYPE_CHECKING:
    from muybridge_protocol.media.facts import MediaFacts

MIME_TYPE: Final = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.ASCII | re.IGNORECASE)
"""A media type, as requests take it."""
TYPED: Final = Remedy(kind=RemedyKind.GIVE, option="mime_type", owner="load_media")
"""What else those can do who load a file of an unknown format."""

_MEDIA: Final = "use a picture, video or sound"

LOAD: Final = "muybridge.load_media(path)"
"""How a file becomes a value that requests take."""
AS_TEXT: Final = f"use {LOAD}.data_uri() to send a file as text"
"""What to do with a file in a place that only takes JSON."""

_NO_TEXT: Final = (
    f"A file cannot be part of a string. Put it beside the text, as in [{LOAD}, text], or into a "
    "field for media, as in image_urls=[...]; its repr() is a description for logs"
)
_LONGEST_NAME = 100


class InlineMedia:
    """The content of a picture, video, sound or document, to be sent within a request.

    Two of them are equal if their content and its type are.

    Args:
        data: The content.
        mime_type: Its type, such as `image/png`, or None to detect it. With a type, any content is
            taken; the fields of creates still take only media whose format is known.
        name: What messages call it, such as the name of its file.
        allow_inline: Whether it may be sent in fields for which the specification does not say
            that they take base64. The service may then charge for the request and ignore it.

    Raises:
        ValueError: It is empty, or *mime_type* is None and it is not a picture, video, sound or PDF
            document whose format is known.
    """

    __slots__ = ("allow_inline", "data", "facts", "mime_type", "name")

    data: bytes
    """The content."""
    mime_type: str
    """Its type, such as `image/png`."""
    facts: MediaFacts
    """What its headers say."""
    name: str
    """What messages call it."""
    allow_inline: bool
    """Whether it may be sent where the specification does not say that base64 is read."""

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        mime_type: str | None = None,
        *,
        name: str = "",
        allow_inline: bool = False,
    ) -> None:
        from muybridge_protocol.media.inspect import IS_PDF, inspect_media
        from muybridge_protocol.media.source import Fragments

        data = bytes(data)
        facts = inspect_media(Fragments.of(data))
        name = readable(name, _LONGEST_NAME)
        subject = name or "it"
        if not data:
            raise LocalError(f"{subject} is empty", accepted=_MEDIA)
        if mime_type is None:
            mime_type = CONTENT_TYPES.get(facts.format or "")
            if facts.defect == IS_PDF:
                mime_type = PDF.content_type
            elif facts.defect:
                typed = () if mime_type else (TYPED,)
                raise LocalError(f"{subject} {facts.defect}", *typed, accepted=_MEDIA)
            elif mime_type is None:
                types = ", ".join(CONTENT_TYPES)
                raise LocalError(
                    f"{subject} has the format {facts.format}",
                    TYPED,
                    accepted=f"use one of: {types}",
                )
        elif not MIME_TYPE.fullmatch(mime_type):
            raise LocalError(
                f"{readable(repr(mime_type), 80)} is not a media type",
                accepted="use one such as image/png",
            )
        mime_type = mime_type.lower()  # however it is written, it is the same request
        for attribute, value in (
            ("data", data),
            ("mime_type", mime_type),
            ("facts", facts),
            ("name", name),
            ("allow_inline", allow_inline),
        ):
            object.__setattr__(self, attribute, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("inline media are frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("inline media are frozen")

    @property
    def why_unknown(self) -> str:
        """Why its format is not a known one of pictures, videos or sounds, for messages, or ""."""
        if self.facts.defect or self.facts.format in CONTENT_TYPES:
            return self.facts.defect
        return f"has the format {self.facts.format}"

    def base64(self) -> str:
        """Return the content as base64."""
        return b64encode(self.data).decode("ascii")

    def data_uri(self) -> str:
        """Return the content as a base64 `data:` URI, as it is sent in place of a URL."""
        return f"data:{self.mime_type};base64,{self.base64()}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InlineMedia):
            return NotImplemented
        return (self.mime_type, self.data) == (other.mime_type, other.data)

    def __hash__(self) -> int:
        return hash((self.mime_type, self.data))

    def __repr__(self) -> str:
        size = f" ({len(self.data):,} bytes)"
        description = (
            self.facts if self.facts.format in CONTENT_TYPES else f"{self.mime_type}{size}"
        )
        return f"<{self.name}: {description}>" if self.name else f"<{description}>"

    def __str__(self) -> NoReturn:
        raise TypeError(_NO_TEXT)

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError(_NO_TEXT)

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(type(self), name=self.name, allow_inline=self.allow_inline)
        return make, (self.data, self.mime_type)


def is_file(value: object) -> bool:
    """Whether *value* is a file: a loaded one, a path, bytes, an open file or a Pillow image."""
    return isinstance(value, InlineMedia | bytes | bytearray | memoryview) or any(
        hasattr(value, name) for name in ("__fspath__", "read", "tobytes")
    )


def load_line(file: object) -> str:
    """Return how to load *file*, a path, bytes, an open file or a Pillow image."""
    if hasattr(file, "__fspath__"):
        path = str(file)
        if len(path) > _LONGEST_NAME:
            return LOAD
        return f"muybridge.load_media({shown(path, limit=2 * _LONGEST_NAME)})"
    if hasattr(file, "tobytes") and hasattr(file, "save"):
        saved = "image.save(file := io.BytesIO(), 'PNG')"
        return f"muybridge.load_media(file.getvalue()) after {saved}"
    if isinstance(file, bytes | bytearray | memoryview):
        return "muybridge.load_media(data)"
    return "muybridge.load_media(file)" if hasattr(file, "read") else LOAD


def link_of(item: object, name: str) -> str:
    """Return the code for the link *name* of *item*, or "" if it is neither a task nor a result."""
    if hasattr(item, "image_url"):
        return f"result.{name}"
    if hasattr(item, "result"):
        return f"outcome.result.{name}"
    return f"client.wait(task).{name}" if hasattr(item, "to_token") else ""


def file_within(value: object) -> object | None:
    """Return the first file in *value*, or None if there is none."""
    if is_file(value):
        return value
    items: Iterable[object] = ()
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).values()
    elif isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
    try:
        return next(filter(None, map(file_within, items)), None)
    except RecursionError:
        return None
