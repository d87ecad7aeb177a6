"""What a type checker sees of the installed packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .installing import EVERYTHING, Environments, succeed


@pytest.mark.parametrize("package", ["muybridge_protocol", "muybridge"])
def test_every_public_type_is_known(
    package: str, environments: Environments, scratch: Path
) -> None:
    """pyright knows the type of everything that can be imported, but for other people's own."""
    binaries = environments.get(EVERYTHING).python.parent
    told = succeed(
        [sys.executable, "-m", "pyright", "--ignoreexternal", "--verifytypes", package],
        cwd=scratch,  # where no settings are
        PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}",
    )
    assert f"/{package}/py.typed" in told
    assert "Type completeness score: 100%" in told
