"""Pictures, videos and sounds."""

from __future__ import annotations

from enum import StrEnum


class MediaKind(StrEnum):
    """What a field takes, and what a file is."""

    IMAGE = "image"
    VIDEO = "video"
    SOUND = "sound"
