"""`asset delete`."""

from __future__ import annotations

import sys

import click

from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import CONNECTION, JSON, timeout
from muybridge.cli.terminal import document, say


@click.group(cls=CommandGroup, no_args_is_help=False)
def asset() -> None:
    """Delete assets of family vidsb."""


@asset.command(
    params=[
        JSON,
        timeout("Seconds to wait for one response [default: 60]"),
        *CONNECTION,
    ]
)
@click.argument("asset_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_invocation
def delete(invocation: Invocation, asset_id: str, *, yes: bool) -> None:
    """Delete an asset permanently.

    Tasks that refer to it may fail. On a terminal, the command asks first.

    With --json: {ok, asset_id}.
    """
    invocation.note(pays=True)
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete asset {asset_id} permanently?", abort=True, err=True)
    with invocation.client(exchange_timeout=invocation.connection.timeout) as client:
        client.delete_asset(asset_id)
    say(f"asset {asset_id} is deleted")
    if invocation.presentation.json:
        document({"ok": True, "asset_id": asset_id})
