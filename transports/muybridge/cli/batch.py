"""`batch`: many requests from a file, never paid twice, whatever stops them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import attrs
import click

from muybridge import batch as batches
from muybridge.batch import Preview, Report, read_items
from muybridge.batch.items.folder import FOLDER, Record, find_batch
from muybridge.batch.items.reading import THE_BATCH, Source, ValidItems, checked_items
from muybridge.batch.results.reports import reasons
from muybridge.batch.results.sheet.contact_sheet import NAME as SHEET
from muybridge.batch.running.opening import LOCAL
from muybridge.batch.running.side_files import processes_at_work
from muybridge.cli import options
from muybridge.cli.batch_decisions import retry
from muybridge.cli.batch_manifest import manifest
from muybridge.cli.batch_places import BATCH, place_of
from muybridge.cli.batch_preview import confirm, show_preview
from muybridge.cli.batch_progress import Skipped, reporting
from muybridge.cli.batch_reports import (
    ENDINGS,
    counted,
    exit_code_for,
    say_how_to_decide,
    say_reasons,
    say_strays,
    show_shared,
    store_errors,
    summary_record,
)
from muybridge.cli.batch_sheet import sheet
from muybridge.cli.connection import PERMISSIONS, Connection, words_of
from muybridge.cli.consent import require_budget
from muybridge.cli.errors import in_command, interrupted_code, interruption
from muybridge.cli.exit_codes import (
    AMBIGUOUS,
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_SAVED,
    SAFE,
    ExitCode,
)
from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import (
    Invocation,
    pass_invocation,
)
from muybridge.cli.spending import LIMIT_NAMES
from muybridge.cli.suggestions import files
from muybridge.cli.terminal import answer, long_document, say
from muybridge.cli.workers import submit
from muybridge.purchases.errors import StoreUnusable
from muybridge.signals import ignoring_signals
from muybridge_protocol.errors import InputProblem, InvalidAddress, InvalidInput, LocalError
from muybridge_protocol.estimates import PriceList
from muybridge_protocol.local_errors import NOTHING_SENT
from muybridge_protocol.purchases import Stage
from muybridge_protocol.remedies import message
from muybridge_protocol.service import Service


@click.group(
    cls=CommandGroup,
    no_args_is_help=False,
    help="Run many requests. After a crash, the batch resumes without paying twice.\n\n"
    "Exit codes, the first that fits: "
    f"{'; '.join(f'{code} {meaning}' for code, _, meaning in ENDINGS)}. After {SAFE} and "
    f"{NOT_SAVED} run the batch again. Ctrl-C stops a batch with one of these codes, not with "
    f"{INTERRUPTED}.",
)
def batch() -> None:
    """Group the commands for batches."""


for _one in (manifest, retry, sheet, submit):
    batch.add_command(_one)


_SHEET = ("muybridge", "batch", "sheet")


@batch.command(
    params=[
        options.JSON_LINES,
        *options.BATCH_WAITING,
        options.PRICES,
        *options.LIMITS,
        options.TAG,
        options.SIDECAR,
        options.INSECURE_DOWNLOADS,
        *options.CONNECTION,
    ]
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--out", required=True, metavar="DIR", help="The folder of the batch.", shell_complete=files
)
@options.at_once("--concurrency", 4, "tasks in progress")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help="Send at most N new items in this run; the next run sends more.",
)
@click.option(
    "--dedupe", is_flag=True, help="Let identical requests share one task, which is paid for once."
)
@options.rate_limit
@options.skip_invalid
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--yes", is_flag=True, help="Send without asking.")
@options.local
@pass_invocation
@click.pass_context
def run(
    context: click.Context,
    invocation: Invocation,
    file: str | None,
    *,
    out: str,
    concurrency: int,
    limit: int | None,
    dedupe: bool,
    rate: float | None,
    skip_invalid: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Create the tasks of FILE, and save their results in DIR.

    FILE has JSON lines (.jsonl), a JSON array (.json) or CSV (.csv, with a line of names) of
    requests:

    \b
      {"family": "imgb", "model": "imgb-2", "prompt": "A horse", "name": "horse"}

    Every request is checked before anything is sent. The same command resumes a batch that was
    stopped; FILE may then be left out. DIR/index.html shows the results.

    If stdin and stderr are terminals, the command shows what it would send, and asks you first. It
    does not ask without a terminal, with --yes or --local, or if there is nothing new to send.
    --dry-run needs no key; with prices, it shows costs as well. With a budget, it shows how much of
    each limit is already spent, and whether the rest is enough.

    --skip-invalid sends the valid requests of a file in which others are not valid. To send those
    later, put them, corrected, at the end of FILE.

    With --json: one JSON object per line on stdout for each event, and finally {event: summary, ok,
    exit_code, counts, items, sheet}. Problems of skipped items are {event: skipped, where, field,
    message}. With --dry-run: {event: preview, ok, sends, joins, left,
    counts, exceeds, budgets: [{limit, per, most, spent}], currency, total, groups}, as in
    `muybridge estimate`.
    """  # noqa: D301  click's own mark for lines that stay as they are
    connection = invocation.connection
    connection.refuse_with_local("base_url", "api_key_file")
    if dedupe and connection.local:
        raise click.UsageError(
            "--dedupe cannot be combined with --local, because the local "
            "service ends with the command"
        )
    chosen = _Chosen(
        invocation,
        file,
        out,
        concurrency=concurrency,
        limit=limit,
        dedupe=dedupe,
        rate=rate,
        skipped=Skipped(json=invocation.presentation.json) if skip_invalid else None,
        asks=not (yes or connection.local) and sys.stdin.isatty() and sys.stderr.isatty(),
        prices=invocation.spending.read_prices(),
    )
    if dry_run:
        with store_errors(context, invocation):
            show_preview(invocation, chosen.preview(chosen.source), chosen.prices)
        context.exit(DONE)
    interrupted: KeyboardInterrupt | None = None
    invocation.note(resuming=partial(_command, chosen))
    with store_errors(context, invocation), ExitStack() as ending:
        try:
            report = _run(chosen)
        except KeyboardInterrupt as interrupt:
            ending.enter_context(ignoring_signals())
            interrupted, report = interrupt, _report_after(interrupt, out)
            notes = " ".join(getattr(interrupt, "__notes__", []))
            say(": ".join(filter(None, (interruption(interrupt), notes))))
        _finish(context, invocation, report, interrupted=interrupted, skipped=chosen.skipped)


