"""The core needs attrs and cattrs, and nothing else: no other library, no socket, no thread."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .installing import ROOT, Built, Environment, install, run, succeed

CORE_ALONE = Path(__file__).parent / "jobs" / "core_alone.py"
PYODIDE = "314.0.7"


def check(printed: str) -> None:
    """See that every model's task was made, and that no other library was there to help."""
    report, others = printed.splitlines()
    made = re.fullmatch(r"(\d+) modules, (\d+) tasks, \{'completed'\}", report)
    assert made, printed
    assert int(made[1]) > 100
    assert int(made[2]) >= 30
    assert others == "attr cattrs"


@pytest.fixture(scope="session")
def with_attrs_and_cattrs(built: Built, scratch: Path) -> Environment:
    """An environment in which the wheel was installed with `--no-deps`, beside attrs and cattrs."""
    environment = Environment(scratch / "core-alone", "attrs", "cattrs")
    install(environment.python, "--no-deps", str(built.wheel))
    return environment


def test_beside_attrs_and_cattrs(with_attrs_and_cattrs: Environment) -> None:
    """Every module of the core loads, and creates and polls of every model run."""
    check(with_attrs_and_cattrs.run(CORE_ALONE))


def test_the_command_says_what_it_lacks(with_attrs_and_cattrs: Environment) -> None:
    """The command, which needs more, says in one line how to install that."""
    done = run([with_attrs_and_cattrs.command("muybridge"), "--version"])
    assert done.returncode == 2
    assert re.fullmatch(r"error: the command needs click: .* install .*\n", done.stderr)


@pytest.mark.nightly
def test_in_pyodide(with_attrs_and_cattrs: Environment, tmp_path: Path) -> None:
    """The same holds for CPython in WebAssembly, as browsers run it."""
    npm = shutil.which("npm")
    assert npm is not None, "this test needs Node.js and npm"
    succeed([npm, "install", "--no-audit", "--no-fund", f"pyodide@{PYODIDE}"], cwd=tmp_path)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    libraries = succeed([with_attrs_and_cattrs.python, "-c", code]).strip()
    shutil.copy(ROOT / "tests" / "packaged" / "pyodide.mjs", tmp_path)
    check(succeed(["node", "pyodide.mjs", CORE_ALONE, libraries], cwd=tmp_path))
