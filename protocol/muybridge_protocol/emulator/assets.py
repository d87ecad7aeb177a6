"""The asset library of family `vidsb` (spec, "Asset endpoints").

Assets can only be deleted here: how they are uploaded is not shown, so an emulator begins with
those that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muybridge_protocol.families import VIDSB, Family
from muybridge_protocol.rules.values import is_array

_SCHEME = "asset://"


class AssetLibrary:
    """The assets that exist, and those that did."""

    def __init__(self, asset_ids: Iterable[str]) -> None:
        self._existing = set(asset_ids)
        self._deleted: set[str] = set()

    @property
    def existing(self) -> frozenset[str]:
        """The ids of the assets that exist."""
        return frozenset(self._existing)

    def delete(self, asset_id: str) -> bool:
        """Delete the asset for good, and return whether it existed."""
        if asset_id not in self._existing:
            return False
        self._existing.remove(asset_id)
        self._deleted.add(asset_id)
        return True

    def complaint(self, asset_ids: Iterable[str]) -> str | None:
        """Return why a task that uses *asset_ids* fails, or None."""
        for asset_id in asset_ids:
            if asset_id not in self._existing:
                return missing_asset(asset_id, deleted=asset_id in self._deleted)
        return None


def missing_asset(asset_id: str, *, deleted: bool) -> str:
    """Return the error of a task that uses an asset that does not exist."""
    return f"asset {asset_id} {'was deleted' if deleted else 'does not exist'}"


def referenced_assets(family: Family, body: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of the assets that a request's *body* uses, each once, in their order."""
    if family is not VIDSB:
        return ()
    found: dict[str, None] = {}
    for field in family.fields:
        value = body.get(field.wire)
        for item in value if is_array(value) else (value,):
            if isinstance(item, str) and item.startswith(_SCHEME):
                found[item.removeprefix(_SCHEME)] = None
    return tuple(found)
