"""All 99 cases: each is a row here, is proved by a test elsewhere, or says why it does not arise.

A chapter's rows stand in `cases/`. `test_table.py` checks that none is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .cases import concurrency, files, identifiers, key, replies, transport
from .rows import Entry, Row


@attrs.frozen
class Chapter:
    """Cases that belong together.

    Attributes:
        first: The first case.
        last: The last case.
        entries: What is said of them.
    """

    first: int
    last: int
    entries: tuple[Entry, ...]

    @property
    def numbers(self) -> range:
        return range(self.first, self.last + 1)


CHAPTERS: Mapping[str, Chapter] = {
    "transport": Chapter(1, 31, transport.ROWS),
    "replies": Chapter(32, 60, replies.ROWS),
    "ids and links": Chapter(61, 71, identifiers.ROWS),
    "key": Chapter(72, 84, key.ROWS),
    "files": Chapter(85, 91, files.ROWS),
    "concurrency": Chapter(92, 99, concurrency.ROWS),
}

ROWS: tuple[Row, ...] = tuple(
    entry for chapter in CHAPTERS.values() for entry in chapter.entries if isinstance(entry, Row)
)
