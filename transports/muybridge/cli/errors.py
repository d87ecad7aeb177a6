"""How a command ends: its exit code, and how errors are reported to people and to programs."""

from __future__ import annotations

import errno
import shlex
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import click

from muybridge.cli.connection import PERMISSIONS
from muybridge.cli.course import operand
from muybridge.cli.exit_codes import (
    AMBIGUOUS,
    DEFECT,
    FAILED,
    INTERRUPTED,
    INVALID,
    NOT_SAVED,
    NOT_SENT,
    OF_A_SIGNAL,
    PIPE_CLOSED,
    SAFE,
    ExitCode,
)
from muybridge.cli.invocation import Invocation
from muybridge.cli.options import ALLOW_INLINE, IN_COMMAND, media_rules, option_name, printed
from muybridge.cli.records import answer_record, result_record, task_record
from muybridge.cli.standard_streams import Unprinted
from muybridge.cli.terminal import document, say
from muybridge.cli.totals import plain
from muybridge.drivers.notes import TEXT_UNDER_WAY
from muybridge.purchases.errors import OnceUnderWay, StoreUnusable
from muybridge.signals import Terminated
from muybridge.verbs.consent import ConsentRequired
from muybridge_protocol.errors import (
    AssetDeleteFailed,
    AssetDeleteUnknown,
    CreateAmbiguous,
    DownloadFailed,
    InvalidRequest,
    LocalError,
    MuybridgeError,
    NotCompleted,
    NotSent,
    Refused,
    ServiceError,
    TaskFailed,
)
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.tasks import Result
from muybridge_protocol.remedies import ANYWAY, Remedy, RemedyKind, as_sentence, in_all_faces
from muybridge_protocol.rules.files import FILE_TEXT, FileText, file_text, instead_of
from muybridge_protocol.rules.values import Problem, is_array
from muybridge_protocol.service import shown_id
from muybridge_protocol.text.responses import NoText
from muybridge_protocol.text.stream_reader import StreamInterrupted

TEXT = "text"
"""What the problems of a text request call its family."""

_TEXT_OPTIONS = {"model": "MODEL", "contents": "PROMPT", "systemInstruction": "--system"}
"""How the command line names its fields. Settings are options of the same name."""

EXIT_CODES: Mapping[type[BaseException], ExitCode] = {
    TaskFailed: FAILED,
    NoText: FAILED,
    LocalError: INVALID,
    click.ClickException: INVALID,
    ImportError: INVALID,
    NotSent: NOT_SENT,
    StoreUnusable: NOT_SENT,
    ConsentRequired: NOT_SENT,
    OnceUnderWay: SAFE,
    Refused: NOT_SENT,
    AssetDeleteFailed: NOT_SENT,
    CreateAmbiguous: AMBIGUOUS,
    StreamInterrupted: AMBIGUOUS,
    AssetDeleteUnknown: AMBIGUOUS,
    ServiceError: SAFE,
    DownloadFailed: NOT_SAVED,
    NotCompleted: SAFE,
    OSError: NOT_SAVED,
}
"""The exit code of each class of error; the most special class counts."""


_WITHOUT_SERVICE = (
    "to try it without a key: add --local to run, text or batch run, or start `muybridge serve` "
    "in another terminal and paste the line that it prints"
)


_OPTIONS: Mapping[str, str] = {"api_key": "--api-key-file"}
"""The options whose names are not those of the arguments."""