@attrs.frozen
class _Chosen:
    """What the command line says about a run.

    Args:
        invocation: The options that several commands share.
        file: The file of requests, or None to resume.
        out: The folder of the batch.
        concurrency: Maximum number of tasks in progress at once.
        limit: Maximum number of new items to send, or None for all.
        dedupe: Whether identical requests share one task.
        rate: Maximum requests per second, or None to leave it unchanged.
        skipped: Reports the problems of items that are skipped, or None to skip none.
        asks: Whether to ask before sending.
        prices: What requests cost, or None if that is not known.
    """

    invocation: Invocation
    file: str | None
    out: str
    concurrency: int = attrs.field(kw_only=True)
    limit: int | None = attrs.field(kw_only=True)
    dedupe: bool = attrs.field(kw_only=True)
    rate: float | None = attrs.field(kw_only=True)
    skipped: Skipped | None = attrs.field(kw_only=True)
    asks: bool = attrs.field(kw_only=True)
    prices: PriceList | None = attrs.field(kw_only=True)

    @property
    def source(self) -> Source | None:
        """The items of the file, or None to resume."""
        if self.file is None or self.skipped is None:
            return self.file
        return ValidItems(self.file, self.skipped)

    def preview(self, source: Source | None) -> Preview:
        """Return what would be sent of *source*, which is the file or its checked items."""
        return batches.preview(
            source,
            self.out,
            limit=self.limit,
            dedupe=self.dedupe,
            prices=self.prices,
            local=self.invocation.connection.local,
            budget=self.invocation.spending.read_budget(),
            store=self.invocation.spending.store,
            service=self.invocation.connection.unopened_service(),
        )


