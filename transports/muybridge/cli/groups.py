"""Groups of commands. For an unknown command, the error says what to write."""

from __future__ import annotations

import click

from muybridge.cli.help_page import HelpPage


class HelpContext(click.Context):
    """The context of a command whose help fits into the terminal."""

    formatter_class: type[click.HelpFormatter] = HelpPage


class HelpGroup(click.Group):
    """A group whose commands show their help as it does."""

    context_class: type[click.Context] = HelpContext

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and give it the context of this group."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command.context_class = self.context_class
        return name, command, rest


class CommandGroup(HelpGroup):
    """A group of commands. Without a command, or for an unknown one, it says what to write."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the name of the command; without any words, show an example."""
        if not args and not self.no_args_is_help and not ctx.resilient_parsing:
            from muybridge.cli.mistakes import without_command

            ctx.fail(without_command(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. For an unknown name, the error says what to write."""
        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            from muybridge.cli.mistakes import unknown_command

            ctx.fail(unknown_command(ctx, name))
        return super().resolve_command(ctx, args)
