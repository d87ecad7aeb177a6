"""Programs for Node.js, which `.ci/agents` has installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def run(program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the folder that NODE_MODULES names.

    Args:
        program: Its file, below that folder.
        words: Its arguments.
        variables: Its environment, besides that of this process.
    """
    folder = Path(os.environ["NODE_MODULES"])
    path = f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603  the programs that were installed
        [str(folder / ".bin" / "node"), str(folder / program), *words],
        capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path, **variables},
    )  # fmt: skip
