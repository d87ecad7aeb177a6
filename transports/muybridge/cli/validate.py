"""`validate`: one JSON line for each item of a batch. JSON lines are read with constant memory."""

from __future__ import annotations

import json
import sys
import warnings as warnings_module
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from muybridge.cli.check import checking_client
from muybridge.cli.errors import in_options
from muybridge.cli.invocation import invocation_of
from muybridge.cli.options import insecure_downloads
from muybridge.cli.request_files import folder_of, items, path_of
from muybridge_protocol.errors import IgnoredSetting
from muybridge_protocol.families.references import problems_of_files
from muybridge_protocol.families.request import parse
from muybridge_protocol.records.json import JsonObject, as_object

if TYPE_CHECKING:
    from muybridge import Client, MediaReport
    from muybridge.batch.items import ItemFields
    from muybridge_protocol.families.family import OwnLinks
    from muybridge_protocol.rules.media import Finding


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--media",
    is_flag=True,
    help="Also check the pictures, videos and sounds of valid items, as check does.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the lines of invalid items.")
@insecure_downloads
@click.pass_context
def validate(context: click.Context, file: BinaryIO, *, media: bool, quiet: bool) -> None:
    """Check requests without sending anything.

    FILE has the format of `muybridge batch run`, which accepts it if it is valid here: JSON lines
    (.jsonl), a JSON array (.json) or CSV (.csv); stdin has JSON lines. An item has the family's
    name and the service's fields, which may also be in an object "body":

    \b
      {"family": "imga", "model": "imga", "prompt": "A horse", "name": "horse"}

    One line is printed for each item, in the same order. Blank lines are skipped, but counted:

    \b
      {"line": 1, "family": "imga", "ok": true, "errors": []}

    An error is {"field": ..., "message": ...}; the field has the service's name, and is "" if the
    error is about the whole item. "warnings" look the same and name settings that have no effect.
    In a JSON array, "item" replaces "line". Exit code 0 if all items are valid, 1 if some are not.

    With --media, "errors" also name broken rules about the media, whose fields may be like
    "referenceVideos[0]", and "undecided" names the rules that could not be checked.
    """  # noqa: D301  click's own mark for lines that stay as they are
    write = sys.stdout.write
    sound = True
    empty = True
    invocation = invocation_of(context)
    own = invocation.unopened_service().gave_out
    with ExitStack() as stack:
        client = stack.enter_context(checking_client(invocation)) if media else None
        for where, item in items(file):
            told = where | _judge(item, client, folder_of(file), own)
            sound = sound and told["ok"]
            empty = False
            if not (quiet and told["ok"]):
                write(json.dumps(told) + "\n")
    if empty and path_of(file) is not None:
        sound = False
        write(json.dumps(_empty()) + "\n")
    if not sound:
        context.exit(1)


def _empty() -> JsonObject:
    from muybridge.batch.items import NO_ITEM  # noqa: PLC0415  it loads all families

    return {"family": None, "ok": False, "errors": findings([("", NO_ITEM)])}


def _judge(item: Any, client: Client | None, folder: Path, own: OwnLinks) -> JsonObject:
    """Return the verdict on *item*; *client* looks at its media, if there is one."""
    from muybridge.batch.items import WrongItem, read_fields, told_all  # noqa: PLC0415  it loads all families

    name: object = (as_object(item) or {}).get("family")
    label = name if isinstance(name, str) else None
    warnings: list[tuple[str, str]] = []
    undecided: list[tuple[str, str]] = []
    try:
        if isinstance(item, WrongItem):
            raise item
        fields = read_fields(item, folder)
    except WrongItem as wrong:
        errors = list(wrong.problems)
    else:
        report = fields.family.check(fields.body, extra=fields.extra, own=own)
        problems = report.problems or problems_of_files(fields.family, fields.body)
        errors = [*told_all(problems, fields.family, folder)]
        warnings = [(notice.field, notice.message) for notice in report.notices]
        if client is not None and not errors:
            found = _check_media(client, fields)
            errors = [*map(_media_finding, found.problems)]
            undecided = [*map(_media_finding, found.undecided)]
    verdict = {"family": label, "ok": not errors, "errors": findings(errors)}
    more = {"warnings": findings(warnings), "undecided": findings(undecided)}
    return {**verdict, **{name: listed for name, listed in more.items() if listed}}


def _check_media(client: Client, fields: ItemFields) -> MediaReport:
    with warnings_module.catch_warnings():
        # The line has them already.
        warnings_module.simplefilter("ignore", IgnoredSetting)
        return client.check(parse(fields.family, fields.body, extra=fields.extra))


def _media_finding(finding: Finding) -> tuple[str, str]:
    return finding.place, f"{in_options(finding.why)}. {finding.rule}"


def findings(findings: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return findings as programs read them."""
    return [{"field": field, "message": message} for field, message in findings]
