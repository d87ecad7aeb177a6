"""Small copies of a batch's pictures, for its contact sheet.

They need Pillow. Without it, and for a picture that Pillow cannot read, the sheet shows the picture
itself. A thumbnail is made when its result is saved, so that a sheet of 5,000 items does not have
to wait for them. It is a convenience: if one cannot be made, nothing is reported.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from muybridge.media.files import inspect_file
from muybridge.signals import genuine, ignoring_errors
from muybridge_protocol.media.facts import MediaFacts

FOLDER: Final = "thumbnails"
"""Where they are, below the folder of the batch's own files: no file there is the user's."""
SIDE: Final = 480
"""Longest side in pixels: twice that of a card on the sheet, for dense screens."""
MOST_PIXELS: Final = 40_000_000
"""Pixels of the largest picture that is decoded, which takes 4 bytes for each: 160 MB."""
_FORMATS: Final = ("JPEG", "PNG", "WebP")
_ONE_AT_A_TIME: Final = threading.Lock()
"""However many results arrive together, only one of them is decoded: that bounds the memory."""


def thumbnail_name(number: int) -> str:
    """Return the name of an item's thumbnail: its number, as its own name may be any text."""
    return f"{number}.webp"


def make_thumbnail(picture: Path, thumbnail: Path) -> None:
    """Write the thumbnail of *picture*, whole or not at all, unless it is small anyway."""
    new = thumbnail.with_suffix(f".{os.getpid()}.new")
    try:
        facts = inspect_file(picture)
        if facts.format in _FORMATS and _is_worth_it(facts):
            thumbnail.parent.mkdir(exist_ok=True)
            with _ONE_AT_A_TIME:
                _write(picture, facts.format, new)
            new.replace(thumbnail)
    except genuine(Exception):
        # There is no Pillow, no room on the disk, or no picture in the file.
        with ignoring_errors(OSError):
            new.unlink(missing_ok=True)


def _is_worth_it(facts: MediaFacts) -> bool:
    width, height = facts.width or 0, facts.height or 0
    return max(width, height) > SIDE and width * height <= MOST_PIXELS


def _write(picture: Path, kind: str, new: Path) -> None:
    from PIL import Image, ImageOps

    with Image.open(picture, formats=(kind.upper(),)) as image:
        if image.width * image.height > MOST_PIXELS:  # it may read another header than `facts`
            return
        image.thumbnail((SIDE, SIDE))
        turned = ImageOps.exif_transpose(image)
        mode = "RGBA" if turned.has_transparency_data else "RGB"
        turned.convert(mode).save(new, "WEBP", quality=80)
