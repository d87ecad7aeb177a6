"""Loads files to be sent within a request."""

from __future__ import annotations

import io
import os
import re
from typing import BinaryIO, Final

from muybridge.media.files import FileSource
from muybridge_protocol.arguments import check_type
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.rules.values import shown

INLINE_LIMIT: Final = 32 * MEBIBYTE
"""Most bytes of a file by default. The specification gives no limit for a request."""

LARGER: Final = Remedy(kind=RemedyKind.RAISE, option="size_limit", owner="load_media")
"""What a larger file needs, where the reader writes Python."""

_URL: Final = re.compile("(?:https?|asset):/", re.IGNORECASE)

LOADABLE: Final = (str, os.PathLike, bytes, bytearray, memoryview)
"""The types of what can be loaded, beside open files."""
LocalMedia = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""A file's path, its bytes, or a file opened for reading bytes."""


def load_media(
    source: LocalMedia,
    mime_type: str | None = None,
    *,
    allow_inline: bool = False,
    size_limit: int = INLINE_LIMIT,
) -> InlineMedia:
    """Return the content of a file, to be sent within a request.

        VidgRequest(model="vidg_video3", prompt="A horse", image_urls=[load_media("horse.png")])
        client.generate_content("textg-2.5-pro", [load_media("horse.png"), "Which gait?"])

    In a create, it stands in place of a URL; in a text request, beside the text. Its headers are
    read, so that a create checks its format, edges, length and size before anything is sent.

    The specification says of few fields of creates that they take the content of a file. Elsewhere
    a create with it is refused, unless *allow_inline* is set: the service may charge for the
    request and ignore the file. A URL, or an asset, is the safe alternative.

    Args:
        source: A path, bytes, or a file opened for reading bytes, which is read from where it is.
        mime_type: Its type, such as `image/png`, or None to detect it from the content. With a
            type, a text request takes any content.
        allow_inline: Whether it may be sent in fields for which the specification does not say
            that they take base64. Fields for which it says that they do not still refuse it.
        size_limit: Most bytes.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is empty or too large, it is a URL, or it is not a picture, video, sound or
            PDF document of a known format and has no *mime_type*.
        TypeError: It is not a file, or was opened for reading text.
    """
    check_type("allow_inline", allow_inline, bool, "True or False")
    check_type("size_limit", size_limit, int, "a number of bytes")
    name: str
    if isinstance(source, bytes | bytearray | memoryview):
        name, data = "", bytes(source)
    elif isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        _refuse_no_path(name)
        try:
            with FileSource(source) as file:
                data = file.read(0, size_limit + 1)
        except FileNotFoundError as error:
            if os.path.basename(name)[:1] != "@":  # noqa: PTH119  any path will do
                raise
            raise _missing(name, error) from None
    else:
        if not hasattr(source, "read"):
            check_type(
                "source", source, (), "a path, bytes or an open file", line_for(source, "source")
            )
        name = str(getattr(source, "name", ""))
        is_text = isinstance(source, io.TextIOBase)
        data = b"" if is_text else source.read(size_limit + 1)
        if is_text or not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  it may be a text file
            raise TypeError(f"{name or 'the file'} gives text: open it with mode 'rb'")
    name = os.path.basename(name)  # noqa: PTH119  any path will do
    if len(data) > size_limit:
        raise LocalError(
            f"{name or 'it'} has more than {size_limit:,} bytes",
            LARGER,
            accepted="put it on a server and give its URL",
        )
    return InlineMedia(data, mime_type, name=name, allow_inline=allow_inline)


def line_for(source: object, name: str) -> str:
    """Return what to write in place of `load_media(source)`, or ""; *name* is what it is called."""
    if hasattr(source, "save"):  # a picture of Pillow, which does not say in which format
        return f"{name}.save(file := io.BytesIO(), 'PNG'); load_media(file.getvalue())"
    return f"{name}.url in place of load_media({name})" if hasattr(source, "url") else ""


def _refuse_no_path(text: str) -> None:
    """Refuse what a field takes as it is, so that there is nothing to load.

    Raises:
        ValueError: It is a URL or a `data:` URI.
    """
    if _URL.match(text):  # a Path has removed the second slash
        raise LocalError(
            f"{shown(text)} is a URL, and not a file",
            accepted="use the URL itself in a create, and download it for a text request",
        )
    if text[:5].lower() == "data:":
        raise LocalError(
            f"{shown(text)} is a data: URI, and not a file",
            accepted="use the URI itself in a create, and load_media(base64.b64decode(...)) in a "
            "text request",
        )


def _missing(name: str, error: FileNotFoundError) -> FileNotFoundError:
    """Return *error*, and for the `@` of the command and of batch files, what is wrong with it."""
    why = f"{error.strerror} (write the path without @)"
    return FileNotFoundError(error.errno, why, name)