def _run(chosen: _Chosen) -> Report:
    """Run the batch, and show what happens meanwhile."""
    invocation = chosen.invocation
    with ExitStack() as stack:
        require_budget(invocation)
        try:
            client = invocation.open_client(stack)
        except LocalError as error:
            _check_file_too(chosen.source, error)
            raise
        source = chosen.source
        limit = chosen.limit
        if chosen.asks:
            if source is not None:  # they are checked once, for the question and for the run
                source = stack.enter_context(checked_items(source, client.service.gave_out))
            limit = _confirmed(chosen, source)
        others = _at_work(chosen.out)
        if others:
            say(f"{others}. The runs share its items, and their --concurrency adds up.")
        report = stack.enter_context(reporting(json=invocation.presentation.json))
        stack.enter_context(invocation.log())
        return batches.run(
            client,
            source,
            chosen.out,
            concurrency=chosen.concurrency,
            timeout=invocation.connection.wait_timeout,
            on_event=report,
            local=invocation.connection.local,
            limit=limit,
            sidecar=invocation.presentation.sidecar,
            dedupe=chosen.dedupe,
            rate=chosen.rate,
        )


def _confirmed(chosen: _Chosen, source: Source | None) -> int:
    """Return how many new items of *source* may be sent, after asking for them."""
    preview = chosen.preview(source)
    if preview.sends:
        confirm(chosen.invocation, preview, chosen.prices)
    return preview.sends + preview.joins  # and no more, even if the file has more by then


def _report_after(interrupt: KeyboardInterrupt, out: str) -> Report:
    """Return the state of the batch.

    Raises:
        KeyboardInterrupt: *interrupt* itself, if it arrived before the batch started.
    """
    try:
        return batches.status(out)
    except StoreUnusable as error:
        if error.lacks != "batch":
            raise
        interrupt.add_note("Nothing was sent.")
        raise interrupt from None


@batch.command("status", params=[BATCH, options.JSON, options.BATCH_STORE])
@pass_invocation
@click.pass_context
def status(context: click.Context, invocation: Invocation, batch: str) -> None:
    """Show the state of a batch.

    BATCH is the folder of a batch, or its name in a store.

    With --json: {event: summary, ok, exit_code, counts, items, sheet}. If BATCH is a name, items
    are those that need a decision, and strays replaces sheet; budgets is added if the batch has a
    budget, and out if it has a place for results.
    """
    with store_errors(context, invocation):
        place = place_of(batch, invocation.spending.store)
        if isinstance(place, batches.SharedBatch):
            show_shared(context, invocation, batches.shared_status(place))
        report = batches.status(batch)
    invocation.note(resuming=partial(_command_for, batch))
    _finish(context, invocation, report)


def _check_file_too(source: Source | None, error: LocalError) -> None:
    """Report problems with the items of *source* together with *error*."""
    if source is None:
        return
    try:
        read_items(source)
    except InvalidInput as wrong:
        # The heading of the problems says already that nothing was sent.
        parts = (part for part in error.args if part != NOTHING_SENT)
        problem = InputProblem("the service", message(parts, in_command))
        raise InvalidInput(THE_BATCH, [problem, *wrong.problems]) from error


def exit_code_of(report: Report) -> ExitCode:
    """Return the exit code for the state of a batch."""
    code = exit_code_for(report.counts)
    return NOT_SAVED if report.without_sidecar and code != AMBIGUOUS else code


def _finish(
    context: click.Context,
    invocation: Invocation,
    report: Report,
    *,
    interrupted: KeyboardInterrupt | None = None,
    skipped: Skipped | None = None,
) -> None:
    """Report the state of the batch, and exit with the code for it."""
    state, counts = exit_code_of(report), dict(_counts(report))
    if state == DONE and skipped:
        state = FAILED
    code = state if interrupted is None else interrupted_code(interrupted, state)
    if invocation.presentation.json:
        sheet_path = None if report.sheet is None else str(report.sheet)
        long_document({**summary_record(code, counts, report.entries), "sheet": sheet_path})
    say_reasons(reasons(report), stopped=report.stopped)
    if Stage.AMBIGUOUS in report.counts:
        say_how_to_decide(report.folder)
    say_strays(report.strays)
    if report.stopped:
        say(f"stopped: {report.stopped}")
    if not invocation.presentation.json:
        answer(counted(counts))
        if report.sheet is not None:
            answer(str(report.sheet))
    if report.sheet is not None and report.sheet.name != SHEET:
        say(f"{report.folder / SHEET} is another file: the contact sheet is {report.sheet}")
    if interrupted is not None:
        say(f"to update the contact sheet: {shlex.join((*_SHEET, str(report.folder)))}")
    unfinished = state in (SAFE, NOT_SAVED) or (interrupted is not None and state != DONE)
    others = _named(report.at_work)
    status = ("muybridge", "batch", "status", str(report.folder))
    if unfinished and others:
        say(f"{others}; to see its progress: {shlex.join(status)}")
    elif unfinished:
        invocation.say_next_command()
    context.exit(code)


