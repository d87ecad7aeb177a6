"""Names: under which a request is paid for once.

A caller gives a name (`once NAME`), or identical requests share one. Those with the same tags share
`same DIGEST TAGS`, and those that join whatever their tags `same DIGEST`. Both kinds know each
other: a request joins every purchase that it would have joined under its own kind of name.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Literal

import attrs

ONCE: Final = "once"
SAME: Final = "same"
AcrossTags = Literal["across-tags"]
ACROSS_TAGS: Final[AcrossTags] = "across-tags"
Dedupe = bool | AcrossTags
"""Whether identical requests with the same tags join, or all, whatever their tags."""
_WITH_TAGS: Final = 4
"""Words of the name that identical requests with the same tags share."""


@attrs.frozen
class Identity:
    """What identical requests have in common.

    Args:
        digest: The family and the digest of the request.
        tags: The digest of their tags, or None if they join whatever their tags.
    """

    digest: str
    tags: str | None = None

    @classmethod
    def of(cls, digest: str, tags: Sequence[str]) -> Identity:
        """Return that of requests with the same *tags*."""
        return cls(digest, sha256("\n".join(sorted(tags)).encode()).hexdigest())

    @classmethod
    def in_name(cls, name: str) -> Identity | None:
        """Return that of the requests which share *name*, or None if a caller gave it."""
        words = name.split(" ")
        if words[0] != SAME:
            return None
        tags = words.pop() if len(words) == _WITH_TAGS else None
        return cls(" ".join(words[1:]), tags)

    @property
    def name(self) -> str:
        """The name that they share."""
        return " ".join(filter(None, (SAME, self.digest, self.tags)))
