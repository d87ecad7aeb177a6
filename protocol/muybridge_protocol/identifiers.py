"""What may be the id of a task or an asset, or the name of a model."""

from __future__ import annotations

import re
from typing import Final

IDENTIFIER_LIMIT: Final = 1024
"""Most characters of an id that is asked for: servers bound the length of a path."""
_MODEL_NAME_LIMIT: Final = 256
_NEVER_IN_IDS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, line breaks and lone surrogates."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_~:=+@-]+(?:\.[A-Za-z0-9_~:=+@-]+)*", re.ASCII)


def is_printable_id(text: str) -> bool:
    """Whether *text* may be an id of any length: one that can be shown and stored as it is."""
    return text not in ("", ".", "..") and not _NEVER_IN_IDS.search(text)


def is_identifier(text: object) -> bool:
    """Whether *text* may be a task id or an asset id.

    That is any text of 1 to 1,024 characters but `.`, `..` and what holds control characters,
    line breaks or lone surrogates.
    """
    return isinstance(text, str) and len(text) <= IDENTIFIER_LIMIT and is_printable_id(text)


def is_model_name(text: str) -> bool:
    """Whether *text* may stand in a path as a model's name."""
    return len(text) <= _MODEL_NAME_LIMIT and _PLAIN.fullmatch(text) is not None


def shown_id(text: str) -> str:
    """Return the id *text* for a message: as it is if it is plain, else quoted and escaped."""
    return text if _PLAIN.fullmatch(text) else repr(text)
