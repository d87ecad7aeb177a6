"""How long an emulated video is, and how many tokens it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from muybridge_protocol.families import VIDC, VIDM, VIDR, Family, Media
from muybridge_protocol.families.family import LENGTH_FIELDS

REFERENCE_VIDEO_SECONDS = 5
"""How long an emulated reference video lasts: nothing is fetched, so the emulator supposes it.

The specification demands 3-10 s of a `vidc` reference video, and the output follows it.
"""

TOKENS_PER_SECOND = 1000
"""Tokens that a second of video costs here; the specification gives no price."""

ASSUMED_SECONDS: Mapping[str, int] = {VIDR.name: 4, VIDM.name: 4}
"""Default lengths by family, where the specification shows none."""

OTHER_SECONDS = 5
"""The default length of every other family whose default is not shown."""

_VIDM_RANGE = (4, 15)

_AUTOMATIC = -1
"""Stands for a length that the service chooses."""


def video_seconds(family: Family, body: Mapping[str, object]) -> float | None:
    """Return the seconds of the video that *body* asks for, or None for an image.

    Args:
        family: The family that the request is for.
        body: The request's body, which the family's rules accept.
    """
    if family.media is Media.IMAGE:
        return None
    if family.fixed_seconds is not None:
        return family.fixed_seconds
    if follows_video(family, body):
        return REFERENCE_VIDEO_SECONDS
    seconds = _asked_seconds(family, body)
    if seconds is not None:
        return seconds
    field = family.field("duration")
    default = field.service_default if field is not None else None
    return default if _is_number(default) else ASSUMED_SECONDS.get(family.name, OTHER_SECONDS)


def follows_video(family: Family, body: Mapping[str, object]) -> bool:
    """Whether the output has the length and ratio of a reference video, whatever *body* asks."""
    return family is VIDC and any(rule.overrides(body, None) for rule in family.ineffective)


def tokens(seconds: float) -> int:
    """Return the tokens that a video of *seconds* costs."""
    return round(TOKENS_PER_SECOND * seconds)


def _asked_seconds(family: Family, body: Mapping[str, object]) -> float | None:
    if family is VIDM:  # its body is not shown, so nothing has checked its duration
        low, high = _VIDM_RANGE
        seconds = body.get("duration", body.get("seconds"))
        return seconds if _is_number(seconds) and low <= seconds <= high else None
    for name in LENGTH_FIELDS:
        seconds = body.get(name)
        if family.field(name) is not None and _is_number(seconds) and seconds != _AUTOMATIC:
            return seconds
    return None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
