"""Type checkers find a misspelled name in every package."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import muybridge
import muybridge_protocol

SETTING = """\
# pyright: strict
import asyncio
import functools
import trio
{imports}
request = muybridge.ImgaRequest(model="imga", prompt="a horse")
client = muybridge.Client("key", "https://service.test")
trio_client = muybridge.TrioClient("key", "https://service.test")
result = client.run(request)
"""
MEMBERS = [
    ("muybridge.Status.COMPLETED", "muybridge.Status.COMPLETE"),
    ("muybridge.FinishReason.STOP", "muybridge.FinishReason.STOPPED"),
    ("request.prompt", "request.promt"),
    ("result.image_url", "result.image_ulr"),
    ("client.service", "client.servcie"),
    ("client.create(request)", "client.crate(request)"),
    ("client.run(request, timeout=5)", "client.run(request, time_out=5)"),
    ("client.read(result, timeout=5)", "client.read(result, time_out=5)"),
    ("client.messages({}, timeout=5)", "client.messages(timeout=5, body_={})"),
    ("client.wait(result)", "client.wait(result, 5)"),
    ("client.get(result)", "client.submit(request)"),
    # What is called by another library is called as usual.
    (
        "trio.run(trio_client.run, request)",
        "trio.run(trio_client.rnu, request)",
    ),
    (
        "asyncio.to_thread(client.run, request)",
        "asyncio.to_thread(client.run, request, time_out=5)",
    ),
    (
        "trio.run(functools.partial(trio_client.run, timeout=5), request)",
        "trio.run(functools.partial(trio_client.run, time_out=5), request)",
    ),
    ("muybridge.AsyncClient(timeout=5)", "muybridge.AsyncClient(time_out=5)"),
    ("muybridge.TrioClient(timeout=5)", "muybridge.TrioClient(time_out=5)"),
    ('muybridge.VidmRequest(model="vidm")', 'muybridge.VidmRequest(modle="vidm")'),
    ('muybridge.VidmRequest(model="vidm")', 'muybridge.VidmReqest(model="vidm")'),
]
"""Members, arguments and values: as they are, and misspelled."""


def packages() -> Iterator[ModuleType]:
    """Yield every package."""
    for root in (muybridge, muybridge_protocol):
        yield root
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if found.ispkg:
                yield import_module(found.name)


def kind(value: object) -> str:
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isfunction(value) else "constant"


def names() -> dict[tuple[str, str], str]:
    """Return one name of each kind that each package offers, by the package and the kind."""
    return {
        (package.__name__, kind(getattr(package, name))): name
        for package in packages()
        for name in sorted(getattr(package, "__all__", ()))
        if not name.startswith("__")
    }


def setting() -> str:
    """Return the first lines of a program, which import every package."""
    imports = "\n".join(f"import {name}" for name in dict.fromkeys(name for name, _ in names()))
    return SETTING.format(imports=imports)


def uses(*, misspelled: bool) -> list[str]:
    """Return lines that use one name each."""
    lines = [f"print({member[misspelled]})" for member in MEMBERS]
    for number, ((package, _), right) in enumerate(names().items()):
        name = right[:-2] + right[:-3:-1] + "_" if misspelled else right
        lines += [
            f"print({package}.{name})",
            f"from {package} import {name} as name_{number}; print(name_{number})",
        ]
    return lines


def problems(checker: str, folder: Path, text: str) -> dict[int, str]:
    """Return what *checker* says of *text* in its strict mode, by line."""
    path = folder / "program.py"
    path.write_text(text, "utf-8")
    options = {
        "mypy": ["--strict", "--cache-dir", str(folder / "cache")],
        "pyright": ["--pythonpath", sys.executable],
    }
    done = subprocess.run(  # noqa: S603  # a development dependency
        [sys.executable, "-m", checker, *options[checker], path.name],
        cwd=folder,  # where no settings are
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    found = re.findall(r"program\.py:(\d+)(?::\d+)?(?: -|:) error: (.*)", done.stdout)
    assert done.returncode == bool(found), done.stdout + done.stderr
    return {int(line): message for line, message in found}


def test_kinds_of_names() -> None:
    """The packages that import their names on first use are among those that are checked."""
    assert {
        ("muybridge", "class"),
        ("muybridge", "function"),
        ("muybridge", "constant"),
        ("muybridge.local", "class"),
        ("muybridge.local", "function"),
        ("muybridge.testing", "class"),
        ("muybridge.testing", "function"),
        ("muybridge_protocol.families", "class"),
        ("muybridge_protocol.families", "constant"),
        ("muybridge_protocol.operations", "class"),
    } <= set(names())


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_typos(checker: str, tmp_path: Path) -> None:
    """Every line with a misspelled name has an error, and without it none has one."""
    first, right, wrong = setting(), uses(misspelled=False), uses(misspelled=True)
    assert problems(checker, tmp_path, first + "\n".join(right)) == {}
    found = problems(checker, tmp_path, first + "\n".join(wrong))
    assert [line for n, line in enumerate(wrong, first.count("\n") + 1) if n not in found] == []
    assert len(found) == len(wrong)
