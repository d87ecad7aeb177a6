"""All commands with their options, and the exit codes, read from the command itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from textwrap import dedent
from typing import Final

import click

from muybridge.cli.commands import muybridge
from muybridge.cli.errors import EXIT_CODES
from muybridge.cli.exit_codes import MEANINGS
from muybridge.cli.family_help import FamilyCommand
from muybridge_docs.markdown import code, table
from muybridge_protocol.families import FAMILIES

_OPTION: Final = re.compile(r"(`[^`]*`)|(?<![\w-])(--[a-z-]+)")
"""What is marked as code already, and options that are not."""

_KEPT: Final = "\b\n"
"""click's own mark for lines that stay as they are."""


def commands() -> str:
    """Return all commands with their purpose, arguments and options."""
    return "\n\n".join(_sections(muybridge, "muybridge"))


def _sections(command: click.Command, path: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield from _section(path, command, command.params)
        return
    context = click.Context(command, info_name=path)
    inner = [command.get_command(context, name) for name in command.list_commands(context)]
    families = [each for each in inner if isinstance(each, FamilyCommand)]
    if families:
        yield from _section(f"{path} FAMILY", command, _shared(families))
        yield "There is also an option for each field: see [Families and models](families.md)."
        return
    for each in inner:
        if each is not None:
            yield from _sections(each, f"{path} {each.name}")


def _section(path: str, command: click.Command, params: Iterable[click.Parameter]) -> Iterator[str]:
    yield f"## `{path}`"
    yield _prose(command.help or "")
    rows = [(_shown(param), _help(param)) for param in params]
    if rows:
        yield table(("Argument or option", ""), rows)


def _shared(families: list[FamilyCommand]) -> list[click.Parameter]:
    """Return the options of *families* that are not fields."""
    fields = {field.name for family in FAMILIES.values() for field in family.fields}
    shared = {_shown(p): p for each in families for p in each.params if p.name not in fields}
    return list(shared.values())


def _prose(text: str) -> str:
    return "\n\n".join(
        f"```\n{dedent(part.removeprefix(_KEPT))}\n```"
        if part.startswith(_KEPT)
        else _marked(" ".join(part.split()))
        for part in cleandoc(text).split("\n\n")
    )


def _marked(text: str) -> str:
    """Mark the options in *text* as code."""
    return _OPTION.sub(lambda found: found[1] or f"`{found[2]}`", text)


def _shown(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        name = param.human_readable_name
        return code(name) if param.required else f"{code(name)} (optional)"
    names = [*param.opts, *param.secondary_opts]
    metavar = param.metavar or ("" if _is_flag(param) else _type_of(param))
    return " or ".join(code(f"{name} {metavar}".strip()) for name in names)


def _is_flag(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.is_flag


def _type_of(param: click.Parameter) -> str:
    if isinstance(param.type, click.Choice):
        return "|".join(map(str, param.type.choices))
    return re.sub(r" .*", "", param.type.name).upper()


def _help(param: click.Parameter) -> str:
    text = param.help if isinstance(param, click.Option) else ""
    return _marked(text or "")


def exit_codes() -> str:
    """Return the meaning of each exit code, and the errors that lead to it."""
    return table(
        ("Code", "Meaning", "Errors", "Accepted"),
        (
            (
                code(number),
                meaning,
                ", ".join(
                    f"{{py:exc}}`{kind.__name__}`" if kind.__module__.startswith("muybridge")
                    else code(kind.__name__)
                    for kind, ends_with in EXIT_CODES.items()
                    if ends_with == number
                ),
                number.accepted,
            )
            for number, meaning in MEANINGS.items()
        ),
    )  # fmt: skip