def _at_work(out: str) -> str:
    """Return which other processes are at work on the batch in *out*, or ""."""
    with suppress(StoreUnusable):  # the run itself reports that
        return _named(processes_at_work(Path(out, FOLDER)))
    return ""


def _named(processes: Sequence[str]) -> str:
    if not processes:
        return ""
    words = "another process ({}) is" if len(processes) == 1 else "other processes ({}) are"
    return f"{words.format(', '.join(processes))} at work on this batch"


def _counts(report: Report) -> Iterator[tuple[str, int]]:
    """Yield how many items are in each state; completed ones whose file is gone are missing."""
    for state, count in report.counts.items():
        missing = report.missing if state is Stage.COMPLETED else 0
        if count > missing:
            yield state, count - missing
        if missing:
            yield "missing", missing


def _command(chosen: _Chosen) -> str | None:
    """Return the command that resumes the batch, or None if no command can.

    The store has the items and the rate. Before the batch is begun, the command needs the file, and
    a pipe cannot be read again.
    """
    invocation = chosen.invocation
    connection = _at_its_service(invocation.connection, chosen.out)
    words = ["muybridge", "batch", "run"]
    if not _is_begun(chosen.out):
        if chosen.file is None or not Path(chosen.file).is_file():
            return None
        words += [chosen.file, *(["--skip-invalid"] if chosen.skipped is not None else [])]
        if chosen.rate is not None:
            words += ["--rate", f"{chosen.rate:g}"]
    words += ["--out", chosen.out, "--concurrency", str(chosen.concurrency)]
    if chosen.limit is not None:
        words += ["--limit", str(chosen.limit)]
    if chosen.dedupe and not connection.local:
        words.append("--dedupe")
    given = ("api_key_file", "base_url", "poll_interval", "timeout", *PERMISSIONS)
    words += words_of(connection, *given)
    words += words_of(invocation.spending, "prices", *LIMIT_NAMES)
    store = invocation.spending.store
    if store is not None:  # the address of a database may have a password
        words += ["--store", "URL" if "://" in store else store]
    for tag in invocation.spending.tags:
        words += ["--tag", tag]
    words += words_of(invocation.presentation, "sidecar")
    return shlex.join([*words, *words_of(connection, "local")])


def _is_begun(out: str) -> bool:
    """Whether there is a batch in *out*, as far as can be read."""
    try:
        return Record.read(Path(out)) is not None
    except StoreUnusable:
        return True


def _command_for(folder: str) -> str:
    """Return the command that continues the batch in *folder*, given no more than its store."""
    given = words_of(_at_its_service(Connection(), folder), "base_url", *PERMISSIONS, "local")
    return shlex.join(["muybridge", "batch", "run", "--out", folder, *given])


def _at_its_service(connection: Connection, folder: str) -> Connection:
    """Return *connection* with the options that lead to the service of the batch in *folder*.

    Those that lead there already stay as they are, and so do all if its store cannot be read.
    """
    try:
        with find_batch(Path(folder)) as found:
            service = found.service
    except (StoreUnusable, LocalError):
        return connection
    if service == LOCAL:
        return attrs.evolve(connection, local=True, base_url=None, api_key_file=None)
    if not connection.local and _is_address_of(service, connection):
        return connection
    elsewhere = attrs.evolve(connection, local=False, base_url=service)
    try:
        Service(base_url=service, allow_plain_http=elsewhere.allow_plain_http)
    except InvalidAddress:  # the batch was begun with that permission
        return attrs.evolve(elsewhere, allow_plain_http=True)
    return elsewhere


def _is_address_of(service: str, connection: Connection) -> bool:
    """Whether *connection* leads to *service*, with all that this takes."""
    try:
        return connection.service().base_url == service
    except InvalidAddress:
        return False
