"""`schema`: the service's description as an OpenAPI document, for the tools that read such."""

from __future__ import annotations

import json
from pathlib import Path

import click

from muybridge.cli.terminal import answer_path
from muybridge_protocol.openapi import openapi_document


@click.command()
@click.option("--out", metavar="FILE", help="Write it to FILE instead of stdout.")
def schema(out: str | None) -> None:
    """Print the service's description: an OpenAPI 3.1 document, in JSON.

    It is made from the tables that requests are checked with, and holds every endpoint and each
    rule that a schema can express. With --out, the file's path is printed.
    """
    text = json.dumps(openapi_document(), indent=2) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        Path(out).write_text(text, encoding="ascii")
    except OSError as error:
        raise click.BadParameter(
            f"{out} cannot be written: {error.strerror}", param_hint="--out"
        ) from None
    answer_path(out)
