"""The public names, from the table in docs/api.md, and their reference as autodoc directives."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar, cast

import attrs

from muybridge_docs.assignments import said_of, where
from muybridge_docs.markdown import bullets, code, codes
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.records.tasks import Result, Task

PAGE: Final = Path(__file__).parents[1] / "api.md"
YOUNG: Final = (
    "muybridge.testing",
    "muybridge.testing.plugin",
    "muybridge.testing.scripted_server",
    "muybridge.testing.conformance",
    "muybridge.testing.store_conformance",
    "muybridge.purchases.port",
    "muybridge.purchases.words",
    "muybridge.wire.building",
)
"""Modules that are public but not yet in the table of stable ones."""

STABLE: Final = tuple(
    re.findall(r"^\| `(muybridge[a-z0-9_.]*)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
)
MODULES: Final = (*STABLE, *YOUNG)

_OURS: Final = ("muybridge", "muybridge_protocol")


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of *module*, as docs/api.md defines them, in source order."""
    defined = list(_defined(module))
    offered = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    names = [
        name
        for name in cast("list[str]", offered)
        # A type variable only has a meaning where it is used.
        if not name.startswith("__") and not isinstance(getattr(module, name), TypeVar)
    ]
    return sorted(names, key=lambda name: defined.index(name) if name in defined else len(defined))


def _defined(module: ModuleType) -> Iterator[str]:
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]):
                yield name
            case _:
                pass


@attrs.frozen
class Public:
    """A public name.

    Args:
        module: The public module on whose page it is documented.
        name: Its name there.
        shown: The name under which it is documented, the shortest to import it by.
        value: The object itself.
    """

    module: str
    name: str
    shown: str
    value: Any = attrs.field(repr=False, eq=False)

    @property
    def is_class(self) -> bool:
        """Whether it is a class."""
        return inspect.isclass(self.value) and is_ours(self.value.__module__)

    @property
    def is_function(self) -> bool:
        """Whether it is a function."""
        return inspect.isfunction(self.value)

    @property
    def is_callable(self) -> bool:
        """Whether it is a class or a function rather than a value."""
        return self.is_class or self.is_function


@cache
def explained() -> Mapping[str, tuple[Public, ...]]:
    """Return the names documented on the page of each public module, each name once."""
    homes: dict[str, list[Public]] = {module: [] for module in MODULES}
    seen: set[tuple[str, str]] = set()
    for module in MODULES:
        loaded = import_module(module)
        for name in public_names(loaded):
            value = getattr(loaded, name)
            home = _home(module, name, value)
            if (home, name) not in seen:
                seen.add((home, name))
                homes[home].append(Public(home, name, _shown(home, name, value), value))
    return {module: tuple(_in_order(module, names)) for module, names in homes.items()}


def _in_order(module: str, names: Iterable[Public]) -> list[Public]:
    """Return *names* as readers look for them: requests, other classes and functions, values."""
    order = public_names(import_module(module))
    return sorted(names, key=lambda public: (_rank(public), order.index(public.name)))


def _rank(public: Public) -> int:
    if public.is_class and issubclass(public.value, MediaRequest):
        return 1 if public.value is MediaRequest else 0
    return 2 if public.is_callable else 3


def _home(module: str, name: str, value: Any) -> str:
    """Return the public module that documents *value*, which *module* exports as *name*."""
    origin = getattr(value, "__module__", None)
    if isinstance(origin, str) and is_ours(origin) and hasattr(value, "__qualname__"):
        while origin not in MODULES and "." in origin:
            origin = origin.rpartition(".")[0]
        # A package exports what its modules define only if it says so.
        if origin in MODULES and name in public_names(import_module(origin)):
            return origin
        exporting = (one for one in STABLE[1:] if getattr(import_module(one), name, None) is value)
        return next((one for one in exporting if name in public_names(import_module(one))), module)
    others = (other for other in STABLE if other != module and name in _own_data(other))
    return next(others, module) if name not in _own_data(module) else module


@cache
def _own_data(module: str) -> frozenset[str]:
    return frozenset(_defined(import_module(module)))


def _shown(home: str, name: str, value: Any) -> str:
    package = import_module("muybridge")
    callable_or_class = inspect.isclass(value) or inspect.isfunction(value)
    if callable_or_class and name in package.__all__ and getattr(package, name) is value:
        return f"muybridge.{name}"
    return f"{home}.{name}"


def is_ours(module: str) -> bool:
    """Whether *module* belongs to this library."""
    return module.partition(".")[0] in _OURS