def in_command(remedy: Remedy) -> str:
    """Return what to do on the command line, or "" if it has no such thing."""
    option = " and ".join(
        _OPTIONS.get(name) or f"--{name.replace('_', '-')}" for name in remedy.option.split(" and ")
    )
    variable = f"set {remedy.variable}, or " if remedy.variable else ""
    match remedy.kind:
        case RemedyKind.GIVE if not remedy.owner:
            form = f" as {remedy.form}" if remedy.form else ""
            return f"{variable}give {option}{form}"
        case RemedyKind.CORRECT:
            return f"{remedy.variable} or {option} cannot be used:"
        case RemedyKind.RAISE if not remedy.owner:
            return f"raise {option}"
        case RemedyKind.OMIT:
            return f"omit {option}"
        case RemedyKind.ALLOW if remedy.option == ALLOW_INLINE:
            return f"send the file all the same with {option}"
        case RemedyKind.ALLOW:
            return f"{ANYWAY[remedy.action]}use {option}"
        case RemedyKind.TAG:
            return shlex.join(["give", "--tag", f"{remedy.option}=VALUE"])
        case RemedyKind.UNLIST:
            return f"{option} sends another on purpose"
        case RemedyKind.WAIT:
            return f"to resume: muybridge wait {shlex.join(operand(remedy.task))}"
        case RemedyKind.QUERY:
            command = shlex.join(("muybridge", "get", *operand(remedy.task)))
            return f"query it with `{command}` before you send the request again"
        case RemedyKind.READ if remedy.attribute == "chunks":
            return "is on stdout"
        case _:
            return in_all_faces(remedy)


def _besides(remedy: Remedy) -> str:
    """Return what to do besides resuming, for which the command is printed below."""
    return "" if remedy.kind is RemedyKind.WAIT else in_command(remedy)


def exit_code(error: BaseException, invocation: Invocation) -> ExitCode:
    """Return the code that a command ends with after *error*."""
    code = next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), DEFECT)
    # A user who reads "nothing was sent" may send it again, and would then pay twice.
    if invocation.course.accepted and code.accepted == "no":
        return SAFE
    if invocation.course.unanswered and code == DEFECT:
        return AMBIGUOUS
    return code


def report(error: BaseException, invocation: Invocation) -> int:
    """Report *error* on stderr and, with --json, on stdout too. Return the exit code."""
    if isinstance(error, Unprinted) and error.errno == errno.EPIPE:
        return PIPE_CLOSED
    if isinstance(error, KeyboardInterrupt | click.Abort):
        code, known = _interruption(error, invocation)
        said = " ".join(filter(None, (as_sentence(interruption(error)), known)))
        return _report(
            "Interrupted", said, code, invocation, {}, exits=interrupted_code(error, code)
        )
    code = exit_code(error, invocation)
    if code == DEFECT or not isinstance(error, tuple(EXIT_CODES)):
        traceback.print_exception(error)
    if isinstance(error, InvalidRequest):
        return report_problems(error, code, invocation)
    message, details = str(error) or type(error).__name__, {}
    if isinstance(error, ServiceError):
        invocation.learn(error)
    if isinstance(error, MuybridgeError):
        details = _details(error)
        command = _command(code, invocation)
        message = error.describe(in_command if command is None else _besides) or message
    if isinstance(error, ServiceError):
        if invocation.connection.local and code in (SAFE, NOT_SAVED):
            message = f"{error.what()} The local service has ended, and its tasks with it."
    elif isinstance(error, click.ClickException):
        if isinstance(error, click.NoSuchOption):
            # A typo must not lead to a key in clear text, or to a charge.
            risky = {"--real", *(f"--{name.replace('_', '-')}" for name in PERMISSIONS)}
            close = [one for one in error.possibilities or () if one not in risky]
            error = click.NoSuchOption(error.option_name, possibilities=close, ctx=error.ctx)
        message = _explained(error)
    elif isinstance(error, OSError):
        message = f"{error.filename or 'The file system'}: {error.strerror or error}."
        if invocation.course.task is not None and not invocation.connection.local:
            message += f" Task {shown_id(invocation.course.task.id)} is not affected."
        elif invocation.course.answer is not None and not invocation.connection.local:
            message += " The answer may have been charged. Asking again may cost again."
    exits = _report(type(error).__name__, message, code, invocation, details)
    lacks = isinstance(error, LocalError) and any(
        remedy.kind is RemedyKind.GIVE and remedy.variable for remedy in error.remedies
    )
    if lacks:
        say(_WITHOUT_SERVICE)
    return exits


