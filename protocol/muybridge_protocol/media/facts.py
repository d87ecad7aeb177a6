"""What is known about one picture, video or sound."""

from __future__ import annotations

import attrs

from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.remedies import Remedy

__all__ = ["UNKNOWN_FORMAT", "MediaFacts", "MediaKind"]

UNKNOWN_FORMAT = "unknown"
"""The format of data that begins like nothing that is known here."""


@attrs.frozen(kw_only=True)
class MediaFacts:
    """What the headers of a picture, video or sound say. None means that it could not be found out.

    Args:
        kind: What it is.
        format: Its format, such as `JPEG` or `MP4`, or `unknown`.
        width: Width in pixels, as it is stored.
        height: Height in pixels, as it is stored.
        turned: Whether a note in it says that it is shown turned by 90 degrees.
        seconds: How long it lasts.
        credentials: Whether Content Credentials (C2PA) were found in it. They are not verified.
        bytes: Its size.
        defect: Why it is certainly unusable, such as `is truncated`, or "".
        doubt: Why it may be unusable, or "".
        missing: Why the rest could not be found out, or "".
        remedies: What to do to find it out.
    """

    kind: MediaKind | None = None
    format: str | None = None
    width: int | None = None
    height: int | None = None
    turned: bool = False
    seconds: float | None = None
    credentials: bool = False
    bytes: int | None = None
    defect: str = ""
    doubt: str = ""
    missing: str = ""
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        parts = [self.format or str(self.kind or "")]
        if self.width is not None and self.height is not None:
            parts.append(f"{self.width}x{self.height} px")
        if self.seconds is not None:
            parts.append(f"{self.seconds:.6g} s")
        if self.credentials:
            parts.append("with Content Credentials")
        text = ", ".join(part for part in parts if part)
        return text if self.bytes is None else f"{text} ({self.bytes:,} bytes)".lstrip()
