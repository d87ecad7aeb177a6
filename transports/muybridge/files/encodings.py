"""How the text of a user's file is encoded.

Everything here is UTF-8. But what Windows' PowerShell 5 redirects, and what its Notepad saves as
"Unicode", is UTF-16 with a byte order mark. No UTF-8 begins with those bytes.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

UTF_8: Final = "utf-8-sig"
UTF_16: Final = "utf-16"


def encoding_of(beginning: bytes) -> str:
    """Return the encoding of a text that begins with *beginning*."""
    marked = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return UTF_16 if marked else UTF_8


def encoding_of_file(path: Path) -> str:
    """Return the encoding of the text in the file at *path*.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return encoding_of(file.read(2))
