"""An import within a function is for something that most programs do without, and that costs.

`import muybridge` takes milliseconds and a first result loads one family, because each module is
loaded by the call that needs it; `test_purity.py` and `test_import_graph.py` measure that. It costs
readers something, so whatever costs next to nothing to load is imported where they look for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from test_import_cycles import MODULES, PACKAGES

COSTS = {
    # Optional parts.
    "PIL": "an extra",
    "trio": "its users alone need it",
    "muybridge.batch.results.places.s3": "an extra: obstore",
    "muybridge.local": "an extra: hypercorn, Pillow and PyAV",
    "muybridge.mcp": "an extra: mcp",
    "muybridge.drivers.on_asyncio": "its users alone need asyncio",
    "muybridge.drivers.on_trio": "its users alone need trio",
    "muybridge.drivers.trio_outcomes": "its users alone need trio",
    "muybridge_protocol.emulator": "the local service alone needs it",
    # Ways to use the service, each with what it brings.
    "muybridge": "the command's other verbs do without a client, or without a batch",
    "muybridge.drivers.fleet_run": "fleets: `run_all` alone needs them",
    "muybridge.drivers.outcomes": "fleets: `run_all` alone needs them",
    "muybridge.drivers.text_calls": "text requests",
    "muybridge.drivers.tracking": "six attrs classes: most clients have no listener",
    "muybridge.extras": "only where an extra is missing: importlib.metadata",
    "muybridge.files.downloads": "saving: tempfile, hashlib and ten modules",
    "muybridge.files.prices": "estimates",
    "muybridge.files.sidecar": "most downloads have none",
    "muybridge.media.by_name": "most requests are typed: media",
    "muybridge.media.checking": "media, and the rules about their content",
    "muybridge.media.loading": "media",
    "muybridge.purchases": "most clients have no store: estimates, sqlite3, or an extra (psycopg)",
    "muybridge.observability.logs": "logging: most clients log nothing",
    "muybridge.wire": "an HTTP library and TLS",
    "muybridge_protocol.fleet": "`run_all` and batches alone need it",
    "muybridge_protocol.estimates": "decimal and tomllib: most programs never ask what things cost",
    "muybridge_protocol.families.references": "the rules about media: most requests send URLs",
    "muybridge_protocol.media.inspect": "the readers of all formats",
    "muybridge_protocol.media.source": "the readers of all formats",
    "muybridge_protocol.notebook": "notebooks alone show HTML",
    "muybridge_protocol.openapi": "one command prints it",
    "muybridge_protocol.operations": "most programs create, wait and download: one module each",
    "muybridge_protocol.purchases": "budgets alone need it: decimal",
    "muybridge_protocol.rules.media": "the rules about media: most requests send URLs",
    "muybridge_protocol.text": "text requests",
    # Parts of the command, and what it needs to print.
    "click": "half of the command's start",
    "rich": "a quarter of a second",
    "muybridge.cli.commands": "click: without it, the command says how to install it",
    "muybridge.cli.errors": "only after an error",
    "muybridge.cli.mistakes": "only after a mistake: difflib",
    "muybridge.cli.narrow_tables": "rich",
    "muybridge.cli.verbose": "logging: --verbose alone needs it",
    "muybridge_protocol.hosts": "the guard of tests: the plugin loads with every pytest run",
    "muybridge_protocol.service": "the guard of tests, and the client's half of the command",
    # The standard library's. A millisecond each, and more where the disk is slow.
    "decimal": "few requests have one",
    "difflib": "only after a mistake",
    "hashlib": "most requests are not compared with others",
    "importlib.util": "`dir` alone needs it",
    "json": "the command prints little JSON",
    "pkgutil": "a family that is not in the table",
    "platformdirs": "programs with a store alone",
    "shutil": "the command alone copies",
    "tempfile": "the command alone copies",
}
"""What a function may import, by the beginning of its name, and why not every program loads it."""


def late_imports(module: str) -> Iterator[str]:
    """Yield what the functions of *module* import."""
    package = module if module in PACKAGES else module.rpartition(".")[0]
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = ".".join(filter(None, (package if node.level else "", node.module)))
            for name in node.names:
                found = f"{source}.{name.name}"
                yield found if found in MODULES else source


def cost_of(target: str) -> str | None:
    """Return the name in `COSTS` that is about *target*, the most specific one."""
    about = [name for name in COSTS if f"{target}.".startswith(f"{name}.")]
    found = max(about, key=len, default=None)
    return None if found == "muybridge" != target else found


LATE = [(module, target) for module in MODULES for target in late_imports(module)]


@pytest.mark.parametrize(("module", "target"), sorted({*LATE}))
def test_a_late_import_has_a_reason(module: str, target: str) -> None:
    """Whatever a function imports is optional or costs something, and the table says what."""
    assert cost_of(target) is not None, f"{module} can import {target} at its head"


def test_every_reason_is_needed() -> None:
    """The table has no reason for what no function imports."""
    assert {cost_of(target) for _, target in LATE} == {*COSTS}
