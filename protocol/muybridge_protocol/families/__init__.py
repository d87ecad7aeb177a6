"""The eleven families: one module each, and the table of all of them."""

from collections.abc import Mapping
from types import MappingProxyType

from muybridge_protocol.errors import UnknownFamily
from muybridge_protocol.families.family import (
    Family,
    Field,
    Media,
    Model,
    Pacing,
    Report,
    Retention,
    Unlisted,
)
from muybridge_protocol.families.imga import IMGA, ImgaRequest
from muybridge_protocol.families.imgb import IMGB, ImgbRequest
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.families.vidc import VIDC, VidcRequest
from muybridge_protocol.families.vidd import VIDD, ViddRequest
from muybridge_protocol.families.videos import VIDEOS, VideosRequest
from muybridge_protocol.families.vidg import VIDG, VidgRequest
from muybridge_protocol.families.vidm import VIDM, VidmRequest
from muybridge_protocol.families.vidr import VIDR, VidrRequest
from muybridge_protocol.families.vidsa import VIDSA, VidsaRequest
from muybridge_protocol.families.vidsb import VIDSB, VidsbRequest
from muybridge_protocol.families.vidv import VIDV, VidvRequest

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (IMGA, IMGB, VIDR, VIDV, VIDSA, VIDSB, VIDD, VIDG, VIDC, VIDEOS, VIDM)
    }
)
"""Every family by name, in the order of the specification."""


def find_family(name: str) -> Family:
    """Return the family called *name*.

    Raises:
        UnknownFamily: There is none; the message names all, and the closest.
    """
    family = FAMILIES.get(name)
    if family is not None:
        return family
    from difflib import get_close_matches  # noqa: PLC0415  needed only after a mistake

    close = get_close_matches(name.lower(), FAMILIES, n=1)
    hint = f"did you mean {close[0]}? Known" if close else "known"
    raise UnknownFamily(f"there is no family {name!r}; {hint} are {', '.join(FAMILIES)}")


__all__ = [
    "FAMILIES",
    "IMGA",
    "IMGB",
    "VIDC",
    "VIDD",
    "VIDEOS",
    "VIDG",
    "VIDM",
    "VIDR",
    "VIDSA",
    "VIDSB",
    "VIDV",
    "Family",
    "Field",
    "ImgaRequest",
    "ImgbRequest",
    "Media",
    "MediaRequest",
    "Model",
    "Pacing",
    "Report",
    "Retention",
    "Unlisted",
    "VidcRequest",
    "ViddRequest",
    "VideosRequest",
    "VidgRequest",
    "VidmRequest",
    "VidrRequest",
    "VidsaRequest",
    "VidsbRequest",
    "VidvRequest",
    "find_family",
]
