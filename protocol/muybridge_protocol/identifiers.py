"""Which texts are valid ids of tasks and assets, and valid names of models."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

IDENTIFIER_LIMIT: Final = 1024
"""Longest id that is queried, in characters, because servers limit the length of a path."""
_MODEL_NAME_LIMIT: Final = 256
_NEVER_IN_IDS: Final = frozenset({"Cc", "Zl", "Zp", "Cs"})
"""Unicode's categories of control characters, line breaks and lone surrogates."""
# Not compiled here, because few programs use it; `re` caches it.
_PLAIN: Final = r"[A-Za-z0-9_~:=+@-]+(?:\.[A-Za-z0-9_~:=+@-]+)*"


def is_printable_id(text: str) -> bool:
    """Whether *text* is an id of any length that can be shown and stored unchanged."""
    if text in ("", ".", ".."):
        return False
    return text.isprintable() or _NEVER_IN_IDS.isdisjoint(map(category, text))


def is_identifier(text: object) -> bool:
    """Whether *text* is a valid task id or asset id.

    That is any text of 1 to 1,024 characters, except `.`, `..` and texts with control characters,
    line breaks or lone surrogates.
    """
    return isinstance(text, str) and len(text) <= IDENTIFIER_LIMIT and is_printable_id(text)


def is_model_name(text: str) -> bool:
    """Whether *text* can be a model's name in a path."""
    return len(text) <= _MODEL_NAME_LIMIT and re.fullmatch(_PLAIN, text) is not None


def shown_id(text: str) -> str:
    """Return the id *text* for a message: unchanged if it is plain, else quoted and escaped."""
    return text if re.fullmatch(_PLAIN, text) else repr(text)
