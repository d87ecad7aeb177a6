"""Loads files as parts of a text request."""

from __future__ import annotations

import mimetypes
import os
import re
from pathlib import Path

from muybridge.files.inline_media import INLINE_LIMIT
from muybridge_protocol.text.content import Part

_BEGINNINGS = tuple(
    (re.compile(beginning, re.DOTALL), mime_type)
    for beginning, mime_type in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8", "image/gif"),
        (rb"RIFF....WEBP", "image/webp"),
        (rb"....ftypavi[fs]", "image/avif"),
        (rb"....ftyp(hei[cx]|mif1)", "image/heic"),
        (rb"....ftypqt", "video/quicktime"),
        (rb"....ftyp", "video/mp4"),
        (rb"\x1aE\xdf\xa3.{,60}webm", "video/webm"),
    )
)
"""How files of each type begin. The first match counts."""


_SURE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types whose files always begin in one of these ways."""


def load_part(
    path: str | os.PathLike[str], mime_type: str | None = None, *, size_limit: int = INLINE_LIMIT
) -> Part:
    """Return a part with the content of the file at *path*, for a model to look at.

    Args:
        path: An image or a video.
        mime_type: Its type, or None to detect it from the file's first bytes or else its name.
        size_limit: Most bytes.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty or too large, its type cannot be detected, or it is not what
            its name says.
    """
    name = os.fspath(path)
    with Path(path).open("rb") as file:
        data = file.read(size_limit + 1)
    if not data:
        raise ValueError(f"{name} is empty")
    if len(data) > size_limit:
        raise ValueError(f"{name} has more than {size_limit:,} bytes: make it smaller")
    if mime_type is not None:
        return Part.from_bytes(data, mime_type)
    found = _told_by_content(data)
    if found is None:
        found = _told_by_name(Path(path).name)
        if found in _SURE:
            raise ValueError(f"{name} is not {found}, although its name says so; give mime_type")
    if found is None:
        raise ValueError(f"cannot detect the type of {name}; give mime_type, such as image/png")
    return Part.from_bytes(data, found)


def _told_by_content(data: bytes) -> str | None:
    for beginning, mime_type in _BEGINNINGS:
        if beginning.match(data):
            return mime_type
    return None


def _told_by_name(name: str) -> str | None:
    mime_type, packed = mimetypes.guess_type(name)
    return None if packed else mime_type
