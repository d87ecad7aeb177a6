"""Loads files as parts of a text request."""

from __future__ import annotations

import mimetypes
import os
import re
from pathlib import Path

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


def load_part(path: str | os.PathLike[str], mime_type: str | None = None) -> Part:
    """Return a part with the content of the file at *path*, for a model to look at.

    Args:
        path: An image or a video.
        mime_type: Its type, or None to detect it from the file's first bytes or else its name.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty, or its type cannot be detected.
    """
    data = Path(path).read_bytes()
    if not data:
        raise ValueError(f"{os.fspath(path)} is empty")
    found = mime_type or _told_by_content(data) or _told_by_name(Path(path).name)
    if found is None:
        raise ValueError(
            f"cannot detect the type of {os.fspath(path)}; give mime_type, such as image/png"
        )
    return Part.from_bytes(data, found)


def _told_by_content(data: bytes) -> str | None:
    for beginning, mime_type in _BEGINNINGS:
        if beginning.match(data):
            return mime_type
    return None


def _told_by_name(name: str) -> str | None:
    mime_type, packed = mimetypes.guess_type(name)
    return None if packed else mime_type
