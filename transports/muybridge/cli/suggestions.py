"""What a shell suggests while a command line is typed: values from the tables, and files.

click asks for it only when a shell completes, so what is needed for that is imported here as late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.field import Field
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import OneOf

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Suggest = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
"""Returns what may follow, given what was typed of the value."""

PATHS = ("PATH", "FILE", "DIR")
"""The placeholders of options that take a file or a folder."""


def files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:  # noqa: ARG001  click passes it
    """Suggest files: the shell knows them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(typed, type="file")]


def families(
    context: click.Context,  # noqa: ARG001  click passes it
    parameter: click.Parameter,  # noqa: ARG001  the same
    typed: str,
) -> list[CompletionItem]:
    """Suggest the families, and `text` beside them."""
    return _starting(typed, ((name, "") for name in (*FAMILIES, "text")))


def text_models(
    context: click.Context,  # noqa: ARG001  click passes it
    parameter: click.Parameter,  # noqa: ARG001  the same
    typed: str,
) -> list[CompletionItem]:
    """Suggest the text models, with their variants."""
    from muybridge_protocol.text.models import TEXT_MODELS

    return _starting(typed, ((name, "") for name in TEXT_MODELS))


def values_of(family: Family, field: Field) -> Suggest | None:
    """Return what suggests the values of *field*, or None if they cannot be known."""
    for rule in field.rules:
        if isinstance(rule, MediaUrl):
            return _local_files if rule.base64 else None
        if isinstance(rule, OneOf):
            notes = {model.name: model.note for model in family.models}
            options = [(str(option), notes.get(str(option), "")) for option in rule.options]
            return lambda context, parameter, typed: _starting(typed, options)  # noqa: ARG005  click passes them
    return None


def _local_files(
    context: click.Context,  # noqa: ARG001  click passes it
    parameter: click.Parameter,  # noqa: ARG001  the same
    typed: str,
) -> list[CompletionItem]:
    """Suggest files behind the `@`, which no shell would."""
    folder, slash, start = typed.removeprefix("@").rpartition("/")
    try:
        paths = sorted(Path(f"{folder}{slash}" or ".").iterdir())
    except OSError:
        return []
    names = (f"{path.name}/" if path.is_dir() else path.name for path in paths)
    chosen = (name for name in names if start or not name.startswith("."))
    return _starting(f"@{folder}{slash}{start}", ((f"@{folder}{slash}{n}", "") for n in chosen))


def _starting(typed: str, options: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(option, help=note or None)
        for option, note in options
        if option.startswith(typed)
    ]
