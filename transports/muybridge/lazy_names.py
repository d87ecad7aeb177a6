"""Imports a package's public names on first use (PEP 562), and says which extra a name needs.

    _LAZY = LazyNames(__name__, {"muybridge.local.service": Home("serve", extra="local")})

    if not TYPE_CHECKING:
        def __getattr__(name):
            return _LAZY.get(name)

Type checkers cannot see such names, and would take every misspelled one for one of them if they saw
`__getattr__`. For them the package imports the same names under `TYPE_CHECKING`, and a test checks
that the two agree.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Home(NamedTuple):
    """The names that are imported from one module.

    Args:
        names: The names, separated by spaces.
        extra: The extra that installs what the module imports, or "".
        needs: Libraries, separated by spaces. If one is missing, `offered` leaves the names out.
        user: What the error message says needs the extra, or "" for the name itself.
    """

    names: str
    extra: str = ""
    needs: str = ""
    user: str = ""


class LazyNames:
    """The public names of a package, some of which are imported on first use.

    Args:
        package: The package's name.
        homes: The names to import on first use, by module.
        names: All public names in order, or None if all of them are imported on first use.
    """

    def __init__(
        self, package: str, homes: Mapping[str, Home], names: Sequence[str] | None = None
    ) -> None:
        self._package = package
        self._homes = {
            name: (module, home) for module, home in homes.items() for name in home.names.split()
        }
        self._names = tuple(self._homes) if names is None else tuple(names)

    def __contains__(self, name: str) -> bool:
        return name in self._homes

    def get(self, name: str) -> object:
        """Return what the package's `__getattr__` returns for *name*.

        Raises:
            AttributeError: There is no such name.
            ModuleNotFoundError: A library is missing; the message says which extra installs it.
        """
        if name == "__all__":
            return self.offered()
        if name not in self._homes:
            hint = f"; write `from {self._package} import {name}`" if self._is_module(name) else ""
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}{hint}")
        module, home = self._homes[name]
        try:
            value: object = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if not home.extra or (error.name or "muybridge").startswith("muybridge"):
                raise
            from muybridge.extras import missing_extra

            library = (error.name or "").partition(".")[0]
            raise missing_extra(home.user or name, library, home.extra) from None
        setattr(sys.modules[self._package], name, value)
        return value

    def _is_module(self, name: str) -> bool:
        return not name.startswith("_") and _is_installed(f"{self._package}.{name}")

    def offered(self) -> list[str]:
        """Return the public names whose libraries are installed, without importing them.

        `import *` and `help` load every name in this list, and an error would end both.
        """
        needs = {
            name: self._homes[name][1].needs.split() if name in self._homes else []
            for name in self._names
        }
        libraries = {library for needed in needs.values() for library in needed}
        missing = {library for library in libraries if not _is_installed(library)}
        return [name for name in self._names if missing.isdisjoint(needs[name])]


def _is_installed(library: str) -> bool:
    from importlib.util import find_spec

    if sys.modules.get(library) is not None:  # a stand-in in a test may have no spec
        return True
    try:
        return find_spec(library) is not None
    except ImportError:  # raised by a finder that blocks the library
        return False
