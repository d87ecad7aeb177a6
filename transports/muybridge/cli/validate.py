"""`validate`: one JSON line for each item of a batch. JSON lines are read with constant memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO

import click

from muybridge.cli.request_files import items
from muybridge_protocol.records.json import JsonObject, as_object


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def validate(file: BinaryIO) -> None:
    """Check requests without sending anything.

    FILE is one that `muybridge batch run` takes: JSON lines, a JSON array (.json) or CSV (.csv).
    From stdin, JSON lines are read. An item has the family's name and the fields as they are
    sent, which may also stand in an object "body":

    \b
      {"family": "imga", "model": "imga", "prompt": "A horse", "name": "horse"}

    One line is printed for each item, in the same order. Blank lines are skipped, but counted:

    \b
      {"line": 1, "family": "imga", "ok": true, "errors": []}

    An error is {"field": ..., "message": ...} with the field's name on the wire, "" where it is
    about the item as a whole. "warnings" of the same form name settings without effect. In a JSON
    array, "item" replaces "line". Exit code 0 when all items are valid, 1 when some are
    not.
    """  # noqa: D301  click's own mark for lines that stay as they are
    write = sys.stdout.write
    sound = True
    for where, item in items(file):
        told = where | _judge(item)
        sound = sound and told["ok"]
        write(json.dumps(told) + "\n")
    if not sound:
        click.get_current_context().exit(1)


def _judge(item: Any) -> JsonObject:
    """Return the verdict on *item*."""
    from muybridge.batch.items import WrongItem, read_fields  # noqa: PLC0415  it loads all families

    name: object = (as_object(item) or {}).get("family")
    label = name if isinstance(name, str) else None
    warnings: list[tuple[str, str]] = []
    try:
        if isinstance(item, WrongItem):
            raise item
        fields = read_fields(item)
    except WrongItem as wrong:
        errors = list(wrong.problems)
    else:
        report = fields.family.check(fields.body, extra=fields.extra)
        errors = [(one.field, one.sentence()) for one in report.problems]
        warnings = [(notice.field, notice.message) for notice in report.notices]
    verdict = {"family": label, "ok": not errors, "errors": findings(errors)}
    return {**verdict, "warnings": findings(warnings)} if warnings else verdict


def findings(findings: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return findings as programs read them."""
    return [{"field": field, "message": message} for field, message in findings]
