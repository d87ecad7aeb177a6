"""How large and how long a local result is, from what was asked for and the service's defaults.

The specification leaves these open:

- images: the longer edge has 1024 px for `1k`, 2048 px for `2k` and 3840 px for `4k`;
- videos: the shorter edge has as many pixels as the resolution's number, 2160 px for `4K`; a
  family that shows no resolution makes 720p;
- `adaptive` is 16:9, and so are `vidsa` and `vidm` where they are asked for nothing else;
- `imga` makes squares unless the request has a ratio;
- a `vidc` reference video, which is not fetched, is assumed to have the family's default ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import attrs

from muybridge_protocol.emulator.lengths import follows_video, video_seconds
from muybridge_protocol.families import IMGB, VIDR, VIDSA, Family, Media
from muybridge_protocol.rules.values import parse_pixel_size

_LONG_EDGES = {"1k": 1024, "2k": 2048, "4k": 3840}
_SHORT_EDGES = {"480p": 480, "540p": 540, "720p": 720, "1080p": 1080, "4k": 2160}

_RATIOS = {
    f"{width}:{height}": Fraction(width, height)
    for one, other in ((1, 1), (16, 9), (4, 3), (3, 2), (5, 4), (2, 1), (21, 9))
    for width, height in ((one, other), (other, one))
}


@attrs.frozen
class Dimensions:
    """The dimensions of a result.

    Args:
        width: Width in pixels; even for a video.
        height: Height in pixels; even for a video.
        seconds: Length of a video, or None for an image.
        sound: Whether there is sound.
    """

    width: int
    height: int
    seconds: float | None = None
    sound: bool = False


def dimensions(family: Family, body: Mapping[str, object]) -> Dimensions:
    """Return the dimensions of the result of a request.

    Args:
        family: The family that the request is for.
        body: The request's body, which the family's rules accept.
    """
    width, height = _exact_size(family, body) or _size(family, body)
    return Dimensions(
        width,
        height,
        video_seconds(family, body),
        sound=family.makes_audio and body.get("generateAudio") is not False,
    )


def _exact_size(family: Family, body: Mapping[str, object]) -> tuple[int, int] | None:
    """Return the pixels that `size` names, in the two families where it names pixels."""
    size = body.get("size")
    if family is VIDR and "aspect_ratio" not in body:
        size = size or _default(family, "size")
    if family in (IMGB, VIDR) and isinstance(size, str):
        return parse_pixel_size(size)
    return None


def _size(family: Family, body: Mapping[str, object]) -> tuple[int, int]:
    ratio = _ratio(family, body)
    if family.media is Media.IMAGE:
        edge = _LONG_EDGES.get(_resolution(family, body), _LONG_EDGES["1k"])
        return (edge, round(edge / ratio)) if ratio >= 1 else (round(edge * ratio), edge)
    edge = _SHORT_EDGES.get(_resolution(family, body), _SHORT_EDGES["720p"])
    return (_even(edge * ratio), edge) if ratio >= 1 else (edge, _even(edge / ratio))


def _ratio(family: Family, body: Mapping[str, object]) -> Fraction:
    names = () if follows_video(family, body) else ("ratio", "aspect_ratio")
    if family.media is Media.IMAGE:
        names = (*names, "size")
    asked = [_asked(family, body, name) for name in names]
    defaults = [_default(family, name) for name in ("ratio", "aspect_ratio")]
    for ratio in (*asked, *defaults):
        if ratio == "adaptive":
            break
        if isinstance(ratio, str) and ratio in _RATIOS:
            return _RATIOS[ratio]
    return _RATIOS["1:1" if family.media is Media.IMAGE else "16:9"]


def _resolution(family: Family, body: Mapping[str, object]) -> str:
    resolution = _asked(family, body, "resolution") or _default(family, "resolution")
    if family is VIDSA:  # its models have their resolution in their names
        resolution = str(body.get("model")).rpartition("_")[2]
    return resolution.lower() if isinstance(resolution, str) else ""


def _asked(family: Family, body: Mapping[str, object], name: str) -> object:
    """Return the value of a setting in *body*, unless the family has no such field."""
    is_field = family.field(name) is not None or not family.body_shown
    return body.get(name) if is_field else None


def _default(family: Family, name: str) -> object:
    field = family.field(name)
    return None if field is None else field.service_default


def _even(pixels: Fraction) -> int:
    # H.264 halves the resolution of colour, so its frames have even edges.
    return 2 * round(pixels / 2)
