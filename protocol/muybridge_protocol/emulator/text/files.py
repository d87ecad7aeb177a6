"""Describe a file inside a request as the library recognizes it."""

from __future__ import annotations

from muybridge_protocol.media.facts import UNKNOWN_FORMAT
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Fragments

_NOUNS = {MediaKind.IMAGE: "picture", MediaKind.VIDEO: "video", MediaKind.SOUND: "sound"}


def describe(data: bytes) -> str:
    """Return the kind and size of *data*: `a PNG picture of 4x3 pixels, 68 bytes`."""
    size = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
    facts = inspect_media(Fragments.of(data))
    if facts.format in (None, UNKNOWN_FORMAT):
        return size
    # Only a film's tables say whether it has pictures; without them, it is called a video.
    noun = "video" if facts.kind is None else _NOUNS[facts.kind]
    name = facts.format or ""
    article = "an" if name.startswith(("A", "M4", "MP")) else "a"
    described = f"{article} {name} {noun}"
    if facts.kind is MediaKind.IMAGE and facts.width is not None and facts.height is not None:
        described += f" of {facts.width}x{facts.height} pixels"
    elif facts.seconds is not None:
        described += f" of {facts.seconds:.6g} s"
    return f"{described}, {size}"
