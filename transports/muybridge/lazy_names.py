"""Names of a package that are imported on first use (PEP 562), and need an extra or none.

    _LAZY = LazyNames(__name__, {"muybridge.batch.run_batch": Home("run_trio", extra="trio")})

    def __getattr__(name):
        return _LAZY.get(name)

Type checkers do not see what is imported so: for them the package imports the same names under
`TYPE_CHECKING`, and a test holds that the two agree.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Home(NamedTuple):
    """A module that names are imported from.

    Args:
        names: The names, with spaces between them.
        extra: The extra that installs what the module imports, or "".
        needs: The libraries without which the names are not offered, with spaces between them.
        user: What needs the extra, for the message, or "" for the name itself.
    """

    names: str
    extra: str = ""
    needs: str = ""
    user: str = ""


class LazyNames:
    """The names of a package, some of which are imported on first use.

    Args:
        package: The package's name.
        homes: Where they come from, by module.
        names: All public names of the package in their order, if some are there already.
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
            ModuleNotFoundError: A library is not installed; the message says which extra brings it.
        """
        if name == "__all__":
            return self.offered()
        if name not in self._homes:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        module, home = self._homes[name]
        try:
            found: object = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if not home.extra or (error.name or "muybridge").startswith("muybridge"):
                raise
            command = f'pip install "muybridge[{home.extra}]"'
            raise ModuleNotFoundError(
                f"{home.user or name} needs {error.name}: {command}", name=error.name
            ) from None
        setattr(sys.modules[self._package], name, found)
        return found

    def offered(self) -> list[str]:
        """Return the public names whose libraries are installed, and import none of them.

        `import *` and `help` ask for each of them, and an error would end both.
        """
        needs = {
            name: self._homes[name][1].needs.split() if name in self._homes else []
            for name in self._names
        }
        libraries = {library for needed in needs.values() for library in needed}
        missing = {library for library in libraries if not _is_installed(library)}
        return [name for name in self._names if missing.isdisjoint(needs[name])]


def _is_installed(library: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415  so that an import stays cheap

    if sys.modules.get(library) is not None:  # a stand-in in a test may have no spec
        return True
    try:
        return find_spec(library) is not None
    except ImportError:  # so says a finder that keeps a library away
        return False
