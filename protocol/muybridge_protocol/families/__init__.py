"""The families: one module for each, and the table of all of them.

Every module in this folder, except those in `_NO_FAMILIES`, is a family, and is found
by being here: `vidx.py` defines `VIDX` and `VidxRequest`. The names of single families below are
there for type checkers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

from muybridge_protocol.families.family import (
    Billing,
    Family,
    Media,
    Model,
    Pacing,
    Report,
    Retention,
    Unlisted,
    named,
)
from muybridge_protocol.families.field import Field
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.local_errors import InvalidRequest, LocalError
from muybridge_protocol.rules.values import shown

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
    from muybridge_protocol.service import Service

_NO_FAMILIES: Final = {
    "docstrings",
    "examples",
    "family",
    "field",
    "naming",
    "references",
    "request",
}
"""The modules in this folder that are not families."""


class _Families(Mapping[str, Family]):
    """A table of the families that imports the module of each on first use.

    Most programs use one family, and the other ten would take 12 ms of their start. Even listing
    the folder takes one more, so a program that imports its request class does without.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Family] = {}

    @cached_property
    def _names(self) -> tuple[str, ...]:
        from pkgutil import iter_modules

        # It works in a zip file, too.
        return tuple(sorted({module.name for module in iter_modules(__path__)} - _NO_FAMILIES))

    def load(self, name: str) -> ModuleType:
        """Import the module of the family *name*, which must exist."""
        module = import_module(f"{__name__}.{name}")
        self._loaded[name] = getattr(module, name.upper())
        return module

    def __getitem__(self, name: str) -> Family:
        if name not in self._loaded:
            if name not in self._names:
                raise KeyError(name)
            self.load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self._names  # that of Mapping would load it

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<families: {', '.join(self._names)}>"


_families = _Families()
FAMILIES: Mapping[str, Family] = _families
"""Every family by name, in the order of the names."""


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        home = name.removesuffix("Request").lower()
        names = _public_names(home)
        missing = f"module {__name__!r} has no attribute {name!r}"
        if name not in names or not home.isidentifier():
            raise AttributeError(missing)
        try:
            module = _families.load(home)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{home}":
                raise
            raise AttributeError(missing) from None
        globals().update({public: getattr(module, public) for public in names})
        return globals()[name]


def __dir__() -> list[str]:
    names = (public for family in FAMILIES for public in _public_names(family))
    return sorted({*globals(), *__all__, *names})


def _public_names(family: str) -> tuple[str, str]:
    return family.upper(), f"{family.capitalize()}Request"


def find_family(name: str) -> Family:
    """Return the family *name*.

    Raises:
        LocalError: There is no such family. If the name is that of a model, even with an owner
            before it (`owner/model`), the message names its family; otherwise it lists all
            families and the closest match.
    """
    family = FAMILIES.get(name)
    if family is not None:
        return family
    model = name.rpartition("/")[2]
    meant = FAMILIES.get(model) or family_of_model(model)
    if meant is not None and meant.model(model) is not None:
        raise LocalError(
            f"there is no family {name!r}: {model} is a model of family {meant.name}; "
            f"give {meant.name!r} as the family, and {model!r} as model",
            argument="family",
        )
    if meant is not None:
        said = f"there is no family {name!r}; did you mean {meant.name}?"
        raise LocalError(said, argument="family")
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), FAMILIES, n=1)
    hint = f"did you mean {close[0]}? Known" if close else "known"
    said = f"there is no family {name!r}; {hint} are {', '.join(FAMILIES)}"
    raise LocalError(said, argument="family")


def family_of_model(model: str | None) -> Family | None:
    """Return the family that *model* belongs to, or None if that is not certain.

    A model that the tables do not list belongs to the family whose name, before a `-` or `_`, its
    own name begins with, if there is exactly one.
    """
    if not model:
        return None
    families = tuple(FAMILIES.values())
    listed = [family for family in families if family.model(model) is not None]
    named = [
        family
        for family in families
        if model.startswith(family.name) and model[len(family.name) :][:1] in ("", "-", "_")
    ]
    candidates = listed or named
    return candidates[0] if len(candidates) == 1 else None


def check_request(value: object, service: Service) -> MediaRequest:
    """Return *value*, which must be a request that *service* can be sent.

    A request is made before its service is known, so its links to this machine are checked here.

    Raises:
        InvalidRequest: It has a URL on this machine that the service did not give out.
        TypeError: It is something else. The message says how to build a request.
    """
    request = check_is_request(value)
    family = request.family
    problems = family.out_of_reach(request.settings(), service.gave_out)
    if problems:
        raise InvalidRequest(family.name, named(problems, family.python_name))
    return request


def check_is_request(value: object) -> MediaRequest:
    """Return *value*, which must be a request.

    Raises:
        TypeError: It is something else. The message says how to build a request.
    """
    if isinstance(value, MediaRequest):
        return value
    kind, seen = type(value).__name__, shown(value)
    if isinstance(value, type) and issubclass(value, MediaRequest):
        what, how = f"{value.__name__} is a class, not a request", "call it with the fields"
    elif isinstance(value, Mapping):
        name = _class_for(cast("Mapping[object, object]", value)).__name__
        what = f"a {kind} is not a request"
        family = name.removesuffix("Request").lower()
        how = (
            f"build one with {name}(**fields), or with {name}.from_body(fields) from wire names, "
            f'or give the family and its fields: "{family}", {{...}}, in a list as a pair'
        )
    else:
        what = f"{seen} is not a request"
        how = "build one with the class of its family, such as ImgaRequest(model=..., prompt=...)"
    raise TypeError(f"{what}: {how}. Nothing was sent.")


def _class_for(fields: Mapping[object, object]) -> type[MediaRequest]:
    """Return the request class that *fields* are probably meant for."""
    named = FAMILIES.get(str(fields.get("family"))) or family_of_model(str(fields.get("model")))
    return (named or FAMILIES["imga"]).request


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
    "Billing",
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
    "family_of_model",
    "find_family",
]
