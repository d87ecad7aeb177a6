"""Tests name nothing private of the library, so that its code may move.

`moments.py` has the names that they need. The mutants, which are named by their lines, and the
planted faults of the simulation are in the code itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import moments

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for name in ("protocol", "transports") for path in (ROOT / name).rglob("*.py")
)
TESTS = sorted(path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py"))
KNOWING = {"tests/moments.py", "tests/mutation/groups.py", "tests/simulation/planted.py"}
KNOWING.add(Path(__file__).relative_to(ROOT).as_posix())  # the control
IN_TEXT = re.compile(
    r"muybridge\w*(?:[.:]\w+)*[.:]_(?!_)\w+"
    r"|from muybridge[\w.]* import (?:\w+, )*_(?!_)\w+"
)


def is_private(name: str) -> bool:
    """Whether *name* is private. IPython's `_repr_html_` is not, nor is a lone underscore."""
    return name.startswith("_") and not name.endswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module defines: functions, classes, attributes, constants."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.Name(id=name, ctx=ast.Store())
            ) if is_private(name):  # fmt: skip
                yield name
            case _:
                pass


def named(source: str, private: set[str]) -> Iterator[tuple[int, str]]:
    """Yield each name of *private* that the code of a test has, with its line.

    A class of the test's own may have attributes of such a name.
    """
    tree = ast.parse(source)
    elsewhere = private - set(defined(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if name in elsewhere:
                yield node.lineno, name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                parts = {part for one in names for part in f"{module}.{one.name}".split(".")}
                if any(one.startswith("muybridge") for one in parts):
                    yield from ((node.lineno, part) for part in parts if is_private(part))
            case ast.Call() if ast.unparse(node.func).endswith(("attr", "object")):
                texts = {one.value for one in node.args if isinstance(one, ast.Constant)}
                yield from ((node.lineno, name) for name in private if name in texts)
            case ast.Subscript(value=ast.Call(), slice=ast.Constant(str(name))) if name in private:
                yield node.lineno, name
            case ast.Constant(str(text)):
                yield from ((node.lineno, found) for found in IN_TEXT.findall(text))
            case _:
                pass


@pytest.fixture(scope="module")
def private() -> set[str]:
    """The private names of the library."""
    return {name for path in SOURCES for name in defined(ast.parse(path.read_text("utf-8")))}


def test_none_is_named(private: set[str]) -> None:
    """No test, and no benchmark, names a private function, attribute, constant or module."""
    found = [
        f"{path}:{line}: {name}"
        for path in (path.relative_to(ROOT).as_posix() for path in TESTS)
        if path not in KNOWING
        for line, name in named((ROOT / path).read_text("utf-8"), private)
    ]
    assert found == [], "add what a test needs to tests/moments.py"


@pytest.mark.parametrize(
    "line",
    [
        "client._driver.stop()",
        "from muybridge.wire import _environment",
        "from muybridge.wire._environment import proxy_for",
        "from muybridge.files.saving import _folder",
        "import muybridge.wire._environment",
        'monkeypatch.setattr("muybridge.purchases.store._PAGE", 2)',
        'monkeypatch.setattr(store, "_check", None)',
        'getattr(store, "_check")',
        'vars(store)["_check"]',
        'place = "muybridge.wire._environment:proxy_for"',
        'place = "muybridge.purchases.sqlite:SqliteDatabase._check"',
        'code = "from muybridge.files import saving, _folder"',
    ],
)
def test_control_that_names_one(line: str) -> None:
    """One name is found, in its line."""
    private = {"_driver", "_check", "_PAGE", "_own"}
    source = f"class Mine:\n    def __init__(self):\n        self._own = 1\n\n{line}\nmine._own\n"
    assert [at for at, _ in named(source, private)] == [5]


def test_the_library_has_names_to_find(private: set[str]) -> None:
    """The sources, and the names in them, are found."""
    assert len(private) > 1000


def texts() -> Iterator[str]:
    """Yield each text in the code of the tests and benchmarks, except the tables of moments."""
    for path in TESTS:
        if path != Path(moments.__file__):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Constant(str(text)):
                        yield text
                    case _:
                        pass


def test_moments_exist() -> None:
    """A moment or constant that a suite names is in the table, even if it runs elsewhere."""
    tables = {
        "moments.at": moments.MOMENTS,
        "moments.struck_after": moments.MOMENTS,
        "moments.constant": moments.CONSTANTS,
    }
    unknown = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
        for path in TESTS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in tables
        for name in [one.value for one in node.args[:1] if isinstance(one, ast.Constant)]
        if name not in tables[ast.unparse(node.func)]
    ]
    assert unknown == []


def test_moments_are_used() -> None:
    """Each moment and constant in the table is used."""
    steps = re.compile(r"^(?:before|after): ")
    used = {steps.sub("", text) for text in texts()}
    assert {*moments.MOMENTS, *moments.CONSTANTS} - used == set()
