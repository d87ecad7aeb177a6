"""What an import brings with it, in a fresh interpreter each."""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol

CORE = Path(muybridge_protocol.__file__).parent
HOMES = [str(CORE.parent), str(Path(muybridge.__file__).parent.parent)]
MODULES = sorted(
    ["muybridge_protocol"]
    + [module.name for module in pkgutil.walk_packages([str(CORE)], prefix="muybridge_protocol.")]
)
IMPURE = {
    "socket", "ssl", "select", "selectors", "asyncio", "http.client", "urllib.request", "requests",
    "trio", "urllib3", "httpx", "httpx2", "h11", "httptools", "subprocess", "email.utils",
    "random", "click",
}  # fmt: skip


def fresh(code: str) -> str:
    """Run *code* in an interpreter that has imported nothing of ours, and return its output."""
    prelude = f"import sys; sys.path[:0] = {HOMES!r}\n"
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-W", "error", "-I", "-c", prelude + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported_by(code: str) -> set[str]:
    """Return the modules that *code* imports, beyond what a bare interpreter has."""
    listing = "import json; print(json.dumps(sorted(sys.modules)))"
    before = set(json.loads(fresh(listing)))
    return set(json.loads(fresh(f"{code}\n{listing}"))) - before


def test_the_core_does_no_io() -> None:
    """The whole core needs attrs and cattrs alone, and no module that could do I/O or wait."""
    code = "\n".join(f"import {name}" for name in MODULES)
    found = imported_by(code)
    assert set(MODULES) <= found
    assert found & IMPURE == set()
    packages = {name.partition(".")[0] for name in found}
    ours = {"muybridge_protocol", "attr", "attrs", "cattrs", "typing_extensions"}
    assert packages - sys.stdlib_module_names <= ours


def test_the_core_has_modules() -> None:
    """The walk over the core finds what there is, so that the tests here prove something."""
    assert {
        "muybridge_protocol.http",
        "muybridge_protocol.delivery",
        "muybridge_protocol.operations.create",
        "muybridge_protocol.families.vidsb",
        "muybridge_protocol.emulator.service",
    } <= set(MODULES)


BANNED = {
    "muybridge", "transports", "protocol", "requests", "urllib3", "h11", "httptools", "httpx",
    "httpx2", "trio", "socket", "ssl", "time", "random", "asyncio", "threading", "select",
    "selectors", "subprocess", "http", "click", "os", "secrets", "uuid",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.stem)
def test_what_the_core_names(path: Path) -> None:
    """No module of the core imports the transports, a clock, a source of chance or I/O."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            named.add(node.module or "")
    assert {name for name in named if name.partition(".")[0] in BANNED} == set()
    calls = {
        node.attr for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
    }  # fmt: skip
    assert not calls & {"now", "utcnow", "today"} & clock_calls(path)


def clock_calls(path: Path) -> set[str]:
    """Return the clock's methods that *path* calls on `datetime` or `date`."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"datetime", "date"}
    }


def test_importing_the_client_is_cheap() -> None:
    """`import muybridge` brings neither an HTTP library, nor a terminal's, nor the families."""
    found = imported_by("import muybridge")
    heavy = {"requests", "urllib3", "trio", "click", "rich", "PIL", "av", "hypercorn", "attrs",
             "attr", "cattrs", "ssl", "socket", "asyncio", "certifi"}  # fmt: skip
    assert found & heavy == set()
    assert not any(name.startswith("muybridge_protocol") for name in found)


@pytest.mark.parametrize("name", ["Client", "TrioClient"])
def test_text_is_loaded_when_it_is_asked_for(name: str) -> None:
    """A client that is not asked for text does not load what makes text requests."""
    made = f"import muybridge\nclient = muybridge.{name}('key', 'https://a.test', 'https://b.test')"
    asked = f"{made}\nclient.stream_generate_content('textg-2.5-pro', 'a horse')"
    assert "muybridge_protocol.text.request" not in imported_by(made)
    assert "muybridge_protocol.text.request" in imported_by(asked)


@pytest.mark.skipif(find_spec("httpcore2") is None, reason="an extra, as in `packaged/`")
def test_public_names() -> None:
    """Every public name resolves to what it says, and `dir` lists them all."""
    code = """
import muybridge
names = dir(muybridge)
assert set(muybridge.__all__) <= set(names), set(muybridge.__all__) - set(names)
assert len(set(muybridge.__all__)) == len(muybridge.__all__)
for name in muybridge.__all__:
    value = getattr(muybridge, name)
    assert value is getattr(muybridge, name)
    if isinstance(value, type):
        assert value.__name__ == name, name
from muybridge import *
assert Client is muybridge.Client
try:
    muybridge.Cleint
except AttributeError as error:
    assert "Cleint" in str(error)
else:
    raise AssertionError
"""
    fresh(code)


def test_another_missing_module_is_not_hidden() -> None:
    """A module that is missing for another reason is told as it is."""
    code = """
sys.modules["attrs"] = None
import muybridge
try:
    muybridge.Task
except ModuleNotFoundError as error:
    print(error)
"""
    said = fresh(code)
    assert "pip install" not in said
    assert "attrs" in said
