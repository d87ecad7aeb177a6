"""The command `muybridge`."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

from muybridge.cli.exit_codes import INTERRUPTED, OF_A_SIGNAL, ExitCode
from muybridge.cli.standard_streams import guard_streams
from muybridge.signals import Terminated, terminating_on_signals


def main() -> None:
    """Run the command."""
    guard_streams()
    loaded = False
    with terminating_on_signals():
        try:
            _load()
            loaded = True
            _run()
        except KeyboardInterrupt as error:  # once loaded, the command reports this itself
            code = OF_A_SIGNAL + error.number if isinstance(error, Terminated) else INTERRUPTED
            _report_interrupted(
                code, "Interrupted." if loaded else "Interrupted. Nothing was sent."
            )
            sys.exit(code)


def _load() -> None:
    # While these are loaded, signals are handled.
    try:
        import_module("muybridge.cli.commands")  # which `_run` runs
    except ModuleNotFoundError as error:
        if (error.name or "muybridge").startswith("muybridge"):
            raise
        from muybridge.extras import install_command

        message = f"error: the command needs {error.name}: {install_command()}"
        print(message, file=sys.stderr)  # noqa: T201  there is nothing else to print with
        sys.exit(ExitCode.INVALID)


def _run() -> None:
    import click

    from muybridge.cli.commands import muybridge

    try:
        code: int = muybridge(prog_name="muybridge", standalone_mode=False)
    except click.Abort as error:  # click turns a signal into this before the command begins
        raise error.__cause__ or error from None
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code)


def _report_interrupted(code: int, message: str) -> None:
    from json import dumps

    print(f"error: {message}", file=sys.stderr)  # noqa: T201  there is nothing else to print with
    if "--json" in sys.argv:
        error = {"type": "Interrupted", "message": message, "exit_code": code}
        with suppress(OSError):
            print(dumps({"ok": False, "error": error}), flush=True)  # noqa: T201  the same
