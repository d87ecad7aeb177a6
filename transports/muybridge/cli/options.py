"""The options of a family, generated from its tables, and those that several commands share."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, get_args

import click

from muybridge.cli.invocation import invocation_of
from muybridge.cli.suggestions import PATHS, files, values_of
from muybridge.configuration import PRICES_VARIABLE
from muybridge.files.encodings import encoding_of
from muybridge.verbs.media import completed
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import Family, Field, MediaRequest, Unlisted
from muybridge_protocol.families.family import any_link
from muybridge_protocol.families.request import parse
from muybridge_protocol.purchases.budget import Period
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.rules.files import FileForms
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Kind, OneOf, Problem, Text, is_array

_INTEGER = re.compile(r"-?[0-9]{1,18}(\.0{1,18})?", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_METAVARS = {Kind.INTEGER: "INTEGER", Kind.NUMBER: "NUMBER", Kind.STRING: "TEXT"}

Command = Callable[..., Any]


def _named(path: str) -> str:
    return shlex.quote(f"@{path}")


def printed(path: str) -> str:
    """Return how the text in the file at *path* is given as an argument."""
    return f'"$(cat {shlex.quote(path)})"'


def _printed_or_read(path: str) -> str:
    return f"{printed(path)}, or - for stdin"


IN_COMMAND: Final = FileForms(_named, _printed_or_read)
"""How the command line names a file in place of a URL, and the text in a file."""

UNLISTED = "unlisted_model"
EXTRA = "extra"
ALLOW_INLINE = "allow_inline"


def option_name(wire: str) -> str:
    """Return the option of the field *wire*: `referenceImages` becomes `--reference-images`."""
    return f"--{_HUMP.sub('-', wire).lower().replace('_', '-')}"


def family_options(family: Family) -> list[click.Parameter]:
    """Return an option for each field of *family*, in its order, and `--extra`."""
    options: list[click.Parameter] = []
    for field in family.fields:
        options.append(_field_option(family, field))
        if field.wire == "model" and family.models:
            options.append(
                click.Option(
                    ["--unlisted-model", UNLISTED],
                    metavar="NAME",
                    help="Use a model that is not in the list. The limits of individual "
                    "models are not checked.",
                )
            )
    rules = [rule for field in family.fields for rule in media_rules(field)]
    options.append(
        click.Option(
            ["--allow-inline", ALLOW_INLINE],
            is_flag=True,
            # Elsewhere it is taken as well, so that the error is about the file.
            hidden=not any(rule.base64 and not rule.base64_stated for rule in rules),
            help="Allow @FILE for fields that may not accept files. The service may charge for the "
            "request and ignore the file.",
        )
    )
    options.append(
        click.Option(
            ["--extra", EXTRA],
            metavar="JSON",
            help="A JSON object of further fields, sent unchecked.",
        )
    )
    return options


def media_rules(field: Field) -> Iterator[MediaUrl]:
    """Yield the rule of *field* if it takes media."""
    return (rule for rule in field.rules if isinstance(rule, MediaUrl))


def file_in(value: object) -> str | None:
    """Return the path in an option's *value* if that is `@PATH`."""
    if not isinstance(value, str) or not value.startswith("@"):
        return None
    return os.path.expanduser(value[1:])  # noqa: PTH111  as a shell does, which skips it after @


def read_request(
    family: Family, values: Mapping[str, Any], files: Mapping[str, Sequence[str]] | None = None
) -> MediaRequest:
    """Return the request that the options describe.

    Args:
        family: The family.
        values: What click parsed, by the fields' Python names.
        files: Files to check in place of a field's URLs, or None if the request is to be sent.
            What is missing for a check is filled in.

    Raises:
        InvalidRequest: The request has problems; all are listed.
    """
    body: dict[str, object] = {}
    problems: list[Problem] = []
    for field in family.fields:
        value = values.get(field.name)
        # An option that may be repeated is empty where it was not given.
        if value is not None and value != ():
            body[field.wire] = _read_value(field, value)
    if body.get("prompt") == "-":
        body["prompt"] = read_stdin()
    body, wrong_files = _with_files(family, body, allow_inline=bool(values.get(ALLOW_INLINE)))
    if (name := values.get(UNLISTED)) is not None:
        problems += _put_unlisted(body, name)
    if files is not None:
        body = completed(family, body, files)
    extra = _read_extra(values.get(EXTRA), problems)
    report = family.check(body, extra=extra, own=any_link)  # the client says it of its service
    unread = {problem.field for problem in wrong_files}
    others = (problem for problem in report.problems if problem.field not in unread)
    if problems or wrong_files or not report.ok:
        raise InvalidRequest(family.name, (*problems, *wrong_files, *others))
    return parse(family, body, extra=extra)


