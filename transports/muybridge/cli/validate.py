"""`validate`: one JSON line for each item of a batch. JSON lines are read with constant memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from muybridge.cli.terminal import say
from muybridge_protocol.records.json import JsonObject, as_object

_LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line: references may stand in it as base64."""


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
    if file.isatty():
        say("reading requests from this terminal, one JSON object a line; Ctrl-D ends")
    write = sys.stdout.write
    sound = True
    for where, item in _items(file):
        told = where | _judge(item)
        sound = sound and told["ok"]
        write(json.dumps(told) + "\n")
    if not sound:
        click.get_current_context().exit(1)


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line, or None for one that is too long to be kept."""
    while line := _read(file):
        if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (rest := _read(file)) and not rest.endswith(b"\n"):
            pass
        yield None


def _read(file: BinaryIO) -> bytes:
    try:
        return file.readline(_LONGEST_LINE)
    except OSError as error:
        raise click.UsageError(f"the requests cannot be read: {error.strerror}") from None


def _items(file: BinaryIO) -> Iterator[tuple[JsonObject, Any]]:
    """Yield each item, or a `WrongItem`, with its place; blank lines are skipped."""
    from muybridge.batch.items import WrongItem, located, parsed  # noqa: PLC0415  it loads all families

    path = str(getattr(file, "name", ""))
    if path.lower().endswith((".json", ".csv")):
        for where, value in located(path):
            kind, _, number = where.rpartition(" ")
            yield ({kind: int(number)} if number.isdigit() else {}), value
        return
    for line_number, line in enumerate(_lines(file), start=1):
        if line is None:
            yield {"line": line_number}, WrongItem(("", f"it has more than {_LONGEST_LINE} bytes"))
        elif line.strip():
            yield {"line": line_number}, parsed(line)


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
    verdict = {"family": label, "ok": not errors, "errors": _findings(errors)}
    return {**verdict, "warnings": _findings(warnings)} if warnings else verdict


def _findings(findings: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"field": field, "message": message} for field, message in findings]
