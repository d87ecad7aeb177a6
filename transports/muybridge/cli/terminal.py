"""Output: data on stdout, everything else on stderr, without control characters."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from muybridge_protocol.records.json import readable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_LONGEST_LINE = 4000
_UNBOUNDED_WIDTH = 1000

_OBEYED = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")})
"""The control characters except new lines and tabs, for `str.translate` to remove."""


def say(text: str) -> None:
    """Print *text* on stderr, without control sequences."""
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip(" "))]
        print(indent + readable(line, _LONGEST_LINE), file=sys.stderr, flush=True)  # noqa: T201  a spinner catches this, and not `click.echo`


def is_live() -> bool:
    """Whether stderr is a terminal on which lines can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def answer(text: str) -> None:
    """Print a line of data on stdout."""
    shown = readable(text, _UNBOUNDED_WIDTH * 100)
    try:
        click.echo(shown)
    except UnicodeEncodeError:  # a terminal that does not know the characters of a file's name
        click.echo(shown.encode("ascii", "backslashreplace"))


def answer_piece(text: str) -> None:
    """Print a piece of a text on stdout at once, unchanged but for control characters."""
    if sys.stdout.isatty():
        text = text.translate(_OBEYED)
    click.echo(text.encode(sys.stdout.encoding, "backslashreplace"), nl=False)


def answer_path(path: str | os.PathLike[str]) -> None:
    """Print a path on stdout exactly as it is, so that a script can open it."""
    click.echo(os.fsencode(path))


def document(value: dict[str, Any]) -> None:
    """Print one JSON document on stdout. All but ASCII is escaped: it is safe on any terminal."""
    click.echo(json.dumps(value))


def long_document(value: Mapping[str, Any]) -> None:
    """Print the same, piece by piece: an iterator in *value* becomes an array."""
    between = "{"
    for name, member in value.items():
        sys.stdout.write(f"{between}{json.dumps(name)}: ")
        between = ", "
        if isinstance(member, Iterator):
            _write_array(cast("Iterator[object]", member))
        else:
            sys.stdout.write(json.dumps(member))
    click.echo("}")


def _write_array(items: Iterator[object]) -> None:
    sys.stdout.write("[")
    for number, item in enumerate(items):
        sys.stdout.write(f"{', ' if number else ''}{json.dumps(item)}")
    sys.stdout.write("]")


def table(*headings: str) -> Table:
    """Return an empty table. Long values wrap; nothing is cut off.

    If its words do not fit side by side, each row is shown as a list.
    """
    from muybridge.cli.narrow_tables import NarrowTable

    grid = NarrowTable(box=None, pad_edge=False, header_style="bold")
    for one in headings:
        grid.add_column(one, overflow="fold")
    return grid


def heading(text: str) -> RenderableType:
    """Return *text* as a heading."""
    from rich.text import Text

    return Text(text, style="bold")


def show(renderables: Iterable[RenderableType]) -> None:
    """Print tables and texts on stdout: fitted to a terminal, in whole lines elsewhere."""
    console = _console()
    if console.is_terminal:
        console.print(*renderables, sep="\n")
        return
    with console.capture() as captured:
        console.print(*renderables, sep="\n")
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def message_console() -> Console:
    """Return a console on stderr without markup: names are the user's, texts the service's."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def _console() -> Console:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        force_terminal=terminal,
        width=None if terminal else _UNBOUNDED_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