def _with_files(
    family: Family, body: dict[str, object], *, allow_inline: bool
) -> tuple[dict[str, object], list[Problem]]:
    """Return *body* with the content of the files in it, and what is wrong with these."""
    values = (item for value in body.values() for item in (value if is_array(value) else (value,)))
    if not any(map(file_in, values)):
        return body, []
    from muybridge.media.loading import with_files

    return with_files(family, body, file_in, IN_COMMAND, allow_inline=allow_inline)


def _store(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Store an option's value as the choice of the same name."""
    assert parameter.name is not None  # noqa: S101  an option has a name
    invocation_of(context).choose(**{parameter.name: value})


def _option(*names: str, **how: Any) -> click.Option:
    if how.get("metavar") in PATHS:
        how.setdefault("shell_complete", files)
    return click.Option(names, expose_value=False, callback=_store, **how)


def _read_seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    raise click.BadParameter(f"{text!r} is not a number of seconds above 0")


def poll_interval(meaning: str) -> click.Option:
    """Return `--poll-interval` with a *meaning* of the command's own."""
    return _option("--poll-interval", metavar="S", type=_read_seconds, help=f"{meaning}.")


def timeout(meaning: str) -> click.Option:
    """Return `--timeout` with a *meaning* of the command's own."""
    return _option("--timeout", metavar="S", type=_read_seconds, help=f"{meaning}.")


def at_once(flag: str, usual: int, what: str) -> Callable[[Command], Command]:
    """Return *flag*, which says how many of *what* may go on at once, as a decorator.

    Args:
        flag: The option's name.
        usual: Its default.
        what: What is limited, in the plural.
    """
    return click.option(
        flag,
        type=click.IntRange(1, 256),
        default=usual,
        show_default=True,
        metavar="N",
        help=f"Maximum number of {what} at once.",
    )


def output(*, required: bool = False) -> click.Option:
    """Return `-o` for one result: a file, a folder or stdout."""
    meaning = (
        "File or folder for the result, or - for stdout. In a folder, the file is named after the "
        "task."
    )
    return _option("-o", "--output", metavar="PATH", required=required, help=meaning)


def text_output() -> click.Option:
    """Return `-o` of a text request."""
    return _option(
        "-o",
        "--output",
        metavar="PATH",
        help="File or folder for pictures in the answer [default: the current folder].",
    )


JSON: click.Option = _option("--json", is_flag=True, help="Print JSON on stdout.")
JSON_LINES: click.Option = _option(
    "--json", is_flag=True, help="Print one JSON object per line on stdout."
)
"""For commands that report events."""
_LOCAL: Mapping[str, Any] = {
    "is_flag": True,
    "expose_value": False,
    "callback": _store,
    "help": "Use the local service: no key, no cost. It runs no model: pictures show a horse.",
}
LOCAL: click.Option = click.Option(["--local"], **_LOCAL)
local: Callable[[Command], Command] = click.option("--local", **_LOCAL)
"""The same as a decorator, to list it behind the command's own options."""
_LOCAL_TEXT: Mapping[str, Any] = {
    **_LOCAL,
    "help": "Use the local service: no key, no cost, and no model.",
}
local_text: Callable[[Command], Command] = click.option("--local", **_LOCAL_TEXT)
"""The same for text."""
KEY_FILE: click.Option = _option(
    "--api-key-file",
    metavar="FILE",
    help="Read the API key from FILE instead of MUYBRIDGE_API_KEY.",
)
TEXT_BASE_URL: click.Option = _option(
    "--text-base-url",
    metavar="URL",
    help="Where the text endpoints are, instead of MUYBRIDGE_TEXT_BASE_URL.",
)
PLAIN_HTTP_PROXY: click.Option = _option(
    "--allow-plain-http-proxy",
    is_flag=True,
    help="Allow sending the key unencrypted through a proxy, for http:// URLs.",
)
SIDECAR: click.Option = _option(
    "--sidecar",
    is_flag=True,
    help="Write a JSON file next to each result: its task, model, times and checksum.",
)
_INSECURE_DOWNLOADS: Mapping[str, Any] = {
    "is_flag": True,
    "expose_value": False,
    "callback": _store,
    "help": "Also allow downloads over plain http and from private hosts.",
}
INSECURE_DOWNLOADS: click.Option = click.Option(
    ["--allow-insecure-downloads"], **_INSECURE_DOWNLOADS
)
insecure_downloads: Callable[[Command], Command] = click.option(
    "--allow-insecure-downloads", **_INSECURE_DOWNLOADS
)
"""The same as a decorator."""
VERBOSE: click.Option = _option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Log each request and response on stderr, without keys, prompts and signatures.",
)
CONNECTION: tuple[click.Option, ...] = (
    KEY_FILE,
    _option(
        "--base-url", metavar="URL", help="Where the service is, instead of MUYBRIDGE_BASE_URL."
    ),
    _option(
        "--allow-plain-http",
        is_flag=True,
        help="Allow sending the key unencrypted to an http:// base URL on another machine.",
    ),
    PLAIN_HTTP_PROXY,
    VERBOSE,
)
"""Where the service is, and the key."""
PRICES: click.Option = _option(
    "--prices",
    metavar="PATH",
    envvar=PRICES_VARIABLE,
    help="Your prices, a TOML file [default: $MUYBRIDGE_PRICES].",
)
rate_limit: Callable[[Command], Command] = click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Maximum requests per second of all workers together; inf removes the limit [default: "
    "unchanged; initially no limit].",
)
"""The request rate of a batch, as a decorator."""
skip_invalid: Callable[[Command], Command] = click.option(
    "--skip-invalid",
    is_flag=True,
    help="Skip invalid items instead of refusing the whole file; each problem is reported.",
)
"""Whether invalid items of a batch are skipped, as a decorator."""
STORE: click.Option = _option(
    "--store",
    metavar="PLACE",
    shell_complete=files,
    help="Where paid requests are recorded: a file, or postgresql://USER@HOST/DATABASE [default: "
    "$MUYBRIDGE_STORE, or a file in your state folder].",
)
BATCH_STORE: click.Option = _option(
    "--store",
    metavar="PLACE",
    shell_complete=files,
    help="The store with the batch: a file, or postgresql://USER@HOST/DATABASE [default: the one "
    "that its folder names, or $MUYBRIDGE_STORE].",
)
TAG: click.Option = _option(
    "--tag",
    "tags",
    multiple=True,
    metavar="KEY=VALUE",
    help="Whom or what the request is for, such as customer=acme; recorded, and may have a budget "
    "of its own. May be repeated. Added to $MUYBRIDGE_TAGS.",
)
YES: click.Option = click.Option(
    ["--yes", "yes"],
    is_flag=True,
    help="On a terminal, send without asking, whatever the consent is. Elsewhere, "
    "it does not count.",
)
PERIOD_LIMITS: tuple[click.Option, ...] = (
    _option("--max-creates", metavar="N", help="Maximum number of creates."),
    _option("--max-pictures", metavar="N", help="Maximum number of pictures."),
    _option("--max-seconds", metavar="S", help="Maximum seconds of video."),
    _option("--max-calls", metavar="N", help="Maximum number of text requests."),
    _option("--max-cost", metavar="AMOUNT", help="Maximum cost, at the prices in --prices."),
    _option(
        "--per",
        type=click.Choice(get_args(Period)),
        help="Apply the limits per day or month, in UTC [default: to everything in the store].",
    ),
)
"""A budget."""
STORED_PERIOD: click.Option = _option(
    "--per",
    type=click.Choice(get_args(Period)),
    help="The budget per day or per month [default: the one without a period].",
)
"""Which of the stored budgets of a tag."""
LIMITS: tuple[click.Option, ...] = (*PERIOD_LIMITS, STORE)
"""The budget of the command, and what it counts."""
BATCH_LIMITS: tuple[click.Option, ...] = (
    _option(
        "--max-creates",
        metavar="N",
        help="Maximum number of creates in this batch, on all machines together.",
    ),
    _option("--max-pictures", metavar="N", help="Maximum number of pictures."),
    _option("--max-seconds", metavar="S", help="Maximum seconds of video."),
    _option("--max-cost", metavar="AMOUNT", help="Maximum cost, at the prices in --prices."),
)
"""The budget of a batch that several machines share."""
WAITING: tuple[click.Option, ...] = (
    poll_interval("Seconds between result queries [default: as the service asks]"),
    timeout("Seconds to wait in all; the task continues afterwards [default: 3600]"),
)
"""For commands that wait for a task."""
BATCH_WAITING: tuple[click.Option, ...] = (
    WAITING[0],
    timeout("Seconds to wait for each task, which continues afterwards [default: 3600]"),
)
"""The waits of a batch."""


