"""Files as parts of a text request."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path

from muybridge_protocol.text.content import Part

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"\x1aE\xdf\xa3", 0, "video/webm"),
    (b"ftypqt", 4, "video/quicktime"),
    (b"ftyp", 4, "video/mp4"),
)
"""How files of each type begin, and at which byte. The first that fits counts."""


def load_part(path: str | os.PathLike[str], mime_type: str | None = None) -> Part:
    """Return the part that holds the file at *path*, for a model to look at.

    Args:
        path: An image or a video.
        mime_type: Its type, or None to tell it from the file's first bytes, or else its name.

    Raises:
        OSError: It cannot be read.
        ValueError: It is empty, or its type cannot be told.
    """
    data = Path(path).read_bytes()
    if not data:
        raise ValueError(f"{os.fspath(path)} is empty")
    found = mime_type or _type_of(data) or mimetypes.guess_type(os.fspath(path))[0]
    if found is None:
        raise ValueError(
            f"what {os.fspath(path)} is cannot be told; give mime_type, such as image/png"
        )
    return Part.from_bytes(data, found)


def _type_of(data: bytes) -> str | None:
    for beginning, place, mime_type in _BEGINNINGS:
        if data.startswith(beginning, place):
            return mime_type
    return None
