"""`create` and `run`: one command a family, made from its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from muybridge.cli import options
from muybridge.cli.consent import obtain_consent
from muybridge.cli.course import as_argument
from muybridge.cli.family_help import FamilyCommand
from muybridge.cli.groups import HelpGroup
from muybridge.cli.invocation import invocation_of
from muybridge.cli.records import generation_record
from muybridge.cli.results import check_output, print_generation, save
from muybridge.cli.terminal import answer
from muybridge.verbs import generation
from muybridge.verbs.generation import Generation
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families import FAMILIES, Family, find_family


class FamilyGroup(HelpGroup):
    """A command for each family. For an unknown name, the error suggests the closest one."""

    def __init__(self, name: str, build: Callable[[Family], click.Command], doc: str) -> None:
        super().__init__(
            name, help=doc, subcommand_metavar="FAMILY [OPTIONS]", no_args_is_help=False
        )
        self._build = build

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the name of the family. An option in its place is an error that says so."""
        if not args and not ctx.resilient_parsing:
            from muybridge.cli.mistakes import without_command

            ctx.fail(without_command(ctx))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            raise click.UsageError(
                f"The family comes before {name}. Write muybridge {self.name} FAMILY {name} ..., "
                f"with one of {', '.join(FAMILIES)}",
                ctx,
            ) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click passes it
        """Return the families' names."""
        return list(FAMILIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of the family *cmd_name*.

        Raises:
            LocalError: There is none.
        """
        if cmd_name.startswith("-"):
            return None  # click itself reports unknown options
        try:
            return self._build(find_family(cmd_name))
        except LocalError as error:
            from muybridge.cli.mistakes import unknown_family

            said = unknown_family(ctx, cmd_name, error)
            raise LocalError(said, argument="family") from None


def _create_command(family: Family) -> click.Command:
    parameters = [
        *options.family_options(family),
        options.JSON,
        options.poll_interval("Poll interval in the wait command that is printed"),
        options.timeout(
            "Seconds to wait for the response; if it takes longer, you cannot know whether the "
            "request was accepted [default: 60]"
        ),
        options.YES,
        options.PRICES,
        *options.LIMITS,
        options.TAG,
        *options.CONNECTION,
    ]

    @click.pass_context
    def create(context: click.Context, /, **values: Any) -> None:
        invocation = invocation_of(context)
        yes = values.pop("yes")
        request = options.read_request(family, values)
        obtain_consent(invocation, request.quantities(), yes=yes)
        with invocation.client(exchange_timeout=invocation.connection.timeout) as client:
            # From here on, whoever interrupts has to be told whether anything was sent.
            invocation.note(pays=True)
            task = generation.create(client, request)
        invocation.say_next_command()
        if invocation.presentation.json:
            invocation.print_document(**generation_record(Generation(task)))
        else:
            answer(as_argument(task))

    return FamilyCommand(family, "create", parameters, create)


def _run_command(family: Family) -> click.Command:
    parameters = [
        *options.family_options(family),
        options.output(),
        options.SIDECAR,
        options.INSECURE_DOWNLOADS,
        options.LOCAL,
        options.JSON,
        *options.WAITING,
        options.YES,
        options.PRICES,
        *options.LIMITS,
        options.TAG,
        *options.CONNECTION,
    ]

    @click.pass_context
    def run(context: click.Context, /, **values: Any) -> None:
        invocation = invocation_of(context)
        invocation.connection.refuse_with_local("base_url", "api_key_file")
        yes = values.pop("yes")
        request = options.read_request(family, values)
        check_output(invocation.presentation, family.media)
        obtain_consent(invocation, request.quantities(), yes=yes)
        with invocation.client() as client:
            invocation.note(pays=True)
            timeout = invocation.connection.wait_timeout
            outcome = save(invocation, generation.run, client, request, timeout=timeout)
        print_generation(invocation, outcome)

    return FamilyCommand(family, "run", parameters, run)


create: FamilyGroup = FamilyGroup(
    "create",
    _create_command,
    "Create a task and print its id, without waiting for it.\n\n"
    "With --json: {ok, task: {the record's fields, family, token}}.",
)
run: FamilyGroup = FamilyGroup(
    "run",
    _run_command,
    "Create a task, wait for it, and save or print its result.\n\n"
    "With -o, the result is saved; without it, its URL is printed.\n\n"
    "With --json: {ok, task, result: {the record's fields}, expires_at, path, times: {usual, "
    "so_far} in seconds, if that is known}.",
)
