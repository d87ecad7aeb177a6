"""No module needs, even indirectly, one that needs it; what lies below uses nothing above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOTS = [Path(__file__).parents[1] / root for root in ("protocol", "transports")]
MODULES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root in ROOTS
    for path in root.rglob("*.py")
}
PACKAGES = {module for module, path in MODULES.items() if path.stem == "__init__"}

ABOVE = {
    "muybridge.signals": ("muybridge.",),
    "muybridge.wire": ("muybridge.drivers.", "muybridge.batch.", "muybridge.client."),
    "muybridge.drivers": ("muybridge.batch.", "muybridge.client.", "muybridge.async_client."),
    "muybridge.files": ("muybridge.batch.", "muybridge.cli."),
    "muybridge.batch": ("muybridge.cli.", "muybridge.workers.", "muybridge.local."),
}
"""What each part must not use."""
FACES = ("muybridge.cli", "muybridge.local", "muybridge.testing", "muybridge.workers")
"""What uses the library as others do, by the names that `muybridge` has."""


def needed_by(module: str) -> Iterator[str]:
    """Yield what *module* imports anywhere, also for annotations alone."""
    waiting: list[ast.AST] = [ast.parse(MODULES[module].read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            package = module if module in PACKAGES else module.rpartition(".")[0]
            source = ".".join(filter(None, (package if node.level else "", node.module)))
            for name in node.names:
                found = f"{source}.{name.name}"
                yield found if found in MODULES else source
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


GRAPH = {module: {*needed_by(module)} & MODULES.keys() - {module} for module in MODULES}


def test_no_cycles() -> None:
    """Modules can be read one after another: what a module uses never uses that module."""
    order = [*TopologicalSorter(GRAPH).static_order()]
    assert len(order) == len(MODULES) > 200


@pytest.mark.parametrize("part", ABOVE)
def test_nothing_above(part: str) -> None:
    """A part uses nothing of those above it."""
    inside = [module for module in MODULES if f"{module}.".startswith(f"{part}.")]
    used = {(module, found) for module in inside for found in GRAPH[module]}
    assert inside
    assert not {(module, found) for module, found in used if f"{found}.".startswith(ABOVE[part])}


def test_nothing_uses_the_package_from_below() -> None:
    """Whatever `muybridge` offers is imported from its own module by all that lies below."""
    users = {module for module in MODULES if "muybridge" in GRAPH[module]}
    assert not {user for user in users if not user.startswith(FACES)}
