"""`--help` can be read on a terminal of any width: nothing is broken in the middle of a word."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from cli.conftest import Invoke, Start
from muybridge.cli.commands import muybridge

MARGIN = 2
"""Columns that click leaves empty on the right."""


def commands(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command below *command*. Families are shown for `run` alone."""
    yield path
    if path in (("create",), ("check",)):
        return
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, *path, name)


def words(text: str) -> list[str]:
    """Return the words of a help page, without the list of commands, which is shortened to fit."""
    before, listed, after = text.partition("\nCommands:\n")
    rest = after.partition("\n\n")[2] if listed else ""
    return [word for word in f"{before}\n{rest}".split() if word != "\\"]


@pytest.mark.parametrize("path", [*commands(muybridge)], ids=" ".join)
def test_no_word_is_broken(invoke: Invoke, path: tuple[str, ...]) -> None:
    """Each line fits into the terminal, and has only whole words."""
    whole = words(invoke(*path, "--help", terminal_width=1000).stdout)
    for columns in (40, 60, 80):
        shown = invoke(*path, "--help", terminal_width=columns - MARGIN).stdout
        assert [line for line in shown.splitlines() if len(line) > columns] == []
        assert words(shown) == whole


def test_the_width_is_that_of_the_terminal(start: Start) -> None:
    """The command takes the width of the terminal, even a narrow one."""
    shown, _ = start("batch", "run", "--help", env={"COLUMNS": "40"}).communicate(timeout=60)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 40
    at = lines.index("  --allow-insecure-downloads")
    assert lines[at + 1] == "      Also allow downloads over plain"


def test_a_narrow_example_is_one_line_for_a_shell(invoke: Invoke) -> None:
    """A command line that is too long goes on after a backslash, and a value is with its option."""
    shown = invoke("run", "imgb", "--help", terminal_width=38).stdout
    assert (
        "  muybridge run imgb --model imgb-2 \\\n"
        '      --prompt "A horse at a gallop" \\\n'
        "      -o horse.png\n"
    ) in shown
