"""What to install where an extra is missing: a command that works, wherever the package is from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import muybridge

HOMES = [str(Path(muybridge.__file__).parents[1]), str(Path(muybridge.__file__).parents[2])]
PROGRAM = """
import sys
folder, *homes = sys.argv[1:]
sys.path[:0] = [folder, *homes, f"{homes[1]}/protocol"]
sys.modules["hypercorn"] = None
import muybridge.local
try:
    muybridge.local.LocalService
except ModuleNotFoundError as error:
    print(error)
"""


def advice(folder: Path, record: dict[str, Any] | None) -> str:
    """Return what a copy says that was installed as *record*, the `direct_url.json`, has it."""
    information = folder / "muybridge-7.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: muybridge\nVersion: 7\n")
    if record is not None:
        (information / "direct_url.json").write_text(json.dumps(record))
    command = [sys.executable, "-I", "-c", PROGRAM, str(folder), *HOMES]
    return subprocess.check_output(command, text=True).strip()  # noqa: S603  # our own program


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (None, '"muybridge[local]"'),
        ({"url": "file:///home/me/muybridge", "dir_info": {}}, '"/home/me/muybridge[local]"'),
        (
            {"url": "file:///home/me/my%20clones/m", "dir_info": {"editable": True}},
            '-e "/home/me/my clones/m[local]"',
        ),
        ({"url": "file:///dist/m-1-py3-none-any.whl", "archive_info": {}},
         '"/dist/m-1-py3-none-any.whl[local]"'),
        (
            {"url": "https://host.test/m.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            '"muybridge[local] @ git+https://host.test/m.git@0a1b"',
        ),
        ({"url": "https://host.test/m-1.tar.gz", "archive_info": {}},
         '"muybridge[local] @ https://host.test/m-1.tar.gz"'),
    ],
    ids=["index", "checkout", "editable", "wheel", "git", "archive"],
)  # fmt: skip
@pytest.mark.skipif(os.name == "nt", reason="the paths are those of POSIX")
def test_the_source(record: dict[str, Any] | None, source: str, tmp_path: Path) -> None:
    """The command names what this copy was installed from, not a name that no index may have."""
    said = advice(tmp_path, record)
    assert said.startswith("muybridge.local needs hypercorn: ")
    assert " install " in said
    assert said.endswith(f" {source}")


def test_the_environment(tmp_path: Path) -> None:
    """The command installs into the environment of the program that lacks the library."""
    said = advice(tmp_path, None)
    here = Path(sys.executable).parent
    assert str(here) in said or (here / "pip").exists()