def _explained(error: click.ClickException) -> str:
    """Return the message of *error*, what to write instead, and which help to see."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return error.format_message()
    from muybridge.cli.mistakes import explained

    return f"{explained(error)} (see `{error.ctx.command_path} --help`)"


def interruption(error: BaseException) -> str:
    """Return which signal interrupted the command, as a clause."""
    if isinstance(error, Terminated):
        return f"interrupted by {signal.Signals(error.number).name}"
    return "interrupted"


def interrupted_code(error: BaseException, code: int) -> int:
    """Return the exit code after an interruption; *code* is the one for the state of things.

    All signals but that of Ctrl-C exit as in a shell, with 128 plus the signal's number.
    """
    return OF_A_SIGNAL + error.number if isinstance(error, Terminated) else code


def _report(
    kind: str,
    message: str,
    code: ExitCode,
    invocation: Invocation,
    details: dict[str, Any],
    *,
    exits: int | None = None,
) -> int:
    """Report an error and how to resume. *exits* replaces *code* as the exit code."""
    exits = code if exits is None else exits
    command = _command(code, invocation)
    say(f"error: {message}")
    if command is not None:
        say(f"to resume: {command}")
    if invocation.presentation.json:
        told = {"type": kind, "message": message, "exit_code": exits, **details}
        if command is not None:
            told["command"] = command
        _document({"ok": False, "error": told, **_records(invocation)})
    return exits


def _command(code: ExitCode, invocation: Invocation) -> str | None:
    """Return the command that resumes after an end with *code*, or None."""
    is_batch = invocation.course.resuming is not None
    resumes = code.resumes == "yes" or (code.resumes == "a batch" and is_batch)
    return invocation.next_command() if resumes else None


def _records(invocation: Invocation) -> dict[str, Any]:
    course = invocation.course
    records: dict[str, Any] = {}
    if course.task is not None:
        records["task"] = task_record(course.task)
    if course.result is not None:
        records["result"] = result_record(course.result)
    if course.answer is not None:
        records |= answer_record(course.answer)
    if invocation.times:
        records["times"] = invocation.times
    if invocation.warnings:
        records["warnings"] = invocation.warnings
    return records


_FACTS: Final = (
    *("argument", "status", "retry_after", "candidate_id", "reason"),
    *("asset_id", "code", "msg", "lacks", "away", "later"),
)
"""The attributes of errors that programs are told."""


def _details(error: MuybridgeError) -> dict[str, Any]:
    """Return what programs need of *error*: whether it was charged, and what to do."""
    found = {name: getattr(error, name, None) for name in _FACTS}
    told = {name: value for name, value in found.items() if value not in (None, "")}
    if isinstance(error, ConsentRequired):
        told |= _consent(error)
    remedies = [remedy.to_dict() for remedy in error.remedies]
    return {"charged": error.charged, **told, "remedies": remedies}


def _consent(error: ConsentRequired) -> dict[str, Any]:
    """Return for which request consent is required, and what it consumes."""
    consumes = {
        str(measure): None if amount is None else plain(amount)
        for measure, amount in (error.amounts or {}).items()
    }
    return {"consent_required": True, "consent": error.consent, "consumes": consumes}


def report_problems(error: InvalidRequest, code: int, invocation: Invocation) -> int:
    """Report every problem of a request, and return *code*."""
    problems = [_problem_record(error.family, problem) for problem in error.problems]
    lines = [
        f"  {where(error.family, problem.field)}: {record['message']}; {record['accepted']}"
        for problem, record in zip(error.problems, problems, strict=True)
    ]
    say("\n".join([f"error: {error.heading}", *lines]))
    if invocation.presentation.json:
        told = {
            "type": "InvalidRequest",
            "message": error.describe(in_command),
            "exit_code": code,
            "charged": error.charged,
        }
        _document({"ok": False, "error": {**told, "family": error.family, "problems": problems}})
    return code


def _document(value: dict[str, Any]) -> None:
    # stderr has it all, and the error's exit code says more than that of a broken stdout.
    with suppress(Unprinted):
        document(value)


def where(family: str, wire: str) -> str:
    """Return a field's option, and its name on the wire, for a message."""
    return f"{_option(family, wire)} ({wire})" if wire else "the request"


