"""Packages can be looked at as a whole where some of their extras are not installed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = (
    "muybridge",
    "muybridge.batch",
    "muybridge.local",
    "muybridge.testing",
    "muybridge.testing.conformance",
)
ALONE = {
    "muybridge": {
        "httpcore2": {"Httpx2Transport"},
    },
    "muybridge.local": {
        library: {"LocalService", "serve"} for library in ("PIL", "av", "hypercorn")
    },
}  # fmt: skip
"""What is not there, for want of each library."""
LIBRARIES = sorted({library for missing in ALONE.values() for library in missing})

LOOK = """
import importlib, inspect, json, pydoc, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

missing = set(json.loads(sys.argv[1]))
sys.meta_path.insert(0, Missing())
offered = {}
for package in json.loads(sys.argv[2]):
    module = importlib.import_module(package)
    before = set(sys.modules)
    offered[package] = module.__all__
    listed = dir(module)
    assert set(offered[package]) <= set(listed), package
    assert not {"requests", "trio", "httpcore2", "PIL"} & (set(sys.modules) - before), package
    found = {}
    exec(f"from {package} import *", found)
    assert set(offered[package]) == {*found} - {"__builtins__"}, package
    members = [name for name, _ in inspect.getmembers(module)]
    assert set(offered[package]) <= set(members), package
print(json.dumps(offered))
"""
# Only in Python 3.13.0, `help` raises a TypeError for functions without a module. attrs generates
# such functions for classes with cached properties.
HELP = """
for package, names in offered.items() if sys.version_info[:3] != (3, 13, 0) else ():
    page = pydoc.plain(pydoc.render_doc(package))
    assert {name for name in names if name not in page} <= {"__version__"}, package
"""


def listed(package: str) -> list[str]:
    """Return what a type checker reads as the public names of *package*."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    names: list[str] = []
    for node in ast.parse(Path(spec.origin).read_text("utf-8")).body:
        match node:
            case ast.Assign([ast.Name("__all__")], value):
                return list(ast.literal_eval(value))
            case ast.If(ast.Name("TYPE_CHECKING"), imports):
                for one in imports:
                    assert isinstance(one, ast.ImportFrom)
                    names += [name.name for name in one.names if name.asname == name.name]
            case _:
                pass
    return names


def offered(packages: Sequence[str], *missing: str, look: str = LOOK) -> dict[str, list[str]]:
    """Return each package's `__all__` where *missing* is not installed, having looked at all."""
    command = [sys.executable, "-W", "error", "-c", look, json.dumps(missing), json.dumps(packages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603  # this very interpreter
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_nothing_is_missing() -> None:
    """With every library installed, a package offers at run time what type checkers see."""
    assert offered(PACKAGES, look=LOOK + HELP) == {package: listed(package) for package in PACKAGES}


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_library_is_missing(library: str) -> None:
    """`import *` and `dir` leave out just what needs a library that is not installed."""
    packages = [package for package in ALONE if library in ALONE[package]]
    for package, names in offered(packages, library).items():
        assert set(listed(package)) - set(names) == ALONE[package][library]


def test_many_are_missing() -> None:
    """The same goes for many libraries at once and for `help`; what is there keeps its order."""
    for package, names in offered(PACKAGES, *LIBRARIES, look=LOOK + HELP).items():
        missing = set[str]().union(*ALONE.get(package, {}).values())
        assert names == [name for name in listed(package) if name not in missing]


def test_stand_ins_count_as_installed() -> None:
    """A library that a test has put a stand-in for is there, though it has no spec."""
    code = (
        "import sys, types; sys.modules['httpcore2'] = types.ModuleType('httpcore2')\n"
        "import muybridge; print('Httpx2Transport' in muybridge.__all__)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True) == "True\n"  # noqa: S603  # the same
