"""No module needs, even indirectly, one that needs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOTS = [Path(__file__).parents[1] / root for root in ("protocol", "transports")]
MODULES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root in ROOTS
    for path in root.rglob("*.py")
}


def needed_by(module: str) -> Iterator[str]:
    """Yield what *module* imports anywhere, but for annotations alone."""
    waiting: list[ast.AST] = [ast.parse(MODULES[module].read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            is_package = MODULES[module].stem == "__init__"
            package = module if is_package else module.rpartition(".")[0]
            source = ".".join(filter(None, (package if node.level else "", node.module)))
            for name in node.names:
                found = f"{source}.{name.name}"
                yield found if found in MODULES else source


def test_no_cycles() -> None:
    """Modules can be read one after another: what a module uses never uses that module."""
    graph = {module: {*needed_by(module)} & MODULES.keys() - {module} for module in MODULES}
    order = [*TopologicalSorter(graph).static_order()]
    assert len(order) == len(MODULES) > 200
