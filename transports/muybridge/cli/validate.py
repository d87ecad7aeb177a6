"""`validate`: one JSON line for each item of a batch."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import BinaryIO

import click

from muybridge.cli.check import checking_client
from muybridge.cli.errors import in_command
from muybridge.cli.exit_codes import DONE, FAILED
from muybridge.cli.invocation import invocation_of
from muybridge.cli.options import insecure_downloads
from muybridge.cli.request_files import ask_for_items, finding_records
from muybridge.cli.terminal import say
from muybridge.verbs import validation
from muybridge.verbs.request_files import Verdict
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import JsonObject
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
    In a JSON array, "item" replaces "line". Exit code 0 if all items are valid, 1 if some are not;
    the last line on stderr says how many.

    With --media, "errors" also name broken rules about the media, whose fields may be like
    "referenceVideos[0]", and "undecided" names the rules that could not be checked.
    """  # noqa: D301  click's own mark for lines that stay as they are
    count = wrong = 0
    invocation = invocation_of(context)
    own = invocation.connection.unopened_service().gave_out
    with ExitStack() as stack:
        client = stack.enter_context(checking_client(invocation)) if media else None
        ask_for_items(file)
        for verdict in validation.validate(file, client, own):
            count += 1
            wrong += not verdict.ok
            if not (quiet and verdict.ok):
                sys.stdout.write(json.dumps(_record(verdict)) + "\n")
    sys.stdout.flush()  # no verdict may be missing when they are counted
    if wrong:
        how = "" if quiet else "; --quiet prints only those"
        say(f"not valid: {wrong} of {count} items{how}")
    context.exit(FAILED if wrong else DONE)


def _record(verdict: Verdict) -> JsonObject:
    """Return *verdict* as programs read it."""
    report = verdict.media
    errors = [*verdict.errors, *map(_media_finding, report.problems if report else ())]
    more = {
        "warnings": finding_records(verdict.warnings),
        "undecided": finding_records(map(_media_finding, report.undecided if report else ())),
    }
    return {
        **verdict.place,
        **attributes(verdict, "family", "ok"),
        "errors": finding_records(errors),
        **{name: listed for name, listed in more.items() if listed},
    }


def _media_finding(finding: Finding) -> tuple[str, str]:
    return finding.place, f"{finding.reason(in_command)}. {finding.rule}"
