"""Which names of a package can be had, where some of them need an extra."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec


def obtainable(names: Iterable[str], needs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return those of *names* whose libraries are installed, and import none of them.

    Args:
        names: All names that a package offers.
        needs: The libraries without which a name cannot be had. Others need nothing more.

    Returns:
        The names for `__all__` and `dir`, in the order of *names*.
    """
    libraries = {library for name in names for library in needs.get(name, ())}
    missing = {library for library in libraries if not _installed(library)}
    return [name for name in names if missing.isdisjoint(needs.get(name, ()))]


def _installed(library: str) -> bool:
    if sys.modules.get(library) is not None:  # a stand-in in a test may have no spec
        return True
    try:
        return find_spec(library) is not None
    except ImportError:  # so says a finder that keeps a library away
        return False
