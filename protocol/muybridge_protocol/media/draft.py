"""The facts of a medium while its headers are read. Readers may stop at any point."""

from __future__ import annotations

import attrs

from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Damaged

LONGEST_EDGE = 2**31
"""Longer edges are a mistake of the file."""


@attrs.define
class Draft:
    """Some facts of a medium, with the meaning that they have in `MediaFacts`."""

    kind: MediaKind | None = None
    format: str | None = None
    width: int | None = None
    height: int | None = None
    turned: bool = False
    seconds: float | None = None
    credentials: bool = False
    doubt: str = ""
    missing: str = ""

    def put_size(self, width: int, height: int) -> None:
        """Note the size in pixels.

        Raises:
            Damaged: It is impossible.
        """
        if not (0 < width < LONGEST_EDGE and 0 < height < LONGEST_EDGE):
            raise Damaged(f"its header says {width}x{height} px")
        self.width, self.height = width, height
