"""`families`, `models` and `schema`: the tables, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muybridge.cli import suggestions
from muybridge.cli.family_help import (
    model_limits,
    pace_of,
    sentences,
    summary,
)
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, default_of, option_name
from muybridge.cli.records import family_record, model_record, text_model_record
from muybridge.cli.terminal import answer_path, document, heading, show, table
from muybridge.verbs.catalogue import select
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families import FAMILIES, Family, Model
from muybridge_protocol.rules.values import Kind, Text
from muybridge_protocol.text.models import TextModel, Variant

_VERSIONS = {
    Variant.STANDARD: "standard, stable",
    Variant.OFFICIAL: "official",
    Variant.LOW: "budget",
}

_ACCEPTED = {Kind.STRING: "any text", Kind.BOOLEAN: "true or false"}
"""What a field accepts that has no rule."""

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(params=[JSON])
@pass_invocation
def families(invocation: Invocation) -> None:
    """List the families, with their poll intervals and retention.

    With --json: {ok, families: [{name, media, create_path, resolution, duration, pacing,
    retention, fields, relations, models, ...}]}.
    """
    if invocation.presentation.json:
        records = [family_record(family) for family in FAMILIES.values()]
        document({"ok": True, "families": records})
        return
    rows = table("Family", "Makes", "Sound", "Polled every", "Results are kept", "Models")
    for family in FAMILIES.values():
        pacing = family.pacing
        rows.add_row(
            family.name,
            summary(family),
            "yes" if family.makes_audio else "",
            f"{pace_of(pacing)}{' (assumed)' if pacing.assumed else ''}",
            family.retention.note,
            str(len(family.models) or "not documented"),
        )
    show([rows])


@click.command(params=[JSON])
@click.argument(
    "name", metavar="[FAMILY|MODEL]", required=False, shell_complete=suggestions.families
)
@pass_invocation
def models(invocation: Invocation, name: str | None) -> None:
    """Show the models: limits, defaults, billing and retention.

    Give text as FAMILY to see the text models.

    With --json: {ok, models: [{family, name, limits, own_limits, defaults, billing, pacing,
    retention, note, notes}]}; limits has the family's rules and the model's own. A text model is
    {family, name, base, variant}.
    """
    try:
        chosen = select(name)
    except LocalError as error:
        from muybridge.cli.mistakes import unknown_model

        raise LocalError(unknown_model(str(name), error), argument="family") from None
    if invocation.presentation.json:
        records = [
            model_record(known, model) for known, models in chosen.families for model in models
        ]
        document({"ok": True, "models": [*records, *map(text_model_record, chosen.texts)]})
        return
    portraits = [*starmap(_portrait, chosen.families)]
    if chosen.texts:
        portraits.append(_text_portrait(chosen.texts))
    show(_apart(portraits))


@click.command()
@click.option(
    "--out",
    metavar="FILE",
    help="Write it to FILE instead of stdout.",
    shell_complete=suggestions.files,
)
def schema(out: str | None) -> None:
    """Print the service's OpenAPI 3.1 document, in JSON.

    It contains every endpoint, and every rule that JSON Schema can express. With --out, the command
    prints the file's path.
    """
    from muybridge_protocol.openapi import openapi_document

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


def _apart(portraits: Iterable[Iterable[RenderableType]]) -> Iterator[RenderableType]:
    """Yield what is shown of each, with a blank line between them."""
    for number, portrait in enumerate(portraits):
        if number:
            yield ""
        yield from portrait


def _portrait(family: Family, models: Iterable[Model]) -> Iterator[RenderableType]:
    """Yield what is shown of *family*: a heading, *models*, its fields, and what to know."""
    yield heading(f"{family.name}: {summary(family)} (POST {family.create_path})")
    if family.models:
        rows = table("Model", "Notes", "Billing", "Polled every")
        for model in models:
            limits = "; ".join(part for part in (model.note, *model_limits(model)) if part)
            pace = pace_of(model.pacing or family.pacing)
            rows.add_row(model.name, limits, model.billing, pace)
        yield rows
        yield ""
    rows = table("Field", "Type", "Accepted", "Default")
    for field in family.fields:
        if field.wire == "model" and family.models:
            continue
        rules = (rule.accepted for rule in field.rules if rule != Text())
        accepted = "; ".join(rules) or _ACCEPTED.get(field.kind, f"any {field.kind}")
        default = "required" if field.required else default_of(field)
        rows.add_row(option_name(field.wire), field.kind, accepted, default)
    yield rows
    yield ""
    yield from sentences(family)


def _text_portrait(models: Iterable[TextModel]) -> Iterator[RenderableType]:
    """Yield what is shown of text *models*: a heading, and each with its variant."""
    yield heading("text: from text, pictures and videos (muybridge text MODEL PROMPT)")
    rows = table("Model", "Version")
    for model in models:
        rows.add_row(model.name, _VERSIONS[model.variant])
    yield rows
