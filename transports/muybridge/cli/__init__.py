"""The command `muybridge`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from muybridge.cli.standard_streams import guard_streams
from muybridge.drivers.interrupts import Terminated, terminating_on_signals

_NEEDED = ("click", "rich")

_INTERRUPTED = 130


def main() -> None:
    """Run the command, or say what to install if its extra is missing."""
    guard_streams()
    with terminating_on_signals():
        try:
            _run()
        except KeyboardInterrupt as error:  # once loaded, the command reports this itself
            code = 128 + error.number if isinstance(error, Terminated) else _INTERRUPTED
            _report_interrupted(code)
            sys.exit(code)


def _run() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        command = 'pip install "muybridge[cli]"'
        print(f"muybridge needs {' and '.join(missing)}: {command}", file=sys.stderr)  # noqa: T201  there is nothing else to print with
        sys.exit(2)
    import click  # noqa: PLC0415  it may be missing

    from muybridge.cli.commands import muybridge  # noqa: PLC0415  it needs click

    try:
        code: int = muybridge(prog_name="muybridge", standalone_mode=False)
    except click.Abort as error:  # click turns a signal into this before the command begins
        raise error.__cause__ or error from None
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code)


def _report_interrupted(code: int) -> None:
    from contextlib import suppress  # noqa: PLC0415  needed only here
    from json import dumps  # noqa: PLC0415  the same

    print("error: Interrupted.", file=sys.stderr)  # noqa: T201  there is nothing else to print with
    if "--json" in sys.argv:
        error = {"type": "Interrupted", "message": "Interrupted.", "exit_code": code}
        with suppress(OSError):
            print(dumps({"ok": False, "error": error}), flush=True)  # noqa: T201  the same
