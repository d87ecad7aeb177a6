"""The command `muybridge`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from muybridge.cli.streams import guard_streams

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command, or say what to install when its extra is missing."""
    guard_streams()
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        command = 'pip install "muybridge[cli]"'
        print(f"muybridge needs {' and '.join(missing)}: {command}", file=sys.stderr)  # noqa: T201  there is nothing else to print with
        sys.exit(2)
    from muybridge.cli.commands import muybridge  # noqa: PLC0415  it needs what was looked for

    muybridge(prog_name="muybridge")
