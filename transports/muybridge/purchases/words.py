"""The texts of statements, as a database takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_WORD: Final = re.compile(r"\{(\w+)\}")
_VALUE: Final = re.compile(r":(\w+)")


class Texts:
    """Translates statements, each of them once.

    Args:
        words: The database's words.
        value: How it takes a value, with braces in place of the name.
    """

    def __init__(self, words: Mapping[str, str], value: str = ":{}") -> None:
        self._words = words
        self._value = value
        self._texts: dict[str, str] = {}

    def of(self, statement: str) -> str:
        """Return *statement* as the database takes it."""
        text = self._texts.get(statement)
        if text is None:
            # In our statements, a colon only ever begins a value.
            named = _VALUE.sub(lambda found: self._value.format(found[1]), statement)
            text = _WORD.sub(lambda found: self._words[found[1]], named)
            self._texts[statement] = text
        return text


def has_rows(statement: str) -> bool:
    """Whether a statement returns rows. Ours only do so if they begin with SELECT."""
    return statement.lstrip().startswith("SELECT")
