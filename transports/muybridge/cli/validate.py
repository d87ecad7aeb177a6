"""`validate`: JSON lines in, one JSON line out for each, with constant memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from muybridge.cli.terminal import say
from muybridge_protocol.codec import InvalidJson, JsonObject, read_object
from muybridge_protocol.errors import UnknownFamily
from muybridge_protocol.families import find_family
from muybridge_protocol.rules import shown

_LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line: references may stand in it as base64."""

_NAMES = ("family", "body", "extra")


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def validate(file: BinaryIO) -> None:
    """Check requests without sending anything.

    FILE, or stdin, holds one JSON object a line, with the family's name and the fields as they
    are sent; "extra" may hold fields that travel unchecked:

    \b
      {"family": "imga", "body": {"model": "imga", "prompt": "A horse"}}

    For each line one line is printed, in the same order; blank lines are skipped, and counted:

    \b
      {"line": 1, "family": "imga", "ok": true, "errors": []}

    An error is {"field": ..., "message": ...} with the field's name on the wire, "" where it is
    about the line as a whole. "warnings" of the same form tell settings without effect. Exit code
    0 when all lines are valid, 1 when some are not.
    """  # noqa: D301  click's own mark for lines that stay as they are
    if file.isatty():
        say("reading requests from this terminal, one JSON object a line; Ctrl-D ends")
    write = sys.stdout.write
    sound = True
    for number, line in enumerate(_lines(file), start=1):
        if line is not None and not line.strip():
            continue
        told = {"line": number, **_judge(line)}
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


def _judge(line: bytes | None) -> JsonObject:
    """Return what is to be said of *line*."""
    if line is None:
        return _verdict(None, [("", f"the line has more than {_LONGEST_LINE} bytes")])
    try:
        item = read_object(line)
    except InvalidJson as error:
        return _verdict(None, [("", str(error))])
    name = item.get("family")
    label = name if isinstance(name, str) else None
    errors = list(_misshapen(item))
    try:
        family = find_family(name) if isinstance(name, str) else None
    except UnknownFamily as error:
        return _verdict(label, [("family", str(error)), *errors])
    if family is None or errors:
        return _verdict(label, errors)
    report = family.check(item["body"], extra=item.get("extra"))
    errors = [
        (problem.field, f"{problem.message}; {problem.accepted}") for problem in report.problems
    ]
    return _verdict(label, errors, [(notice.field, notice.message) for notice in report.notices])


def _misshapen(item: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the line's own names."""
    if "family" not in item:
        yield "family", "is required"
    elif not isinstance(item["family"], str):
        yield "family", f"{shown(item['family'])} is not a string"
    if "body" not in item:
        yield "body", "is required"
    for name in ("body", "extra"):
        if name in item and not isinstance(item[name], dict):
            yield name, f"{shown(item[name])} is not a JSON object"
    for name in item:
        if name not in _NAMES:
            yield name, f"is not known here; use {', '.join(_NAMES)}"


def _verdict(
    family: str | None,
    errors: list[tuple[str, str]],
    warnings: list[tuple[str, str]] | None = None,
) -> JsonObject:
    verdict: dict[str, Any] = {"family": family, "ok": not errors, "errors": _told(errors)}
    if warnings:
        verdict["warnings"] = _told(warnings)
    return verdict


def _told(findings: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"field": field, "message": message} for field, message in findings]