def _field_option(family: Family, field: Field) -> click.Option:
    name = option_name(field.wire)
    if field.kind is Kind.BOOLEAN:
        return click.Option(
            [f"{name}/--no-{name.removeprefix('--')}", field.name],
            default=None,
            help=_help(field),
        )
    return click.Option(
        [name, field.name],
        metavar=_metavar(field),
        # Checked later, so that every problem is reported at once.
        type=click.STRING,
        multiple=field.kind is Kind.STRINGS,
        help=_help(field),
        shell_complete=values_of(family, field),
    )


def _metavar(field: Field) -> str:
    media = next(media_rules(field), None)
    if media is not None:
        return "URL|@FILE" if media.base64 else "URL"
    if any(isinstance(rule, OneOf) for rule in field.rules):
        return "NAME" if field.wire == "model" else "VALUE"
    return _METAVARS.get(field.kind, "TEXT")


def _help(field: Field) -> str:
    """Return everything the tables say about *field*."""
    parts = [field.text(option_name)]
    if field.wire == "prompt":
        parts[0] += " (- reads it from stdin)"
    parts += [rule.accepted for rule in field.rules if not isinstance(rule, Text) or rule.limit]
    for rule in media_rules(field):
        if rule.base64:
            needed = "" if rule.base64_stated else ", with --allow-inline"
            parts.append(f"@FILE sends a local file{needed}")
    if field.kind is Kind.STRINGS:
        parts.append("may be given several times")
    ending = " Required." if field.required else ""
    if field.service_default is not None:
        ending = f" The service's default: {default_of(field)}."
    return f"{'; '.join(parts)}.{ending}"


