"""The docstrings below assignments, which `help()` does not show."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType


def said_of(module: ModuleType) -> Mapping[str, str]:
    """Return the docstring below each assignment in *module*; those in a class as `Class.NAME`."""
    return dict(_said(ast.parse(inspect.getsource(module)), ""))


def where(module: ModuleType, name: str) -> ModuleType:
    """Return the module that assigns *name*, which *module* may only re-export."""
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.ImportFrom(str(origin), names) if name in {alias.name for alias in names}:
                return where(import_module(origin), name)
            case _:
                pass
    return module


def _said(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
    for node, after in zip(parent.body, [*parent.body[1:], None], strict=True):
        match node, after:
            case ast.ClassDef(), _:
                yield from _said(node, f"{node.name}.")
            case (
                ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]),
                ast.Expr(ast.Constant(str(text))),
            ):
                yield f"{prefix}{name}", inspect.cleandoc(text)
            case _:
                pass
