"""The root command: it loads subcommands on first use and turns every ending into an exit code."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import takewhile
from signal import SIGTERM
from typing import Any

import click

from muybridge.cli.exit_codes import (
    AMBIGUOUS,
    DONE,
    INTERRUPTED,
    MEANINGS,
    NOT_SENT,
    OF_A_SIGNAL,
    SAFE,
)
from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import Invocation
from muybridge.cli.presentation import Presentation
from muybridge.cli.standard_streams import Unprinted
from muybridge.signals import ignoring_signals
from muybridge.version import __version__

_COMMANDS = {
    "demo": "demo",
    "run": "generate",
    "create": "generate",
    "text": "text",
    "get": "tasks",
    "wait": "tasks",
    "download": "tasks",
    "batch": "batch",
    "worker": "workers",
    "asset": "assets",
    "families": "tables",
    "models": "tables",
    "validate": "validate",
    "estimate": "estimate",
    "check": "check",
    "spent": "purchases",
    "undecided": "purchases",
    "decide": "purchases",
    "budget": "budgets",
    "consent": "consent",
    "store": "stores",
    "schema": "tables",
    "mcp": "agents",
    "skill": "agents",
    "serve": "serve",
    "completion": "completion",
}
"""Where each command is, in the order of the help."""


_FLAGS = frozenset({"-v", "--verbose", "--json", "--local"})
"""The flags that may also come before the command."""


class Muybridge(CommandGroup):
    """The root: it loads commands on first use, and turns every error into an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click passes it
        """Return the commands' names. None of them is imported for that."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click passes it
        """Import the command *cmd_name* and return it, or None if there is none."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(f"muybridge.cli.{module}"), cmd_name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Start an invocation. --json applies to mistakes in the command line, too."""
        ctx.obj = Invocation(presentation=Presentation(json="--json" in args))
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        try:
            return super().parse_args(ctx, self._with_flags_last(ctx, args))
        except (Unprinted, click.NoSuchOption, click.BadOptionUsage) as error:
            # The help or the version could not be printed, or the options are wrong.
            ctx.exit(_report(error, ctx.obj))

    def _with_flags_last(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return *args* with the flags before a command behind it, where it reads or refuses them.

        They cannot go to the end: an option there whose value is missing would take one as that.
        """
        flags = list(takewhile(_FLAGS.__contains__, args))
        rest = args[len(flags) :]
        command: click.Command | None = self
        words = 0
        while flags and isinstance(command, click.Group):
            if words == len(rest) or rest[words].startswith("-"):
                break
            known = rest[words] in command.list_commands(ctx)
            command = command.get_command(ctx, rest[words]) if known else None
            words += 1
        return [*rest[:words], *flags, *rest[words:]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand, and exit with the code that says how it ended."""
        invocation: Invocation = ctx.obj
        with invocation.reporting_warnings():
            try:
                code = self._run(ctx)
                # Here, what cannot be printed is an error of the command, with its exit code.
                sys.stdout.flush()
            except BaseException as error:  # noqa: BLE001  every ending has an exit code
                # A second Ctrl-C must not cut short what is said about the first one.
                with ignoring_signals():
                    code = _report(error, invocation)
        ctx.exit(code)

    def _run(self, ctx: click.Context) -> int:
        try:
            super().invoke(ctx)
        except click.exceptions.Exit as ended:
            return ended.exit_code
        return DONE

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click passes it
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in MEANINGS.items()])
            formatter.write_paragraph()
            formatter.write_text(
                f"`get` exits with {DONE} whatever the task's status is. Ctrl-C exits with "
                f"{NOT_SENT} before anything was sent, {SAFE} once the task's id is known, "
                f"{AMBIGUOUS} if it interrupts a request that may have been accepted, and "
                f"{INTERRUPTED} in commands that cost nothing. Other signals do the same, but exit "
                f"with {OF_A_SIGNAL} plus their number (SIGTERM: {OF_A_SIGNAL + SIGTERM})."
            )
        with formatter.section("JSON"):
            formatter.write_text(
                "With --json, stdout has exactly one JSON document, even after an error (batch "
                "run and worker: one JSON object per line): {ok: true, ...} as each command's "
                "help says, or {ok: false, error: {type, message, exit_code, ...}, task, "
                "result}. task and result have the service's own fields, and task has a token, "
                "which wait accepts on any machine. error has the command that resumes, if "
                "there is one, and the problems of an invalid request."
            )


def _report(error: BaseException, invocation: Invocation) -> int:
    from muybridge.cli.errors import report

    return report(error, invocation)


@click.command(cls=Muybridge, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    __version__, "-V", "--version", prog_name="muybridge", message="%(prog)s %(version)s"
)
def muybridge() -> None:
    """Create images, videos and text.

    Requests that may have been charged are never resent automatically.

    \b
      muybridge demo                    see it work on this machine, without a key
      muybridge run imgb --help         what a family accepts
      muybridge run imgb --local ...    try a request on this machine
      muybridge text --help             ask a model, and watch it answer

    The key comes from MUYBRIDGE_API_KEY or --api-key-file, the service's address from
    MUYBRIDGE_BASE_URL or --base-url, and for text from MUYBRIDGE_TEXT_BASE_URL or
    --text-base-url. Progress, task ids and warnings go to stderr.
    """  # noqa: D301  click's own mark for lines that stay as they are