def default_of(field: Field) -> str:
    """Return what the service takes when *field* is not sent, as JSON has it, or ""."""
    default = field.service_default
    if default is None:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _read_value(field: Field, value: Any) -> object:
    """Return an option's *value* converted to the field's type, or unchanged if it is not of it."""
    if field.kind in (Kind.INTEGER, Kind.NUMBER):
        return read_number(value, field.kind)
    return list(value) if field.kind is Kind.STRINGS else value


def read_number(text: str | None, kind: Kind) -> object:
    """Return *text* converted to a number of *kind*, or unchanged if it is none."""
    if text is None:
        return None
    if kind is Kind.INTEGER and _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    if kind is Kind.NUMBER and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def read_stdin() -> str:
    """Return the prompt from stdin, without its final line break.

    Raises:
        click.UsageError: It cannot be read, or is not text.
    """
    try:
        data = sys.stdin.buffer.read()
        return data.decode(encoding_of(data)).rstrip("\r\n")
    except OSError as error:
        raise click.UsageError(f"the prompt cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError("the prompt on stdin is not UTF-8. Nothing was sent.") from None


def _put_unlisted(body: dict[str, object], name: str) -> list[Problem]:
    if "model" in body:
        return [
            Problem(
                "model",
                name,
                "alternatives",
                "is given together with --unlisted-model",
                "give only one",
            )
        ]
    body["model"] = unlisted(name)
    return []


def unlisted(name: str) -> Unlisted | str:
    """Return a model that is not listed, or *name* itself if no model has such a name."""
    try:
        return Unlisted(name)
    except ValueError:
        return name  # the check says what is wrong with it, as with any model


def _read_extra(text: str | None, problems: list[Problem]) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return read_object(text)
    except InvalidJson as error:
        problems.append(Problem(EXTRA, text, "json", str(error), "use a JSON object"))
        return {}
