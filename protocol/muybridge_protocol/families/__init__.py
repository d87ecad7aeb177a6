"""The eleven families: one module each, and the table of all of them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

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
from muybridge_protocol.families.request import MediaRequest

if TYPE_CHECKING:
    from muybridge_protocol.families.imga import IMGA, ImgaRequest
    from muybridge_protocol.families.imgb import IMGB, ImgbRequest
    from muybridge_protocol.families.vidc import VIDC, VidcRequest
    from muybridge_protocol.families.vidd import VIDD, ViddRequest
    from muybridge_protocol.families.videos import VIDEOS, VideosRequest
    from muybridge_protocol.families.vidg import VIDG, VidgRequest
    from muybridge_protocol.families.vidm import VIDM, VidmRequest
    from muybridge_protocol.families.vidr import VIDR, VidrRequest
    from muybridge_protocol.families.vidsa import VIDSA, VidsaRequest
    from muybridge_protocol.families.vidsb import VIDSB, VidsbRequest
    from muybridge_protocol.families.vidv import VIDV, VidvRequest

_NAMES: Final = (
    "imga", "imgb", "vidr", "vidv", "vidsa", "vidsb", "vidd", "vidg", "vidc", "videos", "vidm",
)  # fmt: skip


class _Families(Mapping[str, Family]):
    """Each family's module is imported when the family is asked for.

    A program mostly uses one of them; the other ten would take 12 ms of its start.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Family] = {}

    def __getitem__(self, name: str) -> Family:
        family = self._loaded.get(name)
        if family is None:
            if name not in _NAMES:
                raise KeyError(name)
            family = getattr(import_module(f"{__name__}.{name}"), name.upper())
            self._loaded[name] = family
        return family

    def __contains__(self, name: object) -> bool:
        return name in _NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __repr__(self) -> str:
        return f"<families: {', '.join(_NAMES)}>"


FAMILIES: Mapping[str, Family] = _Families()
"""Every family by name, in the order of the specification."""


def __getattr__(name: str) -> object:
    home = name.removesuffix("Request").lower()
    if home not in _NAMES or name not in (home.upper(), f"{home.capitalize()}Request"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
