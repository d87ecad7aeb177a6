"""Which assets of the library of family `vidsb` a request uses (spec, "Asset endpoints")."""

from __future__ import annotations

from collections.abc import Mapping

from muybridge_protocol.families import VIDSB, Family
from muybridge_protocol.rules.values import is_array

_SCHEME = "asset://"


def referenced_assets(family: Family, body: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of the assets that a request's *body* uses, each once, in their order."""
    if family is not VIDSB:
        return ()
    assets: dict[str, None] = {}
    for field in family.fields:
        value = body.get(field.wire)
        for item in value if is_array(value) else (value,):
            if isinstance(item, str) and item.startswith(_SCHEME):
                assets[item.removeprefix(_SCHEME)] = None
    return tuple(assets)