def module_reference(name: str) -> str:
    """Return the reference of the public module *name*, as Markdown with autodoc directives."""
    module = import_module(name)
    here = explained()[name]
    names = {public.name for public in here}
    parts = [_module(module)]
    elsewhere = [other for other in public_names(module) if other not in names]
    if elsewhere:
        parts.append(f"`{name}` also exports {_linked(elsewhere)}.")
    parts += ["\n".join(["```{eval-rst}", *_directive(public), "```"]) for public in here]
    return "\n\n".join(parts)


def module_index(name: str) -> str:
    """Return the public names of the module *name*, each with its source and what it is."""
    lines = [_listed(public) for public in explained()[name]]
    here = {public.name for public in explained()[name]}
    elsewhere = [other for other in public_names(import_module(name)) if other not in here]
    if elsewhere:
        lines.append(f"also exported: {codes(elsewhere)}")
    return bullets(lines)


def _listed(public: Public) -> str:
    """Return a public name, linked to its source, and the first paragraph that explains it."""
    if public.is_callable:
        told = inspect.cleandoc(public.value.__doc__ or "").splitlines()
        file = inspect.getsourcefile(public.value)
    else:
        told, file = _said_of_data(public), import_module(public.module).__file__
    says = " ".join(line.strip() for line in takewhile(str.strip, told))
    path = Path(file or "").resolve().relative_to(PAGE.parents[1])
    link = f"[{code(public.name)}](../../{path.as_posix()})"
    return f"{link}: {says}" if says else link


def _linked(names: Iterable[str]) -> str:
    shown = {public.name: public.shown for all_of in explained().values() for public in all_of}
    return ", ".join(f"{{py:obj}}`{name} <{shown[name]}>`" for name in names)


def _module(module: ModuleType) -> str:
    lines = [f".. py:module:: {module.__name__}", "   :no-index-entry:", ""]
    return "\n".join(["```{eval-rst}", *lines, *_text(module), "```"])


def _text(value: Any) -> list[str]:
    from muybridge_docs.docstrings import with_examples

    return with_examples(inspect.cleandoc(value.__doc__ or "").splitlines())


def _directive(public: Public) -> list[str]:
    if public.is_class:
        return [f".. autoclass:: {public.shown}", *(f"   {line}" for line in _options(public))]
    if public.is_function:
        return [f".. autofunction:: {public.shown}"]
    said = _said_of_data(public)
    return [
        f".. py:data:: {public.name}",
        *([f"   :value: {public.value!r}"] if _is_short(public.value) else []),
        "",
        *(f"   {line}" for line in said),
    ]


def _options(public: Public) -> Iterator[str]:
    kind: type[Any] = public.value
    ours = [base for base in kind.__mro__[1:] if is_ours(base.__module__)]
    private = [base for base in ours if base not in _explained_classes()]
    yield ":members:"
    said = (vars(kind)["__init__"].__doc__ or "") if "__init__" in vars(kind) else ""
    if "Args:" in said:  # an editor shows an argument's meaning only from there
        yield ":class-doc-from: both"
    if issubclass(kind, enum.Enum):
        yield ":undoc-members:"
    elif private:
        # Members of a private base class are documented here, where users meet them.
        yield f":inherited-members: {', '.join(_strangers(kind))}"
    elif kind.__bases__ != (object,):
        yield ":show-inheritance:"
    repeated = sorted(
        name
        for name in vars(kind)
        if not name.startswith("_")
        and any(name in vars(base) for base in ours if base not in private)
    )
    if issubclass(kind, MediaRequest) and kind is not MediaRequest:
        # Its docstring has each field among the arguments.
        repeated += [field.name for field in kind.family.fields] + ["extra"]
    if kind in (Task, Result):  # the same
        repeated += [field.name for field in attrs.fields(kind)]
    if repeated:  # members of a public base class are documented there
        yield f":exclude-members: {', '.join(repeated)}"


@cache
def _explained_classes() -> frozenset[type[Any]]:
    return frozenset(
        public.value for all_of in explained().values() for public in all_of if public.is_class
    )


def _strangers(kind: type[Any]) -> Iterator[str]:
    for base in kind.__mro__:
        if not is_ours(base.__module__):
            yield base.__name__


def _is_short(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, enum.Enum)


def _said_of_data(public: Public) -> list[str]:
    """Return the docstring below the assignment of a name, or its type."""
    text = said_of(where(import_module(public.module), public.name)).get(public.name)
    if text is not None:
        return text.splitlines()
    kind = cast("object", public.value).__class__
    return [f"A `{kind.__name__}`."] if is_ours(kind.__module__) else []
