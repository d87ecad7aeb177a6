"""`check`: look at the pictures, videos and sounds of a request before paying for it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from muybridge.cli import options
from muybridge.cli.connection import open_client
from muybridge.cli.errors import in_command, report_problems
from muybridge.cli.exit_codes import FAILED
from muybridge.cli.family_help import FamilyCommand
from muybridge.cli.generate import FamilyGroup
from muybridge.cli.invocation import Invocation, invocation_of
from muybridge.cli.terminal import answer, document
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import Family, Field
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.operations.defaults import CHECK_TIMEOUT
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.media import Finding, MediaReport
from muybridge_protocol.rules.values import Kind

if TYPE_CHECKING:
    from muybridge import Client

_NO_KEY = "check-needs-no-key"


@contextmanager
def checking_client(invocation: Invocation) -> Generator[Client, None, None]:
    """Open a client that looks at media, without the key. Only a service nearby is known to it."""
    connection = invocation.connection
    with ExitStack() as stack, invocation.log():
        yield open_client(
            stack,
            api_key=_NO_KEY,
            base_url=connection.unopened_service().base_url,
            text_base_url="",
            allow_plain_http_proxy=False,
            allow_insecure_downloads=connection.allow_insecure_downloads,
        )


def _check_command(family: Family) -> click.Command:
    parameters = [
        *options.family_options(family),
        click.Option(
            ["--file", "files"],
            metavar="FIELD=PATH",
            multiple=True,
            help="Check a local file in place of FIELD's URL; may be repeated.",
        ),
        options.INSECURE_DOWNLOADS,
        options.JSON,
        options.timeout("Maximum seconds for fetching headers from all URLs [default: 60]"),
        options.VERBOSE,
    ]

    @click.pass_context
    def check(context: click.Context, /, **values: Any) -> None:
        invocation = invocation_of(context)
        files = _read_files(family, values.pop("files"), values)
        try:
            request = options.read_request(family, values, files)
        except InvalidRequest as error:
            if any(problem.rule != "media" for problem in error.problems):
                raise
            context.exit(report_problems(error, FAILED, invocation))
        with checking_client(invocation) as client:
            try:
                report = client.check(
                    request, files=files, timeout=invocation.connection.timeout or CHECK_TIMEOUT
                )
            except OSError as error:
                raise click.UsageError(f"--file {error.filename}: {error.strerror}") from None
        if invocation.presentation.json:
            document(_record(report))
        else:
            _print(report)
        if not report.ok:
            context.exit(FAILED)

    return FamilyCommand(family, "check", parameters, check)


def _read_files(
    family: Family, given: tuple[str, ...], values: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the files by field.

    Raises:
        click.UsageError: A field takes no files, or has URLs as well.
    """
    files: dict[str, list[str]] = {}
    for text in given:
        name, _, path = text.partition("=")
        field = _field(family, name)
        if field is None or not path:
            known = ", ".join(media_fields(family)) or "none"
            raise click.UsageError(f"--file {text!r} is not FIELD=PATH; FIELD is one of: {known}")
        if values.get(field.name):
            raise click.UsageError(
                f"give {options.option_name(field.wire)} or --file {field.wire}=..., not both"
            )
        files.setdefault(field.wire, []).append(path)
        if field.kind is not Kind.STRINGS and len(files[field.wire]) > 1:
            raise click.UsageError(f"--file {text!r}: {field.wire} takes one")
    return files


def _field(family: Family, name: str) -> Field | None:
    """Return the field for media that is called *name* in Python, on the wire or as an option."""
    for field in family.fields:
        names = (field.name, field.wire, options.option_name(field.wire).removeprefix("--"))
        if name in names and field.wire in media_fields(family):
            return field
    return None


def _print(report: MediaReport) -> None:
    for medium in report.media:
        answer(f"{medium.place} {medium.source}: {str(medium.facts) or 'could not be read'}")
        for finding in report.findings:
            if (finding.field, finding.index) == (medium.field, medium.index):
                _print_finding(finding, "- ")
    places = {(medium.field, medium.index) for medium in report.media}
    for finding in report.findings:
        if (finding.field, finding.index) not in places:
            _print_finding(finding, f"{finding.field} ")
    if not report.media:
        answer("there is no picture, video or sound to check")
        return
    count = len(report.problems)
    problems = f"{count or 'no'} problem{'' if count == 1 else 's'} found"
    answer(f"{problems}; {report.decided} of {len(report.findings)} rules could be checked")


def _print_finding(finding: Finding, indent: str) -> None:
    if finding.why:
        why = finding.reason(in_command)
        answer(f"{indent}{_MARKS[finding.verdict]}: {why}. {finding.rule}")


_MARKS = {"broken": "problem", "undecided": "undecided"}


def _record(report: MediaReport) -> JsonObject:
    media = [
        {
            **attributes(medium, "field", "index", "source"),
            **attributes(medium.facts, "kind", "format", "width", "height", "seconds", "bytes"),
            "content_credentials": medium.facts.credentials,
        }
        for medium in report.media
    ]
    return {
        "ok": report.ok,
        "media": media,
        "problems": [*map(_finding_record, report.problems)],
        "undecided": [*map(_finding_record, report.undecided)],
        "rules": {"decided": report.decided, "total": len(report.findings)},
    }


def _finding_record(finding: Finding) -> JsonObject:
    return {
        **attributes(finding, "field", "index", "rule"),
        "why": finding.reason(in_command),
    }


check: FamilyGroup = FamilyGroup(
    "check",
    _check_command,
    "Check a request's pictures, videos and sounds before paying.\n\nThe command reads the headers "
    "of files (--file) and of URLs (at most 256 KiB each). It sends nothing to the service and "
    "needs no key. It also says whether a file has Content Credentials (C2PA). "
    "Options marked as required are optional here.\n\nWith --json: {ok, media, "
    "problems: [{field, index, why, rule}], undecided, rules: {decided, total}}. Exit code 0 if no "
    "rule is certainly broken, 1 if one is.",
)
