"""`families` and `models`: what the tables say, on the terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from muybridge.cli.errand import Errand, pass_errand
from muybridge.cli.options import default_of, json_option, option_name
from muybridge.cli.records import family_record, model_record
from muybridge.cli.teaching import (
    model_limits,
    pace_of,
    sentences,
    summary,
)
from muybridge.cli.terminal import document, show
from muybridge_protocol.families import FAMILIES, Family, find_family

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


@click.command(params=[json_option()])
@pass_errand
def families(errand: Errand) -> None:
    """Show the families: what they make, how long that takes and is kept.

    With --json: {ok, families: [{name, media, create_path, resolution, duration, pacing,
    retention, fields, relations, models, ...}]}.
    """
    if errand.json:
        told = [family_record(family) for family in FAMILIES.values()]
        document({"ok": True, "families": told})
        return
    table = _table("Family", "Makes", "Sound", "Polled every", "Results are kept", "Models")
    for family in FAMILIES.values():
        pacing = family.pacing
        table.add_row(
            family.name,
            summary(family),
            "yes" if family.makes_audio else "",
            f"{pace_of(pacing)}{' (assumed)' if pacing.assumed else ''}",
            family.retention.note,
            str(len(family.models) or "not shown"),
        )
    show([table])


@click.command(params=[json_option()])
@click.argument("family", required=False)
@pass_errand
def models(errand: Errand, family: str | None) -> None:
    """Show the models: limits, defaults, billing, pacing and retention.

    With --json: {ok, models: [{family, name, limits, own_limits, defaults, billing, pacing,
    retention, note, notes}]}; limits hold the family's rules and the model's own.
    """
    chosen = list(FAMILIES.values()) if family is None else [find_family(family)]
    if errand.json:
        told = [model_record(known, model) for known in chosen for model in known.models]
        document({"ok": True, "models": told})
        return
    show([part for known in chosen for part in _portrait(known)])


def _portrait(family: Family) -> Iterator[RenderableType]:
    """Yield what is shown of *family*: a heading, its models, its fields, and what to know."""
    from rich.text import Text  # noqa: PLC0415  only these tables need it

    yield Text(f"{family.name}: {summary(family)} (POST {family.create_path})", style="bold")
    if family.models:
        table = _table("Model", "What sets it apart", "Billing", "Polled every")
        for model in family.models:
            limits = "; ".join(part for part in (model.note, *model_limits(model)) if part)
            pace = pace_of(model.pacing or family.pacing)
            table.add_row(model.name, limits, model.billing, pace)
        yield table
        yield Text("")
    table = _table("Field", "Type", "Accepted", "Default")
    for field in family.fields:
        if field.wire == "model" and family.models:
            continue
        accepted = "; ".join(rule.accepted for rule in field.rules)
        default = "required" if field.required else default_of(field)
        table.add_row(option_name(field.wire), field.kind, accepted, default)
    yield table
    yield Text("")
    yield from map(Text, sentences(family))
    yield Text("")


def _table(*headings: str) -> Table:
    from rich.table import Table  # noqa: PLC0415  only these tables need it

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # Whatever does not fit goes on in the next line; nothing is cut off.
        table.add_column(heading, overflow="fold")
    return table