def _option(family: str, wire: str) -> str:
    """Return the command-line name of the field *wire*."""
    if family != TEXT:
        return option_name(wire)
    field, _, inner = wire.partition(".")
    return _TEXT_OPTIONS.get(field.partition("[")[0]) or option_name(inner or field)


def _problem_record(family: str, problem: Problem) -> dict[str, Any]:
    return {
        **attributes(problem, "field"),
        "option": _option(family, problem.field) if problem.field else None,
        **attributes(problem, "rule", "message"),
        "accepted": _accepted(family, problem),
    }


def _accepted(family: str, problem: Problem) -> str:
    """Return what would be accepted; for a wrong type or name, the rules' hints as well."""
    found = file_text(problem.value) if problem.rule == FILE_TEXT else None
    if family == TEXT and found is not None:
        return instead_of_text(found, problem.field)
    if family == TEXT:
        return problem.accepted_in(in_command)
    known = FAMILIES[family]
    if found is not None:
        return known.instead_of_text(found, IN_COMMAND)
    field = known.field(problem.field)
    accepted = problem.accepted_in(in_command)
    if field is not None and problem.rule == "type":
        accepted = "; ".join([accepted, *(rule.accepted for rule in field.rules)])
    if field is not None and problem.rule == "media_url" and _names_no_file(problem.value):
        takes_files = any(rule.base64 for rule in media_rules(field))
        accepted = f"{accepted}, or @FILE for a local file" if takes_files else accepted
    if problem.field == "model" and problem.rule == "one_of":
        accepted = f"{accepted}, or --unlisted-model for one that is not listed"
    return accepted


def instead_of_text(found: FileText, field: str) -> str:
    """Return what to write in place of a text that is only a file, in the *field* of a question."""
    forms = IN_COMMAND._replace(file=shlex.quote)
    if field == "systemInstruction":  # only PROMPT reads stdin
        forms = forms._replace(text=printed)
    return instead_of(found, "use --image" if found.path else "use --image PATH", forms)


def _names_no_file(value: object) -> bool:
    items = value if is_array(value) else (value,)
    return all(isinstance(item, str) for item in items)  # and not a loaded file


def _interruption(error: BaseException, invocation: Invocation) -> tuple[ExitCode, str]:
    """Return the exit code and the message for Ctrl-C, which depend on the progress so far."""
    course, local = invocation.course, invocation.connection.local
    notes = " ".join(getattr(error, "__notes__", ()))
    if course.ambiguous:
        return AMBIGUOUS, notes
    if local and (course.accepted or course.unanswered or course.answer is not None):
        return INTERRUPTED, "Nothing was charged: the service was a local one."
    if course.task is not None:
        ended = isinstance(course.result, Result) and course.result.is_terminal
        state = "has ended; you can query its result" if ended else "continues; you can resume it"
        return SAFE, f"Task {shown_id(course.task.id)} {state}."
    if course.url is not None:
        return SAFE, "The part that has arrived is kept."
    if course.unanswered or course.answer is not None:
        if course.text:
            return AMBIGUOUS, TEXT_UNDER_WAY
        return AMBIGUOUS, (
            "The request may have been accepted and charged, but its response has not arrived. It "
            "was not sent again. Before you send it again, check your account for a new task."
        )
    if course.pays:
        return NOT_SENT, notes or "Nothing was sent."
    return INTERRUPTED, notes
