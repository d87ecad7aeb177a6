"""Where a batch is: in a folder, or in a database."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from muybridge.batch import SharedBatch
from muybridge.batch.shared import Place
from muybridge.cli.options import JOURNAL

Command = TypeVar("Command", bound=Callable[..., Any])


def in_folder(command: Command) -> Command:
    """Give *command* the argument that names a batch."""
    return click.argument("folder", metavar="DIR", type=click.Path())(command)


def in_database(command: Command) -> Command:
    """Give *command* the option for a batch in a database."""
    said = f"{JOURNAL} DIR is then the name of the batch."
    return click.option("--journal", metavar="URL", help=said)(command)


def place_of(folder: str, journal: str | None) -> Place:
    """Return the batch that the argument and the option name."""
    return folder if journal is None else SharedBatch(journal, folder)


def words_of(folder: str, journal: str | None) -> str:
    """Return the same as words of the command, without the address, which may have a password."""
    named = shlex.quote(folder)
    return named if journal is None else f"--journal URL {named}"
