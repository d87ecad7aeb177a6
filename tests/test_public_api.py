"""What docs/api.md says is public: its names, signatures and options, as a snapshot.

A change here is a change for everybody who uses the library. If it is meant, look up in docs/api.md
what it means for the version, and write the snapshot anew.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from muybridge.cli.commands import muybridge
from muybridge.cli.exit_codes import MEANINGS

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
MODULES = re.findall(r"^\| `(muybridge[a-z_.]*)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
OURS = ("muybridge", "muybridge_protocol")


def public_names(module: Any) -> list[str]:
    """Return what a module offers: its `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(name for name in _defined(module) if not name.startswith("_"))


def _defined(module: Any) -> Iterator[str]:
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]):
                yield name
            case _:
                pass


def described(name: str, value: Any) -> Iterator[str]:
    """Yield a line for *value*, and one for each public part of a class."""
    if inspect.isclass(value) and value.__module__.partition(".")[0] in OURS:
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        kind: Any = cast("Any", value)
        if issubclass(kind, enum.Enum):
            yield f"class {name}({bases}): {', '.join(member.name for member in kind)}"
        else:
            yield f"class {name}({bases}){signature(kind)}"
        yield from _parts(kind)
    elif inspect.isfunction(value):
        what = "async def" if inspect.iscoroutinefunction(value) else "def"
        yield f"{what} {name}{signature(value)}"
    else:
        yield name


def _parts(kind: Any) -> Iterator[str]:
    # A field of a value is a part of its class only where the class has slots.
    fields: set[str] = {field.name for field in getattr(kind, "__attrs_attrs__", ())}
    for name in sorted({*dir(kind), *fields}):
        if name.startswith("_"):
            continue
        if name in fields:
            yield f"  {name}"
            continue
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if owner is None or owner.__module__.partition(".")[0] not in OURS:
            continue
        part: Any = vars(owner)[name]
        how = type(part).__name__
        if how in ("staticmethod", "classmethod"):
            yield f"  {how} {name}{signature(part.__func__)}"
        elif inspect.isfunction(part):
            what = "async def" if inspect.iscoroutinefunction(part) else "def"
            yield f"  {what} {name}{signature(part)}"
        elif how in ("property", "cached_property"):
            getter = part.fget if how == "property" else part.func
            yield f"  {name}{_returns(inspect.signature(getter))}"
        elif not (issubclass(kind, enum.Enum) and name in kind.__members__):
            yield f"  {name}"


def signature(value: Any) -> str:
    """Return the arguments of *value*, and what it returns, as far as a caller depends on them."""
    try:
        found = inspect.signature(value)
    except ValueError:  # of an exception without a constructor of its own
        return ""
    shown: list[str] = []
    keywords = False
    for parameter in found.parameters.values():
        if parameter.name == "_misplaced":
            continue  # `**_misplaced` takes nothing: its type is Never
        match parameter.kind:
            case inspect.Parameter.KEYWORD_ONLY if not keywords:
                shown.append("*")
                keywords = True
            case inspect.Parameter.VAR_POSITIONAL:
                keywords = True
            case _:
                pass
        stars = {
            inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**",
        }.get(parameter.kind, "")
        shown.append(f"{stars}{parameter.name}{_annotation(parameter)}{_default(parameter)}")
    return f"({', '.join(shown)}){'' if inspect.isclass(value) else _returns(found)}"


def _returns(found: inspect.Signature) -> str:
    told = found.return_annotation
    return f" -> {' '.join(told.split())}" if isinstance(told, str) else ""


def _annotation(parameter: inspect.Parameter) -> str:
    # Those that are no texts are written differently by each version of Python.
    found = parameter.annotation
    return f": {' '.join(found.split())}" if isinstance(found, str) else ""


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return ""
    plain = isinstance(parameter.default, str | int | float | bool | None)
    return (
        f" = {parameter.default!r}"
        if plain and not isinstance(parameter.default, enum.Enum)
        else " = ..."
    )


def options(command: click.Command, path: str) -> Iterator[str]:
    """Yield a line for each command, with its options and arguments."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options(inner, f"{path} {name}")
        return
    shown = ["/".join((*parameter.opts, *parameter.secondary_opts)) for parameter in command.params]
    yield " ".join((path, *sorted(shown)))


def test_the_page_names_modules() -> None:
    """The page lists the public modules, and each of them exists."""
    assert {"muybridge", "muybridge_protocol.operations", "muybridge_protocol.errors"} <= set(
        MODULES
    )
    assert len(set(MODULES)) == len(MODULES)
    for name in MODULES:
        import_module(name)


@pytest.mark.parametrize("name", MODULES)
def test_public_names(name: str, snapshot: SnapshotAssertion) -> None:
    """The public names of a module, and how they are called, are as they were."""
    module = import_module(name)
    lines = [
        line
        for public in public_names(module)
        for line in described(public, getattr(module, public))
    ]
    assert "\n".join(lines) == snapshot


def test_the_command(snapshot: SnapshotAssertion) -> None:
    """The commands, their options and the exit codes are as they were."""
    codes = [f"{code}: {meaning}" for code, meaning in MEANINGS.items()]
    assert "\n".join((*options(muybridge, "muybridge"), *codes)) == snapshot
